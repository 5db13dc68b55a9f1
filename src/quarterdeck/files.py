"""Atomic writes, secrets that no other user can ever read, and removal of large files without delaying other
processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

from quarterdeck.errors import Unavailable

#: Bytes by which a file is truncated at a time.
_STEP = 4 << 20


@contextlib.contextmanager
def file_errors(doing: str) -> Iterator[None]:
    """Turn errors of the file system (a full disk, no rights) into Unavailable."""
    try:
        yield
    except OSError as error:
        seen = f"{error.filename or 'the file system'}: {error.strerror or error}"
        raise Unavailable(doing, seen, "make room on that disk, or check the permissions") from error


def write_atomic(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write ``content`` to ``path`` so that a reader, or a crash, sees the old file or the new one.

    The file has ``mode`` from its creation. Raises OSError.
    """
    temporary = write_temporary(path, content, mode=mode)
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_temporary(path: Path, content: bytes, *, mode: int) -> Path:
    """A new file next to ``path`` with that content, synced to disk, for a rename. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def write_secret(path: Path, content: bytes) -> None:
    """``write_atomic`` for keys and tokens: 0600 from the moment of creation."""
    write_atomic(path, content, mode=0o600)


def why_untrusted(path: Path) -> str:
    """Why what is below ``path`` cannot be trusted: another user may change it. "" if only this user may.

    Raises OSError.
    """
    seen = path.stat()
    if seen.st_uid != os.geteuid():
        return f"it belongs to user {seen.st_uid}, not to you ({os.geteuid()})"
    return "other users may write to it" if seen.st_mode & 0o022 else ""


def sync_folder(folder: Path) -> None:
    """Make renames in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_folder(folder: Path) -> None:
    """Remove ``folder`` and all in it that is not in use, large files bit by bit. Raises OSError.

    Where freed blocks are discarded (ext4 with ``discard``, at each commit of its journal), an fsync of any other file
    waits until the disk has processed all of them: half a second for a few files of etcd's. No error if another process
    removes it at the same time, or has removed it.
    """
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                _shrink(Path(parent, name))
                Path(parent, name).unlink()
        for name in folders:
            path = Path(parent, name)
            with contextlib.suppress(FileNotFoundError):
                path.unlink() if path.is_symlink() else path.rmdir()
    with contextlib.suppress(FileNotFoundError):
        folder.rmdir()


def _shrink(file: Path) -> None:
    """Truncate to one step; not files with a second hard link, which would be damaged, nor files that may not be
    written.
    """
    seen = file.lstat()
    if not stat.S_ISREG(seen.st_mode) or seen.st_nlink > 1 or seen.st_size <= _STEP:
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_NOFOLLOW)
    except PermissionError:
        return
    try:
        for size in range(seen.st_size - _STEP, 0, -_STEP):
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Calls that may block on a disk.

P = ParamSpec("P")
T = TypeVar("T")


async def on_disk(owner: str, call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Run ``call`` in a thread, since it may block on the disk of that machine or site. Raises Unavailable
    for OSError.
    """
    with file_errors(f"using the disk of {owner}"):
        return await asyncio.to_thread(call, *given, **named)
