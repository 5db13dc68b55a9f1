"""What a machine remembers of a unit, on disk: enough to start it again after power loss."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from quarterdeck.errors import Corrupt
from quarterdeck.files import write_secret
from quarterdeck.model.units import Priority, UnitSpec, hashes_of, without_flags

#: What a priority is on a host whose processors all units share. Controllers keep their leases on a busy one: they have
#: a third of the weight of a unit that does not give way.
NICE: Mapping[Priority, int] = {Priority.SERVING: 0, Priority.BACKGROUND: 5}
RECORD = "unit.json"
SEAL = "seal"
LOG = "log"
REMOVED = ".removed-"  # before the name of a unit whose folder is being deleted
FILES = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRecord:
    """A unit as its machine starts it. ``wanted``: it should run, also after a boot. ``needs`` and ``fresh``: see
    ``UnitSpec``; a machine that has booted never begins without data, whatever is written here. ``uid``: the
    user, and group, that it runs as; None: those of its supervisor. ``owns``: what is given to it before each start.
    ``files``: what it was started with, each with a hash. ``restart_pause``: see ``UnitSpec``.
    """

    name: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    stop_timeout: float
    digest: str
    wanted: bool
    nice: int = 0
    needs: str | None = None
    fresh: bool = False
    uid: int | None = None
    owns: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    restart_pause: float = 0.0

    @classmethod
    def of(cls, spec: UnitSpec) -> UnitRecord:
        """The record of a unit that is wanted to run."""
        return cls(
            name=spec.name,
            argv=spec.argv + spec.boot_argv,
            env=spec.env,
            stop_timeout=spec.stop_timeout,
            digest=spec.digest,
            wanted=True,
            nice=NICE[spec.priority],
            needs=None if spec.needs is None else str(spec.needs),
            fresh=spec.fresh,
            owns=tuple(map(str, spec.owns)),
            files=hashes_of(spec.files),
            restart_pause=spec.restart_pause,
        )

    def differs_in_files_alone(self, spec: UnitSpec) -> bool:
        """Whether a spec is of the same program with the same arguments (those of its first start apart)."""
        given = self.argv[: len(spec.argv)]
        return (self.name, given, self.env, self.stop_timeout) == (spec.name, spec.argv, spec.env, spec.stop_timeout)

    def guarded(self, needs: str, boot_argv: tuple[str, ...]) -> UnitRecord:
        """The same unit, which never starts without ``needs``. ``boot_argv`` (``--flag=value``) take the place of those
        of the same flags.
        """
        return replace(self, argv=without_flags(self.argv, boot_argv) + boot_argv, needs=needs, fresh=False)


def write_record(folder: Path, record: UnitRecord) -> None:
    """Write the record of the unit in ``folder`` (0600: an environment may hold secrets), with a hash of itself."""
    said = asdict(record)
    write_secret(folder / RECORD, json.dumps({**said, SEAL: _seal(said)}, indent=1).encode())


def is_altered(folder: Path) -> bool:
    """Whether somebody else has changed the record of the unit in ``folder``, or a file that it was started with.
    Raises OSError.
    """
    try:
        found = json.loads((folder / RECORD).read_bytes())
        seal, files = found.pop(SEAL), [(Path(str(path)), str(known)) for path, known in found["files"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        return True
    return seal != _seal(found) or any(_hash_of(path) != known for path, known in files)


def _seal(said: Mapping[str, object]) -> str:
    return _hash(json.dumps(said, sort_keys=True).encode())


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
        return UnitRecord(
            name=str(found["name"]),
            argv=tuple(str(each) for each in found["argv"]),
            env=tuple((str(key), str(value)) for key, value in found["env"]),
            stop_timeout=float(found["stop_timeout"]),
            digest=str(found["digest"]),
            wanted=bool(found["wanted"]),
            nice=int(found["nice"]),
            needs=None if found["needs"] is None else str(found["needs"]),
            fresh=bool(found["fresh"]),
            uid=None if found["uid"] is None else int(found["uid"]),
            owns=tuple(str(each) for each in found["owns"]),
            files=tuple((str(path), str(known)) for path, known in found["files"]),
            restart_pause=float(found["restart_pause"]),
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"reading {path}", f"not a unit's record ({error!r})") from error


def folder_names(units: Path) -> tuple[str, ...]:
    """The names of all units of which anything is below ``units``, also of those whose deletion was cut short."""
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
