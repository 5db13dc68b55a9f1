"""How the plane's memory changes: by a step, and with time. Pure.

A step changes it in the same way for the real actions and in the simulated world. Its times outlive the process that
took them, and jumps of the wall clock.
"""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import Cluster, ClusterMemory, Full, MemberMemory
from quarterdeck.model.memory import Memory, Replica, Timeline
from quarterdeck.model.steps.base import OfCluster, Step, cluster_of
from quarterdeck.model.steps.clusters import DecideBootstrap
from quarterdeck.model.steps.units import RestartUnit


def remember(memory: Memory, step: Step, now: float) -> Memory:
    """The memory after ``step``, taken at ``now`` (seconds on its timeline); unchanged by steps that need none."""
    if isinstance(step, OfCluster | RestartUnit) and cluster_of(step) is Cluster.EVENTS:
        return _of_events(memory, step, now)
    return step.remembered(memory, now)


def _of_events(memory: Memory, step: Step, now: float) -> Memory:
    """The memory of the events' cluster changes like that of the main one. A replica has a member of it from the moment
    when it is chosen as a founder, or is added to it.
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
            seed=then.seed,
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


def adopted(memory: Memory, *, boot: str, steady: float, wall: float) -> Memory:
    """The memory for a driver in ``boot``, whose clocks show ``steady`` and ``wall`` (seconds) now.

    Unchanged if its times were taken in the same boot. Otherwise they count from now, which is ``wall`` on the new
    timeline. A time in the future (of a host that was reset to an earlier state) counts from now as well.
    """
    timeline = memory.timeline
    if timeline is None or timeline.boot != boot:
        return _at_most(replace(memory, timeline=Timeline(boot=boot, ahead=wall - steady)), None, wall)
    now = steady + timeline.ahead
    return _at_most(memory, now, now)


def _at_most(memory: Memory, newest: float | None, now: float) -> Memory:
    """The memory in which all times after ``newest`` (None: all times) are ``now``."""

    def at_most(since: float) -> float:
        return since if newest is not None and since <= newest else now

    def counted(entries: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
        return tuple((name, at_most(since)) for name, since in entries)

    longer = memory.longer
    if longer is not None and longer.until is not None:
        longer = replace(longer, until=at_most(longer.until))
    seed = memory.seed
    if seed is not None and seed.served is not None:
        seed = replace(seed, served=at_most(seed.served))
    (full, events) = (_full_at_most(each, newest, now) for each in (memory.full, memory.events.full))
    return replace(
        memory,
        full=full,
        seed=seed,
        events=replace(memory.events, full=events),
        held=counted(memory.held),
        draining=counted(memory.draining),
        unready=counted(memory.unready),
        down=counted(memory.down),
        healed=counted(memory.healed),
        unhealthy=counted(memory.unhealthy),
        revived=counted(memory.revived),
        longer=longer,
        quorum_lost=at_most(memory.quorum_lost) if memory.quorum_lost is not None else None,
    )


def _full_at_most(full: Full | None, newest: float | None, now: float) -> Full | None:
    if full is None or (newest is not None and full.since <= newest):
        return full
    return replace(full, since=now)
