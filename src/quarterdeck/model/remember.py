"""How a step changes the plane's memory. Pure, and used by the real actions and by the simulator alike."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.steps import (
    DecideBootstrap,
    NoteCluster,
    NoteCreated,
    NoteDraining,
    NoteMembers,
    NoteRecord,
    PlaceReplica,
    ReleaseReplica,
    RemoveRecord,
    RestartUnit,
    SetBackends,
    Step,
    StopBalancer,
)


def remember(memory: Memory, step: Step, now: float) -> Memory:  # noqa: C901 - a table, a case for each kind of step
    """The memory after ``step``, taken at ``now`` (seconds on its timeline); unchanged by steps that need none."""
    match step:
        case PlaceReplica():
            record = Replica(name=step.replica, slot=step.slot, machine=step.machine)
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
        case RestartUnit():
            return replace(memory, replicas=tuple(_restarted(record, step) for record in memory.replicas))
        case SetBackends():
            return replace(memory, replicas=tuple(_served(record, step) for record in memory.replicas))
        case NoteRecord():
            return _moved(memory, step.to, now)
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


def _restarted(record: Replica, step: RestartUnit) -> Replica:
    return replace(record, restarted=True) if record.name == step.replica else record


def _served(record: Replica, step: SetBackends) -> Replica:
    return replace(record, served=True) if record.name in step.backends and not record.served else record


def _moved(memory: Memory, to: str, now: float) -> Memory:
    held = [entry for entry in memory.held if entry[0] not in (to, memory.served_site)]
    if memory.served_site is not None and memory.served_site != to:
        held.append((memory.served_site, now))
    return replace(memory, served_site=to, held=tuple(held))
