"""A step that fails is put aside for a while, longer each time that it fails again, and never for good."""

from __future__ import annotations

import pytest
from support.golden import Golden

from quarterdeck.engine.reconcile.step_backoff import LONGEST, SHORTEST, StepBackoff
from quarterdeck.model.components import Component
from quarterdeck.model.steps.clusters import NoteCreated
from quarterdeck.model.steps.members import Promote, Swap
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.units import StartUnit

START = StartUnit(site="east", why="it is wanted", replica="east-1", component=Component.ETCD)
OTHER = StartUnit(site="east", why="it is wanted", replica="east-2", component=Component.ETCD)


def until(aside: StepBackoff, at: float) -> float:
    """For how long the only step is put aside from now on."""
    return next((tenth / 10 for tenth in range(600) if not aside.now(at + tenth / 10 + 1e-6)), 60.0)


def test_each_failure_puts_a_step_aside_for_twice_as_long_but_never_longer_than_the_bound() -> None:
    aside, pauses = StepBackoff(), []
    for _ in range(6):
        aside.put(START, "refused", began=100.0, at=100.0)
        pauses.append(until(aside, 100.0))
    assert pauses == [SHORTEST, 2 * SHORTEST, 4 * SHORTEST, 8 * SHORTEST, LONGEST, LONGEST]


def test_a_step_that_takes_long_to_fail_leaves_most_of_the_time_to_the_others() -> None:
    aside = StepBackoff()
    aside.put(START, "no answer", began=95.0, at=100.0)
    assert until(aside, 100.0) == 15.0


@pytest.mark.parametrize(
    ("step", "again"),
    [
        (START, StartUnit(site="east", why="for another reason", replica="east-1", component=Component.ETCD)),
        (
            Swap(site="west", why="a", changes=(Promote(site="west", why="b", replica="w", member=1),)),
            Swap(site="west", why="c", changes=(Promote(site="west", why="d", replica="w", member=1),)),
        ),
    ],
    ids=["a start", "a swap"],
)
def test_a_step_is_the_same_for_whatever_reason(step: StartUnit | Swap, again: StartUnit | Swap) -> None:
    aside = StepBackoff()
    aside.put(step, "refused", began=100.0, at=100.0)
    assert aside.knows(again)
    assert not aside.knows(OTHER)
    assert [each.step for each in aside.now(100.0)] == [each.step for each in aside.now(100.0) if not each.step.why]
    assert aside.went(again)
    assert not aside.now(100.0)


def test_what_is_told_is_one_line_with_the_step_and_its_last_error(golden: Golden) -> None:
    aside = StepBackoff()
    assert aside.put(START, "it\nwas   refused", began=100.0, at=100.0)
    assert not aside.put(START, "it\nwas   refused", began=101.0, at=101.0)
    assert aside.put(START, "no space left on device" + "!" * 500, began=102.0, at=102.0)
    error = aside.now(102.0)[0].error
    golden(error)
    assert len(error) < 400
    assert "\n" not in error


def test_a_note_is_never_put_aside() -> None:
    """What depends on it may not be done without it."""
    aside = StepBackoff()
    aside.put(NoteCreated(site="", why=""), "the store is busy", began=100.0, at=101.0)
    assert not aside.now(101.0)


def test_a_step_that_is_planned_no_more_is_forgotten_in_a_while() -> None:
    aside = StepBackoff()
    aside.put(START, "refused", began=100.0, at=100.0)
    aside.looked(Plan(), 109.0)
    assert aside.knows(START)
    aside.looked(Plan(now=(START,)), 200.0)
    assert aside.knows(START)
    aside.looked(Plan(), 200.0)
    assert not aside.knows(START)
