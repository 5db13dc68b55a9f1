"""What is wanted now of what is wanted in the end: inside a site one replica is exchanged at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from model.stories import (
    joined_by,
    led_by,
    planned,
    serving,
    whats,
    with_balancers,
    with_fact,
    with_member,
    with_memory,
    with_unit,
)
from model.worlds import FORMER, NEW, changing, wanted
from support.golden import Golden

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.memory import Condemned, Replica
from quarterdeck.model.remember import remember
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.placement import PlaceReplica
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import MachineFact, ReplicaFact, World
from quarterdeck.planner.machines import machine_for, no_machine, why_silent
from quarterdeck.planner.rules.replica_programs import settled
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

EXCHANGED = ReplicaChange(exchange=True)


@cache
def asked(replicas: int = 3, per_zone: int = 2) -> World:
    """A plane that is well, all of whose replicas are to be other ones."""
    return observe(changing(replicas, replicas, EXCHANGED, per_zone=per_zone))


def kept(world: World) -> list[str]:
    return [record.name for record in view(world).wanted]


def places(world: World) -> list[tuple[str, str]]:
    """What is placed: its zone, and on which machine."""
    return [(step.slot.zone, step.machine) for step in planned(world, PlaceReplica).steps]  # type: ignore[union-attr]


def placed(world: World) -> World:
    """The world once the new one is there, and nothing of it runs yet."""
    memory = world.memory
    for step in planned(world, PlaceReplica).steps:
        memory = remember(memory, step, world.now)
    new = memory.replicas[-1]
    fact = ReplicaFact(name=new.name, machine=MachineState.UP, units=())
    return replace(world, memory=memory, replicas=(*world.replicas, fact))


def test_one_is_exchanged_at_a_time_and_the_leader_is_not_the_first() -> None:
    for leader in ("east-1", "east-2", "east-3"):
        now = view(led_by(asked(), leader))
        assert (len(now.wanted), len(now.missing)) == (2, 1)
        assert leader in [record.name for record in now.wanted]
        assert [record.name for record in now.unwanted] != [leader]


def test_once_the_new_one_is_there_the_same_one_is_left_out() -> None:
    before = led_by(asked(), "east-1")
    (out,) = view(before).unwanted
    after = view(placed(before))
    assert [record.name for record in after.unwanted] == [out.name]
    assert (len(after.wanted), after.missing) == (3, ())


def test_one_that_is_down_is_the_first() -> None:
    world = led_by(asked(), "east-1")
    down = with_member(world, "east-2", lambda member: replace(member, health=Health.DOWN))
    assert [record.name for record in view(down).unwanted] == ["east-2"]


def others_ill() -> dict[str, Callable[[World], World]]:
    """Why no exchange begins: another one is not well, or somebody leaves still."""
    name = "east-2"
    return {
        "its apiserver is not ready": lambda world: with_fact(world, name, lambda fact: replace(fact, ready=False)),
        "its member lags": lambda world: with_member(world, name, lambda member: replace(member, lag=10**6)),
        "it only listens": lambda world: with_member(world, name, lambda member: replace(member, learner=True)),
        "its machine is off": lambda world: with_fact(
            world, name, lambda fact: replace(fact, machine=MachineState.UNREACHABLE)
        ),
        "an edge does not send to it": lambda world: with_balancers(
            world, replace(world.balancer("east"), alike=False)
        ),
        "the load balancer does not send to it": lambda world: with_balancers(
            world, replace(world.balancer("east"), backends=frozenset({"east-1", "east-3"}))
        ),
    }


@pytest.mark.parametrize("why", others_ill())
def test_no_exchange_begins_while_another_one_is_not_well(why: str) -> None:
    world = led_by(asked(), "east-2")  # which is kept for that reason
    assert view(world).missing
    worse = others_ill()[why](world)
    now = view(worse)
    first = [record.name for record in now.unwanted]
    assert now.missing == () or first == ["east-2"], "only the ill one itself may be exchanged"


def with_one_more(world: World, *, machine: MachineState, listed: bool, condemned: bool = False) -> World:
    """Another replica, which is no member, and whose programs run as far as is known."""
    other = replace(world.memory.replicas[0], name="east-9", machine="east-a2", listed=listed, member_id=99)
    state = UnitState.RUNNING if machine is MachineState.UP else UnitState.UNKNOWN
    fact = ReplicaFact(name="east-9", machine=machine, units=((Component.ETCD, state),), ready=None)
    world = replace(world, replicas=(*world.replicas, fact))
    world = with_memory(world, replicas=(*world.memory.replicas, other))
    given_up = Condemned(replica="east-9", why="", since=0.0)
    return with_memory(world, condemned=(given_up,)) if condemned else world


@pytest.mark.parametrize(
    ("world", "begins"),
    [
        pytest.param(asked(), True, id="there is no other"),
        pytest.param(with_one_more(asked(), machine=MachineState.UP, listed=True), False, id="it is to be stopped"),
        pytest.param(
            with_one_more(asked(), machine=MachineState.UNREACHABLE, listed=True), True, id="it may never come back"
        ),
        pytest.param(
            with_one_more(asked(), machine=MachineState.UNREACHABLE, listed=False), False, id="it may still join"
        ),
        pytest.param(
            with_one_more(asked(), machine=MachineState.UNREACHABLE, listed=False, condemned=True),
            True,
            id="it was given up before it joined",
        ),
    ],
)
def test_no_exchange_begins_while_somebody_leaves_that_can_be_waited_for(world: World, begins: bool) -> None:
    assert bool(view(led_by(world, "east-1")).missing) is begins


def leaving(*names: str) -> tuple[Condemned, ...]:
    return tuple(Condemned(replica=name, why="", since=0.0, program=Component.SCHEDULER) for name in names)


def test_of_several_that_are_to_be_replaced_for_a_program_one_goes_while_another_one_stays_that_is_well() -> None:
    world = replace(asked(), revision="one")
    assert view(world).missing == ()
    assert len(view(with_memory(world, condemned=leaving("east-2", "east-3"))).missing) == 1
    assert view(with_memory(world, condemned=leaving("east-1", "east-2", "east-3"))).missing == ()
    assert len(view(asked(1)).missing) == 1, "where there is only one, that one goes"


def test_none_of_them_goes_while_another_one_does_not_vote() -> None:
    world = with_memory(replace(asked(5), revision="one"), condemned=leaving("east-1", "east-2"))
    one = with_member(world, "east-1", lambda member: replace(member, health=Health.DOWN))
    assert [record.name for record in view(one).unwanted] == ["east-1"]
    both = with_member(one, "east-2", lambda member: replace(member, health=Health.DOWN))
    assert view(both).unwanted == ()


def test_no_exchange_begins_while_two_are_not_well() -> None:
    world = led_by(asked(5), "east-1")
    assert len(view(world).missing) == 1
    for name in ("east-2", "east-3"):
        world = with_fact(world, name, lambda fact: replace(fact, ready=False))
    assert view(world).missing == ()


def test_no_exchange_begins_while_one_that_does_not_answer_is_a_member_of_the_etcd_for_events() -> None:
    apart = observe(changing(3, 3, EXCHANGED, apart=frozenset({FORMER, NEW})))
    world = with_one_more(led_by(apart, "east-1"), machine=MachineState.UNREACHABLE, listed=True)
    assert len(view(world).missing) == 1
    member = MemberFact(id=99, replica="east-9", learner=False, health=Health.HEALTHY, lag=0)
    assert view(joined_by(world, member, cluster=Cluster.EVENTS)).missing == ()


def exchanged(world: World, spread: str, *condemned: str) -> list[str]:
    """Who is exchanged first where these zones are wanted, and a person wants these replaced."""
    slots = tuple(Slot(site="east", zone=zone) for zone in spread)
    changed = replace(world, revision="one", slots=slots, condemned=condemned)
    return [record.name for record in view(led_by(changed, "east-1")).unwanted]


def test_of_those_in_other_zones_than_wanted_one_that_a_person_wants_replaced_is_the_first() -> None:
    assert exchanged(asked(), "aaa", "east-2") == ["east-2"]
    assert exchanged(asked(), "aaa", "east-3") == ["east-3"]
    assert exchanged(asked(), "abb", "east-1") == ["east-3"], "it keeps a zone that is wanted"


def test_no_exchange_begins_before_the_name_leads_to_all_others_that_it_can_lead_to() -> None:
    world = led_by(observe(changing(3, 3, EXCHANGED, direct=True)), "east-1")
    (out,) = view(world).unwanted
    other = "east-2" if out.name == "east-3" else "east-3"
    some = world.apiservers.backends - {other}
    without = replace(world, apiservers=replace(world.apiservers, backends=some))
    assert view(without).missing == ()
    assert len(view(replace(without, elsewhere=frozenset({other}))).missing) == 1


def test_a_load_balancer_that_does_not_run_sends_to_nobody_and_is_not_waited_for() -> None:
    world = with_balancers(asked(), BalancerFact(site="north", running=False))
    assert len(view(led_by(world, "east-1")).missing) == 1


def zones(world: World) -> list[str]:
    return [slot.zone for slot in view(world).missing]


def without_machine(world: World, name: str) -> World:
    return replace(world, machines=tuple(each for each in world.machines if each.name != name))


@pytest.mark.parametrize("program", ["", Component.SCHEDULER], ids=["dead", "unhealthy"])
def test_a_slot_that_lost_its_replica_is_filled_in_another_zone_if_its_own_has_no_free_machine(program: str) -> None:
    lost = (Condemned(replica="east-1", why="", since=0.0, program=program),)
    world = led_by(with_memory(replace(asked(), revision="one"), condemned=lost), "east-2")
    assert zones(world) == ["a"]
    none = without_machine(world, "east-a2")
    assert zones(none) == [""]
    strict = replace(none.settings, healing=replace(none.settings.healing, other_zones=False))
    assert zones(replace(none, settings=strict)) in (["a"], [])
    there = with_one_more(world, machine=MachineState.UP, listed=True)
    assert zones(with_unit(there, "east-9", Component.ETCD, UnitState.STOPPED)) == ["a"], (
        "a former one needs it no more"
    )


def test_a_slot_that_was_always_empty_is_filled_in_its_own_zone_only() -> None:
    world = replace(asked(), revision="one", slots=wanted("east", 4))
    world = with_memory(world, condemned=(Condemned(replica="east-2", why="", since=0.0),))
    assert sorted(zones(without_machine(world, "east-a2"))) == ["a", "b"]


def test_while_nobody_knows_who_is_a_member_all_replicas_of_the_site_stay() -> None:
    spread = tuple(Slot(site="east", zone=zone) for zone in "abb")
    world = replace(asked(), revision="one", slots=spread, membership=None)
    assert (kept(world), zones(world)) == (["east-1", "east-2", "east-3"], [])


def test_who_was_placed_and_never_joined_fills_no_other_slot() -> None:
    world = with_one_more(replace(asked(), revision="one"), machine=MachineState.UP, listed=False)
    five = replace(world, slots=(*world.slots, *(Slot(site="east", zone="c"),) * 2))
    assert ("east-9" in kept(five), zones(five)) == (False, ["c", "c"])


def test_with_no_spare_machine_the_new_one_sits_beside_the_one_that_it_replaces() -> None:
    world = led_by(asked(per_zone=1), "east-1")
    (out,) = view(world).unwanted
    assert places(world) == [(out.slot.zone, out.machine)]


def test_where_a_machine_is_free_it_has_that_for_itself() -> None:
    world = led_by(asked(per_zone=2), "east-1")
    (out,) = view(world).unwanted
    assert places(world) == [(out.slot.zone, f"east-{out.slot.zone}2")]


def test_where_there_is_no_machine_at_all_nobody_is_left_out(golden: Golden) -> None:
    world = led_by(asked(per_zone=1), "east-1")
    off = tuple(replace(each, state=MachineState.DOWN) for each in world.machines)
    now = view(replace(world, machines=off))
    assert (len(now.wanted), now.missing) == (3, ())
    (why,) = now.held_up
    golden(why.what)
    assert why in planned(now.world, PlaceReplica).waiting


def test_a_plane_is_not_as_wanted_while_one_is_to_be_exchanged() -> None:
    assert any("to be replaced" in each for each in whats(settled(view(asked()))))


def test_a_person_may_want_a_replica_exchanged_that_is_well() -> None:
    world = replace(asked(), revision="one")
    assert view(world).unwanted == ()
    now = view(replace(world, condemned=("east-2",)))
    assert ([each.name for each in now.unwanted], [slot.zone for slot in now.missing]) == (["east-2"], ["b"])


def test_only_what_must_moves_when_zones_change() -> None:
    """Two of three zones stay."""
    world = replace(asked(), revision="one")
    spread = replace(world, slots=tuple(Slot(site="east", zone=zone) for zone in "abb"))
    now = view(led_by(spread, "east-1"))
    assert ([each.name for each in now.unwanted], [slot.zone for slot in now.missing]) == (["east-3"], ["b"])


def test_a_plane_that_grows_gets_all_that_it_lacks_at_once() -> None:
    world = replace(asked(), revision="one", slots=wanted("east", 5))
    now = view(world)
    assert (len(now.wanted), [slot.zone for slot in now.missing]) == (3, ["a", "b"])


def test_a_plane_that_grows_is_filled_up_before_those_in_other_zones_than_wanted_are_exchanged() -> None:
    world = replace(asked(), revision="one", slots=tuple(Slot(site="east", zone=zone) for zone in "aabbb"))
    now = view(world)
    assert (len(now.wanted), len(now.missing)) == (3, 2)


def test_a_plane_that_shrinks_keeps_who_fits() -> None:
    world = replace(asked(), revision="one", slots=wanted("east", 1))
    now = view(world)
    assert ([each.slot.zone for each in now.wanted], len(now.unwanted)) == (["a"], 2)


def test_a_replica_on_a_volume_of_another_class_is_to_be_exchanged() -> None:
    world = replace(asked(), revision="one", storage_class="fast")
    slow = tuple(replace(each, storage_class="slow") for each in world.memory.replicas)
    assert len(view(with_memory(world, replicas=slow)).missing) == 1
    unknown = tuple(replace(each, storage_class="") for each in world.memory.replicas)
    assert view(with_memory(world, replicas=unknown)).missing == ()


# --- machines -------------------------------------------------------------------------------------------------------


def machine(name: str, state: MachineState = MachineState.UP) -> MachineFact:
    return MachineFact(name=name, site="east", zone=name[5], state=state)


def test_beside_one_that_leaves_only_where_nobody_else_sits() -> None:
    leaving = Replica(name="east-1", slot=Slot(site="east", zone="a"), machine="east-a1")
    other = replace(leaving, name="east-2")
    slot = Slot(site="east", zone="a")
    world = asked()
    for records, chosen in (((leaving,), "east-a1"), ((leaving, other), None)):
        there = replace(
            world,
            machines=(machine("east-a1"),),
            memory=replace(world.memory, replicas=records),
            membership=None,
        )
        found = machine_for(there, slot, {"east-a1"}, (leaving,))
        assert (found.name if found is not None else None) == chosen
    assert machine_for(replace(world, machines=(machine("east-a1"),)), slot, {"east-a1"}) is None


def test_the_place_where_no_machine_is_free_is_named(golden: Golden) -> None:
    wait = no_machine(serving(3), Slot(site="east", zone="a"))
    golden(wait.what)
    golden(no_machine(serving(3), Slot(site="east", zone="")).what)
    none = no_machine(serving(3), Slot(site="west", zone="z"))
    golden(none.what)


@pytest.mark.parametrize(
    "fact",
    [
        {"state": MachineState.DOWN},
        {"state": MachineState.UNREACHABLE},
        {"state": MachineState.UNREACHABLE, "why": "sudo asks"},
        {"state": MachineState.UNREACHABLE, "cordoned": True},
        {"cordoned": True},
        {"cordoned": True, "why": "is to be drained"},
        {},
    ],
)
def test_each_machine_that_is_not_free_is_named_with_the_reason(fact: dict[str, Any], golden: Golden) -> None:
    world = serving(3)
    machines = tuple(replace(each, **fact) if each.name == "east-a1" else each for each in world.machines)
    wait = no_machine(replace(world, machines=machines), Slot(site="east", zone="a"))
    golden(f"{wait.what};")


def test_who_waits_for_a_machine_says_why_it_does_not_answer(golden: Golden) -> None:
    world = serving(3)
    machines = tuple(
        replace(each, state=MachineState.UNREACHABLE, why="sudo asks for a password")
        if each.name == "east-a1"
        else each
        for each in world.machines
    )
    silent = replace(world, machines=machines)
    golden(why_silent(silent, "east", "east-a1"))
    assert why_silent(silent, "west", "east-a1") == "", "another site may have one of that name"
    assert why_silent(silent, "east", "east-b1") == ""
    undeclared = with_fact(replace(world, machines=()), "east-1", lambda fact: replace(fact, why="it is off"))
    golden(why_silent(undeclared, "east", undeclared.memory.replica("east-1").machine))
    silent = with_fact(silent, "east-1", lambda fact: replace(fact, machine=MachineState.UNREACHABLE))
    golden(whats(planned(silent)))
