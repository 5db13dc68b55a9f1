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
from quarterdeck.cli.groups import group
from quarterdeck.cli.open_home import call
from quarterdeck.cli.output import show
from quarterdeck.files import write_atomic

app = group()


class ReportOutput(StrEnum):
    """The forms of a report."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


@app.command()
def report(
    name: Name,
    operation: OperationName = None,
    output: Annotated[ReportOutput, typer.Option("-o", "--output", help="Its form.")] = ReportOutput.TEXT,
    file: Annotated[Path | None, typer.Option("-f", "--file", help="Write it there.")] = None,
) -> None:
    """Print the report of an operation: what was done, and what every client saw."""
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


@app.command()
def history(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List what was asked of a plane, and how it went."""
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
