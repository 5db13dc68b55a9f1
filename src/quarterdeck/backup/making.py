"""Temporary files: each belongs to one process, and the next process removes what a killed one left."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from quarterdeck.errors import Conflict, PreconditionFailed, Unavailable
from quarterdeck.files import remove_folder

_SUFFIX = ".made"
#: Bytes that stay free on a disk.
_SPARE = 16 << 20
_SCRATCH_SPARE = 64 << 20


@contextmanager
def made_beside(path: Path, doing: str) -> Iterator[Path]:
    """An empty file (0600) beside ``path`` for the block, to be renamed to it. It is removed if it was not.

    Raises Conflict where another process has it, and OSError.
    """
    made = path.with_name(f".{path.name}{_SUFFIX}")
    descriptor = os.open(made, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if not _locked(descriptor) or not _is(made, descriptor):
            raise Conflict(doing, f"another process is at it: it has {made}", "wait until it has ended")
        os.fchmod(descriptor, 0o600)
        os.ftruncate(descriptor, 0)
        try:
            yield made
        finally:
            if _is(made, descriptor):
                made.unlink()
    finally:
        os.close(descriptor)


def remove_left(folder: Path) -> None:
    """Remove what killed processes left in a folder: temporary files, and the folders (``.NAME``) whose lock was
    such a file. Those that a process has stay. Raises OSError.
    """
    for made in folder.glob(f".*{_SUFFIX}"):
        with suppress(Conflict), made_beside(folder / made.name[1:].removesuffix(_SUFFIX), "cleaning up"):
            remove_folder(made.with_name(made.name.removesuffix(_SUFFIX)))


def require_room(folder: Path, size: int, doing: str, *, spare: int = 0) -> None:
    """Raises PreconditionFailed where a disk has not so many bytes free, and some more (``spare``, if that is more than
    usual), and OSError.
    """
    free, needed = shutil.disk_usage(folder).free, size + max(spare, _SPARE)
    if free < needed:
        seen = f"{free >> 20} MiB are free on the disk of {folder}, and it takes {needed >> 20} MiB"
        raise PreconditionFailed(doing, seen, "make room on that disk, or choose another folder")


def make_scratch(folder: Path, size: int, doing: str) -> None:
    """Make a folder for a scratch file, where there is room for it. Raises Unavailable where there is none, since what
    is done in the background is tried again until there is, and OSError.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        require_room(folder, size, doing, spare=_SCRATCH_SPARE)
    except PreconditionFailed as error:
        raise Unavailable(error.doing, error.seen, error.next_step) from error


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is(path: Path, descriptor: int) -> bool:
    """Whether the open file still has this name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
