"""The commands that attach volumes of people's own storage: what they promise is in docs/storage.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.components.endings import last_reason
from quarterdeck.errors import Unavailable
from quarterdeck.runner import run, start

#: What a command ends with that was asked for a volume which there is not.
NO_SUCH_VOLUME = 3
#: Seconds that a command may take.
DEADLINE = 120.0
_NAMED = re.compile(r"\{([A-Za-z]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeCommands:
    """The commands of a storage class, each an argv; no ``snapshot``: its volumes have none."""

    attach: tuple[str, ...]
    detach: tuple[str, ...]
    snapshot: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a command is asked about. ``path``: where the volume is to be on that host; ``make``: whether one that there
    is not is to be made.
    """

    volume: str
    storage_class: str
    host: str
    address: str
    path: str
    make: bool = False
    snapshot: str = ""


def filled(argv: Sequence[str], asked: Asked) -> tuple[str, ...]:
    """A command about this volume. What stands in braces and means nothing stays."""
    values: Mapping[str, str] = {
        "volume": asked.volume,
        "storageClass": asked.storage_class,
        "host": asked.host,
        "address": asked.address,
        "path": asked.path,
        "make": "yes" if asked.make else "no",
        "snapshot": asked.snapshot,
    }
    return tuple(_NAMED.sub(lambda found: values.get(found[1], found[0]), word) for word in argv)


async def run_command(doing: str, argv: Sequence[str], asked: Asked, *, deadline: float = DEADLINE) -> bool:
    """Run a command of people's, in a process group of its own, and no shell. Whether there is such a volume.

    Raises Unavailable with the reason that it gave where it ended otherwise, TimedOut; all of its group is killed when
    nobody waits for it any more.
    """
    words = filled(argv, asked)
    try:
        ended = await run(words, doing=doing, deadline=deadline, by=start(folder=Path("/")), wholly=True)
    except OSError as error:
        raise Unavailable(doing, f"{words[0]} cannot be run ({error.strerror or error})") from error
    if ended.code not in (0, NO_SUCH_VOLUME):
        said = last_reason(ended.errors) or last_reason(ended.output) or "it said nothing"
        raise Unavailable(doing, f"{words[0]} {ended.how}: {said}")
    return ended.code == 0
