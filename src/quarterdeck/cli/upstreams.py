"""Commands on the upstream programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.cli.arguments import OutputOption
from quarterdeck.cli.context import Output, err, out, run
from quarterdeck.cli.output import show
from quarterdeck.errors import InvalidInput, NotFound
from quarterdeck.upstream.catalog import CONTROL_PLANE, Program, Version, Versions
from quarterdeck.upstream.progress import RichProgress
from quarterdeck.upstream.upstream import Upstream, version_of

app = typer.Typer(help="The programs that control planes run on.", no_args_is_help=True)

Kubernetes = Annotated[str | None, typer.Option("--kubernetes", help="A Kubernetes version.")]
Etcd = Annotated[str | None, typer.Option("--etcd", help="An etcd version.")]


@app.command("list")
def list_(kubernetes: Kubernetes = None, etcd: Etcd = None, output: OutputOption = Output.TABLE) -> None:
    """List the programs, and where they came from."""
    versions = Versions.parse(kubernetes=kubernetes, etcd=etcd)
    rows: list[dict[str, JsonValue]] = [
        {
            "program": str(each.program),
            "version": str(each.version),
            "state": str(each.state),
            "source": each.source,
            "size": f"{each.size / 2**20:.0f} MiB" if each.size else None,
            "path": str(each.path),
        }
        for each in Upstream.from_environment(os.environ).list(versions)
    ]
    show(rows, ("program", "version", "state", "source", "size"), output, wide=("path",))


@app.command()
def fetch(
    programs: Annotated[list[str] | None, typer.Argument(help="Which; all that a plane needs without one.")] = None,
    kubernetes: Kubernetes = None,
    etcd: Etcd = None,
) -> None:
    """Fetch the programs, so that they are there when they are needed."""
    versions = Versions.parse(kubernetes=kubernetes, etcd=etcd)
    wanted = [_program(each) for each in programs] if programs else list(CONTROL_PLANE)
    with RichProgress(err) as progress:
        paths = run(Upstream.from_environment(os.environ, progress=progress).ensure(wanted, versions))
    for program, path in paths.items():
        out.print(f"{program}  {path}", highlight=False, soft_wrap=True)


@app.command()
def path(
    program: Annotated[str, typer.Argument(help="Such as kubectl.", show_default=False)],
    version: Annotated[str | None, typer.Option(help="The default version without it.")] = None,
) -> None:
    """Print the path of a program that is there."""
    which = _program(program)
    wanted = Version.parse(version) if version else version_of(which, Versions())
    found: Path | None = Upstream.from_environment(os.environ).path(which, wanted)
    if found is None:
        raise NotFound(
            f"looking for {program} {wanted}", "it is not there", f"'quarterdeck upstream fetch {program}' gets it"
        )
    out.print(str(found), highlight=False, soft_wrap=True)


def _program(name: str) -> Program:
    try:
        return Program(name)
    except ValueError:
        known = ", ".join(str(each) for each in Program)
        raise InvalidInput(f"looking for program {name!r}", "there is no such program", f"programs: {known}") from None
