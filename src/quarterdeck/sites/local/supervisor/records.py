"""The record of a unit in its folder, with a hash that shows whether another program has changed it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from quarterdeck.errors import Corrupt
from quarterdeck.files import write_secret
from quarterdeck.model.units import Priority
from quarterdeck.sites.base.records import UnitRecord

#: The nice values of priorities on a host whose processors all units share. Controllers keep their leases on a busy
#: one: they have a third of the weight of a unit with the normal priority.
NICE: Mapping[Priority, int] = {Priority.SERVING: 0, Priority.BACKGROUND: 5}
RECORD = "unit.json"
SEAL = "seal"
LOG = "log"
REMOVED = ".removed-"  # before the name of a unit whose folder is being deleted
FILES = "files"


def write_record(folder: Path, record: UnitRecord) -> None:
    """Write the record of the unit in ``folder`` (0600: an environment may hold secrets), with a hash of itself."""
    fields = asdict(record)
    write_secret(folder / RECORD, json.dumps({**fields, SEAL: _seal(fields)}, indent=1).encode())


def is_altered(folder: Path) -> bool:
    """Whether another program has changed the record of the unit in ``folder``, or a file that it was started with.
    Raises OSError.
    """
    try:
        found = json.loads((folder / RECORD).read_bytes())
        seal, files = found.pop(SEAL), [(Path(str(path)), str(known)) for path, known in found["files"]]
    except (ValueError, TypeError, AttributeError, KeyError):
        return True
    return seal != _seal(found) or any(_hash_of(path) != known for path, known in files)


def _seal(fields: Mapping[str, object]) -> str:
    return _hash(json.dumps(fields, sort_keys=True).encode())


def _hash_of(path: Path) -> str:
    try:
        return _hash(path.read_bytes())
    except FileNotFoundError:
        return ""


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_record(folder: Path) -> UnitRecord | None:
    """The record of the unit in ``folder``; None if there is none. Raises Corrupt when it cannot be read."""
    path = folder / RECORD
    try:
        found = json.loads(path.read_bytes())
        return UnitRecord.from_fields(found)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"reading {path}", f"not a unit's record ({error!r})") from error


def folder_names(units: Path) -> tuple[str, ...]:
    """The names of all units with anything below ``units``, also of those whose deletion was interrupted."""
    try:
        found = (each.name for each in units.iterdir() if each.is_dir())
        return tuple(sorted({each.removeprefix(REMOVED) for each in found}))
    except FileNotFoundError:
        return ()


def unit_folders(units: Path) -> tuple[Path, ...]:
    """The folders of all units below ``units``, by name."""
    try:
        return tuple(sorted(each for each in units.iterdir() if each.is_dir() and not each.name.startswith(".")))
    except FileNotFoundError:
        return ()
