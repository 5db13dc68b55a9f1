"""Copying a file into a volume of a local machine: beside, in steps, and then in its place. Plain calls that block."""

from __future__ import annotations

import errno
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.files import sync_folder

_PREFIX = ".filling-"
#: Bytes of one step: a caller that is cancelled stops after it.
_STEP = 64 << 20
#: What the kernel says of two file systems between which it shares or copies no blocks.
_NO_COPY = frozenset({errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})


@dataclass(slots=True)
class VolumeFilling:
    """A copy of an open file in a volume. Raises OSError."""

    _volume: Path
    _source: int
    _copy: int
    _aside: Path
    #: Bytes that are there.
    _copied: int = 0

    @classmethod
    def begun(cls, volume: Path, source: Path) -> VolumeFilling:
        """An empty copy, 0600 and of the volume's user; what is left of others is removed."""
        for left in volume.glob(f"{_PREFIX}*"):
            left.unlink(missing_ok=True)
        aside = volume / f"{_PREFIX}{secrets.token_hex(6)}"
        reading = os.open(source, os.O_RDONLY)
        try:
            writing = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except BaseException:
            os.close(reading)
            raise
        filling = cls(volume, reading, writing, aside)
        try:
            seen = volume.stat()
            if (seen.st_uid, seen.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(writing, seen.st_uid, seen.st_gid)
        except BaseException:
            filling.end()
            raise
        return filling

    def step(self) -> bool:
        """Copy some more; False when all of it is there."""
        try:
            copied = os.copy_file_range(self._source, self._copy, _STEP, self._copied)
        except OSError as error:
            if error.errno not in _NO_COPY:
                raise
            copied = os.sendfile(self._copy, self._source, self._copied, _STEP)
        self._copied += copied
        return copied > 0

    def sync(self) -> None:
        """Have it on the disk."""
        os.fsync(self._copy)

    def settle(self, file: str) -> None:
        """Put it in its place."""
        self._aside.rename(self._volume / file)
        sync_folder(self._volume)

    def end(self) -> None:
        """Close it; nothing is left of one that has not been settled."""
        os.close(self._source)
        os.close(self._copy)
        self._aside.unlink(missing_ok=True)
