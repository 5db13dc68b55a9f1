"""Where machines stand that were used: kept in their folders, so that no change of the settings moves or hides one.

A machine's number is reckoned from the settings, and its address from the number. A machine that processes listen at
must keep its address all the same when zones are removed or put in another order, and must not be lost sight of when
the settings have no place for it any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from quarterdeck.errors import Corrupt
from quarterdeck.files import write_atomic
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.isolation import Place
from quarterdeck.sites.local.settings import EDGE_NUMBER, Stand

_FILE = "seat.json"


def kept_stands(machines: Path, declared: Mapping[str, Stand], site_number: int) -> dict[str, Stand]:
    """The stands that are declared, with the numbers that those have which were used (there is a folder for each below
    ``machines``); then those that were used and are declared no more. Raises Corrupt for one that cannot be read.
    """
    known = dict(_known(machines, site_number, declared))
    free = iter(each for each in range(1, EDGE_NUMBER) if each not in _numbers(known))
    found: dict[str, Stand] = {}
    for name, stand in declared.items():
        number = stand.place.machine_number
        if name in known:
            number = known[name].place.machine_number
        elif number in _numbers(known) | _numbers(found):
            number = next(each for each in free if each not in _numbers(declared) | _numbers(found))
        found[name] = replace(stand, place=replace(stand.place, machine_number=number))
    found |= {name: replace(stand, declared=False) for name, stand in known.items() if name not in declared}
    return found


def keep_stand(machine: Path, stand: Stand) -> None:
    """Write down where a machine is, if it was used and that was not done yet. Raises OSError."""
    if not machine.is_dir() or (machine / _FILE).exists():
        return
    place = stand.place
    content = {"number": place.machine_number, "zone": place.zone, "role": stand.role.value, "site": place.site}
    write_atomic(machine / _FILE, json.dumps(content).encode())


def _numbers(stands: Mapping[str, Stand]) -> set[int]:
    return {stand.place.machine_number for stand in stands.values()}


def _known(machines: Path, site_number: int, declared: Mapping[str, Stand]) -> Iterator[tuple[str, Stand]]:
    for folder in sorted(machines.iterdir()) if machines.is_dir() else ():
        file = folder / _FILE
        try:
            content = json.loads(file.read_bytes())
            place = Place(
                site=str(content["site"]),
                site_number=site_number,
                machine=folder.name,
                machine_number=int(content["number"]),
                zone=str(content["zone"]),
            )
            yield folder.name, Stand(place, MachineRole(content["role"]))
        except (FileNotFoundError, NotADirectoryError):
            if folder.name in declared:  # used since the site was opened last: it is where the settings put it
                yield folder.name, declared[folder.name]
        except (ValueError, KeyError, TypeError) as error:
            seen = f"not where a machine stands ({error!r})"
            raise Corrupt(f"reading {file}", seen, "restore it from a backup") from error
