"""The folder of a unit: its record, its log, and its input files. Plain calls; run them in a thread."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from quarterdeck.errors import Corrupt, InvalidInput
from quarterdeck.files import remove_folder, sync_folder, write_atomic, write_temporary
from quarterdeck.model.units import UnitFile, UnitSpec
from quarterdeck.sites.base.records import UnitRecord, refusal
from quarterdeck.sites.local.supervisor.own_user import give_user
from quarterdeck.sites.local.supervisor.records import FILES, REMOVED, read_record, write_record


def write_unit(home: Path, folder: Path, spec: UnitSpec) -> None:
    """Write a unit's files, then its record, so that the record starts something complete."""
    for each in spec.files:
        _require_plain(each.path)
    _make_folder(folder)
    for each in spec.files:
        write_atomic(Path(each.path), each.content, mode=each.mode)
    write_record(folder, replace(UnitRecord.of(spec), uid=give_user(home, folder, spec)))


#: Files next to those that they will replace: (new, old).
Staged = tuple[tuple[Path, Path], ...]


def stage_watched(units: Path, files: tuple[UnitFile, ...]) -> Staged:
    """Prepare files for ``put_staged``; ``units`` holds the folders of all units of the machine."""
    owners = {owner_of(units, each.path) for each in files}
    for owner in owners:
        _make_folder(owner)
    staged: list[tuple[Path, Path]] = []
    try:
        for each in files:
            path = Path(each.path)
            staged.append((write_temporary(path, each.content, mode=each.mode), path))
    except BaseException:
        drop_staged(tuple(staged))
        raise
    return tuple(staged)


def put_staged(staged: Staged) -> None:
    """Put files in their places: see Site.write_files. Quick: nothing waits for the disk."""
    for new, old in staged:
        new.replace(old)


def changed_files(files: tuple[UnitFile, ...]) -> tuple[UnitFile, ...]:
    """Those that are missing or different."""
    return tuple(each for each in files if not _is_there(each))


def _is_there(file: UnitFile) -> bool:
    path = Path(file.path)
    try:
        return path.read_bytes() == file.content and stat.S_IMODE(path.stat().st_mode) == file.mode
    except FileNotFoundError:
        return False


def settle_staged(staged: Staged) -> None:
    """Sync the moved files to the disk."""
    for folder in {old.parent for _, old in staged}:
        sync_folder(folder)


def drop_staged(staged: Staged) -> None:
    """Remove files that were not moved."""
    for new, _ in staged:
        new.unlink(missing_ok=True)


def remove_watched(units: Path, paths: tuple[PurePosixPath, ...]) -> None:
    """See Site.remove_files."""
    check_watched(units, paths)
    for each in paths:
        Path(each).unlink(missing_ok=True)


def check_watched(units: Path, paths: tuple[PurePosixPath, ...]) -> None:
    """Raise InvalidInput for a path that is not below the folder of a unit."""
    for each in paths:
        owner_of(units, each)


def remove_unit_folder(folder: Path) -> None:
    """Rename it at once, then delete it, even if the deletion is interrupted."""
    gone = folder.with_name(f"{REMOVED}{folder.name}")
    remove_folder(gone)
    if folder.exists():
        folder.rename(gone)
        remove_folder(gone)


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / FILES).mkdir(exist_ok=True, mode=0o700)


def owner_of(units: Path, path: PurePosixPath) -> Path:
    """The folder of the unit whose file that is."""
    _require_plain(path)
    inside = Path(path).relative_to(units).parts if Path(path).is_relative_to(units) else ()
    if len(inside) < 3 or inside[1] != FILES:
        raise InvalidInput("writing the files of a unit", f"{path} is not below the folder of a unit")
    return units / inside[0]


def _require_plain(path: PurePosixPath) -> None:
    if not path.is_absolute() or ".." in path.parts:
        raise InvalidInput("writing the files of a unit", f"{path} is not an absolute path")


def known_record(folder: Path) -> UnitRecord | None:
    """The record of a unit; None where there is none, or it cannot be read."""
    try:
        return read_record(folder)
    except Corrupt:
        return None  # the machine skips it too; a start writes it again


def disable_start(folder: Path, known: UnitRecord | None) -> None:
    """Keep the machine from starting it again."""
    if known is not None and known.wanted:
        write_record(folder, replace(known, wanted=False))


def keep_record(folder: Path, known: UnitRecord | None, wanted: UnitRecord) -> None:
    """Store settings that are valid from the unit's next start on."""
    if known != wanted:
        write_record(folder, wanted)
    note_data(folder, wanted)


# Data that a unit must not start without, and the marker that there was some. Why that matters: see
# ``sites.base.records.refusal``. The marker is in the unit's own folder, which is the machine's: the volume may be on
# another disk, and may be lost.

MARKER = "had-data"


def refused(folder: Path, record: UnitRecord, *, fresh: bool) -> str:
    """Why the unit in ``folder`` must not be started now; "" when it may be. ``fresh``: it may begin without data."""
    if record.needs is None:
        return ""
    try:
        there = _any_is_there(record.needs)
    except OSError as error:
        return f"it is not known whether its data {record.needs} is there ({error.strerror or error})"
    if there:
        # A full disk must not keep it from its data: the marker is tried again at each check.
        with suppress(OSError):
            mark(folder)
    return refusal(record.needs, there=there, had_data=there or is_marked(folder), fresh=fresh)


def note_data(folder: Path, record: UnitRecord) -> bool:
    """Write the marker if the data is there. Whether there is one now. Raises OSError."""
    if is_marked(folder):
        return True
    if record.needs is None or not _any_is_there(record.needs):
        return False
    mark(folder)
    return True


def is_marked(folder: Path) -> bool:
    """Whether the unit in ``folder`` is known to have had data."""
    return (folder / MARKER).exists()


def mark(folder: Path) -> None:
    """Record that the unit has data, for good. Raises OSError."""
    if not is_marked(folder):
        write_atomic(folder / MARKER, b"", mode=0o600)


def _any_is_there(pattern: str) -> bool:
    path = Path(pattern)
    try:
        with os.scandir(path.parent) as entries:
            return any(fnmatchcase(entry.name, path.name) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
