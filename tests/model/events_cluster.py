"""The events' cluster in the claims: what is claimed of etcd is claimed of each cluster by itself, and besides (14): as
long as an apiserver serves whose events are written, one does after any step; and in the end there is such a cluster
exactly where one is wanted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from model.faulty_truth import FaultyTruth
from quarterdeck.model.clusters import CLUSTER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import DecideBootstrap
from quarterdeck.model.steps.members import (
    AddLearner,
    Compact,
    Defragment,
    Disarm,
    NoteDiffering,
    NoteFull,
    Promote,
    RemoveMember,
    Swap,
    TransferLeadership,
)
from quarterdeck.model.steps.units import RestartUnit, StartUnit, StopUnit
from quarterdeck.planner.simulated.parts import SimMember, SimReplica

Unit = StartUnit | StopUnit | RestartUnit
#: Steps that are about a cluster.
OF_A_CLUSTER = (
    AddLearner,
    Promote,
    RemoveMember,
    TransferLeadership,
    DecideBootstrap,
    NoteFull,
    NoteDiffering,
    Compact,
    Defragment,
    Disarm,
)
S = TypeVar("S", bound=Step)


def cluster_of(step: Step) -> Cluster | None:
    """The cluster that a step is about; None if it is about none."""
    if isinstance(step, Unit):
        return CLUSTER.get(step.component)
    return step.cluster if isinstance(step, (*OF_A_CLUSTER, Swap)) else None


def as_main(step: S) -> S:
    """The same step, as if its cluster were the main one."""
    if isinstance(step, Swap):
        return replace(step, cluster=Cluster.MAIN, changes=tuple(map(as_main, step.changes)))
    if isinstance(step, Unit):
        return replace(step, component=Component.ETCD if step.component in CLUSTER else step.component)
    return replace(step, cluster=Cluster.MAIN) if isinstance(step, OF_A_CLUSTER) else step


def steps_of(steps: tuple[Step, ...], cluster: Cluster) -> tuple[Step, ...]:
    """The steps that are about one cluster, as if that were the main one; with the main one go those about none."""
    none = Cluster.MAIN
    return tuple(as_main(step) for step in steps if (cluster_of(step) or none) is cluster)


def in_use(truth: FaultyTruth) -> bool:
    """Whether there is a cluster that anybody keeps events in, or is to."""
    return truth.memory.events.exists and (truth.revision in truth.separate or _kept(truth))


def _kept(truth: FaultyTruth) -> bool:
    return any(each.revision in truth.separate for each in truth.memory.replicas)


def with_member(replica: SimReplica, cluster: Cluster, member: SimMember | None) -> SimReplica:
    """A replica with another member of a cluster."""
    return replace(replica, member=member) if cluster is Cluster.MAIN else replace(replica, events=member)


def without_data(replica: SimReplica, cluster: Cluster) -> SimReplica:
    """A replica whose member of a cluster has lost its data."""
    return replace(replica, data=False) if cluster is Cluster.MAIN else replace(replica, events_data=False)


def why_not_done(truth: FaultyTruth, keep: set[str]) -> str:
    """What of the events' cluster is not as wanted, in a plane of these replicas; "" if all is."""
    apart = {name for name in keep if truth.memory.replica(name).revision in truth.separate}
    events, reachable = truth.of(Cluster.EVENTS), {name for name in truth.recorded if truth.answers(name)}
    if not apart:
        if truth.memory.events.exists:
            return "the events' cluster is remembered, and nobody keeps any there"
        run = {name for name in reachable if Component.EVENTS_ETCD in truth.replica(name).units}
        left = {name for name in reachable if truth.replica(name).events_data} | run
        return f"{left} have something of the events' cluster" if left else ""
    if apart != keep:
        return f"only {apart} keep events apart"
    if set(events.members) != keep:
        return f"{set(events.members)} are members of the events' cluster"
    if events.quorum_site != truth.slots[0].site:
        return f"the quorum of the events' cluster is at {events.quorum_site}"
    lost = keep - truth.taking_events
    return f"{lost} take no events" if lost else ""
