"""Whatever is waited for on a machine that does not answer: why that machine is silent, and what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import serving, with_balancers, with_fact
from support.golden import Golden

from quarterdeck.model.balancers import EdgeFact
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.edges import EdgeSeen, Where, joined
from quarterdeck.model.memory import KeptData, LeftBehind
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner import next_steps
from quarterdeck.planner.rules.recovery import drop_kept
from quarterdeck.planner.rules.release import take_down

WHY = "sudo asks for a password"
BACK = "(bring it back; 'quarterdeck site check east' shows what prevents it)"


def silent(world: World, machine: str) -> World:
    machines = tuple(
        replace(each, state=MachineState.UNREACHABLE, why=WHY) if each.name == machine else each
        for each in world.machines
    )
    return replace(world, machines=machines)


def dark(why: str = WHY) -> World:
    """The load balancer's machine at east does not answer."""
    seen = EdgeSeen(name="east-edge", address="192.0.2.1", status=None)
    balancer = joined("east", (seen,), (), {"east-edge": Where("a", "", why)})
    world = serving()
    others = (each for each in world.balancers if each.site != "east")
    return replace(world, balancers=(balancer, *others))


def test_a_load_balancers_machine(golden: Golden) -> None:
    golden(str(next_steps.edges(dark(), "east")))
    golden(str(next_steps.edges(dark(""), "east")))
    steps, waits = take_down(replace(dark(), record=None, deleting=True))
    held = "the load balancer's machine at east to answer, because the plane's load balancer and its key may still be"
    held += " there"
    assert not steps or str(waits[0]) == f"{held}: {WHY} {BACK}"
    golden([str(each) for each in waits])


def test_of_several_load_balancers_machines_those_are_named_that_do_not_answer(golden: Golden) -> None:
    """With the reason of one of them, and not of one that is only slow."""
    edges = (EdgeFact(name="one", why="it is slow"), EdgeFact(name="two", leads=None, why=WHY))
    world = with_balancers(serving(), replace(serving().balancer("east"), edges=edges))
    golden(str(next_steps.edges(world, "east")))


def test_a_plane_whose_quorum_is_lost_goes_on_from_its_standby_or_else_from_a_survivor(golden: Golden) -> None:
    world = replace(serving(), plane_name="demo")
    golden(next_steps.quorum(world))
    golden(next_steps.new_epoch(world, "--yes"))
    golden(next_steps.new_epoch(replace(world, standby=Slot(site="west", zone="")), "--yes"))


def test_a_vote_in_the_etcd_for_events_is_named_as_such(golden: Golden) -> None:
    record = serving().memory.replica("east-1")
    golden(next_steps.voter(serving(), record).what)
    golden(next_steps.voter(serving(), record, Cluster.EVENTS).what)


def test_what_goes_on_by_itself_says_within_which_time(golden: Golden) -> None:
    golden(next_steps.within(2.4))
    golden(next_steps.within(-1.0))


def test_a_machine_with_data_that_is_kept_and_one_that_a_replica_was_taken_from(golden: Golden) -> None:
    world = silent(serving(), "east-a1")
    kept = KeptData(site="east", machine="east-a1", replica="east-0")
    left = LeftBehind(site="east", machine="east-a1", replica="east-9")
    memory = replace(world.memory, replicas=(), kept=(kept,), left=(left,))
    (waits,) = drop_kept(replace(world, memory=memory))[1]
    golden(str(waits))
    gone = replace(world, memory=memory, replicas=(), balancers=(), record=None, deleting=True)
    golden(map(str, take_down(gone)[1]))


@pytest.mark.parametrize("component", [Component.ETCD, Component.APISERVER])
def test_a_program_on_it(component: Component, golden: Golden) -> None:
    def cut_off(world: World) -> World:
        units = tuple((each, UnitState.UNKNOWN) for each in NAMED)
        return with_fact(
            world, "east-1", lambda fact: replace(fact, machine=MachineState.UNREACHABLE, units=units, why=WHY)
        )

    world, record = cut_off(serving()), serving().memory.replica("east-1")
    golden(str(next_steps.program(world, record, component, "to run")))
    golden(str(next_steps.machine(world, record)))


def test_a_program_that_runs_is_named_with_its_last_error(golden: Golden) -> None:
    world, record = replace(serving(), plane_name="demo"), serving().memory.replica("east-1")

    def waits(*quiet: tuple[Component, str]) -> Wait:
        seen = with_fact(world, "east-1", lambda fact: replace(fact, quiet=quiet))
        return next_steps.program(seen, record, Component.APISERVER, "to be ready")

    golden(waits().what)
    golden(waits((Component.ETCD, "no")).what)
    golden(waits((Component.APISERVER, "")).what)
    golden(waits((Component.APISERVER, "no")).what)
    golden(waits().then)
