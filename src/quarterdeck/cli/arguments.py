"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.app.components import components
from quarterdeck.cli.context import Output, looking, note_plane, run


def _planes(incomplete: str) -> list[str]:
    async def names() -> list[str]:
        async with looking() as looks:
            return [each.metadata.name for each in await looks.planes()]

    return [name for name in run(names()) if name.startswith(incomplete)]


def operations(incomplete: str) -> list[str]:
    """The names of operations that begin like that, for completion."""

    async def names() -> list[str]:
        async with looking() as looks:
            return [each.metadata.name for each in await looks.operations()]

    return [name for name in run(names()) if name.startswith(incomplete)]


Name = Annotated[
    str, typer.Argument(help="The plane's name.", autocompletion=_planes, callback=note_plane, show_default=False)
]
MaybeName = Annotated[
    str | None, typer.Argument(help="The plane's name; all planes without one.", autocompletion=_planes)
]
OperationName = Annotated[
    str | None,
    typer.Option("--operation", help="An operation's name; the last one without it.", autocompletion=operations),
]
SiteName = Annotated[str, typer.Argument(help="The site's name.", show_default=False)]
OutputOption = Annotated[Output, typer.Option("-o", "--output", help="How to print it.")]
#: What help says that an option takes which is a program of a replica; it is read by ``named``.
PROGRAM = f"[{'|'.join(components())}]"
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")]
Detach = Annotated[bool, typer.Option("--detach", help="Return at once; see 'wait'.")]
NoTrial = Annotated[
    bool, typer.Option("--no-trial", help="Do not start the changed programs first to see whether they can start.")
]
HOST_HELP = "A host of an ssh site (HOST, or SITE/HOST) that makes the clients' connections, instead of this one."
ProbeOption = Annotated[bool, typer.Option("--probe", help="Watch it with real clients from outside.")]
ProbeFrom = Annotated[str | None, typer.Option("--probe-from", help=f"The same. {HOST_HELP}", show_default=False)]
FileOption = Annotated[
    Path, typer.Option("-f", "--file", help="YAML or JSON; - for standard input.", show_default=False)
]
