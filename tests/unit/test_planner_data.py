"""Nothing serves without the plane's data, or on other data; and nothing is exchanged while etcd has an alarm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import (
    about_to,
    is_done,
    planned,
    serving,
    step_words,
    until,
    whats,
    with_fact,
    with_membership,
    with_memory,
)
from model.worlds import empty, moving, settled
from support.golden import Golden

from quarterdeck.engine.notices.events import warnings
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Membership, WrongData
from quarterdeck.model.memory import Memory
from quarterdeck.model.remember import remember
from quarterdeck.model.steps.clusters import NoteCluster, NoteCreated
from quarterdeck.model.steps.members import AddLearner, Promote, Swap
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import observe

LOW = "etcd revision 12, and 5,000 was observed before"


def without_data(world: World, name: str, state: UnitState = UnitState.FAILED) -> World:
    """Its data is gone, and its machine does not start its etcd."""
    units = ((Component.ETCD, state), (Component.APISERVER, UnitState.RUNNING))
    return with_fact(world, name, lambda fact: replace(fact, has_data=False, units=units, refused="gone", ready=False))


def of(world: World) -> list[str]:
    return [step_words(step) for step in plan(world).now]


# --- without data ---------------------------------------------------------------------------------------------------


def test_an_apiserver_whose_only_member_lost_its_data_does_not_go_on_serving_what_it_remembers() -> None:
    world = replace(without_data(serving(1), "east-1"), membership=None)
    assert of(world) == ["StopUnit kube-apiserver of east-1"]
    assert any("the data of east-1 to be restored" in each for each in whats(plan(world)))
    assert any("does not start etcd of east-1: gone" in each for each in warnings(world))


def test_nothing_is_started_in_place_of_lost_data() -> None:
    world = replace(without_data(serving(1), "east-1"), membership=None)
    stopped = with_fact(
        world,
        "east-1",
        lambda fact: replace(
            fact, units=((Component.ETCD, UnitState.STOPPED), (Component.APISERVER, UnitState.STOPPED))
        ),
    )
    assert of(stopped) == []
    assert not plan(stopped).done


def test_all_three_apiservers_stop_when_all_three_members_lost_their_data() -> None:
    world = serving(3)
    for name in ("east-1", "east-2", "east-3"):
        world = without_data(world, name)
    assert of(replace(world, membership=None)) == [f"StopUnit kube-apiserver of east-{each}" for each in (1, 2, 3)]


def test_a_member_that_still_runs_on_files_that_were_deleted_under_it_may_be_part_of_a_quorum() -> None:
    world = replace(without_data(serving(1), "east-1", UnitState.RUNNING), membership=None)
    assert of(world) == []


def test_who_never_had_the_data_has_lost_none() -> None:
    """A replica that was placed, or is about to join, while no quorum answers."""
    world = replace(without_data(serving(1), "east-1"), membership=None)
    new = tuple(replace(record, started=False) for record in world.memory.replicas)
    world = with_memory(world, replicas=new)
    assert planned(world, StopUnit).steps == ()


def test_on_a_machine_that_does_not_answer_nothing_is_stopped_and_the_data_is_waited_for(golden: Golden) -> None:
    """What is said of its units is of before."""
    world = replace(without_data(serving(1), "east-1"), membership=None)
    deaf = with_fact(world, "east-1", lambda fact: replace(fact, machine=MachineState.UNREACHABLE))
    found = planned(deaf, StopUnit)
    assert found.steps == ()
    golden(whats(found))


def test_one_whose_data_is_gone_is_replaced_and_not_waited_for_while_the_others_are_a_quorum() -> None:
    world = without_data(serving(3), "east-2")
    assert not any("to be restored" in each for each in whats(plan(world)))


def test_data_that_is_not_seen_is_not_data_that_is_gone() -> None:
    world = with_fact(without_data(serving(1), "east-1"), "east-1", lambda fact: replace(fact, has_data=None))
    assert of(replace(world, membership=None)) == []


# --- on wrong data --------------------------------------------------------------------------------------------------


def test_no_apiserver_serves_data_that_was_set_back() -> None:
    wrong = tuple(WrongData(replica=f"east-{each}", seen=LOW) for each in (1, 2, 3))
    world = replace(serving(3), membership=None, wrong=wrong)
    assert of(world) == [f"StopUnit kube-apiserver of east-{each}" for each in (1, 2, 3)]
    assert all(LOW in each for each in whats(plan(world))[:3])
    assert any(LOW in each for each in warnings(world))


def test_one_member_with_the_data_of_another_cluster_costs_the_plane_no_more_than_its_apiserver() -> None:
    world = replace(serving(3), wrong=(WrongData(replica="east-2", seen="cluster 1f"),))
    assert of(world) == ["StopUnit kube-apiserver of east-2"]
    stopped = with_fact(world, "east-2", lambda fact: replace(fact, units=((Component.ETCD, UnitState.RUNNING),)))
    assert not plan(stopped).done
    assert not any(isinstance(step, StopUnit) for step in plan(stopped).now)


# --- what is written down -------------------------------------------------------------------------------------------


def at(world: World, cluster: int, revision: int) -> World:
    assert isinstance(world.membership, Membership)
    return with_membership(world, cluster_id=cluster, revision=revision)


def test_the_cluster_is_written_down_with_what_else_is_written_when_it_is_first_read() -> None:
    world = at(serving(3), 0x1F, 7)
    founded = with_memory(world, created=False)
    steps = plan(founded).now
    assert [type(step) for step in steps] == [NoteCreated, NoteCluster]
    memory = Memory()
    for step in steps:
        memory = remember(memory, step, 0.0)
    assert (memory.created, memory.cluster_id, memory.revision) == (True, 0x1F, 7)


def test_a_remembered_revision_never_falls() -> None:
    memory = replace(Memory(), cluster_id=1, revision=100)
    step = NoteCluster(site="", why="", cluster_id=1, revision=90)
    assert remember(memory, step, 0.0).revision == 100


# --- alarms ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alarm", ["NOSPACE", "CORRUPT"])
@pytest.mark.parametrize("step", [AddLearner, Promote, Swap])
def test_no_exchange_begins_or_goes_on_while_etcd_has_an_alarm(alarm: str, step: type[AddLearner]) -> None:
    world = observe(until(moving(3, 3), about_to(step)))
    raised = with_membership(world, alarms=(f"memberID:17 alarm:{alarm} ",))
    seen = plan(raised)
    assert not any(isinstance(each, step) for each in seen.now)
    assert alarm in whats(seen)[0]
    assert not seen.done


def test_a_plane_with_an_alarm_is_not_as_wanted() -> None:
    world = serving(3)
    assert plan(world).done
    assert not plan(with_membership(world, alarms=("memberID:1 alarm:CORRUPT ",))).done
    assert plan(with_membership(world, alarms=("etcdserver: no leader",))).done


# --- and back -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_plane_whose_data_was_all_gone_serves_nothing_until_it_is_back_and_then_as_before(replicas: int) -> None:
    truth = settled(empty("east", replicas))
    names = [name for name, _ in truth.replicas]
    for name in names:
        truth = truth.with_replica(name, replace(truth.replica(name), data=False))
    idle = until(truth, lambda _, now: not now.now)
    assert not any(Component.APISERVER in replica.units for _, replica in idle.replicas)
    assert not any(replica.data for _, replica in idle.replicas), "nothing begins again"
    assert len(whats(plan(observe(idle)))) >= replicas
    for name in names:
        idle = idle.with_replica(name, replace(idle.replica(name), data=True))
    well = until(idle, is_done)
    assert well.serving == set(names)
    assert well.members.keys() == set(names)
