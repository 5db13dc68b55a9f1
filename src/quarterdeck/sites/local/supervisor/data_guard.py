"""Data that a unit must not start without, and the marker that says that there was some.

Why that matters: see ``sites.base.records.refusal``. The marker is in the unit's own folder, which is the
machine's: the volume that it speaks of may be another disk, and may be gone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from quarterdeck.files import write_atomic
from quarterdeck.sites.base.records import UnitRecord, refusal

MARKER = "had-data"


def refused(folder: Path, record: UnitRecord, *, fresh: bool) -> str:
    """Why the unit in ``folder`` must not be started now; "" when it may be. ``fresh``: it is to begin without data."""
    if record.needs is None:
        return ""
    try:
        there = _is_there(record.needs)
    except OSError as error:
        return f"it is not known whether its data {record.needs} is there ({error.strerror or error})"
    if there:
        # A full disk must not keep it from its data: the marker is tried again at each look.
        with suppress(OSError):
            mark(folder)
    return refusal(record.needs, there=there, had_data=there or is_marked(folder), fresh=fresh)


def note_data(folder: Path, record: UnitRecord) -> bool:
    """Write the marker if the data is there. Whether there is one now. Raises OSError."""
    if is_marked(folder):
        return True
    if record.needs is None or not _is_there(record.needs):
        return False
    mark(folder)
    return True


def is_marked(folder: Path) -> bool:
    """Whether the unit in ``folder`` is known to have had data."""
    return (folder / MARKER).exists()


def mark(folder: Path) -> None:
    """Remember that the unit has data, for good. Raises OSError."""
    if not is_marked(folder):
        write_atomic(folder / MARKER, b"", mode=0o600)


def _is_there(pattern: str) -> bool:
    path = Path(pattern)
    try:
        with os.scandir(path.parent) as entries:
            return any(fnmatchcase(entry.name, path.name) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
