"""Room is made in the database of etcd."""

from __future__ import annotations

from quarterdeck.actions.addresses import client_url
from quarterdeck.actions.handlers import Detail, Handlers
from quarterdeck.actions.members import healthy_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.etcd.facts import AlarmKind
from quarterdeck.model.steps.upkeep import Compact, Defragment, Disarm
from quarterdeck.model.world import World


async def compact(plane: Plane, step: Compact, world: World) -> None:
    """Forget history."""
    await plane.etcd.compact(healthy_urls(plane, world, step.cluster), step.revision)


async def defragment(plane: Plane, step: Defragment, _: World) -> Detail:
    """Have one member give free room back; how large its database was before and is after, for reports."""
    url = client_url(plane.memory.replica(step.replica), step.cluster)
    before = await plane.etcd.status(url)
    await plane.check()
    await plane.etcd.defragment(url)
    return {"before": before.db_size, "after": (await plane.etcd.status(url)).db_size}


async def disarm(plane: Plane, step: Disarm, world: World) -> None:
    """Take writes again. A member that has no room all the same raises the alarm with the next one."""
    await plane.etcd.disarm(healthy_urls(plane, world, step.cluster), AlarmKind.NOSPACE)


HANDLERS: Handlers = {Compact: compact, Defragment: defragment, Disarm: disarm}
