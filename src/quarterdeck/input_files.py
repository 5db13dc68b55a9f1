"""Files that users name: read completely within bounds, or refused with a short reason.

Whatever a path leads to, reading it ends: a pipe is given up when nothing comes, and devices, directories and sockets
are refused.
"""

from __future__ import annotations

import codecs
import os
import select
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

from quarterdeck.errors import PreconditionFailed

#: Seconds without a byte after which a pipe is given up.
PIPE_SILENCE_S = 30.0
_STEP_BYTES = 1 << 16
_KINDS = (
    (stat.S_ISDIR, "it is a directory, not a file"),
    (stat.S_ISFIFO, "it is a pipe, not a file: it could not be read again"),
    (stat.S_ISSOCK, "it is a socket, not a file"),
)
#: Encodings that a byte order mark announces.
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class UnreadableFileError(OSError):
    """Why a file cannot be read, as text that follows its name."""


def read_bytes(
    path: Path,
    largest_bytes: int,
    *,
    pipe_silence_s: float | None = None,
    require: Callable[[os.stat_result], None] | None = None,
) -> bytes:
    """The content of a regular file; with ``pipe_silence_s`` also that of a pipe that writes at least once in that
    time. ``require`` gets the stat of the opened file, and raises for a file that must not be read.

    Raises UnreadableFileError.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableFileError(str(error.strerror)) from error
    try:
        seen = os.fstat(descriptor)
        mode = seen.st_mode
        if require is not None:
            require(seen)
        if stat.S_ISFIFO(mode) and pipe_silence_s is not None:
            return _drained(descriptor, largest_bytes, pipe_silence_s)
        if not stat.S_ISREG(mode):
            raise UnreadableFileError(
                next((words for fits, words in _KINDS if fits(mode)), "it is a device, not a file")
            )
        return _drained(descriptor, largest_bytes, None)
    except UnreadableFileError:
        raise
    except OSError as error:
        raise UnreadableFileError(str(error.strerror)) from error
    finally:
        os.close(descriptor)


def private(path: Path, doing: str) -> Callable[[os.stat_result], None]:
    """What ``read_bytes`` requires of a file with keys: it is this user's own, and nobody else may read or change it.
    Raises PreconditionFailed where it is not.
    """

    def require(seen: os.stat_result) -> None:
        if seen.st_uid != os.geteuid():
            raise PreconditionFailed(doing, f"it belongs to user {seen.st_uid}", "use a file of your own")
        if seen.st_mode & 0o077:
            raise PreconditionFailed(doing, "other users may read or change it", f"chmod 600 {path}")

    return require


def read_text(path: Path, largest_bytes: int, *, pipe_silence_s: float | None = None) -> str:
    """``read_bytes`` as text. Raises UnreadableFileError."""
    return text_in(read_bytes(path, largest_bytes, pipe_silence_s=pipe_silence_s))


def read_standard_input(largest_bytes: int) -> str:
    """All of standard input as text, however long it takes. Raises UnreadableFileError."""
    content = sys.stdin.buffer.read(largest_bytes + 1)
    _require_bound(len(content), largest_bytes)
    return text_in(content)


def text_in(content: bytes) -> str:
    """Bytes as text: UTF-8, or UTF-16 with a byte order mark, as kubectl takes it. Raises UnreadableFileError."""
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        called = encoding.removesuffix("-sig").upper()
        raise UnreadableFileError(f"it is not text: byte {error.start + 1} is not {called}") from error


def _drained(descriptor: int, largest_bytes: int, silence_s: float | None) -> bytes:
    """All data of a descriptor until its end; ``silence_s``: how long a pipe may be silent."""
    content = bytearray()
    while True:
        if silence_s is not None:
            _require_data(descriptor, silence_s)
        try:
            piece = os.read(descriptor, _STEP_BYTES)
        except BlockingIOError:  # another process read it first
            continue
        if not piece:
            return bytes(content)
        content += piece
        _require_bound(len(content), largest_bytes)


def _require_data(descriptor: int, silence_s: float) -> None:
    """Wait until there is data to read, or the last writer has closed it."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    until = time.monotonic() + silence_s
    while not waiting.poll(max(0.0, until - time.monotonic()) * 1_000):
        if time.monotonic() >= until:
            raise UnreadableFileError(f"it is a pipe, and nothing was written to it for {silence_s:g} s")


def _require_bound(size: int, largest_bytes: int) -> None:
    if size > largest_bytes:
        raise UnreadableFileError(f"it is larger than {largest_bytes // 2**20} MiB")
