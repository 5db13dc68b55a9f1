"""How members come to be voters, and are kept running: what each rule does and leaves where few stories lead."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.observations import Seen, dead, learner, placed, seen, viewed, voters_at
from model.stories import all_steps, planned, whats
from support.golden import Golden

from quarterdeck.model.membership import Health
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules.membership import (
    join,
    keep_running,
    promote,
    rejoin,
)
from quarterdeck.planner.view import view

CUT_OFF = MachineState.UNREACHABLE
STOPPED, RUNNING, FAILED, ABSENT = UnitState.STOPPED, UnitState.RUNNING, UnitState.FAILED, UnitState.ABSENT
DOWN, SUSPECT, UNREACHABLE = Health.DOWN, Health.SUSPECT, Health.UNREACHABLE
EAST = voters_at("east", 3)


# --- keep_running ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "starts"),
    [
        (Seen("east-1", etcd=STOPPED), True),
        (Seen("east-1", etcd=ABSENT), True),
        (Seen("east-1", etcd=RUNNING), False),
        (Seen("east-1", etcd=FAILED), False),  # its machine starts it again by itself
        (Seen("east-1", etcd=UnitState.UNKNOWN), False),
        (Seen("east-1", etcd=STOPPED, machine=CUT_OFF), False),
        (Seen("east-1", etcd=STOPPED, has_data=None), False),
        (Seen("east-1", etcd=STOPPED, has_data=False), False),
        (Seen("east-1", etcd=STOPPED, started=False), False),
        (Seen("east-1", etcd=STOPPED, member=False), False),
    ],
)
def test_etcd_of_a_member_that_was_well_is_started_where_it_is_seen_to_be_idle_and_to_have_its_data(
    one: Seen, starts: bool
) -> None:
    world = seen(one, Seen("west-1"), to="west", count=1)
    assert all_steps(keep_running(view(world))) == ["StartUnit etcd of east-1"] * starts


def test_as_long_as_nobody_knows_who_is_a_member_the_last_on_each_machine_is_one() -> None:
    world = replace(seen(Seen("east-1", etcd=STOPPED), to="east", count=1), membership=None)
    assert all_steps(planned(world, StartUnit)) == ["StartUnit etcd of east-1"]
    heir = replace(world.memory.replicas[0], name="east-4")
    two = replace(
        world,
        memory=replace(world.memory, replicas=(*world.memory.replicas, heir)),
        replicas=(*world.replicas, replace(world.replicas[0], name="east-4")),
    )
    assert all_steps(planned(two, StartUnit)) == ["StartUnit etcd of east-4"]


# --- join -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("health", [SUSPECT, UNREACHABLE, DOWN])
def test_learners_are_added_when_all_voters_are_well(health: Health, golden: Golden) -> None:
    west = (placed("west-1"), placed("west-2"))
    assert all_steps(join(viewed(*EAST, *west, to="west", count=2))) == [
        "AddLearner west-1",
        "AddLearner west-2",
    ]
    sick = join(viewed(*voters_at("east", 2), Seen("east-3", health=health), *west, to="west", count=2))
    assert sick.steps == ()
    golden(whats(sick))
    some = replace(learner("west-3"), health=health, started=False)
    busy = viewed(*EAST, *west, some, to="west", count=3)
    assert len(join(busy).steps) == 2, "a learner that is not well yet keeps nobody"


def test_no_learner_is_added_on_a_machine_that_does_not_answer(golden: Golden) -> None:
    deaf = placed("west-1", machine=CUT_OFF)
    some = join(viewed(*EAST, deaf, placed("west-2"), to="west", count=2))
    assert (all_steps(some), whats(some)) == (["AddLearner west-2"], ())
    none = join(viewed(*EAST, deaf, to="west", count=1))
    assert none.steps == ()
    golden(whats(none))


def joining(name: str, *, etcd: UnitState = ABSENT, peer_up: bool = False) -> Seen:
    one = replace(learner(name), health=SUSPECT, lag=None, published=False, started=False)
    return replace(one, etcd=etcd, peer_up=peer_up)


def joins(*west: Seen) -> tuple[list[str], tuple[str, ...]]:
    outcome = join(viewed(*EAST, *west, to="west", count=len(west)))
    return all_steps(outcome), whats(outcome)


def test_learners_start_in_turn_each_when_the_one_before_answers_its_peers() -> None:
    assert joins(joining("west-1"), joining("west-2")) == (["StartUnit etcd of west-1"], ())
    silent = joining("west-1", etcd=RUNNING)
    assert joins(silent, joining("west-2")) == ([], ("etcd of west-1 to answer its peers",))
    heard = joining("west-1", etcd=RUNNING, peer_up=True)
    assert joins(heard, joining("west-2")) == (["StartUnit etcd of west-2"], ())
    assert joins(heard, heard) == ([], ())
    refused = replace(joining("west-1", etcd=FAILED), refused="it has no data yet")
    assert joins(refused) == (["StartUnit etcd of west-1"], ())


def test_a_learner_on_a_machine_that_does_not_answer_is_named_and_holds_up_those_after_it() -> None:
    deaf = replace(joining("west-1"), machine=CUT_OFF)
    assert joins(deaf, joining("west-2")) == ([], ("machine west-a1 of west-1 to answer",))
    assert joins(replace(deaf, started=True), joining("west-2")) == (["StartUnit etcd of west-2"], ())


# --- rejoin ---------------------------------------------------------------------------------------------------------

UNHEARD = Seen("west-1", learner=True, health=SUSPECT, started=False)


@pytest.mark.parametrize(
    ("one", "restarted"),
    [
        (UNHEARD, True),
        (replace(UNHEARD, health=UNREACHABLE), True),
        (replace(UNHEARD, lag=1_000), True),
        (replace(UNHEARD, lag=1_001), False),
        (replace(UNHEARD, lag=None), False),
        (replace(UNHEARD, published=False), False),
        (replace(UNHEARD, health=Health.HEALTHY), False),
        (replace(UNHEARD, started=True), False),
        (replace(UNHEARD, restarted=True), False),
        (replace(UNHEARD, etcd=STOPPED), False),
        (replace(UNHEARD, etcd=FAILED), False),
        (replace(UNHEARD, machine=CUT_OFF), False),
        (replace(UNHEARD, learner=False), False),
        (replace(UNHEARD, member=False, listed=False), False),
    ],
)
def test_only_a_learner_that_has_the_data_is_published_and_was_never_well_is_restarted_and_once(
    one: Seen, restarted: bool
) -> None:
    assert all_steps(rejoin(viewed(*EAST, one, to="west", count=1))) == ["RestartUnit etcd of west-1"] * restarted


# --- promote --------------------------------------------------------------------------------------------------------


def test_whoever_cannot_be_promoted_now_keeps_nobody_else(golden: Golden) -> None:
    behind = replace(learner("west-1"), lag=1_001)
    now = viewed(*EAST, behind, learner("west-2"), to="west", count=2)
    assert all_steps(promote(now)) == ["Promote west-2"]
    alone = promote(viewed(*EAST, behind, to="west", count=1))
    assert alone.steps == ()
    golden(whats(alone))


def test_the_last_learner_waits_for_the_swap() -> None:
    now = viewed(*EAST, *voters_at("west", 2), learner("west-3"), to="west", count=3)
    assert promote(now) == RuleOutcome()
    behind = viewed(*EAST, *voters_at("west", 2), replace(learner("west-3"), lag=None), to="west", count=3)
    assert promote(behind) == RuleOutcome(), "the swap says what it waits for"


def test_nobody_is_promoted_while_no_site_holds_the_quorum() -> None:
    """But by the swap, which is finished first."""
    now = viewed(*voters_at("east", 2), dead("east-3"), *voters_at("west", 2), learner("west-3"), to="west", count=3)
    assert now.quorum_site is None
    assert now.keeps_quorum_site(now.wanted[2])
    assert promote(now) == RuleOutcome()
