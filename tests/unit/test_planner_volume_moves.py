"""Volumes that are attached to other machines: which are, to which machine, and what is left on the one before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import planned, whats, with_fact, with_member, with_memory
from model.worlds import empty, settled
from support.golden import Golden
from support.new_epoch import member_word

from quarterdeck.model.bounds import HealingBounds
from quarterdeck.model.components import Component
from quarterdeck.model.epochs import Consent, Seed, SurvivorOrigin
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import LeftBehind
from quarterdeck.model.steps.members import ReaddressMember
from quarterdeck.model.steps.placement import AttachVolumes, LeaveMachine
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import Failing, ReplicaFact, World
from quarterdeck.planner.claims import bare
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.recovery import advice
from quarterdeck.planner.simulated import observe

UP, OFF, SILENT = MachineState.UP, MachineState.DOWN, MachineState.UNREACHABLE
HEALING = HealingBounds(budget=3, window=60.0, after=2.0, later=10.0)


def gone(world: World, name: str, state: MachineState) -> World:
    machine = world.memory.replica(name).machine
    machines = tuple(replace(each, state=state) if each.name == machine else each for each in world.machines)
    world = replace(world, machines=machines)
    return with_fact(world, name, lambda fact: replace(fact, machine=state, units=(), has_data=None, ready=None))


def lost(*states: MachineState, replicas: int = 3, since: float = -60.0) -> World:
    """No quorum answers: the machines of the last replicas are in these states, and the members of all others speak."""
    truth = replace(empty("east", replicas, sites=("east",)), reattachable=True)
    world = observe(settled(replace(truth, settings=replace(truth.settings, healing=HEALING))))
    names = tuple(each.name for each in world.memory.replicas)
    for name, state in zip(reversed(names), reversed(states), strict=False):
        world = gone(world, name, state)
    words = tuple(member_word(each, 7, voters=names) for each in names[: -len(states)])
    return replace(world, membership=None, words=words, now=0.0, memory=replace(world.memory, quorum_lost=since))


def moves(world: World) -> list[tuple[str, str]]:
    steps = planned(world, AttachVolumes).steps
    return [(step.replica, step.machine) for step in steps if isinstance(step, AttachVolumes)]


# --- a lost quorum --------------------------------------------------------------------------------------------------


def test_as_many_as_it_takes_move_within_their_zones() -> None:
    assert moves(lost(OFF, OFF)) == [("east-2", "east-b2")]
    assert moves(lost(OFF, OFF, OFF, OFF, replicas=5)) == []  # the other machines of two zones have replicas
    assert moves(lost(OFF, OFF, OFF, replicas=4)) == [("east-2", "east-b2"), ("east-3", "east-c2")]


def test_one_that_never_began_or_whose_volume_cannot_be_attached_stays() -> None:
    world = lost(OFF, OFF)
    memory = world.memory.with_replica("east-2", lambda each: replace(each, started=False))
    assert moves(replace(world, memory=memory)) == [("east-3", "east-c2")]
    local = with_fact(world, "east-2", lambda fact: replace(fact, reattachable=False))
    assert moves(local) == [("east-3", "east-c2")]


def test_data_that_is_gone_from_a_machine_that_answers_does_not_come_back_elsewhere() -> None:
    world = with_fact(lost(OFF, OFF), "east-2", lambda fact: replace(fact, machine=UP, has_data=False))
    assert moves(world) == [("east-3", "east-c2")]


def test_one_whose_volume_is_on_its_way_goes_nowhere_else() -> None:
    world = with_fact(lost(OFF, OFF), "east-2", lambda fact: replace(fact, volume_at="east-b9"))
    assert moves(world) == [("east-2", "east-b9")]
    (step,) = plan(world).now
    assert moves(replace(world, failing=(Failing(step=bare(step), error="it is busy"),))) == [("east-3", "east-c2")]


def test_a_machine_that_has_another_replica_gets_no_second_one() -> None:
    """East-1 and east-4 share a zone, and its two machines."""
    world = lost(OFF, OFF, replicas=4)
    assert ("east-4", "east-a1") not in moves(world)
    assert moves(world) == [("east-3", "east-c2")]


def test_the_time_is_short_where_machines_are_off_and_longer_where_they_do_not_answer(golden: Golden) -> None:
    for states, time in (((OFF, OFF), 2.0), ((OFF, SILENT), 10.0)):
        early = lost(*states, since=0.1 - time)
        assert moves(early) == []
        golden(*(str(each) for each in plan(early).waiting if "volumes" in each.then))
        assert len(moves(lost(*states, since=-time))) == 1
    assert moves(with_memory(lost(OFF, OFF), quorum_lost=None)) == []
    assert len(moves(replace(lost(OFF, OFF, since=0.0), consent=Consent(epoch=1)))) == 1
    assert moves(replace(lost(OFF, OFF, since=0.0), consent=Consent(epoch=2))) == []


def test_the_machine_that_is_off_comes_first_and_one_that_only_does_not_answer_after_it() -> None:
    assert moves(lost(SILENT, OFF)) == [("east-3", "east-c2")]
    assert moves(lost(OFF, SILENT)) == [("east-2", "east-b2")]


def test_one_that_only_does_not_answer_moves_where_the_others_are_not_enough() -> None:
    local = with_fact(lost(OFF, SILENT), "east-2", lambda fact: replace(fact, reattachable=False))
    assert moves(local) == [("east-3", "east-c2")]


def test_no_volume_moves_once_an_epoch_has_begun() -> None:
    """It would be of a member of the epoch before."""
    world = lost(OFF, OFF, OFF, replicas=5)
    origin = SurvivorOrigin(replica="east-3", others=world.words)
    seed = Seed(origin=origin, founder="east-9", revision=5, seen=5)
    world = with_memory(world, epoch=1, seed=seed, bootstrap=("east-9",), created=False, next_ordinal=10)
    assert moves(replace(world, words=())) == []


def test_consent_is_for_the_epoch_after_the_present_one() -> None:
    world = lost(OFF, OFF, since=0.0)
    third = with_memory(world, epoch=2, replicas=tuple(replace(each, epoch=2) for each in world.memory.replicas))
    assert moves(replace(third, consent=Consent(epoch=1))) == []
    assert len(moves(replace(third, consent=Consent(epoch=3)))) == 1


def test_a_machine_that_a_replica_has_left_is_free() -> None:
    truth = replace(empty("east", 3, sites=("east",)), reattachable=True)
    world = observe(settled(replace(truth, settings=replace(truth.settings, healing=HEALING))))
    world = gone(world, "east-2", OFF)
    world = with_member(world, "east-2", lambda each: replace(each, health=Health.DOWN, lag=None))
    world = replace(with_memory(world, down=(("east-2", 0.0),)), now=60.0)
    assert moves(world) == [("east-2", "east-b2")]
    left = replace(world.memory.replica("east-2"), name="east-9", machine="east-b2", member_id=9)
    idle = ReplicaFact(name="east-9", machine=UP, units=(), has_data=True)
    beside = replace(with_memory(world, replicas=(*world.memory.replicas, left)), replicas=(*world.replicas, idle))
    assert moves(beside) == [("east-2", "east-b2")]
    runs = replace(idle, units=((Component.ETCD, UnitState.RUNNING),))
    assert moves(replace(beside, replicas=(*world.replicas, runs))) == []


def test_a_majority_that_does_not_answer_keeps_its_volumes_until_a_person_says_that_it_is_gone() -> None:
    world = lost(SILENT, SILENT)
    assert moves(world) == []
    assert moves(replace(world, consent=Consent(epoch=1))) == []
    assert moves(replace(world, consent=Consent(epoch=2, even_if_others_live=True))) == []
    assert len(moves(replace(world, consent=Consent(epoch=1, even_if_others_live=True)))) == 1


def test_nothing_moves_while_a_member_follows_a_leader_or_is_about_to_report() -> None:
    world = lost(OFF, OFF)
    (word,) = world.words
    assert moves(replace(world, words=(replace(word, follows=True),))) == []
    five = lost(OFF, OFF, OFF, replicas=5)
    assert len(moves(five)) == 1
    assert moves(replace(five, words=five.words[:1])) == []


def test_a_voter_that_no_replica_has_is_left_out() -> None:
    world = lost(OFF, OFF)
    (word,) = world.words
    world = replace(world, words=(replace(word, voters=(*word.voters, "90")),))
    assert moves(world) == [("east-2", "east-b2"), ("east-3", "east-c2")]


def test_without_a_budget_a_person_is_asked_for_consent(golden: Golden) -> None:
    world = lost(OFF, OFF)
    world = replace(world, settings=replace(world.settings, healing=replace(HEALING, budget=0)))
    assert moves(world) == []
    golden(*(str(each) for each in plan(world).waiting if "consent" in each.what))
    assert any("consent" in each for each in whats(plan(world)))


def test_what_the_consent_would_bring_is_told(golden: Golden) -> None:
    for states in ((OFF, OFF), (SILENT, SILENT)):
        golden(advice(lost(*states)))


# --- peer URLs ------------------------------------------------------------------------------------------------------


def misplaced(**displaced_by: int | None) -> World:
    """Members of which others have the peer URLs, by the number in their name."""
    world = observe(settled(empty("east", 3)))
    for name, other in displaced_by.items():
        world = with_member(
            world,
            f"east-{name[1]}",
            lambda each: replace(each, misplaced=True, displaced_by=other),  # noqa: B023
        )
    return world


@pytest.mark.parametrize(
    ("displaced_by", "first"),
    [
        ({"m2": None}, ["east-2"]),
        ({"m1": 2, "m2": None, "m3": None}, ["east-2", "east-3"]),
        ({"m1": 2, "m2": 1}, ["east-1"]),
        ({"m1": 2, "m2": 3, "m3": 2}, ["east-2"]),
        ({"m1": 2, "m2": 3, "m3": 1}, ["east-1"]),
        ({"m1": 2, "m2": 9}, []),
    ],
    ids=["one", "the free ones first", "a pair", "one that waits for a pair", "a circle of three", "a stranger has it"],
)
def test_who_gets_the_peer_url_of_its_replica_first(displaced_by: dict[str, int | None], first: list[str]) -> None:
    steps = planned(misplaced(**displaced_by), ReaddressMember).steps
    assert [step.replica for step in steps if isinstance(step, ReaddressMember)] == first


# --- what is left on the machine before -----------------------------------------------------------------------------


def test_leftovers_go_from_machines_that_answer_and_are_named_on_others() -> None:
    world = observe(settled(empty("east", 3)))
    left = tuple(LeftBehind(site="east", machine=f"east-{each}2", replica=f"east-{each}") for each in "bc")
    world = with_memory(world, left=left)
    machines = tuple(replace(each, state=OFF) if each.name == "east-c2" else each for each in world.machines)
    found = plan(replace(world, machines=machines))
    assert [(type(step), step.machine) for step in found.now if isinstance(step, LeaveMachine)] == [
        (LeaveMachine, "east-b2")
    ]
    assert len(found.leftovers) == 1
    assert "east-c2" in found.leftovers[0]
