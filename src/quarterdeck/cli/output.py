"""Facts as tables, JSON or YAML."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from quarterdeck.api.base import Resource
from quarterdeck.cli.context import Output, out, plain
from quarterdeck.yaml_text import dumped

#: More than any line has characters.
_ANY_WIDTH = 10_000


def show(
    rows: Sequence[Mapping[str, JsonValue]],
    columns: Sequence[str],
    output: Output,
    *,
    wide: Sequence[str] = (),
    empty: str = "",
) -> None:
    """Print rows. Tables show ``columns`` (and ``wide`` ones if asked for); JSON and YAML all there is. ``empty``: the
    line that is printed in place of a table without rows.
    """

    def text() -> None:
        if empty and not rows:
            out.print(empty)
        else:
            table(rows, (*columns, *wide) if output is Output.WIDE else columns)

    emit(list(rows), output, text)


def emit(
    fact: Mapping[str, JsonValue] | list[Mapping[str, JsonValue]], output: Output, text: Callable[[], None]
) -> None:
    """Print a fact as JSON or YAML where that is asked for; else have ``text`` print what people read."""
    if output is Output.JSON:
        out.print_json(json.dumps(fact))
    elif output is Output.YAML:
        plain(dumped(fact, sort_keys=False), end="")
    else:
        text()


def document(resources: Sequence[Resource], output: Output) -> None:
    """Print resources as JSON or YAML, as ``load`` reads them."""
    from quarterdeck.api.documents import dump_json, dump_yaml  # for this alone, and not quick to load

    text = dump_json(resources) if output is Output.JSON else dump_yaml(resources)
    plain(text, end="" if output is Output.YAML else "\n")


def table(rows: Sequence[Mapping[str, JsonValue]], columns: Sequence[str]) -> None:
    """A plain table as kubectl prints it: a header and aligned columns, easy to cut and to grep.

    A line is as long as it needs to be, whatever the terminal's width: a name that is broken cannot be copied.
    """
    made = made_table(rows, columns)
    natural = made.__rich_measure__(out, out.options.update(max_width=_ANY_WIDTH)).maximum
    Console(file=out.file, width=max(natural, 1)).print(made, soft_wrap=True)


def made_table(rows: Sequence[Mapping[str, JsonValue]], columns: Sequence[str]) -> Table:
    """The same, to be shown as part of a screen."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(column.upper(), no_wrap=True)
    for row in rows:
        made.add_row(*(_cell(row.get(column)) for column in columns))
    return made


def _cell(value: JsonValue) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, list):
        return ",".join(str(each) for each in value) or "-"
    return str(value)
