"""The numbers of one observation of a plane. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from quarterdeck.engine.notices.events import happenings
from quarterdeck.metrics import catalogue
from quarterdeck.metrics.catalogue import Metric
from quarterdeck.model.membership import Health, Membership
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.world import World
from quarterdeck.planner import quorum
from quarterdeck.planner.members import ALARMS, AUTHENTICATION, raised, strays, voters
from quarterdeck.planner.survival import Survivability, survivals
from quarterdeck.planner.view import view
from quarterdeck.stores.port import EventType


class Sample(NamedTuple):
    """A number with its labels besides the plane's."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


def samples(world: World, plan: Plan) -> Iterator[Sample]:
    """All samples of one observation."""
    yield Sample(catalogue.SETTLED, (), plan.done)
    yield Sample(catalogue.WAITING, (), len(plan.waiting))
    available = _available(world)
    if available is not None:
        yield Sample(catalogue.AVAILABLE, (), available)
    warnings = Counter(each.reason for each in happenings(world) if each.type is EventType.WARNING)
    for reason, count in sorted(warnings.items()):
        yield Sample(catalogue.WARNINGS, (reason,), count)
    if not world.deleting:
        yield from _of_view(world)
        for each in world.leading:
            if each.led is not None:
                yield Sample(catalogue.LED, (str(each.component),), each.led)
    yield Sample(catalogue.READY, (), sum(each.ready is True for each in world.replicas))
    for cluster in world.memory.clusters:
        yield from _of_etcd(world.of(cluster), str(cluster))
    for balancer in world.balancers:
        if balancer.reachable:
            yield Sample(catalogue.BACKENDS, (balancer.site, "told"), len(balancer.backends))
            yield Sample(catalogue.BACKENDS, (balancer.site, "healthy"), len(balancer.healthy))
            yield Sample(catalogue.CONNECTIONS, (balancer.site,), balancer.connections)


def _available(world: World) -> bool | None:
    """Whether clients are led to a ready apiserver; None when that is not known, or the plane was never available."""
    if world.deleting or world.memory.served_site is None or not world.record_known:
        return None
    if world.record is None:
        return False
    balancer = world.balancer(world.record)
    return balancer.ready if balancer.reachable else None


def _of_view(world: World) -> Iterator[Sample]:
    seen = view(world)
    for state, count in (("wanted", seen.wanted), ("missing", seen.missing), ("unwanted", seen.unwanted)):
        yield Sample(catalogue.REPLICAS, (state,), len(count))
    for each in survivals(seen):
        for answer in Survivability:
            yield Sample(catalogue.SURVIVED, (str(each.failure), str(answer)), each.answer is answer)


def _of_etcd(world: World, cluster: str) -> Iterator[Sample]:
    """Those of the cluster in the place of the main one."""
    membership = world.membership
    if membership is None and not world.memory.created:
        return  # it was never there
    yield Sample(catalogue.MEMBERSHIP, (cluster,), membership is not None)
    if membership is None:
        return
    yield Sample(catalogue.MARGIN, (cluster,), quorum.margin(voters(world)))
    yield Sample(catalogue.UNKNOWN_MEMBERS, (cluster,), len(strays(world)))
    yield from _members(membership, cluster)
    for kind in (*ALARMS, AUTHENTICATION):
        yield Sample(catalogue.ALARM, (cluster, kind), kind in raised(membership))


def _members(membership: Membership, cluster: str) -> Iterator[Sample]:
    """Every role with every health, so that a number goes to 0 instead of disappearing."""
    counts = Counter((each.learner, each.health) for each in membership.members)
    for learner in (False, True):
        for health in Health:
            labels = (cluster, "learner" if learner else "voter", str(health))
            yield Sample(catalogue.MEMBERS, labels, counts[learner, health])
    for member in membership.members:
        if member.lag is not None:
            yield Sample(catalogue.LAG, (cluster, member.key), member.lag)
        if member.lagging is not None:
            yield Sample(catalogue.LAGGING, (cluster, member.key), member.lagging)
        if member.space is not None:
            yield Sample(catalogue.DATABASE, (cluster, member.key), member.space.size)
            yield Sample(catalogue.IN_USE, (cluster, member.key), member.space.in_use)
            yield Sample(catalogue.QUOTA, (cluster, member.key), member.space.quota)
