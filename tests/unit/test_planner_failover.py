"""A failover: when an epoch begins from the standby, and what it waits for."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from model.stories import planned, step_words, whats, with_fact, with_memory
from model.worlds import beside, empty, settled, wanted
from support.golden import Golden
from support.new_epoch import member_word

from quarterdeck.model.epochs import Consent, Seed, StandbyOrigin
from quarterdeck.model.memory import Memory
from quarterdeck.model.steps.clusters import BeginEpoch
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.recovery import advice
from quarterdeck.planner.simulated import observe

UP, OFF, SILENT = MachineState.UP, MachineState.DOWN, MachineState.UNREACHABLE
#: A learner does not say who votes.
WORD = member_word("west-4", 1_234, revision=7, learner=True, voters=())
WAITS_FOR_IT = "the standby to report its last entry"


@cache
def served() -> World:
    """A plane of three with a standby, which a person wants at the site of that."""
    there = observe(beside(settled(empty("east", 3)), "west"))
    return replace(
        there, consent=Consent(epoch=1, standby=True), slots=wanted("west", 3), standby=None, plane_name="demo"
    )


def lost(*states: MachineState) -> World:
    """No quorum answers, as the machines of its voters are in these states."""
    world = replace(with_memory(served(), revision=9), membership=None, words=(WORD,))
    for number, state in enumerate(states, 1):
        units = world.replica(f"east-{number}").units if state is UP else ()
        data = True if state is UP else None
        world = with_fact(
            world,
            f"east-{number}",
            lambda fact: replace(fact, machine=state, units=units, has_data=data, ready=None),  # noqa: B023
        )
    return world


def of(world: World) -> list[str]:
    return [step_words(step) for step in plan(world).now]


def begun(world: World) -> bool:
    return any(isinstance(step, BeginEpoch) for step in plan(world).now)


def later(memory: Memory) -> Memory:
    """All that is of the third epoch."""
    return replace(memory, epoch=2, replicas=tuple(replace(each, epoch=2) for each in memory.replicas))


def test_an_epoch_begins_from_the_standby_beside_it(golden: Golden) -> None:
    (step,) = planned(lost(OFF, OFF, OFF)).steps
    assert isinstance(step, BeginEpoch)
    assert step.origin == StandbyOrigin(standby="west-4")
    assert (step.epoch, step.founder, step.revision, step.seen) == (1, "west-5", 7, 9)
    golden(step.why)


def test_any_epoch_may_end_by_a_failover() -> None:
    world = lost(OFF, OFF, OFF)
    third = replace(world, memory=later(world.memory))
    assert not begun(third)
    (step,) = planned(replace(third, consent=replace(third.consent, epoch=3))).steps
    assert isinstance(step, BeginEpoch)
    assert step.epoch == 3


def test_the_most_complete_standby_is_the_origin_whatever_a_voter_has_applied() -> None:
    world = lost(OFF, OFF, UP)
    other = replace(world.memory.replica("west-4"), name="west-5", machine="west-b1")
    world = with_memory(world, replicas=(*world.memory.replicas, other), next_ordinal=6)
    world = replace(world, replicas=(*world.replicas, replace(world.replica("west-4"), name="west-5")))
    more, voter = replace(WORD, replica="west-5", applied=2_000), member_word("east-3", 9_000)
    for words in ((WORD, more, voter), (voter, more, WORD)):
        (step,) = planned(replace(world, words=words), BeginEpoch).steps
        assert isinstance(step, BeginEpoch)
        assert step.origin == StandbyOrigin(standby="west-5")


def test_a_standby_that_has_not_reported_is_waited_for(golden: Golden) -> None:
    for words in ((), (member_word("east-3", 9),)):
        found = plan(replace(lost(OFF, OFF, UP), words=words))
        assert not begun(replace(lost(OFF, OFF, UP), words=words))
        (wait,) = (each for each in found.waiting if each.what == WAITS_FOR_IT)
        golden(str(wait))


def test_while_a_quorum_answers_the_consent_ends_and_the_plane_is_moved() -> None:
    assert of(served()) == ["WithdrawConsent"]
    assert whats(plan(served())) == ()


@pytest.mark.parametrize("states", [(UP, UP, OFF), (UP, UP, UP), (UP, UP, SILENT)])
def test_voters_that_can_be_a_quorum_again_are_waited_for(states: tuple[MachineState, ...], golden: Golden) -> None:
    world = lost(*states)
    assert not begun(replace(world, consent=replace(world.consent, even_if_others_live=True)))
    golden(*(each for each in whats(plan(world)) if "form a quorum" in each))
    assert any("form a quorum" in each for each in whats(plan(world)))


@pytest.mark.parametrize("states", [(UP, OFF, OFF), (UP, OFF, SILENT), (OFF, OFF, SILENT)])
def test_fewer_than_a_quorum_are_not(states: tuple[MachineState, ...]) -> None:
    assert begun(lost(*states))


def test_a_machine_that_answers_without_its_data_is_none_of_a_quorum() -> None:
    assert begun(with_fact(lost(UP, UP, OFF), "east-2", lambda fact: replace(fact, has_data=False)))


def test_a_majority_that_does_not_answer_is_waited_for_but_where_a_person_says_that_it_is_gone(golden: Golden) -> None:
    world = lost(SILENT, SILENT, OFF)
    assert not begun(world)
    (wait,) = (each for each in plan(world).waiting if "two epochs" in each.what)
    golden(str(wait))
    assert begun(replace(world, consent=replace(world.consent, even_if_others_live=True)))


def test_a_plane_of_which_only_the_standby_is_left_fails_over() -> None:
    world = lost(OFF, OFF, OFF)
    records = tuple(each for each in world.memory.replicas if each.standby)
    world = with_memory(world, replicas=records)
    assert begun(replace(world, replicas=tuple(each for each in world.replicas if each.name == "west-4")))


def seeding() -> World:
    """The epoch has begun, and has no data yet."""
    seed = Seed(origin=StandbyOrigin(standby="west-4"), founder="west-5", revision=7, seen=9)
    return with_memory(lost(OFF, OFF, OFF), epoch=1, seed=seed, bootstrap=("west-5",), created=False, next_ordinal=6)


def test_an_epoch_that_has_begun_goes_on_when_it_is_asked_for_again() -> None:
    again = replace(seeding(), consent=Consent(epoch=2, standby=True))
    assert of(again) == ["StopUnit etcd of west-4", "PlaceReplica west-5"]
    assert WAITS_FOR_IT not in whats(plan(again))


# --- what a person is told before -----------------------------------------------------------------------------------


def asked() -> Consent:
    return Consent()


def test_a_person_is_told_of_the_failover_and_what_it_would_lose(golden: Golden) -> None:
    for states in ((OFF, OFF, OFF), (SILENT, SILENT, SILENT)):
        said = advice(replace(lost(*states), consent=asked()))
        assert "quarterdeck failover demo --to west" in said
        golden(said)


def test_nobody_is_told_of_a_failover_that_would_not_begin() -> None:
    world = replace(lost(OFF, OFF, OFF), consent=asked())
    assert not advice(replace(world, words=()))
    assert not advice(replace(lost(UP, UP, OFF), consent=asked()))
    assert not advice(replace(world, membership=served().membership))
    assert "failover" not in advice(replace(seeding(), consent=asked()))


def test_beside_a_survivor_a_failover_is_named_as_well_and_the_standby_is_none(golden: Golden) -> None:
    world = replace(lost(UP, OFF, OFF), consent=asked())
    said = advice(replace(world, words=(member_word("east-1", 9), replace(WORD, applied=9_999))))
    assert "1 of 3 voters are left" in said
    assert "quarterdeck failover demo --to west" in said
    golden(said)
    recovered = replace(world, words=(member_word("east-1", 9), WORD), consent=Consent(epoch=1))
    (step,) = planned(recovered, BeginEpoch).steps
    assert isinstance(step, BeginEpoch)
    assert step.founder.startswith("east-")
