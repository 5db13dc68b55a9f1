"""Versions: a plane goes to a newer minor version by a revision between, and back only once what is stored was read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.faulty_truth import FaultyTruth
from model.stories import steps_until_done, until
from model.worlds import BETWEEN, FORMER, NEW, changing, settled
from support.golden import Golden

from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.steps.stored import CheckStored, NoteUnchecked
from quarterdeck.model.steps.units import AdoptRevision
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import RefusedError, apply, observe, tick

KUBERNETES = ReplicaChange(restart=frozenset({Component.APISERVER, Component.CONTROLLER_MANAGER, Component.SCHEDULER}))


def asked(*, broken: Component | None = None) -> FaultyTruth:
    """A plane of an older minor version, of which a newer one has just been asked for."""
    return changing(3, 3, KUBERNETES, upgraded=True, broken=broken)


def upgraded() -> FaultyTruth:
    return settled(asked())


def story(truth: FaultyTruth) -> list[str]:
    """What is adopted, and when what is stored is checked, until nothing is left to do."""
    told: list[str] = []
    for _, step in steps_until_done(truth):
        match step:
            case AdoptRevision():
                told.append(f"{step.replica} {step.revision}")
            case CheckStored() | NoteUnchecked():
                told.append(step.kind)
    return told


def test_a_newer_version_is_reached_by_the_one_that_emulates_without_any_check() -> None:
    told = story(asked())
    assert "check-stored-objects" not in told
    assert told.index(f"east-2 {BETWEEN}") < told.index(f"east-2 {NEW}")
    assert {each.split()[1] for each in told} == {BETWEEN, NEW}


def test_what_is_stored_is_checked_between_the_last_newer_program_and_the_first_older_one() -> None:
    told = story(replace(upgraded(), revision=FORMER))
    check = told.index("check-stored-objects")
    assert {each.split()[1] for each in told[:check]} == {BETWEEN}
    assert {each.split()[1] for each in told[check + 1 :]} == {FORMER}
    assert len(told[:check]) == len(told[check + 1 :]) == 3


def test_a_version_that_does_not_run_is_left_for_one_that_no_check_is_needed_for() -> None:
    told = story(asked(broken=Component.APISERVER))
    assert "check-stored-objects" not in told
    assert told[-1].endswith(BETWEEN)


def test_nothing_changes_while_the_check_fails_and_it_is_tried_again() -> None:
    truth = replace(upgraded(), revision=FORMER)
    truth = until(truth, lambda _, now: any(isinstance(step, CheckStored) for step in now.now))
    now = plan(observe(truth))
    assert [type(step) for step in now.now] == [CheckStored]
    assert plan(observe(tick(truth))).now == now.now


def test_without_a_quorum_the_check_is_waited_for(golden: Golden) -> None:
    truth = replace(upgraded(), revision=FORMER, via=())
    truth = replace(truth, apart=frozenset())
    waiting = plan(replace(observe(truth), membership=None)).waiting
    golden([str(each) for each in waiting])


def test_a_check_counts_no_longer_once_another_revision_is_wanted() -> None:
    back = settled(replace(upgraded(), revision=FORMER))
    assert back.memory.readable == FORMER
    told = story(replace(back, revision=NEW))
    assert told[0] == "note-unchecked-objects"
    again = settled(replace(back, revision=NEW))
    assert again.memory.readable == ""
    assert "check-stored-objects" in story(replace(again, revision=FORMER))


def test_the_simulated_check_is_refused_while_a_program_stores_what_cannot_be_read() -> None:
    step = CheckStored(site="", why="", revision=FORMER)
    with pytest.raises(RefusedError):
        apply(upgraded(), step)
