"""Effects on simulated replicas: they are placed and removed, and their volumes move between machines."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from quarterdeck.model.seats import HostPort, Seat, SeatPort
from quarterdeck.model.steps.placement import AttachVolumes, LeaveMachine, PlaceReplica, ReleaseReplica
from quarterdeck.planner.simulated.effects import Effects, RefusedError, machine_must_answer, must_answer
from quarterdeck.planner.simulated.parts import ELSEWHERE, SimMember
from quarterdeck.planner.simulated.truth import Truth


def seated(truth: Truth, step: PlaceReplica) -> PlaceReplica:
    """The step, once the machine's site has given the replica a seat."""
    return step if step.seat is not None else replace(step, seat=free_seat(truth, step.machine))


def released(truth: Truth, step: ReleaseReplica) -> Truth:
    """Remove a replica with its data. Raises RefusedError."""
    must_answer(truth, step.replica)
    return truth.with_replica(step.replica, None)


def free_seat(truth: Truth, machine: str) -> Seat:
    """The first free seat of a machine. One port stands for all."""
    number, taken = 1, {record.seat for record in truth.memory.replicas}
    while (seat := _seat(machine, number)) in taken:
        number += 1
    return seat


@lru_cache(maxsize=64)
def _seat(machine: str, number: int) -> Seat:
    at = HostPort(machine, number)
    return Seat(machine=machine, ports=(SeatPort(name="all", listen=at, advertised=at),))


def reseated(truth: Truth, step: AttachVolumes) -> AttachVolumes:
    """The step, once the machine's site has given the replica a seat."""
    return step if step.seat is not None else replace(step, seat=free_seat(truth, step.machine))


def attached(truth: Truth, step: AttachVolumes) -> Truth:
    """Move a replica's data to another machine, with all its programs stopped. Raises RefusedError."""
    machine_must_answer(truth, step.machine)
    if truth.memory.replica(step.replica).machine != step.source:
        raise RefusedError(f"the volume of {step.replica} is not on machine {step.source}")
    if not truth.reattachable:
        raise RefusedError(f"the volume of {step.replica} is local")
    replica = truth.replica(step.replica)
    if truth.answers(step.replica) and replica.units:
        raise RefusedError(f"machine {step.source} answers, and uses it")
    moved = replace(
        replica,
        units=frozenset(),
        shapes=(),
        crashed=frozenset(),
        warm=False,
        stuck=frozenset(),
        hung=frozenset(),
        slow=frozenset(),
        altered=frozenset(),
        member=_misplaced(replica.member),
        events=_misplaced(replica.events),
    )
    return truth.with_replica(step.replica, moved)


def _misplaced(member: SimMember | None) -> SimMember | None:
    return None if member is None else replace(member, found_at=ELSEWHERE)


def left(truth: Truth, step: LeaveMachine) -> Truth:
    """Delete its data there. Raises RefusedError."""
    machine_must_answer(truth, step.machine)
    return truth


EFFECTS: Effects = {
    ReleaseReplica: released,
    AttachVolumes: attached,
    LeaveMachine: left,
}
