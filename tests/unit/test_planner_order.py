"""Which of the things that could be done now goes first, and what is done beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from model.stories import (
    about_to,
    joined_by,
    serving,
    step_words,
    until,
    whats,
    with_fact,
    with_member,
    with_membership,
    with_memory,
    with_unit,
)
from model.worlds import empty, moving, settled, wanted
from support.golden import Golden

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health, MemberFact, WrongData
from quarterdeck.model.steps.members import AddLearner, RemoveMember
from quarterdeck.model.steps.placement import ReleaseReplica
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.replica_programs import withhold
from quarterdeck.planner.rules.traffic import backends
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.simulated.truth import Truth
from quarterdeck.planner.view import view


@cache
def outgrown() -> World:
    """The same plane, and five are wanted: two slots are to be filled."""
    return replace(serving(), slots=wanted("east", 5))


def kinds(world: World) -> list[str]:
    return list(dict.fromkeys(type(step).__name__ for step in plan(world).now))


def of(world: World) -> list[str]:
    return [step_words(step) for step in plan(world).now]


def etcd_stopped(world: World, name: str) -> World:
    return with_unit(world, name, Component.ETCD, UnitState.STOPPED)


def wrong(world: World) -> World:
    return replace(world, wrong=(WrongData(replica="east-2", seen="cluster 1f"),))


def unnoted(world: World) -> World:
    return with_memory(world, created=False)


def leading_nowhere(world: World) -> World:
    """The load balancer has nobody in its list but one who is no more."""
    return replace(
        world, balancers=(BalancerFact(site="east", running=True, backends=frozenset({"gone-9"}), healthy=frozenset()),)
    )


def with_stray(world: World) -> World:
    """A learner that no record names is a member."""
    stray = MemberFact(id=99, replica="", learner=True, health=Health.SUSPECT)
    return joined_by(world, stray)


@pytest.mark.parametrize(
    ("world", "first"),
    [
        pytest.param(outgrown(), "PlaceReplica", id="there is only a slot to fill"),
        pytest.param(leading_nowhere(outgrown()), "SetBackends", id="an address that leads nowhere"),
        pytest.param(unnoted(leading_nowhere(outgrown())), "NoteCreated", id="what was seen is written down"),
        pytest.param(wrong(unnoted(leading_nowhere(outgrown()))), "StopUnit", id="what serves other data stops"),
    ],
)
def test_what_cannot_wait_goes_first(world: World, first: str) -> None:
    assert kinds(world) == [first]


def test_what_serves_without_data_stops_first_also_while_it_is_not_known_who_is_a_member() -> None:
    def changed(fact: ReplicaFact) -> ReplicaFact:
        return replace(fact, has_data=False, units=((Component.APISERVER, UnitState.RUNNING),))

    world = with_fact(replace(outgrown(), membership=None), "east-1", changed)
    assert of(world) == ["StopUnit kube-apiserver of east-1"]
    assert kinds(replace(outgrown(), membership=None)) == ["PlaceReplica"]


def test_a_member_starts_before_any_is_removed() -> None:
    """etcd may refuse every removal as long as that one does not run."""
    assert of(with_stray(serving())) == ["RemoveMember"]
    assert of(etcd_stopped(with_stray(serving()), "east-2")) == ["StartUnit etcd of east-2"]


def test_learners_that_nobody_wants_go_before_others_come() -> None:
    """All copy from the same leader, and etcd takes only so many."""
    truth = until(moving(3, 3), lambda now, _: len(now.members) == 6)
    elsewhere = until(replace(truth, slots=wanted("north", 3)), about_to(RemoveMember, AddLearner))
    assert of(observe(elsewhere)) == ["RemoveMember west-4"]


def with_former(world: World) -> World:
    """A replica of a former epoch still runs its etcd."""
    records = tuple(replace(each, epoch=1) for each in world.memory.replicas)
    former = replace(records[0], name="east-9", machine="east-a2", epoch=0)
    fact = ReplicaFact(name="east-9", machine=MachineState.UP, units=((Component.ETCD, UnitState.RUNNING),))
    world = replace(world, replicas=(*world.replicas, fact))
    return with_memory(world, epoch=1, replicas=(*records, former))


def test_what_is_written_down_is_written_before_what_has_to_stop_stops_and_other_steps_go_with_that() -> None:
    """It takes no time."""
    world = with_former(serving())
    assert of(world)[:1] == ["StopUnit etcd of east-9"]
    assert kinds(unnoted(world)) == ["NoteCreated"]
    assert kinds(leading_nowhere(world)) == ["StopUnit", "SetBackends"]


def test_what_is_stopped_for_good_is_not_waited_for_because_of_its_data() -> None:
    wrong_data = (WrongData(replica="east-9", seen="cluster 1f"),)
    assert withhold(view(replace(with_former(serving()), wrong=wrong_data))).waiting == ()
    assert withhold(view(wrong(serving()))).waiting != ()


# --- beside ---------------------------------------------------------------------------------------------------------


def only_etcd(fact: ReplicaFact) -> ReplicaFact:
    return replace(fact, ready=False, units=((Component.ETCD, UnitState.RUNNING),))


def unseen_apiserver(fact: ReplicaFact) -> ReplicaFact:
    """It runs, and gives us no answer."""
    running = (Component.ETCD, Component.APISERVER)
    return replace(fact, ready=None, units=tuple((each, UnitState.RUNNING) for each in running))


@cache
def swapped() -> World:
    """The target holds the quorum, two voters of the source are left, and nothing is to be noted."""
    world = observe(until(moving(3, 3), lambda now, _: now.quorum_site == "west"))
    return with_memory(world, draining=())


def test_in_an_outage_wanted_and_unwanted_apiservers_start_together() -> None:
    world = swapped()
    for record in world.memory.replicas:
        world = with_fact(world, record.name, only_etcd)
    names = ("west-4", "west-5", "west-6", "east-2", "east-3")
    assert of(world) == [f"StartUnit kube-apiserver of {name}" for name in names]


def test_in_an_outage_apiservers_start_before_load_balancers_are_told_who_has_gone() -> None:
    world = swapped()
    for record in world.memory.replicas:
        world = with_fact(world, record.name, only_etcd)
    world = with_fact(world, "west-4", unseen_apiserver)
    everyone = frozenset({"west-4", "west-5", "west-6"})
    west = BalancerFact(site="west", running=True, backends=everyone, healthy=everyone)
    world = replace(world, balancers=(west,), memory=replace(world.memory, held=()))
    assert [step.site for step in backends(view(world)).steps] == ["west"]
    names = ("west-5", "west-6", "east-2", "east-3")
    assert of(world) == [f"StartUnit kube-apiserver of {name}" for name in names]


def test_controllers_start_beside_whatever_else_is_done() -> None:
    world = observe(settled(empty("east", 3)))

    def idle(fact: ReplicaFact) -> ReplicaFact:
        running = (Component.ETCD, Component.APISERVER)
        return replace(fact, units=tuple((each, UnitState.RUNNING) for each in running))

    starts = ["StartUnit kube-controller-manager of east-2", "StartUnit kube-scheduler of east-2"]
    world = with_fact(world, "east-2", idle)
    assert of(world) == starts
    north = BalancerFact(site="north", running=True, backends=frozenset({"east-1", "east-2", "east-3"}))
    assert of(replace(world, balancers=(*world.balancers, north))) == [*starts, "StopBalancer north"]


# --- waiting, and done ----------------------------------------------------------------------------------------------


@cache
def about_to_release() -> Truth:
    return until(moving(3, 3), about_to(ReleaseReplica))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda world: with_fact(world, "west-5", lambda fact: replace(fact, machine=MachineState.UNREACHABLE)),
            id="a machine does not answer",
        ),
        pytest.param(
            lambda world: with_member(world, "west-5", lambda member: replace(member, health=Health.SUSPECT)),
            id="a member does not follow",
        ),
        pytest.param(
            lambda world: with_unit(world, "west-5", Component.SCHEDULER, UnitState.FAILED),
            id="a controller crashes",
        ),
    ],
)
def test_nothing_is_released_and_nothing_done_before_every_wanted_replica_is_whole(
    change: Callable[[World], World],
) -> None:
    assert kinds(observe(about_to_release())) == ["ReleaseReplica"]
    seen = plan(change(observe(about_to_release())))
    assert seen.now == ()
    assert not seen.done
    assert any("west-5" in each for each in whats(seen))


def test_what_a_plane_waits_for_is_said_once(golden: Golden) -> None:
    forming = observe(until(empty("east", 3), about_to(StartUnit)))
    golden(whats(plan(forming)))
    golden(whats(plan(replace(serving(), membership=None))))


# --- while etcd has an alarm ----------------------------------------------------------------------------------------


def alarmed(world: World) -> World:
    return with_membership(world, alarms=("memberID:17 alarm:NOSPACE ",))


def dark() -> World:
    """No apiserver is left, neither of the target nor of the source."""
    world = swapped()
    for record in world.memory.replicas:
        world = with_fact(world, record.name, only_etcd)
    return world


def without_name() -> World:
    return replace(serving(), record=None)


def without(component: Component, world: World) -> World:
    """That unit of one of three does not run."""

    def changed(fact: ReplicaFact) -> ReplicaFact:
        ready = fact.ready and component != Component.APISERVER
        return replace(fact, ready=ready, units=tuple(each for each in fact.units if each[0] is not component))

    return with_fact(world, "east-2", changed)


@pytest.mark.parametrize(
    ("world", "goes_on"),
    [
        pytest.param(wrong(serving()), "StopUnit kube-apiserver of east-2", id="withhold"),
        pytest.param(unnoted(serving()), "NoteCreated", id="note"),
        pytest.param(etcd_stopped(leading_nowhere(serving()), "east-2"), "SetBackends east", id="relight"),
        pytest.param(etcd_stopped(serving(), "east-2"), "StartUnit etcd of east-2", id="keep_running"),
        pytest.param(without(Component.APISERVER, serving()), "StartUnit kube-apiserver of east-2", id="serve"),
        pytest.param(dark(), "StartUnit kube-apiserver of east-3", id="serve_in_outage"),
        pytest.param(
            replace(
                serving(),
                balancers=(
                    *serving().balancers,
                    BalancerFact(site="north", running=True, backends=frozenset({"gone-9"})),
                ),
            ),
            "SetBackends north",
            id="backends",
        ),
        pytest.param(without_name(), "SetRecord east", id="record"),
        pytest.param(without(Component.SCHEDULER, serving()), "StartUnit kube-scheduler of east-2", id="control"),
    ],
)
def test_what_keeps_a_plane_serving_goes_on_while_etcd_has_an_alarm(world: World, goes_on: str) -> None:
    assert goes_on in of(alarmed(world))


def test_while_no_quorum_answers_the_members_are_named_or_else_all_that_may_become_some(golden: Golden) -> None:
    def unread(*listed: bool) -> World:
        records = zip(serving().memory.replicas, listed, strict=False)
        replicas = tuple(replace(each, listed=one) for each, one in records)
        return replace(with_memory(serving(), replicas=replicas), membership=None)

    golden(whats(plan(unread(True, False, True))))
    golden(whats(plan(unread(False, False, False))))
    golden(whats(plan(unread())))
