"""A manager of sets of controllers that stands still is stopped before another one gets its locks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import step_words, with_fact, with_unit
from model.worlds import BETWEEN, FORMER, NEW, changing

from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.replica_programs import stop_frozen
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

KUBE, CLOUD = Component.CONTROLLER_MANAGER, Component.CLOUD_CONTROLLER_MANAGER
CHANGE = ReplicaChange(restart=frozenset({KUBE, CLOUD}))


def frozen(*names: str) -> World:
    """A plane whose controllers are being handed over; kube-controller-managers of these replicas stand still."""
    world = observe(changing(3, 3, CHANGE, cloud=frozenset({FORMER, BETWEEN, NEW}), handed=True))
    still = frozenset({KUBE})
    for name in names:
        world = with_fact(world, name, lambda fact: replace(fact, frozen=still, hung=still, silent=still))
    return world


def test_it_is_stopped_before_anything_else_is_done() -> None:
    assert [step_words(each) for each in plan(frozen("east-2")).now] == [f"StopUnit {KUBE} of east-2"]


def test_where_all_stand_still_nobody_is_stopped() -> None:
    """Then it is the host that is slow, and nobody takes a lock."""
    names = [each.name for each in frozen().memory.replicas]
    assert stop_frozen(view(frozen(*names))).steps == ()
    assert {step_words(each) for each in stop_frozen(view(frozen(*names[:2]))).steps} == {
        f"StopUnit {KUBE} of {each}" for each in names[:2]
    }


def test_nobody_is_stopped_where_no_other_one_runs_that_could_take_the_lock() -> None:
    world = frozen("east-2")
    for name in ("east-1", "east-3"):
        world = with_unit(world, name, KUBE, UnitState.STOPPED)
    assert stop_frozen(view(world)).steps == ()


def _out_of_reach(fact: ReplicaFact) -> ReplicaFact:
    return replace(fact, machine=MachineState.UNREACHABLE)


def _only_slow(fact: ReplicaFact) -> ReplicaFact:
    return replace(fact, frozen=frozenset())


@pytest.mark.parametrize("changed", [_out_of_reach, _only_slow])
def test_nothing_is_done_about_others(changed: object) -> None:
    assert callable(changed)
    assert stop_frozen(view(with_fact(frozen("east-2"), "east-2", changed))).steps == ()
