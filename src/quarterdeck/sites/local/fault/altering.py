"""A text in a file becomes another one of its length, while whoever uses the file stands still. Calls may block."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from quarterdeck.linux.table import stat_of

#: What is written in place of each of its characters; of all others one of the two.
_OTHER = (b"-", b"+")


def has_text(path: Path, text: str) -> bool:
    """Whether a file has that text, which must not be empty."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(text.encode()) >= 0
    except (FileNotFoundError, ValueError):  # it is not there, or empty
        return False


def alter_text(path: Path, text: str) -> None:
    """Write something else of its length over each occurrence, and have that on the disk. Raises OSError."""
    wanted = text.encode()
    other = bytes(_OTHER[each == _OTHER[0][0]][0] for each in wanted)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        for at in list(_occurrences(content, wanted)):
            content[at : at + len(wanted)] = other
        content.flush()


def _occurrences(content: mmap.mmap, wanted: bytes) -> Iterator[int]:
    at = content.find(wanted)
    while at >= 0:
        yield at
        at = content.find(wanted, at + len(wanted))


def all_stopped(pid: int) -> bool:
    """Whether no thread of a process runs (proc(5): T, or it is tracing-stopped)."""
    threads = Path("/proc", str(pid), "task").iterdir()
    found = (stat_of(f"{pid}/task/{each.name}") for each in threads)
    return all(fields[0] in b"Tt" for fields in found if fields is not None)
