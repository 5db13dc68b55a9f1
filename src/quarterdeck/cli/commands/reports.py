"""The command on what an operation did: report."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.cli.arguments import Name, OperationName
from quarterdeck.cli.context import out
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call
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
