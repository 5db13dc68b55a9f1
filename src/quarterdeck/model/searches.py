"""Lines that are looked for in files of a volume: of logs that are too long to be read as a whole."""

from __future__ import annotations

import re
from dataclasses import dataclass

from quarterdeck.errors import InvalidInput

#: Bytes: what is kept of what was found on a machine.
MOST_FOUND = 16 * 2**20
_FILES = re.compile(r"[A-Za-z0-9._*-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """All lines that have any of ``texts`` in them, as they stand, of the files right in the volume whose names are of
    the form ``files`` (``*``: anything), and that were written to at ``since`` (seconds since the epoch) or later. Of
    more than ``most`` bytes the last are kept. Raises InvalidInput for texts that no line can have.
    """

    files: str
    texts: tuple[str, ...]
    since: float
    most: int = MOST_FOUND

    def __post_init__(self) -> None:
        doing = f"looking for lines in {self.files}"
        if not _FILES.fullmatch(self.files):
            raise InvalidInput(doing, "that names no files", "use letters, digits and . _ - *")
        if not self.texts or any(not each or "\n" in each for each in self.texts):
            raise InvalidInput(doing, f"no line has {self.texts!r} in it", "name texts of one line")


@dataclass(frozen=True, slots=True)
class Found:
    """The ``lines`` that were found, file by file in the order of their names; ``cut``: the first ones are not there,
    since there were too many.
    """

    lines: tuple[str, ...]
    cut: bool = False


def found(said: bytes, most: int) -> Found:
    """The last whole lines of ``said`` that are no more than ``most`` bytes."""
    cut = len(said) > most
    if cut:
        said = said[len(said) - most - 1 :].partition(b"\n")[2]
    return Found(tuple(said.decode(errors="replace").splitlines()), cut)
