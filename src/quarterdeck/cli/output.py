"""Facts as tables, JSON, YAML or names: all of them are models, and a table is made from the same models."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from quarterdeck.cli.context import Output, UnnamedOutput, out, plain
from quarterdeck.yaml_text import dumped

if TYPE_CHECKING:
    from pydantic import BaseModel

    from quarterdeck.api.base import Resource
    from quarterdeck.api.output.base import NamedOutput

#: What ``-o name`` calls a resource, where that is not the name of its class.
_KINDS = {"ControlPlane": "plane"}
#: More than any line has characters.
_ANY_WIDTH = 10_000

R = TypeVar("R")
N = TypeVar("N", bound="NamedOutput")
M = TypeVar("M", bound="BaseModel")


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """A column of a table of rows ``R``. ``wide``: shown with ``-o wide`` only."""

    title: str
    cell: Callable[[R], object]
    wide: bool = False


@overload
def show(rows: Sequence[N], columns: Sequence[Column[N]], output: Output, *, empty: str = "") -> None: ...
@overload
def show(rows: Sequence[M], columns: Sequence[Column[M]], output: UnnamedOutput, *, empty: str = "") -> None: ...
def show(rows: Sequence[M], columns: Sequence[Column[M]], output: Output | UnnamedOutput, *, empty: str = "") -> None:
    """Print rows. ``empty``: the line that is printed in place of a table without rows."""

    def text() -> None:
        if empty and not rows:
            out.print(empty)
        else:
            table(rows, columns, wide=output.value == Output.WIDE.value)

    _emit(rows, output, text)


@overload
def emit(fact: NamedOutput | Sequence[NamedOutput], output: Output, text: Callable[[], None]) -> None: ...
@overload
def emit(fact: BaseModel | Sequence[BaseModel], output: UnnamedOutput, text: Callable[[], None]) -> None: ...
def emit(fact: BaseModel | Sequence[BaseModel], output: Output | UnnamedOutput, text: Callable[[], None]) -> None:
    """Print a fact as JSON, YAML or a name where that is asked for; else have ``text`` print what people read."""
    _emit(fact, output, text)


def _emit(fact: BaseModel | Sequence[BaseModel], output: Output | UnnamedOutput, text: Callable[[], None]) -> None:
    if output.for_people:
        text()
    elif output is Output.NAME:
        names((fact,) if not isinstance(fact, Sequence) else fact)
    elif output.value == Output.JSON.value:
        out.print_json(json.dumps(_document(fact)))
    else:
        plain(dumped(_document(fact), sort_keys=False), end="")


def _document(fact: BaseModel | Sequence[BaseModel]) -> object:
    if isinstance(fact, Sequence):
        return [each.model_dump(mode="json") for each in fact]
    return fact.model_dump(mode="json")


def names(facts: Sequence[BaseModel]) -> None:
    """Print the names of facts, one on a line."""
    from quarterdeck.api.output.base import NamedOutput

    for each in facts:
        assert isinstance(each, NamedOutput), "the overloads of ``show`` and ``emit`` see to it"
        plain(each.full_name)


@overload
def done(result: NamedOutput, output: Output, text: str) -> None: ...
@overload
def done(result: BaseModel, output: UnnamedOutput, text: str) -> None: ...
def done(result: BaseModel, output: Output | UnnamedOutput, text: str) -> None:
    """Print what was done; ``text``: in a sentence."""
    _emit(result, output, lambda: out.print(text, highlight=False, soft_wrap=True))


def document(resources: Sequence[Resource], output: Output) -> None:
    """Print resources as JSON or YAML, as ``load`` reads them, or their names."""
    if output is Output.NAME:
        for each in resources:
            plain(f"{_KINDS.get(type(each).__name__, type(each).__name__.lower())}/{each.name}")
        return
    from quarterdeck.api.documents import dump_json, dump_yaml  # for this alone, and not quick to load

    text = dump_json(resources) if output is Output.JSON else dump_yaml(resources)
    plain(text, end="" if output is Output.YAML else "\n")


def table(rows: Sequence[R], columns: Sequence[Column[R]], *, wide: bool = False) -> None:
    """A plain table as kubectl prints it: a header and aligned columns, easy to cut and to grep.

    A line is as long as it needs to be, whatever the terminal's width: a name that is broken cannot be copied.
    """
    made = made_table(rows, [each for each in columns if wide or not each.wide])
    natural = made.__rich_measure__(out, out.options.update(max_width=_ANY_WIDTH)).maximum
    Console(file=out.file, width=max(natural, 1)).print(made, soft_wrap=True)


def made_table(rows: Sequence[R], columns: Sequence[Column[R]]) -> Table:
    """The same, to be shown as part of a screen."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(column.title.upper(), no_wrap=True)
    for row in rows:
        made.add_row(*(_cell(column.cell(row)) for column in columns))
    return made


def known(answer: bool | None) -> str:
    """An answer that may not be known."""
    return {True: "yes", False: "no", None: "unknown"}[answer]


def _cell(value: object) -> str | Text:
    """What is no ``Text`` is printed as it is, without markup."""
    if value is None or value == "":
        return "-"
    if isinstance(value, Text):
        return value
    if isinstance(value, list | tuple):
        return escape(",".join(str(each) for each in value)) or "-"
    return escape(str(value))
