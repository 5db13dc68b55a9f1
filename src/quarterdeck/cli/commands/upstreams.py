"""Commands on the upstream programs."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.app import Programs
from quarterdeck.cli.arguments import OutputOption
from quarterdeck.cli.context import Output, err, out, run
from quarterdeck.cli.fetch_progress import RichProgress
from quarterdeck.cli.groups import group
from quarterdeck.cli.output import show

app = group("The programs that control planes run on.")

Kubernetes = Annotated[str | None, typer.Option("--kubernetes", help="A Kubernetes version.")]
Etcd = Annotated[str | None, typer.Option("--etcd", help="An etcd version.")]


@app.command("list")
def list_(kubernetes: Kubernetes = None, etcd: Etcd = None, output: OutputOption = Output.TABLE) -> None:
    """List the programs, and where they came from."""
    rows: list[dict[str, JsonValue]] = [
        {
            "program": str(each.program),
            "version": str(each.version),
            "state": str(each.state),
            "source": each.source,
            "size": f"{each.size / 2**20:.0f} MiB" if each.size else None,
            "path": str(each.path),
        }
        for each in Programs.from_environment(os.environ).list(kubernetes=kubernetes, etcd=etcd)
    ]
    show(rows, ("program", "version", "state", "source", "size"), output, wide=("path",))


@app.command()
def fetch(
    programs: Annotated[list[str] | None, typer.Argument(help="Which; all that a plane needs without one.")] = None,
    kubernetes: Kubernetes = None,
    etcd: Etcd = None,
) -> None:
    """Fetch the programs, so that they are there when they are needed."""
    with RichProgress(err) as progress:
        found = Programs.from_environment(os.environ, progress=progress)
        paths = run(found.fetch(programs or (), kubernetes=kubernetes, etcd=etcd))
    for program, path in paths.items():
        out.print(f"{program}  {path}", highlight=False, soft_wrap=True)


@app.command()
def path(
    program: Annotated[str, typer.Argument(help="Such as kubectl.", show_default=False)],
    version: Annotated[str | None, typer.Option(help="The default version without it.")] = None,
) -> None:
    """Print the path of a program that is there."""
    found = Programs.from_environment(os.environ).path(program, version)
    out.print(str(found), highlight=False, soft_wrap=True)
