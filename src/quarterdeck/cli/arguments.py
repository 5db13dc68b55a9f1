"""Arguments and options that several commands share, and what is read of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.api.base import Resource
from quarterdeck.cli.context import Output, UnnamedOutput, note_plane, read
from quarterdeck.errors import InvalidInput
from quarterdeck.input_files import PIPE_SILENCE_S, UnreadableFileError, read_standard_input, read_text

#: Inline add-ons are in it; see ``quarterdeck.addons.content.TOTAL_MAX``.
_LARGEST_BYTES = 32 * 2**20


def text_of(file: Path) -> str:
    """What a file or a pipe says, or standard input for ``-``. Raises InvalidInput for what is no text."""
    try:
        if str(file) == "-":
            return read_standard_input(_LARGEST_BYTES)
        return read_text(file, _LARGEST_BYTES, pipe_silence_s=PIPE_SILENCE_S)
    except UnreadableFileError as error:
        raise InvalidInput(f"reading {file}", str(error), "name a file with YAML or JSON that can be read") from error


def _planes(incomplete: str) -> list[str]:
    return _starting(incomplete, read(lambda records: records.planes()))


def operations(incomplete: str) -> list[str]:
    """The names of operations that begin like that, for completion."""
    return _starting(incomplete, read(lambda records: records.operations()))


def _starting(incomplete: str, resources: Iterable[Resource]) -> list[str]:
    return [each.metadata.name for each in resources if each.metadata.name.startswith(incomplete)]


Name = Annotated[
    str, typer.Argument(help="The plane's name.", autocompletion=_planes, callback=note_plane, show_default=False)
]
MaybeName = Annotated[
    str | None, typer.Argument(help="The plane's name (default: all planes).", autocompletion=_planes)
]
ReplicaCount = Annotated[int, typer.Option(help="Number of replicas: 1, 3, 5 or 7.")]
OperationName = Annotated[
    str | None,
    typer.Option("--operation", help="The operation's name (default: the last one).", autocompletion=operations),
]
SiteName = Annotated[str, typer.Argument(help="The site's name.", show_default=False)]
OutputOption = Annotated[Output, typer.Option("-o", "--output", help="Output format.")]
#: The same for facts without names.
UnnamedOption = Annotated[UnnamedOutput, typer.Option("-o", "--output", help="Output format.")]
EvenIfOthersLive = Annotated[
    bool,
    typer.Option(
        "--even-if-others-live",
        help="Begin although members that do not answer may still serve clients. Only if they are surely gone:"
        " otherwise two clusters take writes.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Detach = Annotated[bool, typer.Option("--detach", help="Return at once; 'wait' follows the change.")]
NoTrial = Annotated[bool, typer.Option("--no-trial", help="Skip the test start of programs with changed flags.")]
HOST_HELP = "Connect from a host of an ssh site (HOST or SITE/HOST) instead of this machine."
ProbeOption = Annotated[bool, typer.Option("--probe", help="Measure the plane with real clients meanwhile.")]
ProbeFrom = Annotated[str | None, typer.Option("--probe-from", help=f"Like --probe. {HOST_HELP}", show_default=False)]
FileOption = Annotated[
    Path, typer.Option("-f", "--file", help="YAML or JSON file; - for standard input.", show_default=False)
]
