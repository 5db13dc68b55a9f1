"""Every small thing wrong with a rule of the planner, one at a time: none may go unnoticed.

``./test mutants`` breaks each line of the rules in every way that ``_mutated`` knows, and asks the planner's unit tests
and then the searches whether they notice. What none of them notices is printed, and must be mended (by a claim or a
test), or be on the list in ``equivalent.py`` with the reason why it harms nobody. ``--quick`` asks no big
search and takes most of an hour; ``--modules view,traffic`` and ``--part 3/10`` take less.

With ``--log FILE`` a later run goes on where the one before ended: what was noticed is not tried again as long as its
function stays as it is (a change of the tests alone does not count).
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import hashlib
import importlib
import io
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = "quarterdeck.planner"
#: The modules that hold rules, or what rules hang on.
MODULES = (
    "view",
    "reading",
    "membership",
    "traffic",
    "replica_programs",
    "placement",
    "notes",
    "planner",
    "rule_table",
    "quorum",
    "release",
    "slots",
    "claims",
    "events",
    "healing",
    "machines",
    "members",
    "rollout",
    "rolling_restart",
    "revisions",
    "stage",
)
#: Seconds of the processor that the unit tests, and each search, may take: what takes longer goes round in circles.
LIMIT = 240
#: The same for those that take a few seconds with the rules as they are.
QUICK_LIMIT = 30

_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_SWAPPED = {"any": "all", "all": "any", "min": "max", "max": "min"}


@dataclass(frozen=True)
class Mutant:
    """One thing wrong. ``key`` names it by its function and its text, so that it stays the same when lines move;
    ``original`` is the module's source without it.
    """

    module: str
    key: str
    line: int
    original: str
    nodes: tuple[ast.AST, ast.AST] | None = None
    tree: ast.Module | None = None

    @property
    def source(self) -> str:
        """The module's source with it."""
        if self.tree is None or self.nodes is None:
            return self.original
        return _with(self.tree, *self.nodes)

    @cached_property
    def around(self) -> str:
        """A hash of the function (or class, or whatever at the top of the module) that it is in."""
        top = [each for each in (self.tree.body if self.tree else ()) if each.lineno <= self.line]
        return hashlib.sha256(ast.unparse(ast.Module(top[-1:], [])).encode()).hexdigest()[:16]


def _place(module: str) -> str:
    """The full name of a module of the planner: the rules are in a package of their own."""
    rule = ROOT / "src" / "quarterdeck" / "planner" / "rules" / f"{module}.py"
    return f"{PACKAGE}.rules.{module}" if rule.exists() else f"{PACKAGE}.{module}"


def mutants(module: str) -> tuple[Mutant, ...]:
    """All mutants of one module, in the order of its lines."""
    original = (ROOT / "src" / _place(module).replace(".", "/")).with_suffix(".py").read_text()
    tree = ast.parse(original)
    found: list[Mutant] = []
    count: Counter[str] = Counter()
    for where, node in _nodes(tree, ""):
        for mutated, before, after in _variants(node):
            if before == after:
                continue
            name = f"{module}.{where}: {before} => {after}" if where else f"{module}: {before} => {after}"
            count[name] += 1
            key = name if count[name] == 1 else f"{name} (number {count[name]})"
            line: int = getattr(node.target if isinstance(node, ast.comprehension) else node, "lineno", 0)
            found.append(Mutant(module, key, line, original, (node, mutated), tree))
    return tuple(found)


def _variants(node: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:
    """What a node is mutated to, with the texts before and after; of the table of rules only the rows that differ."""
    match node:
        case ast.AnnAssign(ast.Name("RULES") as name, kind, ast.Tuple(rows)):
            for before, after, changed in _tables([_Row.of(each) for each in rows]):
                yield ast.AnnAssign(name, kind, ast.Tuple([row.call for row in changed]), 1), before, after
        case _:
            for mutated in _mutated(node):
                yield mutated, _short(node), _short(mutated)


def _short(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def _with(tree: ast.Module, node: ast.AST, mutated: ast.AST) -> str:
    """The module's source with one node replaced by another."""

    class Replacer(ast.NodeTransformer):
        def visit(self, at: ast.AST) -> Any:
            return copy.deepcopy(mutated) if at is node else self.generic_visit(_shallow(at))

    return ast.unparse(ast.fix_missing_locations(Replacer().visit(tree)))


def _shallow(node: ast.AST) -> ast.AST:
    """A copy whose lists may be changed without changing the original's."""
    made = copy.copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            setattr(made, name, list(value))
    return made


def _nodes(node: ast.AST, where: str) -> Iterator[tuple[str, ast.AST]]:
    """What can be mutated, with the function that it is in: no annotations, no docstrings, no texts for people."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases") or _is_text(node, name):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Import | ast.ImportFrom | ast.Assert):
                continue
            inside = where
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = f"{where}.{child.name}" if where else child.name
            yield inside, child
            if not _is_table(child):
                yield from _nodes(child, inside)


def _is_table(node: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "RULES"


def _is_text(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.keyword) and node.arg in ("why", "site"))


def _mutated(node: ast.AST) -> Iterator[ast.AST]:  # noqa: C901 - a table, a case for each kind of node
    match node:
        case ast.BoolOp(op, values):
            for index in range(len(values)):
                rest = values[:index] + values[index + 1 :]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.Compare(left, [op], comparators) if type(op) in _FLIPPED:
            yield ast.Compare(left, [_FLIPPED[type(op)]()], comparators)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.comprehension(target, source, conditions):
            for index in range(len(conditions)):
                yield ast.comprehension(target, source, conditions[:index] + conditions[index + 1 :], 0)
        case ast.If(test, body, other):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, other)
        case ast.IfExp(test, body, other):
            yield body
            yield other
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Call(ast.Name(name), arguments, keywords) if name in _SWAPPED:
            yield ast.Call(ast.Name(_SWAPPED[name]), arguments, keywords)
        case ast.BinOp(left, ast.BitOr() | ast.Sub() | ast.BitAnd() | ast.Add(), right):
            yield left
            yield right
        case ast.Return(ast.Call(ast.Name("RuleOutcome"), [_, *_])):
            yield ast.Return(ast.Call(ast.Name("RuleOutcome"), [], []))
        case ast.Expr(ast.Call(ast.Attribute(_, "append" | "extend" | "add"))) | ast.Continue() | ast.Break():
            yield ast.Pass()
        case _:
            return


# --- the table of rules ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A row of the table: the rule, and by name what says when it is asked."""

    rule: str
    ask: ast.expr
    flags: tuple[tuple[str, ast.expr], ...]

    @classmethod
    def of(cls, node: ast.expr) -> _Row:
        assert isinstance(node, ast.Call)
        assert not node.args, "a row names all that it says"
        said = {each.arg or "": each.value for each in node.keywords}
        ask = said.pop("ask")
        return cls(_short(ask), ask, tuple(said.items()))

    @property
    def situations(self) -> tuple[str, ...]:
        """Whether it is asked where the members are known, where they are not, or both."""
        members = next((_short(value) for name, value in self.flags if name == "members"), "KNOWN")
        return ("KNOWN", "UNKNOWN") if members == "EITHER" else (members,)

    def only(self, situations: tuple[str, ...]) -> tuple[_Row, ...]:
        """The same asked only in some of these; nothing where that is never."""
        left = tuple(each for each in self.situations if each in situations)
        if len(left) == len(self.situations) or not left:
            return (self,) * bool(left)
        return (self.without("members", ("members", _members(left[0]))),)

    def without(self, flag: str, *others: tuple[str, ast.expr]) -> _Row:
        """The same without that one."""
        return replace(self, flags=(*(each for each in self.flags if each[0] != flag), *others))

    @property
    def call(self) -> ast.Call:
        said = (("ask", self.ask), *self.flags)
        return ast.Call(ast.Name("Rule"), [], [ast.keyword(name, value) for name, value in said])


def _members(situation: str) -> ast.expr:
    return ast.Attribute(ast.Name("Members"), situation)


def _tables(rows: list[_Row]) -> Iterator[tuple[str, str, list[_Row]]]:
    """What differs, before and after, and the rows: in each situation by itself a rule is left out, or two that are
    neighbours there are the other way round; and what a row says of when else it is asked is taken from it.
    """
    for situation in ("UNKNOWN", "KNOWN"):
        there = [index for index, row in enumerate(rows) if situation in row.situations]
        where = f"RULES, members {situation.lower()}"
        for index in there:
            yield f"{where}: {rows[index].rule}", "nothing", _without(rows, index, situation)
        for one, other in pairwise(there):
            first, second = rows[one].rule, rows[other].rule
            left, moved = _without(rows, other, situation), rows[other].only((situation,))
            yield f"{where}: {first}, {second}", f"{second}, {first}", [*left[:one], *moved, *left[one:]]
    for index, row in enumerate(rows):
        for flag, value in row.flags:
            if flag != "members":
                changed = [*rows[:index], row.without(flag), *rows[index + 1 :]]
                yield f"RULES, {row.rule}: {flag}={_short(value)}", "nothing", changed


def _without(rows: list[_Row], index: int, situation: str) -> list[_Row]:
    """The rows without one of them in one situation."""
    others = tuple(each for each in ("KNOWN", "UNKNOWN") if each != situation)
    return [*rows[:index], *rows[index].only(others), *rows[index + 1 :]]


# --- how each is tried ----------------------------------------------------------------------------------------------


class _Finder(MetaPathFinder, Loader):
    """Imports one module as it is mutated."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == _place(self.mutant.module) else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.source, f"<{self.mutant.key}>", "exec"), module.__dict__)


def tried(mutant: Mutant, *, quick: bool = False) -> str:
    """Who notices a mutant ("" if nobody does), asked in a process of its own. ``quick``: only the quick ones are
    asked.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = b"an error"
        try:
            _forget_the_planner()
            sys.meta_path.insert(0, _Finder(mutant))
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                status = _noticed(quick).encode()
        except BaseException as error:  # noqa: BLE001 - whatever it is, somebody noticed
            status = f"{type(error).__name__}".encode()
        finally:
            os.write(writing, status)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(child, 0)
    return said


def _forget_the_planner() -> None:
    """Whatever the parent has imported of it, or by it, is imported anew."""
    ours = ("quarterdeck.planner", "model.", "test_planner_", "test_quorum")
    for name in [name for name in sys.modules if name.startswith(ours) and name != __name__]:
        del sys.modules[name]


def _noticed(quick: bool) -> str:
    """In the child: the quick ones are asked first."""
    signal.signal(signal.SIGPROF, _too_long)
    checks = importlib.import_module("model.noticing").checks(quick)
    for name, check in checks:
        signal.setitimer(signal.ITIMER_PROF, QUICK_LIMIT if quick else LIMIT)
        try:
            if check():
                return str(name)
        except _TooLong:
            return f"{name}: no end"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


class _TooLong(BaseException):
    """A check takes too long."""


def _too_long(*_: object) -> None:
    raise _TooLong


def noticed_before(log: Path) -> set[tuple[str, str]]:
    """The mutants, with what is around them, that somebody noticed by a log."""
    lines = log.read_text().splitlines() if log.exists() else []
    return {(entry["key"], entry["around"]) for entry in map(json.loads, lines) if entry["by"]}


def main() -> int:
    """Try all mutants; the number of those that nobody notices and nobody has given a reason for is the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", default=",".join(MODULES))
    parser.add_argument("--part", default="1/1", help="the Nth of M parts")
    parser.add_argument("--only", default="", help="only mutants whose key holds this text")
    parser.add_argument("--quick", action="store_true", help="ask only unit tests and small searches")
    parser.add_argument("--log", default="", help="a file that gets a line of JSON for each mutant")
    chosen = parser.parse_args()
    part, parts = map(int, chosen.part.split("/"))
    everything = [
        mutant for module in chosen.modules.split(",") for mutant in mutants(module) if chosen.only in mutant.key
    ]
    known = importlib.import_module("model.equivalent").EQUIVALENT
    unnoticed = 0
    before = noticed_before(Path(chosen.log)) if chosen.log else set[tuple[str, str]]()
    for mutant in everything[part - 1 :: parts]:
        if mutant.key in known or (mutant.key, mutant.around) in before:
            continue
        began = time.monotonic()
        by = tried(mutant, quick=chosen.quick)
        if chosen.log:
            with Path(chosen.log).open("a") as log:
                log.write(json.dumps({"key": mutant.key, "around": mutant.around, "by": by}) + "\n")
        if not by:
            unnoticed += 1
            print(f"NOBODY NOTICES ({time.monotonic() - began:.0f} s) line {mutant.line}: {mutant.key}", flush=True)
    print(f"{len(everything[part - 1 :: parts])} mutants, {unnoticed} unnoticed", flush=True)
    return min(unnoticed, 100)


if __name__ == "__main__":
    sys.exit(main())
