"""The end of a log that is rotated: ``log`` is the newest, ``log.1`` the one before, and so on."""

from __future__ import annotations

from pathlib import Path

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
