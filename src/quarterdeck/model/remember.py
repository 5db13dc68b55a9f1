"""How a step changes the plane's memory. Pure, and used by the real actions and in the simulated world alike."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import Cluster, ClusterMemory, MemberMemory
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.steps.base import OfCluster, Step, cluster_of
from quarterdeck.model.steps.clusters import DecideBootstrap
from quarterdeck.model.steps.units import RestartUnit


def remember(memory: Memory, step: Step, now: float) -> Memory:
    """The memory after ``step``, taken at ``now`` (seconds on its timeline); unchanged by steps that need none."""
    if isinstance(step, OfCluster | RestartUnit) and cluster_of(step) is Cluster.EVENTS:
        return _of_events(memory, step, now)
    return step.remembered(memory, now)


def _of_events(memory: Memory, step: Step, now: float) -> Memory:
    """What is remembered of the events' cluster is what would be of the main one. A replica has a member of it from the
    moment at which it is to found it, or was made known to it.
    """
    epoch = memory.events.epoch + isinstance(step, DecideBootstrap)
    memory = replace(memory, events=replace(memory.events, epoch=epoch))
    new = MemberMemory(epoch=epoch, storage_class=getattr(step, "storage_class", ""))
    names = step.new_members if isinstance(step, OfCluster) else ()
    memory = replace(
        memory,
        replicas=tuple(
            replace(each, events=new) if each.name in names and not _has_member(each, epoch) else each
            for each in memory.replicas
        ),
    )
    then = step.remembered(memory.of(Cluster.EVENTS), now)
    return replace(
        memory,
        events=ClusterMemory(
            epoch=epoch,
            bootstrap=then.bootstrap,
            created=then.created,
            cluster_id=then.cluster_id,
            revision=then.revision,
            full=then.full,
        ),
        replicas=tuple(
            _with_member(each, after) if _has_member(each, epoch) else each
            for each, after in zip(memory.replicas, then.replicas, strict=True)
        ),
    )


def _has_member(record: Replica, epoch: int) -> bool:
    return record.events is not None and record.events.epoch == epoch


def _with_member(record: Replica, then: Replica) -> Replica:
    assert record.events is not None
    member = replace(
        record.events,
        listed=then.listed,
        member_id=then.member_id,
        restarted=then.restarted,
        started=then.started,
        differs=then.differs,
    )
    return replace(record, events=member)
