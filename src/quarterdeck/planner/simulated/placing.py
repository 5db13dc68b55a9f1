"""Simulated replicas come and go."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from quarterdeck.model.seats import Endpoint, Seat, SeatPort
from quarterdeck.model.steps.placing import PlaceReplica, ReleaseReplica
from quarterdeck.planner.simulated.effects import Effects, must_answer
from quarterdeck.planner.simulated.truth import Truth


def seated(truth: Truth, step: PlaceReplica) -> PlaceReplica:
    """The step, once the machine's site has given the replica a seat."""
    return step if step.seat is not None else replace(step, seat=free_seat(truth, step.machine))


def released(truth: Truth, step: ReleaseReplica) -> Truth:
    """Nothing is left of a replica. Raises RefusedError."""
    must_answer(truth, step.replica)
    return truth.with_replica(step.replica, None)


def free_seat(truth: Truth, machine: str) -> Seat:
    """The first seat of a machine that nobody has. One port stands for all."""
    number, taken = 1, {record.seat for record in truth.memory.replicas}
    while (seat := _seat(machine, number)) in taken:
        number += 1
    return seat


@lru_cache(maxsize=64)
def _seat(machine: str, number: int) -> Seat:
    at = Endpoint(machine, number)
    return Seat(machine=machine, ports=(SeatPort(name="all", listen=at, advertised=at),))


EFFECTS: Effects = {ReleaseReplica: released}
