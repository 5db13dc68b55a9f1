"""The audit logs of replicas on their machines: kept when the plane moves, deleted with age or with the plane.

They are read on all machines where the plane has, or had, a seat.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.volumes import audit_volume, audit_volumes
from quarterdeck.components.apiserver import AUDIT_LOG
from quarterdeck.errors import QuarterdeckError, Unavailable
from quarterdeck.model.capabilities import Search
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.port import SitePort

_DAY = 86_400.0


async def forget_old_audit_logs(plane: Plane) -> None:
    """Delete the logs of former seats of the plane once they are older than the retention time.

    A machine that does not answer keeps its logs until the next call.
    """
    oldest = plane.clock() - plane.wanted.audit.max_age_days * _DAY
    await asyncio.gather(*(_forget(plane, *place, before=oldest) for place in _places(plane)))


async def delete_audit_logs(plane: Plane) -> None:
    """Delete all logs: the plane is gone. A machine that does not answer keeps its own; no other plane finds them."""
    await asyncio.gather(*(_forget(plane, *place, before=None) for place in _places(plane)))


def _places(plane: Plane) -> tuple[tuple[str, str], ...]:
    return tuple(place for place, machine in plane.machines.items() if machine.role is MachineRole.CONTROL)


async def _forget(plane: Plane, site: str, machine: str, *, before: float | None) -> None:
    """Delete the logs on a machine; with ``before``, only those that no replica uses and that were last written before
    that time.
    """
    driver, every = plane.site(site), audit_volumes(plane)
    here = [record for record in plane.memory.replicas if (record.site, record.machine) == (site, machine)]
    used = {audit_volume(plane, record) for record in here}
    with contextlib.suppress(Unavailable):
        for volume in await driver.volumes(machine):
            if volume.name == every or volume.name.startswith(f"{every}-"):
                old = before is None or (volume.changed is not None and volume.changed < before)
                if old and (before is None or volume.name not in used):
                    await driver.delete_volume(machine, volume.name)


#: The files of a log: the present one, and the rotated ones (natefinch/lumberjack: backupName).
_STEM = AUDIT_LOG.removesuffix(".log")
_FILES = f"{_STEM}*.log"
_MOVED = f"{_STEM}-%Y-%m-%dT%H-%M-%S.%f.log"


@dataclass(frozen=True, slots=True)
class Placed:
    """A replica was placed on a machine of a site ``at`` a time (seconds since the epoch), and released at ``until``
    (None: it was not).
    """

    replica: str
    site: str
    machine: str
    at: float
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLog:
    """Lines of the audit log of a seat, in their order. ``replicas``: the replicas that may have had the seat, as far
    as known, the present one last. ``missing``: what could not be read, in a sentence ("": nothing).
    """

    replicas: tuple[Placed, ...]
    lines: tuple[str, ...] = ()
    missing: str = ""

    def replica_at(self, time: float) -> str:
        """The replica whose apiserver wrote the lines of that time; "" where that is unknown."""
        found = {each.replica for each in self.replicas if each.at <= time and (each.until or time) >= time}
        return found.pop() if len(found) == 1 else ""


async def audit_logs(
    plane: Plane, texts: tuple[str, ...], since: float, placed: Sequence[Placed]
) -> tuple[AuditLog, ...]:
    """Lines with any of ``texts`` of all logs that were written to ``since`` then. ``placed``: the placements of
    replicas, also of released ones. What could not be read is part of the answer, and never raised.
    """
    here = [_now(plane, each.name, placed) for each in plane.memory.replicas]
    gone = [each for each in placed if each.replica not in {one.replica for one in here}]
    every = (*here, *(each for each in gone if each.until is None or each.until >= since))
    places = sorted({(each.site, each.machine) for each in every})
    found = await asyncio.gather(*(_at(plane, place, texts, since, every) for place in places))
    return tuple(log for logs in found for log in logs)


def _now(plane: Plane, replica: str, placed: Sequence[Placed]) -> Placed:
    record = plane.memory.replica(replica)
    times = [each.at for each in placed if (each.replica, each.machine) == (replica, record.machine)]
    return Placed(replica, record.site, record.machine, at=max(times, default=0.0))


async def _at(
    plane: Plane, place: tuple[str, str], texts: tuple[str, ...], since: float, every: Sequence[Placed]
) -> tuple[AuditLog, ...]:
    """The logs on one machine."""
    name, machine = place
    there = tuple(each for each in every if (each.site, each.machine) == place)
    names = ", ".join(dict.fromkeys(each.replica for each in there))
    try:
        site = plane.site(name)
        volumes = [each.name for each in await site.volumes(machine)]
        logs = [
            await _read(plane, site, machine, volume, texts, since, there)
            for volume in volumes
            if volume == audit_volumes(plane) or volume.startswith(f"{audit_volumes(plane)}-")
        ]
    except QuarterdeckError as error:
        return (AuditLog(replicas=there, missing=f"the audit log of {names} could not be read: {error.seen}"),)
    read = {each.replica for log in logs for each in log.replicas}
    lacking = [each.replica for each in there if each.replica not in read]
    absent = (AuditLog(replicas=(), missing=f"there is no audit log of {each}") for each in lacking)
    return (*logs, *absent)


async def _read(
    plane: Plane,
    site: SitePort,
    machine: str,
    volume: str,
    texts: tuple[str, ...],
    since: float,
    there: Sequence[Placed],
) -> AuditLog:
    seated = {
        each.name: audit_volume(plane, each)
        for each in plane.memory.replicas
        if (each.site, each.machine) == (site.name, machine)
    }
    # a replica at another seat has another log; released ones may have had this seat
    mine = tuple(each for each in there if seated.get(each.replica, volume) == volume)
    names = ", ".join(dict.fromkeys(each.replica for each in mine)) or f"machine {machine}"
    files = await site.list_volume(machine, volume)
    if AUDIT_LOG not in files:
        return AuditLog(replicas=mine, missing=f"the apiserver of {names} writes no audit log")
    found = await site.search_volume(machine, volume, Search(files=_FILES, texts=texts, since=since))
    moved = sorted(time for each in files if (time := _moved(each)) is not None)
    missing = ""
    if found.cut:
        missing = f"the audit log of {names} has too many lines of that time: only the last ones were read"
    elif len(moved) >= plane.wanted.audit.max_backups > 0 and moved[0] > since:
        missing = f"the audit log of {names} does not reach back that far"
    return AuditLog(replicas=mine, lines=found.lines, missing=missing)


def _moved(name: str) -> float | None:
    """When a file was rotated, by its name; None for one that was not."""
    try:
        return datetime.strptime(name, _MOVED).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
