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
from dataclasses import dataclass
from functools import cached_property
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = "quarterdeck.planner"
#: The modules that hold rules, or what rules hang on.
MODULES = (
    *("view", "membership", "traffic", "serving", "founding", "notes"),
    *("planner", "quorum", "release", "slots", "data"),
    *(
        "claims",
        "clusters",
        "events",
        "healing",
        "machines",
        "match",
        "members",
        "reloading",
        "resting",
        "round_robin",
        "revisions",
        "rolling",
        "stage",
    ),
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
        for mutated in _mutated(node):
            before, after = _texts(node, mutated)
            if before == after:
                continue
            name = f"{module}.{where}: {before} => {after}" if where else f"{module}: {before} => {after}"
            count[name] += 1
            key = name if count[name] == 1 else f"{name} (number {count[name]})"
            line: int = getattr(node.target if isinstance(node, ast.comprehension) else node, "lineno", 0)
            found.append(Mutant(module, key, line, original, (node, mutated), tree))
    return tuple(found)


def _texts(node: ast.AST, mutated: ast.AST) -> tuple[str, str]:
    """Before and after; of a table of rules only those that differ."""
    match node, mutated:
        case (
            ast.AnnAssign(target=name, value=ast.Tuple(old) | ast.Call(args=[ast.Tuple(old)])),
            ast.AnnAssign(value=ast.Tuple(new)),
        ):
            before, after = list(map(_short, old)), list(map(_short, new))
            start = next(index for index, rule in enumerate(before) if after[index : index + 1] != [rule])
            rest = len(before) - start - (1 if len(after) < len(before) else 2)
            return f"{_short(name)}: {_between(before, start, rest)}", _between(after, start, rest) or "nothing"
        case _:
            return _short(node), _short(mutated)


def _between(rules: list[str], start: int, rest: int) -> str:
    return ", ".join(rules[start : len(rules) - rest])


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
            yield from _nodes(child, inside)


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
        case ast.Return(ast.Call(ast.Name("Outcome"), [_, *_])):
            yield ast.Return(ast.Call(ast.Name("Outcome"), [], []))
        case ast.Expr(ast.Call(ast.Attribute(_, "append" | "extend" | "add"))) | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign([ast.Name("BESIDE")], ast.Tuple() as rules) | ast.AnnAssign(value=ast.Tuple() as rules):
            for changed in _rules(rules.elts):
                made = copy.copy(node)
                made.value = ast.Tuple(changed)
                yield made
        case ast.AnnAssign(value=ast.Call(ast.Name("frozenset"), [ast.Tuple() as rules])):
            for index in range(len(rules.elts)):
                made = copy.copy(node)
                made.value = ast.Tuple([*rules.elts[:index], *rules.elts[index + 1 :]])
                yield made
        case _:
            return


def _rules(rules: list[ast.expr]) -> Iterator[list[ast.expr]]:
    """A rule left out, and two neighbours the other way round."""
    for index in range(len(rules)):
        yield rules[:index] + rules[index + 1 :]
    for index in range(len(rules) - 1):
        yield [*rules[:index], rules[index + 1], rules[index], *rules[index + 2 :]]


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
