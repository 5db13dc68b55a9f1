"""Mutants: each has one small change to a rule of the planner. ``mutant_trials`` tries them."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = "quarterdeck.planner"
PLANNER = ROOT / "src" / "quarterdeck" / "planner"
#: The modules of the planner and its rules; the simulator decides nothing.
MODULES = tuple(
    sorted(
        each.stem for folder in (PLANNER, PLANNER / "rules") for each in folder.glob("*.py") if each.stem != "__init__"
    )
)

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
    """One small change to a module. ``key`` names it by its function and its text, so that it stays the same when lines
    move.
    """

    module: str
    key: str
    line: int
    #: The lines of the statement that it changes; a statement that contains others counts only up to the first of them.
    lines: range
    #: It changes the body of a function, and nothing that runs when the module is imported.
    in_function: bool
    before: ast.Module
    #: The node that is replaced, and what replaces it.
    nodes: tuple[ast.AST, ast.AST]

    @property
    def name(self) -> str:
        """The full name of its module."""
        return _full_name(self.module)

    @property
    def tree(self) -> ast.Module:
        """The changed module, with the line numbers of the original."""
        return _with(self.before, *self.nodes)

    @property
    def table(self) -> str:
        """The name of the table that it changes, or ""."""
        match self.nodes[0]:
            case ast.AnnAssign(ast.Name(name)) as node if _is_table(node):
                return name
            case _:
                return ""

    @cached_property
    def around(self) -> str:
        """A hash of the function (or class, or statement at the top of the module) that it changes."""
        top = [each for each in self.before.body if each.lineno <= self.line]
        return hashlib.sha256(ast.unparse(ast.Module(top[-1:], [])).encode()).hexdigest()[:16]


def _full_name(module: str) -> str:
    return f"{PACKAGE}.rules.{module}" if (PLANNER / "rules" / f"{module}.py").exists() else f"{PACKAGE}.{module}"


def source(module: str) -> str:
    """The source of a module as it is."""
    return (ROOT / "src" / _full_name(module).replace(".", "/")).with_suffix(".py").read_text()


@dataclass(frozen=True)
class _Spot:
    """Where a node is: the function, and the fields of ``Mutant`` with these names."""

    function: str = ""
    in_function: bool = False
    lines: range = range(1, 1)


def mutants(module: str) -> tuple[Mutant, ...]:
    """All mutants of one module, in the order of its lines."""
    tree = ast.parse(source(module))
    found: list[Mutant] = []
    count: Counter[str] = Counter()
    for spot, node in _nodes(tree, _Spot()):
        for mutated, before, after in _variants(node):
            if before == after:
                continue
            where = f"{module}.{spot.function}" if spot.function else module
            name = f"{where}: {before} => {after}"
            count[name] += 1
            key = name if count[name] == 1 else f"{name} (number {count[name]})"
            line: int = getattr(node.target if isinstance(node, ast.comprehension) else node, "lineno", 0)
            found.append(Mutant(module, key, line, spot.lines, spot.in_function, tree, (node, mutated)))
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


def _with(tree: ast.Module, node: ast.AST, mutated: ast.AST) -> ast.Module:
    """The module with one node replaced by another."""

    class Replacer(ast.NodeTransformer):
        def visit(self, at: ast.AST) -> Any:
            if at is not node:
                return self.generic_visit(_shallow(at))
            made = _complete(copy.deepcopy(mutated))
            return ast.copy_location(made, at) if hasattr(at, "lineno") else made

    changed: ast.Module = ast.fix_missing_locations(Replacer().visit(tree))
    return changed


def _complete(node: ast.AST) -> ast.AST:
    """The node with a context wherever the compiler needs one: what a mutant makes is read, not assigned."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name | ast.Attribute | ast.Tuple) and not hasattr(each, "ctx"):
            each.ctx = ast.Load()
    return node


def _shallow(node: ast.AST) -> ast.AST:
    """A copy whose lists may be changed without changing the original's."""
    made = copy.copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            setattr(made, name, list(value))
    return made


def _nodes(node: ast.AST, spot: _Spot) -> Iterator[tuple[_Spot, ast.AST]]:
    """What can be mutated, and where it is: no annotations, no docstrings, no texts for people."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases") or _is_text(node, name):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Import | ast.ImportFrom | ast.Assert):
                continue
            inside = replace(spot, lines=_own_lines(child) or spot.lines)
            if name == "body" and isinstance(node, ast.FunctionDef):
                inside = replace(inside, in_function=True)
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = replace(inside, function=f"{spot.function}.{child.name}" if spot.function else child.name)
            yield inside, child
            if not _is_table(child):
                yield from _nodes(child, inside)


def _own_lines(node: ast.AST) -> range:
    """The lines of a statement, or of a case, without those of the statements that it contains."""
    match node:
        case ast.match_case(pattern, _, [first, *_]):
            return range(pattern.lineno, max(first.lineno, pattern.lineno + 1))
        case ast.Match(_, [first, *_]):
            return range(node.lineno, max(first.pattern.lineno, node.lineno + 1))
        case ast.stmt():
            inner = [each.lineno for each in ast.walk(node) if isinstance(each, ast.stmt) and each is not node]
            return range(node.lineno, max(min(inner, default=(node.end_lineno or node.lineno) + 1), node.lineno + 1))
        case _:
            return range(0)


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
        keywords = {each.arg or "": each.value for each in node.keywords}
        ask = keywords.pop("ask")
        return cls(_short(ask), ask, tuple(keywords.items()))

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
        keywords = (("ask", self.ask), *self.flags)
        return ast.Call(ast.Name("Rule"), [], [ast.keyword(name, value) for name, value in keywords])


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
