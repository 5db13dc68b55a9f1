"""Replicas go to other machines with their data."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.actions.certificates import forget_certificates
from quarterdeck.actions.handlers import Handlers, Preparations
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.promoted import forget_address
from quarterdeck.actions.seats import leave_seat_on, take_seat
from quarterdeck.actions.volumes import volume_name
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.settings import unit_name
from quarterdeck.errors import Unavailable
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.attaching import AttachVolumes, LeaveMachine
from quarterdeck.model.world import World
from quarterdeck.sites.port import Site


async def seated(plane: Plane, step: AttachVolumes) -> AttachVolumes:
    """The step with a seat. Raises a QuarterdeckError when the machine has none."""
    record = plane.memory.replica(step.replica)
    return replace(step, seat=await take_seat(plane, record.site, step.machine, step.replica))


async def attach_volumes(plane: Plane, step: AttachVolumes, _: World) -> None:
    """Have the volumes of a replica on another machine, the main cluster's first: where that is, the replica is. Its
    certificates are issued anew for where it is then.
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


async def _stop_what_runs(plane: Plane, site: Site, record: Replica, machine: str) -> None:
    """The replica has left that machine: where it answers by now, nothing of it is to use its other volume."""
    try:
        known = {each.name for each in await site.units(machine)}
    except Unavailable:
        return  # what stands still there is seen to when the volume is taken
    for component in reversed((*CATALOGUE,)):
        if plane.unit(record, component) in known:
            await plane.check()
            await site.stop_unit(machine, plane.unit(record, component), kill=True)


async def leave_machine(plane: Plane, step: LeaveMachine, _: World) -> None:
    """Remove its units there, and let go of its seat last: nobody gets the ports of what may still run."""
    site = plane.site(step.site)
    for component in reversed((*CATALOGUE,)):
        await plane.check()
        await site.remove_unit(step.machine, unit_name(plane.name, step.replica, component))
    await forget_address(plane, step.site, step.machine, step.replica)
    await leave_seat_on(plane, step.site, step.machine, step.replica)


PREPARED: Preparations = {AttachVolumes: seated}
HANDLERS: Handlers = {AttachVolumes: attach_volumes, LeaveMachine: leave_machine}
