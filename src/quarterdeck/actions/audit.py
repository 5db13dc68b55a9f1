"""The audit logs that replicas leave on their machines: kept when the plane moves on, gone with age or with the plane.

Each seat has a volume for the log of its plane. The apiserver that writes there bounds it by age and size; on a seat
that the plane has left nobody does, so that is done here, whenever a replica is released.
"""

from __future__ import annotations

import asyncio
import contextlib

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.volumes import audit_volume, audit_volumes
from quarterdeck.errors import Unavailable
from quarterdeck.model.units import MachineRole

_DAY = 86_400.0


async def forget_old_audit_logs(plane: Plane) -> None:
    """Delete the logs of seats that the plane has left for longer than they are to be kept.

    A machine that does not answer keeps its own until the next time.
    """
    oldest = plane.clock() - plane.wanted.audit.max_age_days * _DAY
    await asyncio.gather(*(_forget(plane, *place, before=oldest) for place in _places(plane)))


async def delete_audit_logs(plane: Plane) -> None:
    """Delete all of them: the plane is gone. A machine that does not answer keeps its own; no other plane finds it."""
    await asyncio.gather(*(_forget(plane, *place, before=None) for place in _places(plane)))


def _places(plane: Plane) -> tuple[tuple[str, str], ...]:
    return tuple(place for place, machine in plane.machines.items() if machine.role is MachineRole.CONTROL)


async def _forget(plane: Plane, site: str, machine: str, *, before: float | None) -> None:
    """Delete the logs on a machine; with ``before``, only those that no replica goes on with and that nothing was
    written to since then.
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
