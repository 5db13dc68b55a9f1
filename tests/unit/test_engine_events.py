"""What a person is told of a plane."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import with_fact, with_member, with_membership, with_memory, without_member
from model.worlds import empty, settled
from support.golden import Golden

from quarterdeck.api.events import EventReason
from quarterdeck.engine.notices.events import Happening, event_of, happenings
from quarterdeck.engine.notices.events import warnings as told
from quarterdeck.model.balancers import EdgeFact
from quarterdeck.model.bounds import HealingBounds
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Condemned
from quarterdeck.model.steps.healing import NoteDown, Pardon
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.simulated import observe
from quarterdeck.stores.port import Event, EventType


@pytest.fixture
def world() -> World:
    return observe(settled(empty("east", 3)))


def warnings(world: World) -> set[tuple[str, str]]:
    return {(each.reason, each.message) for each in happenings(world) if each.type is EventType.WARNING}


def only_warning(world: World, reason: str) -> str:
    """The only warning, which is for that reason."""
    ((found, message),) = warnings(world)
    assert found == reason
    return message


def member(world: World, replica: str, health: Health) -> World:
    return with_member(world, replica, lambda member: replace(member, health=health))


def test_of_a_plane_that_is_well_only_who_leads_and_where_is_told(world: World) -> None:
    assert world.membership is not None
    assert happenings(world) == {
        Happening(EventReason.LEADER_ELECTED, f"{world.membership.leader} leads etcd", EventType.NORMAL),
        Happening(EventReason.NAME_RESOLVED, "its name leads to site east", EventType.NORMAL),
    }


def test_a_plane_that_never_was_has_nothing_to_tell() -> None:
    assert happenings(observe(empty("east", 3))) == frozenset()


def test_a_lost_quorum_is_told_except_where_the_plane_is_deleted(world: World, golden: Golden) -> None:
    silent = replace(world, membership=None)
    golden(only_warning(silent, "NoQuorum"))
    assert happenings(replace(silent, deleting=True)) == frozenset()


def test_a_member_is_event_of_once_it_counts_as_down(world: World, golden: Golden) -> None:
    assert warnings(member(world, "east-2", Health.SUSPECT)) == set()
    golden(only_warning(member(world, "east-2", Health.DOWN), "MemberDown"))


def test_a_member_that_only_we_do_not_see_is_event_of_as_waited_for(world: World, golden: Golden) -> None:
    golden(only_warning(member(world, "east-2", Health.UNREACHABLE), "MemberUnreachable"))


def test_a_member_that_has_only_just_been_added_is_not_down_yet(world: World) -> None:
    replicas = tuple(replace(each, started=False) if each.name == "east-2" else each for each in world.memory.replicas)
    joining = with_memory(world, replicas=replicas)
    assert warnings(member(joining, "east-2", Health.DOWN)) == set()
    assert warnings(member(joining, "east-2", Health.UNREACHABLE)) == set()


def test_alarms_are_told(world: World, golden: Golden) -> None:
    full = with_membership(world, alarms=("memberID:1 alarm:NOSPACE ",))
    golden(only_warning(replace(full, plane_name="alpha"), "AlarmRaised"))
    differ = with_membership(world, alarms=("memberID:1 alarm:CORRUPT ",))
    golden(only_warning(replace(differ, plane_name="alpha"), "AlarmRaised"))


def test_authentication_that_somebody_enabled_is_told_with_the_command_that_ends_it(
    world: World, golden: Golden
) -> None:
    refuses = with_membership(replace(world, plane_name="alpha"), authenticates=True)
    golden(only_warning(refuses, "AuthenticationEnabled"))


@pytest.mark.parametrize("state", [MachineState.DOWN, MachineState.UNREACHABLE])
def test_of_a_machine_that_is_gone_nothing_else_is_told(world: World, state: MachineState, golden: Golden) -> None:
    gone = with_fact(world, "east-2", lambda fact: replace(fact, machine=state, has_data=False))
    golden(only_warning(gone, "MachineDown"))


def test_lost_data_and_failing_programs_are_told(world: World, golden: Golden) -> None:
    units = tuple((each, UnitState.FAILED if each == Component.SCHEDULER else UnitState.RUNNING) for each in NAMED)
    hurt = with_fact(world, "east-2", lambda fact: replace(fact, has_data=False, units=units))
    found = warnings(replace(hurt, plane_name="alpha"))
    assert {reason for reason, _ in found} == {"DataLost", "UnitFailed"}
    golden(sorted(message for _, message in found))


def test_etcd_may_exit_once_its_member_was_taken_out(world: World) -> None:
    units = tuple((each, UnitState.FAILED if each == Component.ETCD else UnitState.RUNNING) for each in NAMED)
    exits = with_fact(world, "east-2", lambda fact: replace(fact, units=units))
    assert [reason for reason, _ in warnings(exits)] == ["UnitFailed"]
    assert warnings(without_member(exits, "east-2")) == set()


def test_a_load_balancer_without_a_ready_apiserver_is_told(world: World, golden: Golden) -> None:
    balancers = tuple(replace(each, healthy=frozenset()) for each in world.balancers)
    golden(only_warning(replace(world, balancers=balancers), "NoBackends"))


def test_an_edge_to_which_no_address_can_come_is_told_with_the_reason(world: World, golden: Golden) -> None:
    alone = EdgeFact(name="east-edge-2", leads=False, unrouted="keepalived does not run there")
    balancers = tuple(replace(each, edges=(EdgeFact(name="east-edge"), alone)) for each in world.balancers)
    golden(only_warning(replace(world, balancers=balancers), "EdgeWithoutAddress"))


def test_an_address_that_has_never_served_needs_no_backends_yet(world: World) -> None:
    balancers = tuple(replace(each, healthy=frozenset()) for each in world.balancers)
    begins = replace(world, balancers=balancers, memory=replace(world.memory, served_site=None))
    assert warnings(begins) == set()


def test_what_people_read_are_the_warnings_alone(world: World, golden: Golden) -> None:
    assert told(world) == ()
    golden(told(replace(world, membership=None)))


def test_an_event_is_of_one_moment() -> None:
    made = Happening(EventReason.ALARM_RAISED, "etcd raised an alarm: NOSPACE").event("demo", 7.0)
    assert made == Event(
        plane="demo",
        type=EventType.WARNING,
        reason="AlarmRaised",
        message="etcd raised an alarm: NOSPACE",
        first=7.0,
        last=7.0,
    )


def test_events_name_condemned_replicas_blocked_healing_and_flapping_machines(world: World, golden: Golden) -> None:
    down = member(world, "east-2", Health.DOWN)
    silent = with_fact(down, "east-2", lambda fact: replace(fact, machine=MachineState.DOWN))
    bounds = replace(world.settings, healing=HealingBounds(after=1.0))
    memory = replace(world.memory, down=(("east-2", world.now - 9.0),), healed=(("m-1", world.now),) * 3)
    held = replace(silent, settings=bounds, memory=memory)
    found = dict(warnings(held))
    golden(found["HealingBlocked"])
    golden(found["MachineFlapping"])
    given_up = Condemned(replica="east-2", why="its machine is dead", since=world.now)
    decided = replace(held, memory=replace(world.memory, condemned=(given_up,)))
    golden(dict(warnings(decided))["ReplicaMarkedForReplacement"])
    assert {"HealingBlocked", "MachineFlapping"}.isdisjoint(dict(warnings(decided)))


def test_a_pardon_is_an_event() -> None:
    event = event_of(Pardon(site="", why="it is well again", replica="east-2"))
    assert event is not None
    assert (event.reason, event.type) == ("ReplacementCancelled", EventType.NORMAL)
    assert event_of(NoteDown(site="", why="", replicas=("east-2",))) is None
