"""Reading parts of a machine's files: the end of a rotated log, and matching lines.

``log`` is the newest, ``log.1`` the one before, and so on. Plain calls that may block; run them in a thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from quarterdeck.errors import Unavailable
from quarterdeck.model.capabilities import Found, Search, found

_CHUNK = 64 * 1024


def last_lines(newest: Path, lines: int) -> str:
    """The last ``lines`` lines over all files of the log, oldest first; empty when there is none."""
    text = b""
    number = 0
    path = newest
    while text.count(b"\n") <= lines:
        try:
            text = _tail(path, lines - text.count(b"\n") + 1) + text
        except FileNotFoundError:
            break
        number += 1
        path = newest.with_name(f"{newest.name}.{number}")
    kept = text.splitlines(keepends=True)[-lines:] if lines > 0 else []
    return b"".join(kept).decode(errors="replace")


def _tail(path: Path, lines: int) -> bytes:
    """The end of a file with at least ``lines`` line ends, or all of it."""
    with path.open("rb") as stream:
        end = stream.seek(0, 2)
        text = b""
        while end > 0 and text.count(b"\n") < lines:
            start = max(0, end - _CHUNK)
            stream.seek(start)
            text = stream.read(end - start) + text
            end = start
        return text


def search_folder(doing: str, folder: Path, wanted: Search) -> Found:
    """See Site.search_volume. Raises Unavailable when files came or disappeared in between, OSError."""
    before = _files(folder, wanted)
    texts = tuple(each.encode() for each in wanted.texts)
    kept: deque[bytes] = deque()
    size = 0
    for line in (line for name, _ in before for line in _lines(folder / name, texts)):
        kept.append(line)
        size += len(line)
        while size - len(kept[0]) > wanted.most:
            size -= len(kept.popleft())
    if not set(before) <= set(_files(folder, wanted)):
        raise Unavailable(doing, "its files were renamed while they were read", "try again")
    return found(b"".join(kept), wanted.most)


def _lines(file: Path, texts: tuple[bytes, ...]) -> Iterator[bytes]:
    with file.open("rb") as stream:
        for line in stream:
            if any(text in line for text in texts):
                yield line if line.endswith(b"\n") else line + b"\n"


def _files(folder: Path, wanted: Search) -> tuple[tuple[str, int], ...]:
    """The files to read, each with its inode: its identity, whatever its name."""
    seen = [
        (each.name, each.stat())
        for each in sorted(folder.iterdir())
        if fnmatchcase(each.name, wanted.files) and each.is_file() and not each.is_symlink()
    ]
    return tuple((name, stat.st_ino) for name, stat in seen if stat.st_mtime >= wanted.since)
