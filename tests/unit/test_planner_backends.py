"""Whom load balancers send new connections to, and which load balancers there are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from model.stories import about_to, planned, serving, until, whats, with_balancers, with_fact, with_memory, with_unit
from model.worlds import moving
from support.golden import Golden

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.components import Component
from quarterdeck.model.steps.traffic import SetBackends, SetRecord
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules.traffic import backends, relight
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

ALL = ("east-1", "east-2", "east-3")
NO_MORE = frozenset({"gone-9"})


@cache
def before_the_name_moves() -> World:
    """Both sites' load balancers send to everyone."""
    return observe(until(moving(3, 3), about_to(SetRecord)))


def backends_of(outcome: RuleOutcome) -> dict[str, tuple[str, ...]]:
    return {step.site: step.backends for step in outcome.steps if isinstance(step, SetBackends)}


def unready(world: World, *names: str, ready: bool | None = False) -> World:
    for name in names:
        world = with_fact(world, name, lambda fact: replace(fact, ready=ready))
    return world


def apiserver_is(state: UnitState, world: World, name: str) -> World:
    """One whose apiserver is not ready, and in that state."""
    return unready(with_unit(world, name, Component.APISERVER, state), name)


# --- whom they send to ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [UnitState.RUNNING, UnitState.STOPPING, UnitState.FAILED, UnitState.UNKNOWN])
def test_who_is_listed_stays_as_long_as_its_apiserver_may_come_back(state: UnitState) -> None:
    assert backends_of(planned(apiserver_is(state, serving(), "east-2"), SetBackends)) == {}


@pytest.mark.parametrize("state", [UnitState.STOPPED, UnitState.ABSENT])
def test_who_is_listed_leaves_when_its_apiserver_was_stopped(state: UnitState) -> None:
    assert backends_of(planned(apiserver_is(state, serving(), "east-2"), SetBackends)) == {"east": ("east-1", "east-3")}


def test_edges_that_do_not_send_to_the_same_are_told_once_more() -> None:
    east = serving().balancer("east")
    assert backends_of(planned(with_balancers(serving(), east), SetBackends)) == {}
    assert backends_of(planned(with_balancers(serving(), replace(east, alike=False)), SetBackends)) == {"east": ALL}


def test_who_only_one_edge_lists_is_added_to_the_others_when_it_is_ready() -> None:
    """An edge that was away has whom it had then."""
    east = replace(serving().balancer("east"), alike=False, common=frozenset({"east-1", "east-2"}))
    for both, expected in (("east-2", ALL), ("east-3", ("east-1", "east-2"))):
        assert backends_of(planned(with_balancers(unready(serving(), both), east), SetBackends)) == {"east": expected}


def test_who_is_ready_comes_in_and_who_was_never_recorded_goes_out() -> None:
    east = replace(serving().balancer("east"), backends=frozenset({"east-1"}) | NO_MORE)
    assert backends_of(planned(with_balancers(serving(), east), SetBackends)) == {"east": ALL}


def test_nobody_is_taken_away_when_nobody_would_be_left(golden: Golden) -> None:
    """Whoever is listed may be ready in a moment; no backend at all never is."""
    world = serving()
    for name in ALL:
        world = apiserver_is(UnitState.STOPPED, world, name)
    found = backends(view(world))
    assert found.steps == ()
    golden(whats(found))


def test_a_load_balancer_that_finds_nobody_healthy_is_waited_for(golden: Golden) -> None:
    blind = with_balancers(serving(), replace(serving().balancer("east"), healthy=frozenset()))
    found = planned(blind, SetBackends)
    assert found.steps == ()
    golden(whats(found))
    assert planned(serving(), SetBackends) == RuleOutcome()


def test_a_load_balancer_whose_machine_does_not_answer_is_told_nothing(golden: Golden) -> None:
    dark = with_balancers(before_the_name_moves(), BalancerFact(site="east", running=False, reachable=False))
    dark = with_balancers(dark, replace(dark.balancer("west"), backends=NO_MORE))
    seen = planned(dark, SetBackends)
    assert list(backends_of(seen)) == ["west"]
    golden(whats(seen))


# --- which there are ------------------------------------------------------------------------------------------------


def test_the_first_load_balancer_starts_with_the_first_ready_apiserver() -> None:
    without = replace(unready(serving(), "east-2", "east-3"), balancers=(), record=None)
    without = with_memory(without, served_site=None)
    assert backends_of(backends(view(without))) == {"east": ("east-1",)}
    assert backends(view(unready(without, "east-1"))) == RuleOutcome()


def test_a_load_balancer_that_runs_is_told_whom_to_send_to_wherever_it_is() -> None:
    """The name may lead there all the same: the late call of an old driver, or a change that was not seen yet."""
    north = BalancerFact(site="north", running=True, backends=NO_MORE)
    assert backends_of(planned(with_balancers(serving(), north), SetBackends)) == {"north": ALL}
    assert backends_of(planned(with_balancers(serving(), replace(north, running=False)), SetBackends)) == {}


# --- an address that leads nowhere ----------------------------------------------------------------------------------


def listing(site: str, *healthy: str) -> BalancerFact:
    """One that has somebody in its list who is no more."""
    return BalancerFact(site=site, running=True, backends=frozenset(healthy) | NO_MORE, healthy=frozenset(healthy))


@pytest.mark.parametrize(
    ("world", "lit"),
    [
        pytest.param(with_balancers(serving(), listing("east")), {"east"}, id="it finds nobody healthy"),
        pytest.param(
            unready(with_balancers(serving(), listing("east", "east-1")), "east-1"),
            {"east"},
            id="whom it finds has just ended",
        ),
        pytest.param(
            unready(with_balancers(serving(), listing("east", "east-1")), "east-1", ready=None),
            set(),
            id="whom it finds is unseen",
        ),
        pytest.param(
            unready(with_balancers(serving(), listing("east", "east-1", "east-2")), "east-1"), set(), id="one is well"
        ),
        pytest.param(
            unready(with_balancers(serving(), listing("east", "east-1")), "east-2"), set(), id="another one ended"
        ),
        pytest.param(with_balancers(serving(), listing("north")), set(), id="no client uses it"),
        pytest.param(
            with_balancers(serving(), listing("east"), listing("north")), {"east"}, id="clients use one of two"
        ),
    ],
)
def test_what_leads_nowhere_although_a_client_may_use_it_is_lit_first(world: World, lit: set[str]) -> None:
    assert set(backends_of(relight(view(world)))) == lit
    assert set(backends_of(backends(view(world)))) >= lit
