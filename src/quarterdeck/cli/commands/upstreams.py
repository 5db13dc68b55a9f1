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
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.output import show

app = group("Fetch and list the upstream Kubernetes and etcd programs.")

Kubernetes = Annotated[str | None, typer.Option("--kubernetes", help="The Kubernetes version.")]
Etcd = Annotated[str | None, typer.Option("--etcd", help="The etcd version.")]


@command(app, "upstream list", name="list")
def list_(kubernetes: Kubernetes = None, etcd: Etcd = None, output: OutputOption = Output.TABLE) -> None:
    """List the programs with their versions, states and sources."""
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


@command(app, "upstream fetch", "upstream fetch kubectl --kubernetes v1.35.6")
def fetch(
    programs: Annotated[
        list[str] | None, typer.Argument(help="The programs (default: all that a plane needs).")
    ] = None,
    kubernetes: Kubernetes = None,
    etcd: Etcd = None,
) -> None:
    """Download programs before they are needed."""
    with RichProgress(err) as progress:
        found = Programs.from_environment(os.environ, progress=progress)
        paths = run(found.fetch(programs or (), kubernetes=kubernetes, etcd=etcd))
    for program, path in paths.items():
        out.print(f"{program}  {path}", highlight=False, soft_wrap=True)


@command(app, "upstream path kubectl")
def path(
    program: Annotated[str, typer.Argument(help="The program, such as kubectl.", show_default=False)],
    version: Annotated[str | None, typer.Option(help="The version (default: the default version).")] = None,
) -> None:
    """Print the path of a downloaded program."""
    found = Programs.from_environment(os.environ).path(program, version)
    out.print(str(found), highlight=False, soft_wrap=True)
