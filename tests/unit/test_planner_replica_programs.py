"""Which apiservers and controllers run, which stop, and what is waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from model.stories import all_steps, planned, serving, until, whats, with_fact, with_member, with_memory, with_unit
from model.worlds import moving
from support.components import CONTROLLERS
from support.golden import Golden

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.epochs import BackupOrigin, Seed
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Condemned
from quarterdeck.model.steps.units import StartUnit, StopUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules.replica_programs import (
    control,
    others_well,
    retire,
    serve,
    serve_in_outage,
    settled,
)
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

EAST = ("east-1", "east-2", "east-3")
WEST = ("west-4", "west-5")
Change = Callable[[World], World]


def unit(name: str, component: Component, state: UnitState) -> Change:
    return lambda world: with_unit(world, name, component, state)


def ready(name: str, answer: bool | None) -> Change:
    return lambda world: with_fact(world, name, lambda fact: replace(fact, ready=answer))


def unreachable(name: str) -> Change:
    """Its machine does not answer, and what is said of its units is of before."""
    return lambda world: with_fact(world, name, lambda fact: replace(fact, machine=MachineState.UNREACHABLE))


def health(name: str, seen: Health) -> Change:
    return lambda world: with_member(world, name, lambda member: replace(member, health=seen))


def learns(name: str) -> Change:
    return lambda world: with_member(world, name, lambda member: replace(member, learner=True))


def without_data(name: str) -> Change:
    return lambda world: with_fact(world, name, lambda fact: replace(fact, has_data=False))


def hangs(name: str, component: Component) -> Change:
    """The program runs, and no longer reports that it is healthy."""
    return lambda world: with_fact(
        world, name, lambda fact: replace(fact, silent=frozenset({component}), hung=frozenset({component}))
    )


def ends(name: str, component: Component) -> Change:
    """The program exits repeatedly; it has just been started again."""
    return lambda world: with_fact(world, name, lambda fact: replace(fact, crash_looping=frozenset({component})))


def complains(name: str, component: Component) -> Change:
    """The program runs and reports nothing but an error."""
    return lambda world: with_fact(world, name, lambda fact: replace(fact, quiet=((component, "no such file"),)))


def given_up(*names: str) -> Change:
    """These are to be replaced because of their scheduler."""
    condemned = tuple(Condemned(replica=name, why="", since=0.0, program=Component.SCHEDULER) for name in names)
    return lambda world: with_memory(world, condemned=condemned)


def but(world: World, *changes: Change) -> World:
    for change in changes:
        world = change(world)
    return world


def off(name: str, *components: Component) -> Change:
    """These units of a replica were stopped; its apiserver is not ready then."""

    def changed(world: World) -> World:
        for component in components:
            world = unit(name, component, UnitState.STOPPED)(world)
        return ready(name, False)(world) if Component.APISERVER in components else world

    return changed


@cache
def moved() -> World:
    """The target carries the traffic, its controllers run, clients have forgotten the source's address, and the
    apiservers of the source have drained for long. Nothing of the source was stopped.
    """
    world = observe(until(moving(3, 3), lambda now, _: now.memory.served_site == "west"))
    everyone = frozenset(EAST + WEST)
    both = tuple(
        BalancerFact(site=site, running=True, backends=everyone, healthy=everyone) for site in ("east", "west")
    )
    drained = tuple((name, world.now) for name in EAST)
    world = replace(world, now=world.now + 100, balancers=both, memory=replace(world.memory, draining=drained))
    return but(world, *(unit(name, each, UnitState.RUNNING) for name in WEST for each in CONTROLLERS))


@cache
def bare() -> World:
    """The same, and the controllers of the source have stopped."""
    return but(moved(), *(off(name, *CONTROLLERS) for name in EAST))


# --- apiservers start -----------------------------------------------------------------------------------------------


def test_a_wanted_voter_whose_apiserver_does_not_run_gets_one_and_is_waited_for_until_it_is_ready(
    golden: Golden,
) -> None:
    idle = but(serving(), off("east-2", Component.APISERVER))
    assert whats(planned(idle, StartUnit)) == ()
    assert all_steps(planned(idle, StartUnit)) == ["StartUnit kube-apiserver of east-2"]
    starting = but(idle, unit("east-2", Component.APISERVER, UnitState.RUNNING))
    found = planned(starting, StartUnit)
    assert found.steps == ()
    golden(whats(found))
    assert planned(serving(), StartUnit) == RuleOutcome()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(health("east-2", Health.SUSPECT), id="its member does not follow"),
        pytest.param(learns("east-2"), id="its member only listens"),
        pytest.param(unreachable("east-2"), id="its machine does not answer"),
    ],
)
@pytest.mark.parametrize("state", [UnitState.STOPPED, UnitState.RUNNING])
def test_an_apiserver_is_neither_started_nor_waited_for_where_it_could_not_serve(
    change: Change, state: UnitState
) -> None:
    world = but(serving(), ready("east-2", False), unit("east-2", Component.APISERVER, state))
    assert serve(view(world)) != RuleOutcome()
    assert serve(view(but(world, change))) == RuleOutcome()


def test_who_is_replaced_because_of_its_apiserver_is_not_waited_for() -> None:
    world = but(serving(), ready("east-2", False))
    assert whats(serve(view(world))) != ()
    given_up = Condemned(replica="east-2", why="", since=0.0, program=Component.APISERVER)
    alone = replace(with_memory(world, condemned=(given_up,)), machines=())
    assert "east-2" in [record.name for record in view(alone).wanted], "there is no machine to replace it"
    assert whats(serve(view(alone))) == ()


def test_an_outage_is_when_no_apiserver_at_all_is_ready() -> None:
    dark = but(bare(), *(off(name, Component.APISERVER) for name in EAST + WEST))
    assert all_steps(serve_in_outage(view(dark))) == [f"StartUnit kube-apiserver of {name}" for name in EAST]
    assert serve_in_outage(view(but(dark, ready("west-4", True)))) == RuleOutcome()
    assert serve_in_outage(view(but(dark, ready("east-1", True)))) == RuleOutcome()
    empty_handed = but(dark, without_data("east-2"))
    assert all_steps(serve_in_outage(view(empty_handed))) == [
        "StartUnit kube-apiserver of east-1",
        "StartUnit kube-apiserver of east-3",
    ]


# --- controllers start ----------------------------------------------------------------------------------------------

STARTS = [f"StartUnit {each} of west-4" for each in CONTROLLERS]


@pytest.mark.parametrize(
    ("change", "starts"),
    [
        pytest.param((), STARTS, id="its apiserver is ready"),
        pytest.param((ready("west-4", False),), [], id="it is not"),
        pytest.param((unreachable("west-4"),), [], id="its machine does not answer"),
        pytest.param((unit("west-4", Component.SCHEDULER, UnitState.FAILED),), STARTS[:1], id="one is tried already"),
        pytest.param((unit("west-4", Component.SCHEDULER, UnitState.ABSENT),), STARTS, id="one never was there"),
    ],
)
def test_controllers_start_where_an_apiserver_is_ready(change: tuple[Change, ...], starts: list[str]) -> None:
    world = but(bare(), off("west-4", *CONTROLLERS))
    assert all_steps(control(view(but(world, *change)))) == starts


@pytest.mark.parametrize(
    ("change", "waits"),
    [
        pytest.param((), False, id="no apiserver starts"),
        pytest.param((ready("west-5", False),), True, id="an apiserver is not ready yet"),
        pytest.param((off("west-5", Component.APISERVER),), True, id="an apiserver is about to start"),
        pytest.param(
            (ready("west-5", False), off("east-1", Component.SCHEDULER)), True, id="others do that work besides"
        ),
        pytest.param(
            (ready("west-5", False), *(off(each, Component.SCHEDULER) for each in EAST)), False, id="nobody schedules"
        ),
    ],
)
def test_controllers_give_way_to_apiservers_while_others_do_their_work(change: tuple[Change, ...], waits: bool) -> None:
    world = but(moved(), off("west-4", *CONTROLLERS))
    assert all_steps(control(view(but(world, *change)))) == ([] if waits else STARTS)


def test_where_nobody_is_to_leave_controllers_do_not_wait_for_apiservers() -> None:
    world = but(serving(), ready("east-1", False), off("east-2", *CONTROLLERS))
    assert all_steps(control(view(world))) == [f"StartUnit {each} of east-2" for each in CONTROLLERS]


def test_a_controller_manager_waits_in_a_new_epoch_until_a_kubelet_is_back_or_for_so_long(golden: Golden) -> None:
    """Others start at once, and the wait is said once."""
    backup = BackupOrigin(store="file:///backups", folder="demo/1", epoch=0)
    seed = Seed(origin=backup, founder="east-1", revision=5, seen=5, restored=True, served=serving().now)
    world = replace(but(serving(), *(off(name, *CONTROLLERS) for name in EAST)), kubelets_back=False)
    world = with_memory(world, seed=seed)
    assert all_steps(control(view(world))) == [f"StartUnit kube-scheduler of {name}" for name in EAST]
    golden(map(str, control(view(world)).waiting))
    everything = [f"StartUnit {each} of {name}" for name in EAST for each in CONTROLLERS]
    assert all_steps(control(view(replace(world, kubelets_back=True)))) == everything
    late = replace(world, now=world.now + world.settings.kubelets)
    assert all_steps(control(view(late))) == everything
    schedulers = but(world, *(unit(name, Component.CONTROLLER_MANAGER, UnitState.RUNNING) for name in EAST))
    assert whats(control(view(schedulers))) == ()


# --- controllers stop -----------------------------------------------------------------------------------------------


def stopped(world: World) -> list[tuple[str, Component]]:
    return [(step.replica, step.component) for step in retire(view(world)).steps if isinstance(step, StopUnit)]


def controllers(*names: str) -> list[tuple[str, Component]]:
    return [(name, component) for name in names for component in CONTROLLERS]


@pytest.mark.parametrize(
    ("change", "stops"),
    [
        pytest.param((), EAST, id="all stand by"),
        pytest.param((off("west-5", Component.SCHEDULER),), (), id="one does not"),
        pytest.param((unit("west-5", Component.SCHEDULER, UnitState.FAILED),), (), id="one crashed"),
        pytest.param((hangs("west-5", Component.SCHEDULER),), (), id="one hangs"),
        pytest.param(
            (hangs("west-5", Component.SCHEDULER), given_up("west-5")), EAST, id="one that hangs is to be replaced"
        ),
        pytest.param(
            (hangs("west-5", Component.SCHEDULER), given_up("west-4", "west-5")), (), id="all are to be replaced"
        ),
        pytest.param((ready("west-5", False),), (), id="the target does not carry the traffic"),
        pytest.param((unreachable("east-1"),), EAST[1:], id="a machine does not answer"),
        pytest.param((off("east-1", *CONTROLLERS),), EAST[1:], id="some have stopped already"),
        pytest.param((health("east-1", Health.DOWN), ready("west-5", False)), ("east-1",), id="a member is dead"),
    ],
)
def test_controllers_stop_when_those_of_all_wanted_voters_stand_by(
    change: tuple[Change, ...], stops: tuple[str, ...]
) -> None:
    assert stopped(but(moved(), *change)) == controllers(*stops)


def test_controllers_that_crash_again_and_again_are_stopped_too() -> None:
    world = but(bare(), unit("east-2", Component.SCHEDULER, UnitState.FAILED))
    assert stopped(world) == [("east-2", Component.SCHEDULER)]


def test_what_is_not_known_to_run_is_not_stopped() -> None:
    unseen = but(moved(), *(unit("east-2", each, UnitState.UNKNOWN) for each in NAMED))
    assert stopped(unseen) == controllers("east-1", "east-3")
    unseen = but(bare(), unit("east-2", Component.APISERVER, UnitState.UNKNOWN))
    assert stopped(unseen) == [("east-1", Component.APISERVER), ("east-3", Component.APISERVER)]


# --- apiservers stop ------------------------------------------------------------------------------------------------


def drained(world: World, since: float, *names: str) -> World:
    """These get no new connections since some seconds ago."""
    return with_memory(world, draining=tuple((name, world.now - since) for name in names))


def test_apiservers_stop_when_they_have_drained(golden: Golden) -> None:
    assert stopped(bare()) == [(name, Component.APISERVER) for name in EAST]
    assert whats(retire(view(bare()))) == ()
    long = bare().settings.drain
    assert stopped(drained(bare(), long, "east-1", "east-3")) == [
        ("east-1", Component.APISERVER),
        ("east-3", Component.APISERVER),
    ]
    golden(whats(retire(view(drained(bare(), long, "east-1", "east-3")))))
    early = retire(view(drained(bare(), long - 0.1, *EAST)))
    assert (early.steps, whats(early)) == ((), tuple(f"{name} to drain" for name in EAST))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(unreachable("east-1"), id="its machine does not answer"),
        pytest.param(off("east-1", Component.APISERVER), id="it has stopped already"),
    ],
)
def test_who_cannot_be_stopped_or_has_is_not_waited_for(change: Change) -> None:
    assert stopped(but(bare(), change)) == [(name, Component.APISERVER) for name in EAST[1:]]
    assert whats(retire(view(but(drained(bare(), 0), change)))) == tuple(
        f"load balancers to stop using {name}" for name in EAST[1:]
    )


def test_no_apiserver_stops_before_the_target_carries_the_traffic_unless_its_member_is_dead(golden: Golden) -> None:
    late = but(bare(), ready("west-5", False))
    found = retire(view(late))
    assert found.steps == ()
    golden(whats(found))
    dead = but(late, health("east-1", Health.DOWN))
    assert stopped(dead) == [("east-1", Component.APISERVER)]
    assert stopped(but(bare(), health("east-1", Health.DOWN))) == [(name, Component.APISERVER) for name in EAST]


@pytest.mark.parametrize("component", CONTROLLERS)
def test_an_apiserver_stays_as_long_as_one_of_its_controllers_may_need_it(component: Component, golden: Golden) -> None:
    """Those that stood by for it are not seen to run just now."""
    world = but(bare(), unit("east-1", component, UnitState.RUNNING), off("west-4", component))
    assert stopped(world) == [(name, Component.APISERVER) for name in EAST[1:]]
    golden(whats(retire(view(world))))


# --- as wanted ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        pytest.param((), id="all is well"),
        pytest.param((unreachable("east-2"),), id="a machine"),
        pytest.param((health("east-2", Health.SUSPECT),), id="a member"),
        pytest.param((ready("east-2", None),), id="an apiserver"),
        pytest.param((unit("east-2", Component.SCHEDULER, UnitState.FAILED),), id="a unit"),
        pytest.param((hangs("east-2", Component.SCHEDULER),), id="a program that hangs"),
        pytest.param((ends("east-2", Component.SCHEDULER),), id="a program that exits repeatedly"),
        pytest.param((complains("east-2", Component.SCHEDULER),), id="a program that reports only an error"),
    ],
)
def test_a_plane_is_as_wanted_when_each_wanted_replica_is_seen_to_be_whole(
    change: tuple[Change, ...], golden: Golden
) -> None:
    found = planned(but(serving(), *change))
    assert found.steps == ()
    golden(whats(found))


def altered(world: World) -> World:
    return with_fact(world, "east-2", lambda fact: replace(fact, altered=frozenset({Component.SCHEDULER})))


def former(world: World) -> World:
    return replace(world, memory=world.memory.with_replica("east-2", lambda each: replace(each, revision="former")))


def cordoned(world: World) -> World:
    return replace(world, cordoned=("east-2",))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param((altered,), id="files were changed on its machine"),
        pytest.param((altered, cordoned), id="and a person has cordoned it"),
        pytest.param((former,), id="it has another revision"),
        pytest.param((former, cordoned), id="and it is cordoned"),
        pytest.param((cordoned,), id="it is only cordoned"),
    ],
)
def test_a_plane_is_as_wanted_when_each_replica_runs_its_revision_or_is_cordoned_with_it(
    changes: tuple[Change, ...], golden: Golden
) -> None:
    golden(whats(settled(view(but(serving(), *changes)))))


def test_what_a_replica_waits_for_before_it_is_restarted_is_something_of_another_one(golden: Golden) -> None:
    world = but(serving(), ready("east-2", False))
    first, second = (world.memory.replica(name) for name in ("east-1", "east-2"))
    golden(others_well(view(world), first, "is restarted").what)
    golden(others_well(view(world), second, "is restarted").what)
    golden(others_well(view(replace(world, membership=None)), first, "is restarted").what)


def test_starts_go_to_the_site_of_their_replica() -> None:
    steps = planned(but(serving(), off("east-2", Component.APISERVER)), StartUnit).steps
    assert [(step.site, step.replica) for step in steps if isinstance(step, StartUnit)] == [("east", "east-2")]
