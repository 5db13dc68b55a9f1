"""Replicas come and go."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.actions.audit import forget_old_audit_logs
from quarterdeck.actions.certificates import forget_certificates
from quarterdeck.actions.handlers import Handlers, Preparations
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.promoted import forget_address
from quarterdeck.actions.seats import leave_seat, take_seat
from quarterdeck.actions.volumes import delete_events_volumes, volume_name
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.model.steps.placing import PlaceReplica, ReleaseReplica
from quarterdeck.model.world import World


async def seated(plane: Plane, step: PlaceReplica) -> PlaceReplica:
    """The step with a seat, which is written down with it: before anything is started there. Raises a QuarterdeckError
    when the machine has none.
    """
    return replace(step, seat=await take_seat(plane, step.slot.site, step.machine, step.replica))


async def release_replica(plane: Plane, step: ReleaseReplica, world: World) -> None:
    """Remove a replica's units and files, its volumes, its certificates, and let go of its seat last: nobody gets the
    ports of what may still run. Its audit log stays, and so does its data if it is to be kept.
    """
    record = plane.memory.replica(step.replica)
    site = plane.site(record.site)
    for component in reversed((*CATALOGUE,)):
        await plane.check()
        await site.remove_unit(record.machine, plane.unit(record, component))
    if not step.keep:
        # It may have been on its way to another machine.
        for machine in sorted({record.machine, world.replica(record.name).volume_at} - {""}):
            await plane.check()
            await site.delete_volume(machine, volume_name(plane, record))
    await forget_address(plane, record.site, record.machine, record.name)
    await delete_events_volumes(plane, record)
    await forget_certificates(plane, record)
    await forget_old_audit_logs(plane)
    await leave_seat(plane, record)


PREPARED: Preparations = {PlaceReplica: seated}
HANDLERS: Handlers = {ReleaseReplica: release_replica}
