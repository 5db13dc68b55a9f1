"""Disarming the alarms of a plane's etcd, once their cause is gone."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.actions.members import healthy_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.api.events import EventReason
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.observation.data_comparison import compare
from quarterdeck.engine.observation.observe import observer_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.etcd.facts import AlarmKind
from quarterdeck.model.clusters import CALLED, QUOTA, Cluster
from quarterdeck.model.world import World
from quarterdeck.planner.members import CORRUPT, NOSPACE, raised
from quarterdeck.planner.space import has_no_room
from quarterdeck.stores.port import EventType


@dataclass(frozen=True, slots=True, kw_only=True)
class Disarming:
    """The alarms of a plane that may be disarmed, by the cluster that raised them, and for each of the others the
    reason why it must stay.
    """

    plane: str
    alarms: tuple[tuple[Cluster, AlarmKind], ...]
    kept: tuple[str, ...] = ()

    @property
    def descriptions(self) -> tuple[str, ...]:
        """The alarms that may be disarmed, as people call them."""
        return tuple(_title(*each) for each in self.alarms)


async def planned(home: Home, name: str) -> Disarming:
    """See ``EtcdCare.plan_disarming``."""
    async with open_plane(home, name) as plane:
        found, _ = await _looked(plane)
        return found


async def disarmed(home: Home, disarming: Disarming, requester: Requester) -> None:
    """See ``EtcdCare.disarm``. No lease is taken: a driver may be waiting for this. Disarming changes no data, and a
    member whose problem persists raises the alarm again.
    """
    async with open_plane(home, disarming.plane) as plane:
        now, world = await _looked(plane)
        for cluster, kind in now.alarms:
            if (cluster, kind) not in disarming.alarms:
                continue  # raised since the user confirmed
            await plane.etcd.disarm(healthy_urls(plane, world, cluster), kind)
            message = f"{_title(cluster, kind)} was turned off by {requester.name}"
            happening = Happening(EventReason.ALARM_DISARMED, message, EventType.NORMAL)
            await home.store.record(happening.event(plane.name, requester.now().timestamp()))


def _title(cluster: Cluster, kind: AlarmKind) -> str:
    return f"the alarm {kind} of {CALLED[cluster]}"


async def _looked(plane: Plane) -> tuple[Disarming, World]:
    """What one observation allows. Raises Unavailable without a quorum, PreconditionFailed where alarms are on and none
    may be disarmed, or members differ.
    """
    world = await (await observer_of(plane)).observe()
    alarms: list[tuple[Cluster, AlarmKind]] = []
    kept: list[PreconditionFailed] = []
    for cluster in plane.memory.clusters:
        of = world.of(cluster)
        if of.membership is None:
            seen = f"no quorum of {CALLED[cluster]} answers"
            raise Unavailable(_doing(plane), seen, f"see 'quarterdeck status {plane.name}'")
        kinds = raised(of.membership)
        if CORRUPT in kinds:
            await _require_same_data(plane, cluster)
            alarms.append((cluster, AlarmKind.CORRUPT))
        if NOSPACE in kinds and (full := _without_room(plane, of, cluster)):
            kept.append(full)
        elif NOSPACE in kinds:
            alarms.append((cluster, AlarmKind.NOSPACE))
    if kept and not alarms:
        raise kept[0]
    return Disarming(plane=plane.name, alarms=tuple(alarms), kept=tuple(map(str, kept))), world


def _doing(plane: Plane) -> str:
    return f"turning off the alarms of etcd of plane {plane.name}"


async def _require_same_data(plane: Plane, cluster: Cluster) -> None:
    """Raise PreconditionFailed unless all voters have the same data, except those that are marked for replacement: no
    replacement begins while CORRUPT is on, so a member that differs stays until the alarm is disarmed.
    """
    doing, etcd, found = _doing(plane), CALLED[cluster], await compare(plane, cluster)
    at = f"at etcd revision {found.revision:,}"
    if found.torn:
        seen = f"members of {etcd} differ {at}, and no majority has the same data"
        step = f"keep all volumes unchanged, and find out whose data is right ('quarterdeck etcd check {plane.name}')"
        raise PreconditionFailed(doing, seen, step)
    exchanged = {each.name for each in plane.memory.of(cluster).replicas if each.differs}
    exchanged.update(plane.resource.spec.replace_replicas)
    wrong = [each for each in found.differ if each not in exchanged]
    if wrong:
        seen = f"{', '.join(wrong)} of {etcd} has other data than most members {at}"
        step = f"other data than most members {at}: {', '.join(wrong)} of {etcd}"
        raise PreconditionFailed(doing, seen, step)
    unknown = [each for each, has in found.hashes.items() if has is None and each not in exchanged]
    if unknown:
        seen = f"the data of {', '.join(unknown)} of {etcd} could not be compared"
        raise PreconditionFailed(
            doing, seen, f"see 'quarterdeck status {plane.name}', and try again once all are healthy"
        )


def _without_room(plane: Plane, world: World, cluster: Cluster) -> PreconditionFailed | None:
    """Why the alarm NOSPACE must stay: a member has no room, or does not report it; None where all have room."""
    assert world.membership is not None
    for each in world.membership.members:
        if each.space is None:
            seen = f"{each.description} of {CALLED[cluster]} does not report the size of its database"
            return PreconditionFailed(_doing(plane), seen, f"see 'quarterdeck status {plane.name}'")
        if has_no_room(each.space):
            size, quota = (f"{count / 2**20:,.0f} MiB" for count in (each.space.size, each.space.quota))
            seen = f"the database of {each.description} of {CALLED[cluster]} has {size} of its quota of {quota}"
            wait = f"room is made while the plane is driven ('quarterdeck wait {plane.name}')"
            return PreconditionFailed(_doing(plane), seen, f"{wait}; if that is not enough, raise {QUOTA[cluster]}")
    return None
