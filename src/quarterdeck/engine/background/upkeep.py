"""What is done for a plane's etcd again and again, for as long as the plane is kept."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import remember
from quarterdeck.engine.background.duties import share
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.observation.compared import compare
from quarterdeck.engine.workspace.leases import comparison_lease
from quarterdeck.errors import Corrupt
from quarterdeck.model.clusters import CALLED, Cluster
from quarterdeck.model.membership import Health
from quarterdeck.model.steps.upkeep import NoteDiffering
from quarterdeck.model.world import World
from quarterdeck.planner.members import CORRUPT, raised


@dataclass(kw_only=True)
class CompareData:
    """A duty: the data of all members is compared every so many seconds, while all of them are well, and at once when
    etcd says itself that they disagree, or somebody asks for it (``comparison_lease``). Who has other data than most is
    written down, so that the planner exchanges it, once a person has ended the alarm. Where no majority has the same,
    nothing is touched.
    """

    every: float = 600.0
    _last: dict[Cluster, float] = field(default_factory=dict)
    _alarmed: frozenset[Cluster] = frozenset()
    _asked: dict[Cluster, int] = field(default_factory=dict)

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``. Raises Corrupt where nobody can say whose data is right."""
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
    """Whether all members of a cluster are well: who lags or joins has other things to do."""
    membership = world.membership
    if membership is None or membership.learners or len(membership.voters) == 1:
        return False
    if membership.alarms and not _disagree(world):
        return False
    known = {each.name for each in world.memory.replicas if not each.differs}
    return all(each.health is Health.HEALTHY and each.replica in known for each in membership.voters)


def _disagree(world: World) -> bool:
    """Whether etcd itself says that members have other data than others."""
    return world.membership is not None and CORRUPT in raised(world.membership)


async def _compare(plane: Plane, world: World, cluster: Cluster) -> None:
    found = await compare(plane, cluster)
    if found.torn:
        raise Corrupt(
            f"comparing the data of plane {plane.name}",
            f"members of {CALLED[cluster]} differ at etcd revision {found.revision:,}, and no majority has the same",
            f"keep all volumes as they are, and find out whose data is right ('quarterdeck etcd check {plane.name}')",
        )
    if _disagree(world) and found.same:
        message = f"{CALLED[cluster]} has raised CORRUPT, though all members have the same data at etcd revision"
        disarm = f"'quarterdeck etcd disarm {plane.name}' turns it off"
        told = Happening("AlarmUnexplained", f"{message} {found.revision:,}: {disarm}")
        await plane.store.record(told.event(plane.name, plane.clock()))
    if found.differ:
        why = f"most members have other data at etcd revision {found.revision:,}"
        await plane.check()
        await remember(plane, (NoteDiffering(site="", why=why, replicas=found.differ, cluster=cluster),))
