"""Where replicas are placed, and how the first members start."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from model.stories import about_to, is_done, planned, step_words, steps_until, until, whats, with_fact, with_memory
from model.worlds import empty
from support.golden import Golden

from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.clusters import DecideBootstrap
from quarterdeck.model.steps.placement import PlaceReplica
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import MachineFact, ReplicaFact, World
from quarterdeck.planner.machines import busy
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules.placement import found, place
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

IDLE = (UnitState.ABSENT, UnitState.STOPPED)


def slot(zone: str = "a", site: str = "east") -> Slot:
    return Slot(site=site, zone=zone)


def machine(name: str, *, state: MachineState = MachineState.UP) -> MachineFact:
    """One whose name says where it is: ``east-a1`` is in zone a of site east."""
    site, _, rest = name.partition("-")
    return MachineFact(name=name, site=site, zone=rest[0], state=state)


def asked(*slots: Slot, machines: tuple[MachineFact, ...]) -> World:
    """A plane that was just asked for."""
    return World(slots=slots, memory=Memory(), now=0.0, machines=machines)


def placed(world: World) -> list[tuple[str, str]]:
    return [(step.replica, step.machine) for step in place(view(world)).steps if isinstance(step, PlaceReplica)]


def test_nobody_founds_a_plane_as_long_as_no_machine_answers() -> None:
    off = (machine("east-a1", state=MachineState.UNREACHABLE),)
    assert found(view(asked(slot(), machines=off))) == RuleOutcome()


# --- machines -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "free", "chosen"),
    [
        pytest.param("a", ("east-a2", "east-a1"), "east-a1", id="the first by name"),
        pytest.param("b", ("east-a1", "east-b1"), "east-b1", id="in its zone"),
        pytest.param("", ("east-b1", "east-c1"), "east-b1", id="in any zone where the slot has none"),
        pytest.param("a", ("aft-a1", "east-a1"), "east-a1", id="at its site"),
    ],
)
def test_a_slot_gets_a_machine_of_its_site_and_zone(zone: str, free: tuple[str, ...], chosen: str) -> None:
    assert placed(asked(slot(zone), machines=tuple(map(machine, free)))) == [("east-1", chosen)]


@pytest.mark.parametrize("zone", ["a", ""])
@pytest.mark.parametrize("state", [MachineState.DOWN, MachineState.UNREACHABLE])
def test_where_no_machine_answers_none_is_free_and_the_place_is_named(
    zone: str, state: MachineState, golden: Golden
) -> None:
    world = asked(slot(zone), machines=(machine("east-a1", state=state), machine("west-a1")))
    found = planned(world, PlaceReplica)
    assert found.steps == ()
    golden(whats(found))


def test_two_slots_never_get_the_same_machine(golden: Golden) -> None:
    world = asked(slot(), slot(), slot(), machines=(machine("east-a1"), machine("east-a2")))
    assert placed(world) == [("east-1", "east-a1"), ("east-2", "east-a2")]
    (waiting,) = whats(planned(world, PlaceReplica))
    golden(waiting)


# --- machines that had a replica ------------------------------------------------------------------------------------

BEFORE = Replica(name="east-1", slot=slot(), machine="east-a1", listed=True)
MEMBER = Replica(name="east-2", slot=slot("b"), machine="east-b1", listed=True, started=True)
OTHERS = Membership(
    members=(MemberFact(id=2, replica="east-2", learner=False, health=Health.HEALTHY),), leader="east-2"
)


def used(
    record: Replica = BEFORE,
    *,
    membership: Membership | None = OTHERS,
    units: tuple[tuple[Component, UnitState], ...] = (),
    machines: tuple[str, ...] = ("east-a1",),
) -> World:
    """A slot is to be filled, and the machine in its zone had a replica before: it was removed from the members, and
    stopped.
    """
    facts = (
        ReplicaFact(name=record.name, machine=MachineState.UP, units=units),
        ReplicaFact(name="east-2", machine=MachineState.UP, units=((Component.ETCD, UnitState.RUNNING),)),
    )
    return replace(
        asked(slot(), machines=tuple(map(machine, machines))),
        memory=Memory(next_ordinal=3, replicas=(record, MEMBER), created=True, bootstrap=("east-1",)),
        membership=membership,
        replicas=facts,
    )


def test_a_machine_whose_replica_was_removed_and_stopped_is_free_again() -> None:
    assert placed(used()) == [("east-3", "east-a1")]
    assert placed(used(units=tuple((each, UnitState.STOPPED) for each in NAMED))) == [("east-3", "east-a1")]


def test_machines_that_may_still_hold_data_come_last() -> None:
    assert placed(used(machines=("east-a1", "east-a2"))) == [("east-3", "east-a2")]


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(used(membership=None), id="who is a member is not known"),
        pytest.param(
            used(
                membership=replace(
                    OTHERS,
                    members=(
                        *OTHERS.members,
                        MemberFact(id=1, replica="east-1", learner=False, health=Health.HEALTHY),
                    ),
                )
            ),
            id="it is a member",
        ),
        pytest.param(used(replace(BEFORE, listed=False)), id="it is about to become one"),
    ],
)
def test_a_machine_whose_replica_may_be_a_member_is_not_free(world: World) -> None:
    assert busy(world, world.memory.replica("east-1"))


@pytest.mark.parametrize("component", NAMED)
@pytest.mark.parametrize("state", [state for state in UnitState if state not in IDLE])
def test_a_machine_on_which_anything_may_run_is_not_free(component: Component, state: UnitState) -> None:
    assert busy(used(units=((component, state),)), BEFORE)


# --- the first members ----------------------------------------------------------------------------------------------


@cache
def decided() -> World:
    """It is written down who founds the cluster, and none of them has started."""
    return observe(until(empty("east", 3), about_to(StartUnit)))


def etcd_is(world: World, name: str, state: UnitState, refused: str = "") -> World:
    return with_fact(world, name, lambda fact: replace(fact, units=((Component.ETCD, state),), refused=refused))


def starts(world: World) -> list[str]:
    return [step_words(step) for step in planned(world, DecideBootstrap, StartUnit).steps]


def test_who_founds_is_written_down_first() -> None:
    undecided = with_memory(decided(), bootstrap=())
    (step,) = planned(undecided, DecideBootstrap, StartUnit).steps
    assert isinstance(step, DecideBootstrap)
    assert step.replicas == ("east-1", "east-2", "east-3")


def test_founders_start_together_and_those_that_run_or_do_not_answer_are_left(golden: Golden) -> None:
    assert starts(decided()) == [f"StartUnit etcd of east-{each}" for each in (1, 2, 3)]
    golden(whats(found(view(decided()))))
    for state in (UnitState.RUNNING, UnitState.FAILED, UnitState.STOPPING, UnitState.UNKNOWN):
        assert starts(etcd_is(decided(), "east-2", state)) == [f"StartUnit etcd of east-{each}" for each in (1, 3)]
    assert len(starts(etcd_is(decided(), "east-2", UnitState.FAILED, "it has no data yet"))) == 3
    deaf = with_fact(decided(), "east-2", lambda fact: replace(fact, machine=MachineState.UNREACHABLE))
    assert starts(deaf) == [f"StartUnit etcd of east-{each}" for each in (1, 3)]
    assert whats(found(view(replace(decided(), membership=OTHERS)))) == (), "they have formed one"


def test_a_cluster_that_was_founded_is_never_founded_again() -> None:
    for bootstrap in ((), decided().memory.bootstrap):
        memory = replace(decided().memory, created=True, bootstrap=bootstrap)
        assert found(view(replace(decided(), memory=memory))) == RuleOutcome()


def test_a_founder_that_was_removed_before_it_was_ever_seen_is_exchanged_and_never_joins_with_its_data() -> None:
    """etcd ends what starts on the data of a removed member, again and again."""
    asked = until(empty("east", 3), lambda truth, _: truth.elected is not None)
    assert not asked.memory.created
    removed = asked.with_replica("east-3", replace(asked.replica("east-3"), member=None))
    done = until(removed, is_done)
    assert [each.name for each in done.memory.replicas] == ["east-1", "east-2", "east-4"]
    assert "AddLearner east-3" not in steps_until(removed, is_done)
