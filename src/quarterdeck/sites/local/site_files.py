"""The files in the folders of a local site and its machines: ledgers, the places of machines, the site's number.

Plain calls that may block on the disk; run them in a thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from quarterdeck.errors import Corrupt, PreconditionFailed, TimedOut
from quarterdeck.files import write_atomic
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.base.seats import SeatLedger, ledger_of, ledger_text
from quarterdeck.sites.isolation import MachinePlace
from quarterdeck.sites.local.settings import EDGE_NUMBER, MachineEntry

T = TypeVar("T")

_LEDGER = "ledger.json"
#: Seconds to wait for another process that is writing.
_PATIENCE = 10.0


def read_ledger(machine: Path) -> SeatLedger:
    """The ledger in a machine's folder; an empty one before its first seat. Raises Corrupt, OSError."""
    file = machine / _LEDGER
    try:
        return ledger_of(f"reading {file}", machine.name, file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return SeatLedger()


def change_ledger(machine: Path, change: Callable[[SeatLedger], tuple[SeatLedger, T]]) -> T:
    """Change it, one process after another: the result of ``change`` is on the disk when this returns. Raises what
    ``change`` and ``read_ledger`` do, and TimedOut when another process does not finish.
    """
    machine.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with FileLock(machine / "ledger.lock", timeout=_PATIENCE):
            before = read_ledger(machine)
            after, result = change(before)
            if after != before:
                write_atomic(machine / _LEDGER, ledger_text(after), mode=0o600)
            return result
    except Timeout as error:
        doing = f"changing the seats of machine {machine.name}"
        raise TimedOut(doing, f"another process has been doing so for {_PATIENCE:.0f} s") from error


_SEAT = "seat.json"


def kept_stands(machines: Path, declared: Mapping[str, MachineEntry], site_number: int) -> dict[str, MachineEntry]:
    """The declared machines, with the stored numbers of those that were used (there is a folder for each below
    ``machines``); then those that were used and are no longer declared. Raises Corrupt for one that cannot be read.
    """
    known = dict(_known(machines, site_number, declared))
    free = iter(each for each in range(1, EDGE_NUMBER) if each not in _numbers(known))
    found: dict[str, MachineEntry] = {}
    for name, stand in declared.items():
        number = stand.place.machine_number
        if name in known:
            number = known[name].place.machine_number
        elif number in _numbers(known) | _numbers(found):
            number = next(each for each in free if each not in _numbers(declared) | _numbers(found))
        found[name] = replace(stand, place=replace(stand.place, machine_number=number))
    found |= {name: replace(stand, declared=False) for name, stand in known.items() if name not in declared}
    return found


def keep_stand(machine: Path, stand: MachineEntry) -> None:
    """Record the place of a machine, if it was used and that was not done yet. Raises OSError."""
    if not machine.is_dir() or (machine / _SEAT).exists():
        return
    place = stand.place
    content = {"number": place.machine_number, "zone": place.zone, "role": stand.role.value, "site": place.site}
    write_atomic(machine / _SEAT, json.dumps(content).encode())


def _numbers(stands: Mapping[str, MachineEntry]) -> set[int]:
    return {stand.place.machine_number for stand in stands.values()}


def _known(
    machines: Path, site_number: int, declared: Mapping[str, MachineEntry]
) -> Iterator[tuple[str, MachineEntry]]:
    for folder in sorted(machines.iterdir()) if machines.is_dir() else ():
        file = folder / _SEAT
        try:
            content = json.loads(file.read_bytes())
            place = MachinePlace(
                site=str(content["site"]),
                site_number=site_number,
                machine=folder.name,
                machine_number=int(content["number"]),
                zone=str(content["zone"]),
            )
            yield folder.name, MachineEntry(place, MachineRole(content["role"]))
        except (FileNotFoundError, NotADirectoryError):
            if folder.name in declared:  # used since the site was opened last: it is where the settings put it
                yield folder.name, declared[folder.name]
        except (ValueError, KeyError, TypeError) as error:
            seen = f"not the place of a machine ({error!r})"
            raise Corrupt(f"reading {file}", seen, "restore it from a backup") from error


MOST_SITES = 254


def site_number(home: Path, site: str) -> int:
    """The number of ``site``, 1 to 254; the lowest free one if it has none yet. May block for a moment.

    Raises PreconditionFailed when all are taken, Corrupt when one cannot be read.
    """
    sites = home / "sites"
    sites.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(sites / ".numbers.lock", timeout=10):
        taken = {each.parent.name: _read(each) for each in sites.glob("*/number")}
        if site in taken:
            return taken[site]
        free = next((each for each in range(1, MOST_SITES + 1) if each not in taken.values()), None)
        if free is None:
            raise PreconditionFailed(f"adding site {site}", f"there are {MOST_SITES} already", "remove one")
        (sites / site).mkdir(exist_ok=True, mode=0o700)
        write_atomic(sites / site / "number", f"{free}\n".encode())
        return free


def _read(path: Path) -> int:
    text = path.read_text()
    if not text.strip().isdigit():
        raise Corrupt(f"reading {path}", f"{text[:40]!r} is not a number")
    return int(text)
