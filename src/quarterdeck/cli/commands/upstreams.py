"""Commands on the upstream programs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from quarterdeck.api.output.sites import FetchedProgram, ProgramRow
from quarterdeck.app import Programs
from quarterdeck.cli.arguments import OutputOption
from quarterdeck.cli.context import Output, err, out, run
from quarterdeck.cli.fetch_progress import RichProgress
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.output import Column, emit, show

app = group("Fetch and list the upstream Kubernetes and etcd programs.")

Kubernetes = Annotated[str | None, typer.Option("--kubernetes", help="The Kubernetes version.")]
Etcd = Annotated[str | None, typer.Option("--etcd", help="The etcd version.")]


_COLUMNS: tuple[Column[ProgramRow], ...] = (
    Column("program", lambda row: row.name),
    Column("version", lambda row: row.version),
    Column("state", lambda row: row.state),
    Column("source", lambda row: row.source),
    Column("size", lambda row: f"{row.size_bytes / 2**20:.0f} MiB" if row.size_bytes else None),
    Column("path", lambda row: row.path, wide=True),
)


@command(app, "upstream list", name="list")
def list_(kubernetes: Kubernetes = None, etcd: Etcd = None, output: OutputOption = Output.TABLE) -> None:
    """List the programs with their versions, states and sources."""
    rows = [
        ProgramRow(
            name=str(each.program),
            version=str(each.version),
            state=str(each.state),
            source=each.source,
            size_bytes=each.size or None,
            path=str(each.path),
        )
        for each in Programs.from_environment(os.environ).list(kubernetes=kubernetes, etcd=etcd)
    ]
    show(rows, _COLUMNS, output)


@command(app, "upstream fetch", "upstream fetch kubectl --kubernetes v1.35.6")
def fetch(
    programs: Annotated[
        list[str] | None, typer.Argument(help="The programs (default: all that a plane needs).")
    ] = None,
    kubernetes: Kubernetes = None,
    etcd: Etcd = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Download programs before they are needed."""
    with RichProgress(err) as progress:
        found = Programs.from_environment(os.environ, progress=progress)
        paths = run(found.fetch(programs or (), kubernetes=kubernetes, etcd=etcd))
    rows = [FetchedProgram(name=str(program), path=str(path)) for program, path in paths.items()]

    def text() -> None:
        for each in rows:
            out.print(f"{each.name}  {each.path}", highlight=False, soft_wrap=True)

    emit(rows, output, text)


@command(app, "upstream path kubectl")
def path(
    program: Annotated[str, typer.Argument(help="The program, such as kubectl.", show_default=False)],
    version: Annotated[str | None, typer.Option(help="The version (default: the default version).")] = None,
) -> None:
    """Print the path of a downloaded program."""
    found = Programs.from_environment(os.environ).path(program, version)
    out.print(str(found), highlight=False, soft_wrap=True)
