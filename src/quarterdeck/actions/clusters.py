"""Etcd clusters go."""

from __future__ import annotations

from quarterdeck.actions.handlers import Handlers
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.volumes import delete_events_volumes
from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.steps.clusters import ReleaseMember
from quarterdeck.model.world import World


async def release_member(plane: Plane, step: ReleaseMember, _: World) -> None:
    """Remove what a replica has of a cluster besides the main one that there is no more: nothing asks it, and no other
    one must ever find its data.
    """
    record = plane.memory.replica(step.replica)
    site, unit = plane.site(record.site), plane.unit(record, MEMBER[step.cluster])
    assert step.cluster is not Cluster.MAIN, "the main cluster goes with its plane"
    await plane.check()
    await site.stop_unit(record.machine, unit, kill=True)
    await plane.check()
    await site.remove_unit(record.machine, unit)
    await delete_events_volumes(plane, record)


HANDLERS: Handlers = {ReleaseMember: release_member}
