"""What a person can do with etcdctl, as faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import combinations

from model.events_cluster import with_member
from model.faulty_truth import FaultyTruth
from model.kinds import Fault, Kind
from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.steps.members import Promote, RemoveMember
from quarterdeck.planner.simulated.effects import RefusedError
from quarterdeck.planner.simulated.members import changed
from quarterdeck.planner.simulated.parts import ELSEWHERE, SimMember, SimReplica

#: Ticks until a member that a person has added would have caught up.
BEHIND = 2
#: The key of a member that a person has added.
ADDED = "added by hand"


def stray_voters(seen: FaultyTruth) -> list[str]:
    """The voters of a cluster that belong to no replica."""
    return [name for name, member in seen.members.items() if not member.learner and not seen.taken_for(name)]


def without_stray_voters(truth: FaultyTruth) -> FaultyTruth:
    for cluster in truth.memory.clusters:
        for name in stray_voters(truth.of(cluster)):
            left = with_member(truth.replica(name), cluster, None)
            truth = truth.with_replica(name, left if (left.member or left.events) is not None else None)
    return truth


def membership_by_hand(truth: FaultyTruth) -> Iterator[Fault]:
    """What a person can do to the members with etcdctl. What etcd refuses is left out, and so is what costs the quorum
    at once.
    """
    for cluster in truth.memory.clusters:
        seen, what = truth.of(cluster), " of the events' cluster" * (cluster is Cluster.EVENTS)
        if seen.elected is None:
            continue
        for kind, name, after in (*_added(truth, cluster), *_changed_by_hand(truth, cluster)):
            if after.of(cluster).elected is not None:
                yield Fault(kind, f"{name}{what}", after)


def _added(truth: FaultyTruth, cluster: Cluster) -> Iterator[tuple[Kind, str, FaultyTruth]]:
    if ADDED in dict(truth.replicas):
        added = truth.replica(ADDED)
        if added.units:
            silent = truth.with_replica(ADDED, replace(added, units=frozenset()))
            yield Kind.VOTER_RUNS, "the voter that a person added ends", silent
        return
    for kind, learner in ((Kind.VOTER_ADDED, False), (Kind.LEARNER_ADDED, True)):
        words = f"a person adds a {'learner' if learner else 'voter'}"
        yield kind, words, _with_added(truth, cluster, SimMember(id=truth.next_member, learner=learner, behind=BEHIND))
    stranger = SimMember(id=truth.next_member, learner=False)
    runs = _with_added(truth, cluster, stranger, MEMBER[cluster])
    yield Kind.VOTER_RUNS, "a person adds a voter that runs", runs
    leads = {"leader": ADDED} if cluster is Cluster.MAIN else {"events_leader": ADDED}
    yield Kind.VOTER_RUNS, "a person adds a voter that runs, and leads", replace(runs, **leads)
    seen = truth.of(cluster)
    for name, member in seen.members.items():
        if name in seen.recorded and not member.found_at:
            moved = with_member(truth.replica(name), cluster, replace(member, found_at=ELSEWHERE))
            stranger = SimMember(id=truth.next_member, learner=False, behind=BEHIND, found_at=name)
            after = _with_added(truth.with_replica(name, moved), cluster, stranger)
            yield Kind.URL_TAKEN, f"a person adds a voter at the peer URL of {name}", after


def _with_added(truth: FaultyTruth, cluster: Cluster, member: SimMember, *runs: Component) -> FaultyTruth:
    """The truth with a member that belongs to no replica, and runs somewhere else, if it does."""
    of_events = cluster is Cluster.EVENTS
    there = SimReplica(units=frozenset(runs), data=bool(runs) and not of_events, events_data=bool(runs) and of_events)
    after = replace(truth, next_member=truth.next_member + 1)
    return after.with_replica(ADDED, with_member(there, cluster, member))


def _changed_by_hand(truth: FaultyTruth, cluster: Cluster) -> Iterator[tuple[Kind, str, FaultyTruth]]:
    seen = truth.of(cluster)
    for name, member in seen.members.items():
        if name not in seen.recorded:
            continue
        remove = RemoveMember(site="", why="", replica=name, member=member.id, cluster=cluster)
        promote = Promote(site="", why="", replica=name, member=member.id, cluster=cluster)
        for kind, step in ((Kind.MEMBER_REMOVED, remove), (Kind.LEARNER_PROMOTED, promote)):
            with suppress(RefusedError):
                yield kind, f"a person does: {step.description}", changed(truth, step)
        if not member.found_at:
            free = set(seen.recorded) - seen.members.keys() - seen.displacing.keys()
            for at in (ELSEWHERE, *sorted(free)):
                words = f"a person changes the peer URLs of {name}{f' to that of {at}' if at != ELSEWHERE else ''}"
                yield Kind.MEMBER_UPDATED, words, _at(truth, cluster, {name: at})
    yield from _swapped(truth, cluster)


def _swapped(truth: FaultyTruth, cluster: Cluster) -> Iterator[tuple[Kind, str, FaultyTruth]]:
    """Two members have each other's peer URLs, or three in a circle. (A person does so by way of a free one.)"""
    seen = truth.of(cluster)
    placed = [name for name, each in seen.members.items() if name in seen.recorded and not each.found_at]
    circles = [*combinations(placed, 2), *([tuple(placed[:3])] if len(placed) > 2 else [])]
    for circle in circles:
        after = _at(truth, cluster, dict(zip(circle, (*circle[1:], circle[0]), strict=True)))
        yield Kind.URLS_SWAPPED, f"a person gives {', '.join(circle)} each other's peer URLs", after


def _at(truth: FaultyTruth, cluster: Cluster, places: Mapping[str, str]) -> FaultyTruth:
    """The truth with members where the others are to look for them, by the replica."""
    for name, at in places.items():
        moved = replace(truth.of(cluster).members[name], found_at=at)
        truth = truth.with_replica(name, with_member(truth.replica(name), cluster, moved))
    return truth


def states_by_hand(truth: FaultyTruth) -> Iterator[Fault]:
    """What a person can do to the main cluster as a whole. (etcd raises CORRUPT by itself as well.)"""
    if truth.elected is None:
        return
    if not truth.authenticates:
        words = "a person turns on etcd's authentication"
        yield Fault(Kind.AUTHENTICATES, words, replace(truth, authenticates=True))
    if not truth.full:
        yield Fault(Kind.ALARMS, "a person raises NOSPACE", replace(truth, full=True))
    else:
        yield Fault(Kind.ALARMS, "a person disarms NOSPACE", replace(truth, full=False))
    if not truth.corrupt:
        yield Fault(Kind.ALARMS, "CORRUPT is raised", replace(truth, corrupt=True))
