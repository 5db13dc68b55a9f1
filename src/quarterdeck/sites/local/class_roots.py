"""The folder of a machine's volumes of one storage class, which may be on a disk that is not mounted now."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.errors import Unavailable
from quarterdeck.files import write_atomic

#: No volume has a name that begins with a dot.
MARKER = ".quarterdeck"
_BEGUN = b"begun "


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRoot:
    """``folder`` has the volumes. It is below ``disk``, a folder of the user's that is never created here: where it
    does not exist, its disk is not mounted. None: the home creates all of it.

    Once a disk is used, a marker in ``folder`` and ``note``, a file of the home's, have the same content: a folder
    without it is not the one that was used, and data on the other one is not lost.
    """

    storage_class: str
    folder: Path
    disk: Path | None
    note: Path

    def is_there(self, doing: str) -> bool:
        """Whether it can hold volumes now; False when it was never used.

        Raises Unavailable when it was used and is missing, or belongs to another home: then nothing is known of
        volumes.
        """
        if self.disk is None:
            return self.folder.is_dir()
        noted, marked = _word(self.note), _word(self.folder / MARKER)
        if noted is not None and noted.startswith(_BEGUN):
            noted = self._go_on(noted, marked)
        if noted is not None and noted == marked:
            return True
        if marked is not None:
            raise self._away(doing, f"{self.folder} belongs to another home")
        if noted is not None:
            raise self._away(doing, f"{self.folder} is not the folder that was used before")
        return False

    def make(self, doing: str) -> None:
        """Create it, for the first volume. Raises as ``is_there`` does, and Unavailable without its disk."""
        if self.is_there(doing):
            return
        if self.disk is None:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return
        if not self.disk.is_dir():
            raise self._away(doing, f"{self.disk} does not exist")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._take()

    def space(self, doing: str) -> Path:
        """A folder on its disk, whether it is used yet or not. Raises as ``make`` does."""
        if self.is_there(doing):
            return self.folder
        if self.disk is not None and not self.disk.is_dir():
            raise self._away(doing, f"{self.disk} does not exist")
        return next(each for each in (self.folder, *self.folder.parents) if each.exists())

    def _take(self) -> None:
        word = secrets.token_hex(8).encode()
        # A marker without a note belongs to another home; so the note announces the marker first.
        write_atomic(self.note, _BEGUN + word, mode=0o600)
        write_atomic(self.folder / MARKER, word, mode=0o600)
        write_atomic(self.note, word, mode=0o600)

    def _go_on(self, noted: bytes, marked: bytes | None) -> bytes | None:
        """The note after an interrupted start: empty, if the marker was not created."""
        word = noted.removeprefix(_BEGUN)
        if marked != word:
            return None
        write_atomic(self.note, word, mode=0o600)
        return word

    def _away(self, doing: str, seen: str) -> Unavailable:
        return Unavailable(doing, f"storage class {self.storage_class}: {seen}", "is its disk mounted?")


def _word(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
