"""Periodic maintenance of a managed plane's etcd: data comparison and defragmentation."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import remember
from quarterdeck.api.events import EventReason
from quarterdeck.engine.background.tasks import share, tend
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.observation.data_comparison import compare
from quarterdeck.engine.workspace.leases import comparison_lease
from quarterdeck.errors import Corrupt
from quarterdeck.model.clusters import CALLED, Cluster
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.steps.members import Defragment, NoteDiffering, TransferLeadership
from quarterdeck.model.world import World
from quarterdeck.planner.members import CORRUPT, has_the_data, raised, serves
from quarterdeck.planner.rules.upkeep import defragmented, relieved
from quarterdeck.planner.view import View, view


@dataclass(kw_only=True)
class CompareData:
    """A background task: the data of all members is compared every so many seconds, while all of them are healthy, and
    at once when etcd itself reports a difference, or a user requests it (``comparison_lease``). A member whose data
    differs from most is noted, so that the planner replaces it, once a person has disarmed the alarm. Where no majority
    agrees, nothing is changed.
    """

    every: float = 600.0
    _last: dict[Cluster, float] = field(default_factory=dict)
    _alarmed: frozenset[Cluster] = frozenset()
    _asked: dict[Cluster, int] = field(default_factory=dict)

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``. Raises Corrupt where it cannot be decided whose data is right."""
        now = asyncio.get_running_loop().time()
        asking = await plane.store.lease(comparison_lease(plane.name))
        for cluster in Cluster:
            last = self._last.setdefault(cluster, now - self.every * share(plane.name))
            alarmed, news = _disagree(world.of(cluster)), cluster not in self._alarmed
            self._alarmed = self._alarmed | {cluster} if alarmed else self._alarmed - {cluster}
            asked = asking is not None and self._asked.get(cluster) != asking.token
            if (now - last >= self.every or (alarmed and news) or asked) and _may_be_compared(world.of(cluster)):
                self._last[cluster] = now
                self._asked |= {cluster: asking.token} if asking is not None else {}
                await _compare(plane, world.of(cluster), cluster)


def _may_be_compared(world: World) -> bool:
    """Whether all members of a cluster are healthy: lagging and joining members are not compared."""
    membership = world.membership
    if membership is None or membership.learners or len(membership.voters) == 1:
        return False
    if membership.alarms and not _disagree(world):
        return False
    known = {each.name for each in world.memory.replicas if not each.differs}
    return all(each.health is Health.HEALTHY and each.replica in known for each in membership.voters)


def _disagree(world: World) -> bool:
    """Whether etcd itself reports that the data of members differs."""
    return world.membership is not None and CORRUPT in raised(world.membership)


async def _compare(plane: Plane, world: World, cluster: Cluster) -> None:
    found = await compare(plane, cluster)
    if found.torn:
        raise Corrupt(
            f"comparing the data of plane {plane.name}",
            f"members of {CALLED[cluster]} differ at etcd revision {found.revision:,}, and no majority agrees",
            f"keep all volumes as they are, and find out which data is right ('quarterdeck etcd check {plane.name}')",
        )
    if _disagree(world) and found.same:
        message = f"{CALLED[cluster]} has raised CORRUPT, though all members have the same data at etcd revision"
        disarm = f"'quarterdeck etcd disarm {plane.name}' turns it off"
        happening = Happening(EventReason.ALARM_UNEXPLAINED, f"{message} {found.revision:,}: {disarm}")
        await plane.store.record(happening.event(plane.name, plane.clock()))
    if found.differ:
        why = f"most members have other data at etcd revision {found.revision:,}"
        await plane.check()
        await remember(plane, (NoteDiffering(site="", why=why, replicas=found.differ, cluster=cluster),))


# Databases of etcd are defragmented before their disk or quota is full, one member at a time.

#: A database is fragmented if so many bytes, and this share of it, are free.
LEAST = 100 * 2**20
SHARE = 0.5
#: Bytes in use up to which a member is defragmented automatically: it does not serve during that, about a second for so
#: many. A larger one is defragmented when a person requests it, or when there is no room left.
MOST = 256 * 2**20
#: Seconds between two attempts.
_AGAIN = 60.0


@dataclass(kw_only=True)
class Tidy:
    """A background task: at most every so many seconds one member of a plane is defragmented, while everything is
    healthy.
    """

    every: float = 3600.0
    _last: float = -math.inf
    _tried: float = -math.inf

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``."""
        now = asyncio.get_running_loop().time()
        if self._last == -math.inf:
            self._last = now - self.every * share(plane.name)
        if now - self._last < self.every or now - self._tried < _AGAIN:
            return
        seen = view(world)
        for each in (seen, seen.events):
            step = tidied(each) if each is not None else None
            if step is not None:
                self._tried = now
                await tend(plane, step, world)
                if isinstance(step, Defragment):
                    self._last = now
                return


def tidied(seen: View) -> Defragment | TransferLeadership | None:
    """The next member that returns free space. The leader is last, and transfers leadership first. Pure.

    All members and apiservers must be well, and nothing else go on; there must be others that serve meanwhile.
    """
    membership, memory = seen.world.membership, seen.world.memory
    if membership is None or not membership.at_rest or len(membership.voters) < 3:
        return None
    settled = memory.full is None and seen.resting is None
    if not settled or not all(_is_whole(seen, each) for each in membership.voters):
        return None
    if not all(serves(seen.plane.world, each) for each in memory.replicas):
        return None
    turn = sorted((each for each in membership.voters if is_loose(each)), key=lambda each: each.id)
    follower = next((each for each in turn if each.replica != membership.leader), None)
    if follower is not None:
        return defragmented(seen, follower, "most of its database is free")
    return relieved(seen) if turn else None


def is_loose(member: MemberFact) -> bool:
    """Whether much of a member's database is free room, and it would be given back in a moment."""
    space = member.space
    if space is None or space.in_use > MOST:
        return False
    return space.size - space.in_use >= max(LEAST, SHARE * space.size)


def _is_whole(seen: View, member: MemberFact) -> bool:
    known = any(each.name == member.replica and not each.differs for each in seen.world.memory.replicas)
    return known and has_the_data(seen.world, member)
