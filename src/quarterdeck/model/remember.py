"""How a step changes the plane's memory. Pure, and used by the real actions and by the simulator alike."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import Cluster, ClusterMemory, MemberMemory
from quarterdeck.model.memory import Lifetime, Memory, Rejection, Replica
from quarterdeck.model.steps import (
    AddLearner,
    AdoptRevision,
    DecideBootstrap,
    ForgetCluster,
    NoteCluster,
    NoteCreated,
    NoteDraining,
    NoteLifetime,
    NoteMembers,
    NoteRecord,
    NoteUnsettled,
    PlaceReplica,
    RejectRevision,
    ReleaseMember,
    ReleaseReplica,
    RemoveRecord,
    RestartUnit,
    SetBackends,
    Step,
    StopBalancer,
    cluster_of,
)


def remember(memory: Memory, step: Step, now: float) -> Memory:
    """The memory after ``step``, taken at ``now`` (seconds on its timeline); unchanged by steps that need none."""
    if cluster_of(step) is Cluster.MAIN:
        return _remember(memory, step, now)
    if isinstance(step, ForgetCluster):
        return replace(memory, events=ClusterMemory(epoch=memory.events.epoch))
    if isinstance(step, ReleaseMember):
        return replace(memory, replicas=tuple(_without_member(each, step.replica) for each in memory.replicas))
    return _remember_events(memory, step, now)


def _remember_events(memory: Memory, step: Step, now: float) -> Memory:
    """What is remembered of the events' cluster is what would be of the main one. A replica has a member of it from the
    moment at which it is to found it, or was made known to it.
    """
    epoch = memory.events.epoch + isinstance(step, DecideBootstrap)
    memory = replace(memory, events=replace(memory.events, epoch=epoch))
    new = MemberMemory(epoch=epoch, storage_class=getattr(step, "storage_class", ""))
    names = _new_members(step)
    memory = replace(
        memory,
        replicas=tuple(
            replace(each, events=new) if each.name in names and not _has_member(each, epoch) else each
            for each in memory.replicas
        ),
    )
    then = _remember(memory.of(Cluster.EVENTS), step, now)
    return replace(
        memory,
        events=ClusterMemory(
            epoch=epoch,
            bootstrap=then.bootstrap,
            created=then.created,
            cluster_id=then.cluster_id,
            revision=then.revision,
        ),
        replicas=tuple(
            _with_member(each, after) if _has_member(each, epoch) else each
            for each, after in zip(memory.replicas, then.replicas, strict=True)
        ),
    )


def _new_members(step: Step) -> tuple[str, ...]:
    match step:
        case DecideBootstrap():
            return step.replicas
        case AddLearner():
            return (step.replica,)
        case NoteMembers():
            return step.listed
        case _:
            return ()


def _has_member(record: Replica, epoch: int) -> bool:
    return record.events is not None and record.events.epoch == epoch


def _with_member(record: Replica, then: Replica) -> Replica:
    assert record.events is not None
    member = replace(record.events, listed=then.listed, restarted=then.restarted, started=then.started)
    return replace(record, events=member)


def _without_member(record: Replica, name: str) -> Replica:
    return replace(record, events=None) if record.name == name else record


def _remember(memory: Memory, step: Step, now: float) -> Memory:  # noqa: C901 - a table, a case for each kind of step
    match step:
        case PlaceReplica():
            record = Replica(
                name=step.replica,
                slot=step.slot,
                machine=step.machine,
                storage_class=step.storage_class,
                revision=step.revision,
                seat=step.seat,
            )
            # Of replicas placed together one may have failed: no name may come again all the same.
            following = int(step.replica.rsplit("-", 1)[1]) + 1
            ordinal = max(memory.next_ordinal, following)
            return replace(memory, next_ordinal=ordinal, replicas=(*memory.replicas, record))
        case DecideBootstrap():
            return replace(memory, bootstrap=step.replicas)
        case NoteCreated():
            return replace(memory, created=True)
        case NoteCluster():
            return replace(memory, cluster_id=step.cluster_id, revision=max(memory.revision, step.revision))
        case NoteMembers():
            return replace(memory, replicas=tuple(_noted(record, step) for record in memory.replicas))
        case AdoptRevision():
            return replace(memory, replicas=tuple(_adopted(record, step) for record in memory.replicas))
        case RejectRevision():
            why = "; ".join(filter(None, (step.why, step.said)))
            return replace(memory, rejected=Rejection(revision=step.revision, why=why))
        case RestartUnit():
            return replace(memory, replicas=tuple(_restarted(record, step) for record in memory.replicas))
        case SetBackends():
            return replace(memory, replicas=tuple(_served(record, step) for record in memory.replicas))
        case NoteRecord() | NoteUnsettled():
            return _named(memory, step, now)
        case NoteLifetime():
            return replace(memory, longer=Lifetime(ttl=step.ttl, until=now if step.over else None))
        case NoteDraining():
            since = dict(memory.draining)
            return replace(memory, draining=tuple((name, since.get(name, now)) for name in step.draining))
        case StopBalancer():
            return replace(memory, held=tuple(entry for entry in memory.held if entry[0] != step.site))
        case RemoveRecord():
            return replace(memory, served_site=None)
        case ReleaseReplica():
            return replace(
                memory,
                replicas=tuple(record for record in memory.replicas if record.name != step.replica),
                draining=tuple(entry for entry in memory.draining if entry[0] != step.replica),
            )
        case _:
            return memory


def _noted(record: Replica, step: NoteMembers) -> Replica:
    return replace(
        record,
        listed=record.listed or record.name in step.listed,
        started=record.started or record.name in step.started,
    )


def _adopted(record: Replica, step: AdoptRevision) -> Replica:
    return replace(record, revision=step.revision) if record.name == step.replica else record


def _restarted(record: Replica, step: RestartUnit) -> Replica:
    return replace(record, restarted=True) if record.name == step.replica else record


def _served(record: Replica, step: SetBackends) -> Replica:
    return replace(record, served=True) if record.name in step.backends and not record.served else record


def _named(memory: Memory, step: NoteRecord | NoteUnsettled, now: float) -> Memory:
    """Once all servers lead to one site what they handed out before begins to expire."""
    if isinstance(step, NoteUnsettled):
        return replace(memory, unsettled=tuple(sorted({*memory.unsettled, *step.sites})))
    before = [memory.served_site] if memory.served_site is not None else []
    before += [site for site in memory.unsettled if site != memory.served_site]
    held = [entry for entry in memory.held if entry[0] not in (step.to, *before)]
    held += [(site, now) for site in before if site != step.to]
    return replace(memory, served_site=step.to, held=tuple(held), unsettled=())
