"""What is let go at the end of an exchange, and how a whole plane is taken down."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from model.stories import about_to, joined_by, planned, step_words, until, with_balancers, with_fact, with_memory
from model.worlds import empty, moving, settled
from support.golden import Golden

from quarterdeck.model.balancers import BalancerFact, EdgeFact
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.steps.placement import ReleaseReplica
from quarterdeck.model.steps.traffic import StopBalancer
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.rules.release import release, take_down
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

EAST = ("east-1", "east-2", "east-3")
UNSEEN = "the load balancer at east, whose machine does not answer"


def dark(world: World, site: str, *, reachable: bool = False) -> World:
    """The machine of a site's load balancer does not answer (``reachable``: it does, and there is none)."""
    others = tuple(each for each in world.balancers if each.site != site)
    return replace(world, balancers=(*others, BalancerFact(site=site, running=False, reachable=reachable)))


def half_dark(world: World, site: str) -> World:
    """It is seen to be gone from one of its edges; the other does not answer."""
    seen = dark(world, site, reachable=True)
    return with_balancers(
        seen, replace(seen.balancer(site), edges=(EdgeFact(name="1"), EdgeFact(name="2", leads=None)))
    )


def held(world: World, *sites: str) -> World:
    return with_memory(world, held=tuple((site, 0.0) for site in sites))


# --- replicas -------------------------------------------------------------------------------------------------------


@cache
def moved() -> World:
    """All is as wanted at the target, and what was at the source may go."""
    return held(observe(until(moving(3, 3), about_to(ReleaseReplica))))


def released(world: World) -> list[str]:
    return [step.replica for step in release(view(world))[0] if isinstance(step, ReleaseReplica)]


def test_what_is_no_member_any_more_is_released_and_nothing_else() -> None:
    assert released(moved()) == list(EAST)
    again = MemberFact(id=99, replica="east-2", learner=True, health=Health.HEALTHY)
    listed = joined_by(moved(), again)
    assert released(listed) == ["east-1", "east-3"]


@pytest.mark.parametrize(
    ("world", "goes", "named"),
    [
        pytest.param(dark(moved(), "east", reachable=True), 3, False, id="it answers"),
        pytest.param(dark(moved(), "east"), 0, True, id="only the records of replicas name its site"),
        pytest.param(half_dark(moved(), "east"), 0, True, id="one of its edges does not answer"),
        pytest.param(held(dark(moved(), "east"), "east"), 3, True, id="the memory names its site besides"),
        pytest.param(held(moved(), "east"), 3, False, id="the memory names its site, and it answers"),
        pytest.param(dark(moved(), "north"), 3, False, id="it is where the plane never was"),
        pytest.param(replace(dark(moved(), "east"), front="west"), 3, False, id="a fixed address never was there"),
    ],
)
def test_the_last_record_that_names_a_site_stays_while_a_load_balancer_may_be_left_there(
    world: World, goes: int, named: bool
) -> None:
    assert len(released(world)) == goes
    leftovers = release(view(world))[1]
    assert (leftovers[:1] == (UNSEEN,)) is named
    kept = tuple(
        f"{name} on machine east-{zone}1, until that load balancer is observed to be gone"
        for name, zone in zip(EAST[goes:], "abc", strict=False)
    )
    assert leftovers[named:] == kept


def test_a_load_balancer_that_may_be_left_is_named_when_all_replicas_are_released() -> None:
    records = tuple(each for each in moved().memory.replicas if each.site == "west")
    world = with_memory(moved(), replicas=records)
    assert release(view(held(dark(world, "east"), "east"))) == ((), (UNSEEN,))


# --- a whole plane --------------------------------------------------------------------------------------------------


@cache
def to_delete() -> World:
    return replace(observe(settled(empty("east", 3))), deleting=True)


@cache
def nameless() -> World:
    """The name is gone, and so are the load balancers."""
    return replace(to_delete(), record=None, balancers=())


def taken(world: World) -> list[str]:
    return [step_words(step) for step in take_down(world)[0]]


def with_units(world: World, state: UnitState, *components: Component) -> World:
    """Of every replica, just these units are in that state, and the others are idle."""
    units = tuple((dict.fromkeys(NAMED, UnitState.STOPPED) | dict.fromkeys(components, state)).items())
    for name in EAST:
        world = with_fact(world, name, lambda fact: replace(fact, units=units))
    return world


def test_the_name_goes_first_unless_it_is_somebody_elses_or_no_name(golden: Golden) -> None:
    assert taken(to_delete()) == ["RemoveRecord"]
    assert taken(replace(to_delete(), foreign="it is claimed by beta/2")) == ["StopBalancer east"]
    assert taken(replace(to_delete(), front="east")) == ["StopBalancer east"]
    assert taken(replace(to_delete(), record=None)) == ["StopBalancer east"]
    unknown = replace(to_delete(), record=None, record_known=False)
    steps, (waits,) = take_down(unknown)
    assert steps == ()
    golden(waits.what)


def test_a_load_balancer_that_is_not_there_is_not_stopped() -> None:
    idle = replace(to_delete(), record=None, balancers=(BalancerFact(site="east", running=False),))
    assert taken(idle) == [f"StopUnit kube-scheduler of {name}" for name in EAST]


def test_a_load_balancer_that_does_not_run_and_that_its_machine_knows_of_goes_with_the_plane() -> None:
    """It may be in a crash loop, and run again once the plane is gone."""
    left = replace(to_delete(), record=None, balancers=(BalancerFact(site="east", running=False, left=True),))
    assert taken(left) == ["StopBalancer east"]


def test_a_load_balancer_in_a_crash_loop_goes_from_a_site_that_the_plane_has_left() -> None:
    north = BalancerFact(site="north", running=False, left=True)
    world = held(moved())
    assert "north" in [
        step.site for step in planned(with_balancers(world, *world.balancers, north), StopBalancer).steps
    ]
    gone = with_balancers(world, *world.balancers, replace(north, left=False))
    assert "north" not in [step.site for step in planned(gone, StopBalancer).steps]


@pytest.mark.parametrize("state", [UnitState.RUNNING, UnitState.FAILED, UnitState.STOPPING])
def test_programs_stop_from_the_last_that_was_started_to_the_first(state: UnitState) -> None:
    started = list(NAMED)
    for count in range(len(started), 0, -1):
        now = with_units(nameless(), state, *started[:count])
        assert taken(now) == [f"StopUnit {started[count - 1]} of {name}" for name in EAST]
    assert taken(with_units(nameless(), state)) == [f"ReleaseReplica {name}" for name in EAST]
    assert taken(with_units(nameless(), UnitState.ABSENT, *started)) == [f"ReleaseReplica {name}" for name in EAST]


@pytest.mark.parametrize("unknown", [(Component.ETCD,), NAMED])
def test_a_machine_of_which_anything_is_unknown_is_waited_for(unknown: tuple[Component, ...], golden: Golden) -> None:
    steps, waiting = take_down(with_units(nameless(), UnitState.UNKNOWN, *unknown))
    assert steps == ()
    golden(str(waiting[1]))
    assert len(waiting) == 3


def test_a_program_that_may_run_beside_unknown_ones_is_not_passed_over() -> None:
    """What is unknown may be what has to stop before it."""
    world = with_fact(
        nameless(),
        "east-2",
        lambda fact: replace(
            fact, units=((Component.ETCD, UnitState.RUNNING), (Component.APISERVER, UnitState.UNKNOWN))
        ),
    )
    assert [step for step in taken(world) if "east-2" in step] == []


def test_while_a_load_balancer_may_be_left_programs_stop_but_no_record_goes(golden: Golden) -> None:
    running = with_units(dark(nameless(), "east"), UnitState.RUNNING, Component.ETCD)
    assert taken(running) == [f"StopUnit etcd of {name}" for name in EAST]
    steps, waiting = take_down(with_units(dark(nameless(), "east"), UnitState.STOPPED))
    assert steps == ()
    golden([each.what.split(",")[0] for each in waiting])


@pytest.mark.parametrize(("front", "waits"), [(None, True), ("east", True), ("west", False)])
def test_a_fixed_address_has_no_load_balancer_elsewhere(front: str | None, waits: bool) -> None:
    world = with_units(replace(dark(nameless(), "east"), front=front), UnitState.STOPPED)
    assert bool(take_down(world)[1]) is waits
