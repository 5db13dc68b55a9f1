"""The disks and links of a plane's etcd: their speed and room, and a leader transfer away from slow ones."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from quarterdeck.actions.addresses import metrics_url
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import tell_condition
from quarterdeck.api.base import ConditionStatus
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.engine.background.tasks import tend
from quarterdeck.engine.observation.queries import all_or_none, or_none
from quarterdeck.engine.observation.slowness import DISK, LINK, Slow, SlowPart, Took, answered, eased, sync
from quarterdeck.errors import NotFound
from quarterdeck.etcd.facts import MemberTimes
from quarterdeck.model.clusters import CALLED, Cluster
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.members import TransferLeadership
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner.view import view

#: Seconds between two transfers of leadership because a disk or a link is slow.
_APART = 600.0
#: Bytes that must be free on a disk: etcd writes logs of 64 MiB, and exits when a write fails.
LITTLE = 256 * 2**20
_NONE = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A reading of one cluster's members: the latency of a part since the last reading, and the slow members."""

    part: SlowPart
    took: Took
    slow: frozenset[str]


@dataclass(kw_only=True)
class WatchMembers:
    """A background task: the members' metrics of their disks and links, and the room on disks, are read every so many
    seconds, and reported in conditions. A leader with a slow disk or link, which delays all writes, transfers
    leadership to a member with a fast one.
    """

    every: float = 30.0
    _last: float = -math.inf
    _handed: float = -math.inf
    _last_times: dict[tuple[Cluster, str], MemberTimes] = field(default_factory=dict)
    _slow: dict[tuple[Cluster, SlowPart], Slow] = field(default_factory=dict)

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``."""
        now = asyncio.get_running_loop().time()
        if now - self._last < self.every:
            return
        self._last = now
        read = {cluster: await self._read(plane, world, cluster) for cluster in Cluster}
        await _tell_disks(plane, read, [each async for each in _short(plane, world)])
        await _tell_links(plane, read)
        if now - self._handed < _APART:
            return
        step = _eased(world, read)
        if step is not None:
            self._handed = now
            await tend(plane, step, world)

    async def _read(self, plane: Plane, world: World, cluster: Cluster) -> tuple[_Reading, ...]:
        """Readings of the healthy members since the last turn."""
        names = {record.name for record in plane.memory.replicas}
        members = {record.name: record for record in plane.memory.replicas if _is_well(world, record, cluster)}
        answers = await all_or_none(partial(plane.etcd.times, metrics_url(each, cluster)) for each in members.values())
        membership = world.of(cluster).membership
        voters = [each.id for each in membership.members if not each.learner] if membership is not None else []
        syncs, trips = dict[str, float](), dict[str, float]()
        for name, times in zip(members, answers, strict=True):
            before = self._last_times.get((cluster, name))
            if times is None:
                continue
            self._last_times[cluster, name] = times
            if before is None:
                continue
            for took, seconds in ((syncs, sync(times, before)), (trips, answered(times, before, voters))):
                if seconds is not None:
                    took[name] = seconds
        return tuple(
            _Reading(part=part, took=took, slow=self._judge(cluster, part).judge(took, names))
            for part, took in ((DISK, syncs), (LINK, trips))
        )

    def _judge(self, cluster: Cluster, part: SlowPart) -> Slow:
        return self._slow.setdefault((cluster, part), Slow(part=part))


def _eased(world: World, read: Mapping[Cluster, Iterable[_Reading]]) -> TransferLeadership | None:
    """The first transfer of leadership that would make writes faster."""
    seen = view(world)
    for each in filter(None, (seen, seen.events)):
        for reading in read[each.cluster]:
            step = eased(each, reading.part, reading.took, reading.slow)
            if step is not None:
                return step
    return None


def _is_well(world: World, record: Replica, cluster: Cluster) -> bool:
    member = world.member(record.name, cluster)
    return member is not None and not member.learner and member.health is Health.HEALTHY


async def _short(plane: Plane, world: World) -> AsyncIterator[tuple[str, int]]:
    """The disks of members with little room, in words, and the bytes that each has."""
    for cluster in Cluster:
        for record in world.of(cluster).memory.replicas:
            machine = plane.machines.get((record.site, record.machine))
            up = machine is not None and machine.state is MachineState.UP
            if not up or not record.storage_class or record.site not in plane.sites:
                continue
            try:
                free = await or_none(plane.site(record.site).free_bytes(record.machine, record.storage_class))
            except NotFound:
                continue  # the site no longer has that class: existing data stays
            if free is not None and free < LITTLE:
                disk = f"storage class {record.storage_class} on machine {record.machine}"
                yield f"{disk}, for {CALLED[cluster]} of {record.name}", free


def _slow_by(part: SlowPart, read: Mapping[Cluster, Iterable[_Reading]]) -> list[tuple[Cluster, str]]:
    found = [(cluster, each) for cluster, readings in read.items() for each in readings if each.part is part]
    return [(cluster, name) for cluster, each in found for name in sorted(each.slow)]


async def _tell_disks(
    plane: Plane, read: Mapping[Cluster, Iterable[_Reading]], short: Collection[tuple[str, int]]
) -> None:
    """Write the condition, if more than numbers differ."""
    problems = [f"less than {LITTLE // 2**20} MiB are free on {disk}: make room" for disk, _ in short]
    problems += [
        f"the disk under {CALLED[cluster]} of {name} is slow: syncs take more than {DISK.slow:g} s"
        for cluster, name in _slow_by(DISK, read)
    ]
    reason = ConditionReason.DISK_SLOW if problems else ConditionReason.HEALTHY
    if short:
        reason = (
            ConditionReason.DISK_FULL if min(free for _, free in short) < _NONE else ConditionReason.DISK_NEARLY_FULL
        )
    await _tell(plane, ConditionType.DISKS_HEALTHY, reason, problems)


async def _tell_links(plane: Plane, read: Mapping[Cluster, Iterable[_Reading]]) -> None:
    """The same for links."""
    problems = [
        f"the link of {CALLED[cluster]} of {name} is slow: most others answer it after more than {LINK.slow:g} s"
        for cluster, name in _slow_by(LINK, read)
    ]
    await _tell(
        plane, ConditionType.LINKS_HEALTHY, ConditionReason.LINK_SLOW if problems else ConditionReason.HEALTHY, problems
    )


async def _tell(plane: Plane, condition: ConditionType, reason: ConditionReason, problems: Collection[str]) -> None:
    status = ConditionStatus.FALSE if problems else ConditionStatus.TRUE
    await tell_condition(plane, condition, (status, reason, "; ".join(problems)))
