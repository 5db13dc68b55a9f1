"""Placement and release of replicas, and their moves to other machines with their data."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.actions.audit import forget_old_audit_logs
from quarterdeck.actions.certificates import forget_certificates
from quarterdeck.actions.handlers import Handlers, Preparations
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.seats import leave_seat, leave_seat_on, take_seat
from quarterdeck.actions.volumes import delete_events_volumes, volume_name
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.settings import unit_name
from quarterdeck.components.traffic.keepalived import promoted_unit_name
from quarterdeck.errors import Unavailable
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.placement import AttachVolumes, LeaveMachine, PlaceReplica, ReleaseReplica
from quarterdeck.model.world import World
from quarterdeck.sites.port import SitePort


async def seated(plane: Plane, step: PlaceReplica) -> PlaceReplica:
    """The step with a seat, which is recorded with it, before any program is started there. Raises a QuarterdeckError
    when the machine has none.
    """
    return replace(step, seat=await take_seat(plane, step.slot.site, step.machine, step.replica))


async def release_replica(plane: Plane, step: ReleaseReplica, world: World) -> None:
    """Remove a replica's units and files, its volumes, its certificates, and release its seat last: no other replica
    gets the ports of programs that may still run. Its audit log stays, and so does its data with ``keep``.
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


async def reseated(plane: Plane, step: AttachVolumes) -> AttachVolumes:
    """The step with a seat. Raises a QuarterdeckError when the machine has none."""
    record = plane.memory.replica(step.replica)
    return replace(step, seat=await take_seat(plane, record.site, step.machine, step.replica))


async def attach_volumes(plane: Plane, step: AttachVolumes, _: World) -> None:
    """Attach the volumes of a replica to another machine, the main cluster's first: the replica is where that is. Its
    certificates are issued again for its new place.
    """
    record = plane.memory.replica(step.replica)
    site = plane.site(record.site)
    await plane.check()
    await site.attach_volume(step.machine, volume_name(plane, record), step.source)
    if record.events is not None and record.events.epoch == plane.memory.events.epoch:
        await _stop_what_runs(plane, site, record, step.source)
        await plane.check()
        await site.attach_volume(step.machine, volume_name(plane, record, Cluster.EVENTS), step.source)
    await forget_certificates(plane, record)


async def _stop_what_runs(plane: Plane, site: SitePort, record: Replica, machine: str) -> None:
    """Stop the programs of a replica that has left the machine, where it answers: they must not use its volume."""
    try:
        known = {each.name for each in await site.units(machine)}
    except Unavailable:
        return  # programs of a frozen machine are handled when the volume is detached
    for component in reversed((*CATALOGUE,)):
        if plane.unit(record, component) in known:
            await plane.check()
            await site.stop_unit(machine, plane.unit(record, component), kill=True)


async def leave_machine(plane: Plane, step: LeaveMachine, _: World) -> None:
    """Remove its units there, and release its seat last: no replica gets the ports of programs that may still run."""
    site = plane.site(step.site)
    for component in reversed((*CATALOGUE,)):
        await plane.check()
        await site.remove_unit(step.machine, unit_name(plane.name, step.replica, component))
    await forget_address(plane, step.site, step.machine, step.replica)
    await leave_seat_on(plane, step.site, step.machine, step.replica)


async def forget_address(plane: Plane, site: str, machine: str, gone: str) -> None:
    """Remove the promoted address from a machine whose only replica is ``gone``."""
    promoted = plane.resource.spec.endpoint.promoted
    others = (each for each in plane.memory.replicas if each.name != gone)
    if promoted and all((each.site, each.machine) != (site, machine) for each in others):
        await plane.check()
        await plane.site(site).remove_unit(machine, promoted_unit_name(plane.name))


PREPARED: Preparations = {
    PlaceReplica: seated,
    AttachVolumes: reseated,
}
HANDLERS: Handlers = {
    ReleaseReplica: release_replica,
    AttachVolumes: attach_volumes,
    LeaveMachine: leave_machine,
}
