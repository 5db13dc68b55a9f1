"""Files that are either there whole or not there at all, and secrets that nobody else could ever read."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def write_atomic(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write ``content`` to ``path`` so that a reader, or a crash, sees the old file or the new one.

    The file has ``mode`` from its first moment. Raises OSError as the file system does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def write_secret(path: Path, content: bytes) -> None:
    """``write_atomic`` for keys and tokens: 0600 from the moment of creation."""
    write_atomic(path, content, mode=0o600)


def sync_folder(folder: Path) -> None:
    """Make renames in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
