"""What the pages read of a class: the ``#:`` comments above fields and values of enums, its summary, and the models in
its fields.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

#: The words for types without parameters.
PLAIN: Mapping[object, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


@cache
def comments(of: type) -> Mapping[str, str]:
    """The comment of each member that the class and its bases declare with one, by the member's name."""
    found: dict[str, str] = {}
    for each in reversed(of.__mro__):
        if each.__module__.startswith("quarterdeck."):
            found |= _of_class(each)
    return found


def _of_class(of: type) -> Mapping[str, str]:
    text = textwrap.dedent(inspect.getsource(of))
    lines = text.splitlines()
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.ClassDef)
    found = {}
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and (comment := _above(lines, statement.lineno - 1)):
                found[target.id] = comment
    return found


def _above(lines: list[str], at: int) -> str:
    """The comment that ends in the line above this one."""
    found: list[str] = []
    while at and (line := lines[at - 1].strip()).startswith("#:"):
        found.insert(0, line.removeprefix("#:").strip())
        at -= 1
    return " ".join(found)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a type consists of."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from models_in(each)


def summary(of: type) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((inspect.getdoc(of) or "").split("\n\n")[0].split())


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [f"| {' | '.join(each.replace('|', chr(92) + '|') for each in line)} |\n" for line in (header, *rows)]
    return "".join((lines[0], "|---" * len(header), "|\n", *lines[1:]))
