"""The revision that replicas must run now, and the replicas that must be replaced for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from quarterdeck.model.clusters import CLUSTER, MEMBER, Cluster
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Replica
from quarterdeck.model.units import IDLE, UnitState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner.etcd_versions import is_closed
from quarterdeck.planner.members import NOSPACE, acts, all_raised, can_spare
from quarterdeck.planner.space import needs_quota


def wanted_revision(world: World) -> str:
    """The revision that replicas must run now: the one of ``heading``, or the one that most replicas have for as long
    as it is not known that programs of an older version can read everything that is stored, or start at all.
    """
    wanted = heading(world)
    return _most(world, wanted) if is_unchecked(world, wanted) or is_closed(world, wanted) else wanted


def is_unchecked(world: World, revision: str) -> bool:
    """Whether a revision has programs of an older minor version than some replica has, or lacks an encryption key that
    it has, and it is not known that they can read everything that is stored. What is stored is checked while only
    revisions run that store what the wanted one can read (``CheckStored``).
    """
    if world.memory.readable == revision:
        return False
    return any(world.change(record.revision, revision).downgrade for record in world.memory.replicas)


def heading(world: World) -> str:
    """The revision that replicas must get next; or, if it was rejected, the one that most other replicas have."""
    next_one = next_revision(world)
    rejected = world.memory.rejected
    back = world.settings.goes_back and world.memory.proven
    if rejected is None or rejected.revision != next_one or not back:
        return next_one
    return _most(world, next_one)


def _most(world: World, other: str) -> str:
    """The revision that most replicas have, apart from ``other``; that one if they have no other."""
    others = Counter(record.revision for record in world.memory.replicas if record.revision != other)
    return min(others, key=lambda name: (-others[name], name), default=other)


def next_revision(world: World) -> str:
    """The revision that the user wants, or the nearest intermediate one whose controllers may run at the same time as
    those of all replicas; the wanted one at once where all controllers may stop for it.
    """
    used = {record.revision for record in world.memory.replicas if acts(world, record)}
    apart = [each for each in used if not world.may_run_beside(each, world.revision)]
    if not apart or (world.settings.together and all(_stops_controllers_alone(world, each) for each in apart)):
        return world.revision
    free = (each for each in reversed(world.via) if all(world.may_run_beside(each, other) for other in used))
    return next(free, world.revision)


def _stops_controllers_alone(world: World, revision: str) -> bool:
    change = world.change(revision, world.revision)
    return not change.exchange and not change.reload and all(each.is_controller for each in world.stops(change))


def outdated(world: World, revision: str) -> frozenset[str]:
    """The replicas that must be replaced: a person wants it, or their data differs from most, or a program stays
    unhealthy on their machine, or they cannot reach ``revision``, or not without an outage. Never a cordoned one.
    """
    old = frozenset(record.name for record in world.memory.replicas if _outdated(world, record, revision))
    return old.difference(world.cordoned)


def _outdated(world: World, record: Replica, revision: str) -> bool:
    if record.name in world.condemned or record.name in world.memory.leaving:
        return True
    if record.differs or (record.events is not None and record.events.differs):
        return True
    altered = world.programs.with_dependents(world.replica(record.name).altered)
    if len(world.slots) == 1 and Component.APISERVER in altered and not may_stop(world, record, altered):
        return True
    if record.revision == revision:
        return _other_class(record.storage_class, world.storage_class) or (
            record.events is not None and _other_class(record.events.storage_class, world.events_class)
        )
    change = as_it_is(world.change(record.revision, revision), world.replica(record.name), revision)
    stops = world.stops(change)
    alone = len(world.slots) == 1 and Component.APISERVER in stops
    return change.exchange or (alone and not may_stop(world, record, stops))


def _other_class(has: str, wanted: str) -> bool:
    return "" not in (has, wanted) and has != wanted


def as_it_is(change: ReplicaChange, fact: ReplicaFact, revision: str) -> ReplicaChange:
    """The change to ``revision`` that an observed replica needs: a program that does not run, or did not reload its
    new files, is restarted with them.
    """
    if not change.reload:
        return change
    runs = all(fact.unit(each) in (UnitState.RUNNING, UnitState.UNKNOWN) for each in change.reload)
    if runs and revision not in fact.stuck:
        return change
    return replace(change, restart=change.restart | change.reload, reload=frozenset())


def may_stop(world: World, record: Replica, stops: Collection[Component]) -> bool:
    """Whether these programs of a replica may stop although no other replica takes over: no client is affected, or
    only that makes room in etcd, or gives it certificates that others accept.
    """
    if costs_nothing(world, record, stops) or restarts_for_quota(world, record, stops):
        return True
    return restarts_expired(world, record)


def restarts_expired(world: World, record: Replica) -> bool:
    """Whether a replica whose certificates have expired is restarted for new ones. Members with new and with expired
    certificates refuse each other, so no order of restarts keeps a quorum of these: where none answers, none is waited
    for, if the user consents. Restarts lose no data. A quorum that answers without the replica is kept.
    """
    if record.name not in world.expired:
        return False
    there = [each for each in Cluster if each is Cluster.MAIN or world.memory.events.exists]
    return all(_restarts_in(world.of(each), record) for each in there)


def _restarts_in(world: World, record: Replica) -> bool:
    if world.membership is None:
        return world.settings.offline
    member = world.member(record.name)
    return (member is None or member.health is Health.DOWN) and can_spare(world, record)


def restarts_for_quota(world: World, record: Replica, stops: Collection[Component]) -> bool:
    """Whether stopping these programs restarts the only voter where only a larger quota makes room. Until then etcd
    takes no writes and no member can join, and it reads its quota when it starts.
    """
    if world.membership is None or CLUSTER.keys().isdisjoint(stops):
        return False
    alone = [each.replica for each in world.membership.voters] == [record.name]
    return alone and all_raised(world) == (NOSPACE,) and needs_quota(world)


def costs_nothing(world: World, record: Replica, stops: Collection[Component]) -> bool:
    """Whether no client is affected when these programs of a replica stop: none of them is of use, and not because
    something else is missing. In an outage every program is of use that may continue after it.
    """
    fact = world.replica(record.name)
    if stops and not frozenset(stops).intersection(world.programs.of(record.revision)):
        return False  # nothing stops: additional programs come to one replica after the other
    running = [component for component in stops if fact.unit(component) not in IDLE]
    if any(_of_use(world, record, component) for component in running):
        return False
    rejected = world.memory.rejected
    useless = not world.memory.proven or (rejected is not None and rejected.revision == record.revision)
    given_up = never_ready(world, record) if useless else ()
    return not running or any(ends_by_itself(world, record, each) or each in given_up for each in running)


def _of_use(world: World, record: Replica, component: Component) -> bool:
    """Whether a program may be of use. An unknown state counts as of use."""
    fact = world.replica(record.name)
    if component in CLUSTER:
        founds = component in stand_still(world, record) and world.membership_of(CLUSTER[component]) is None
        return not founds and component not in fact.crash_looping and not fact.of(CLUSTER[component]).refused
    checked = any(record.name in balancer.healthy for balancer in world.balancers)
    if component == Component.APISERVER:
        return fact.ready is not False or checked
    return component not in fact.crash_looping and fact.ready is not False


def ends_by_itself(world: World, record: Replica, component: Component) -> bool:
    """Whether a program exits repeatedly, although its dependencies are healthy."""
    fact = world.replica(record.name)
    if component not in fact.crash_looping:
        return False
    if component in CLUSTER:
        cluster = CLUSTER[component]
        return not _is_well(world, record, cluster) and not fact.of(cluster).refused
    if component == Component.APISERVER:
        return fact.ready is False and all(_is_well(world, record, each) for each in _needs(world, record))
    return fact.ready is True


def never_ready(world: World, record: Replica) -> tuple[Component, ...]:
    """The programs of a replica that run and are not ready, although all their dependencies are known to be healthy: a
    member that answers neither this process nor the cluster, or a learner that does not catch up, while all others are
    healthy; founders that all run and are not a quorum; an apiserver that reports it itself, on a healthy voter; or a
    controller with a ready apiserver.
    """
    fact = world.replica(record.name)
    running = [component for component in world.programs.every if fact.unit(component) is UnitState.RUNNING]
    deaf = (each for cluster, each in MEMBER.items() if each in running and _stays_away(world, record, cluster))
    late = Component.APISERVER in running and fact.ready is False
    serves = late and all(_is_well(world, record, each, votes=True) for each in _needs(world, record))
    idle = (each for each in running if each.is_controller and each in fact.silent and fact.ready is True)
    return (*deaf, *((Component.APISERVER,) if serves else ()), *idle)


def stand_still(world: World, record: Replica) -> tuple[Component, ...]:
    """The programs of ``never_ready`` that report nothing new."""
    fact = world.replica(record.name)
    return tuple(each for each in never_ready(world, record) if fact.complaint(each) is not None) if fact.quiet else ()


def _needs(world: World, record: Replica) -> list[Cluster]:
    """The clusters of which an apiserver needs a member."""
    return [Cluster.MAIN, *([Cluster.EVENTS] if world.keeps_events_apart(record.revision) else [])]


def _stays_away(world: World, record: Replica, cluster: Cluster) -> bool:
    membership, member = world.membership_of(cluster), world.member(record.name, cluster)
    if membership is None:
        return _founds(world.of(cluster), record, cluster)
    if member is None:
        return False
    if member.health is not Health.DOWN and not (member.learner and member.lagging):
        return False
    return all(each.health is Health.HEALTHY for each in membership.members if each is not member)


def _founds(world: World, record: Replica, cluster: Cluster) -> bool:
    """Whether a replica founds a cluster whose founders all run their member, and that never answered. ``world`` is
    the world of that cluster.
    """
    founders, etcd = world.memory.bootstrap, MEMBER[cluster]
    if world.memory.created or record.name not in founders:
        return False
    return all(world.replica(each).unit(etcd) is UnitState.RUNNING for each in founders)


def _is_well(world: World, record: Replica, cluster: Cluster, *, votes: bool = False) -> bool:
    member = world.member(record.name, cluster)
    return member is not None and member.health is Health.HEALTHY and not (votes and member.learner)
