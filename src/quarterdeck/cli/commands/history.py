"""Commands on what was done: report, history."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.api.output.operations import OperationRow
from quarterdeck.cli.arguments import Name, OperationName, OutputOption
from quarterdeck.cli.context import Output, look, out
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call
from quarterdeck.cli.operation_rows import operation_row
from quarterdeck.cli.output import Column, show
from quarterdeck.files import write_atomic

app = group()


class ReportOutput(StrEnum):
    """The forms of a report."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


@command(app, "report alpha", "report alpha -o html --output-file report.html")
def report(
    name: Name,
    operation: OperationName = None,
    output: Annotated[ReportOutput, typer.Option("-o", "--output", help="Output format.")] = ReportOutput.TEXT,
    file: Annotated[Path | None, typer.Option("--output-file", help="Write JSON or HTML to this file.")] = None,
) -> None:
    """Print the report of an operation: its steps, and what clients saw."""
    from quarterdeck.report.schema import dump
    from quarterdeck.report.text import render_text

    made = call(lambda face: face.report(name, operation))
    if output is ReportOutput.TEXT:
        out.print(render_text(made))
        return
    if output is ReportOutput.JSON:
        content = dump(made)
    else:
        from quarterdeck.report.html import render_html  # plotting takes a second to load

        content = render_html(made).encode()
    if file is None:
        sys.stdout.buffer.write(content)
    else:
        write_atomic(file, content)
        out.print(f"written to {file}", highlight=False, soft_wrap=True)


_COLUMNS: tuple[Column[OperationRow], ...] = (
    Column("operation", lambda row: row.name),
    Column("type", lambda row: row.type),
    Column("from", lambda row: f"{row.from_site}/{row.from_replicas}" if row.from_site else None),
    Column("to", lambda row: f"{row.to_site}/{row.to_replicas}" if row.to_site else None),
    Column("phase", lambda row: row.phase),
    Column("took", lambda row: f"{row.duration_seconds:.1f} s" if row.duration_seconds is not None else None),
    Column("by", lambda row: row.requested_by.split(" ")[0]),
    Column("started", lambda row: f"{row.started_at:%Y-%m-%dT%H:%M:%SZ}" if row.started_at else None, wide=True),
    Column("message", lambda row: row.message, wide=True),
)


@command(app, "history alpha", "history alpha -o wide")
def history(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the operations of a plane and their outcomes."""
    show([operation_row(each) for each in look(lambda looks: looks.history(name))], _COLUMNS, output)
