"""Commands on what was done: report, history."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.api.operation import Operation
from quarterdeck.cli.arguments import Name, OperationName, OutputOption
from quarterdeck.cli.context import Output, look, out
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call
from quarterdeck.cli.output import show
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


@command(app, "history alpha", "history alpha -o wide")
def history(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the operations of a plane and their outcomes."""
    rows = [_row(each) for each in look(lambda looks: looks.history(name))]
    show(rows, ("operation", "type", "from", "to", "phase", "took", "by"), output, wide=("started", "message"))


def _row(operation: Operation) -> dict[str, JsonValue]:
    status, spec = operation.status, operation.spec
    took = None
    if status.started_at is not None and status.finished_at is not None:
        took = f"{(status.finished_at - status.started_at).total_seconds():.1f} s"
    return {
        "operation": operation.metadata.name,
        "type": spec.type.value,
        "from": f"{spec.from_.placement.site}/{spec.from_.replicas}" if spec.from_ else None,
        "to": f"{spec.to.placement.site}/{spec.to.replicas}" if spec.to else None,
        "phase": status.phase.value,
        "took": took,
        "by": spec.requested_by.split(" ")[0],
        "started": status.started_at.isoformat() if status.started_at else None,
        "message": status.message,
    }
