"""An address that leads to the only replica itself, and to the load balancer of its site once there are others."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from model.stories import steps_until_done, until
from model.worlds import promoted, wanted

from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.traffic import LeadTo, RemoveRecord, SetBackends, SetRecord, StopBalancer
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view


@cache
def story(replicas: int, to: int) -> tuple[tuple[float, Step], ...]:
    return tuple(steps_until_done(promoted(replicas, to)))


def test_a_plane_of_one_replica_has_no_load_balancer() -> None:
    done = [step for _, step in steps_until_done(promoted(1, None))]
    assert [step.backends for step in done if isinstance(step, LeadTo)] == [("east-1",)]
    assert not any(isinstance(step, SetBackends | SetRecord) for step in done)


def test_a_plane_of_three_has_one_from_the_start() -> None:
    done = [step for _, step in steps_until_done(promoted(3, None))]
    assert [step.to for step in done if isinstance(step, SetRecord)] == ["east"]
    assert not any(isinstance(step, LeadTo) for step in done)


def test_the_address_goes_to_the_load_balancer_when_that_leads_to_all_that_are_wanted() -> None:
    done = [step for _, step in story(1, 3)]
    (goes,) = (at for at, step in enumerate(done) if isinstance(step, SetRecord))
    before = [step.backends for step in done[:goes] if isinstance(step, SetBackends)]
    assert {*before[-1]} == {"east-1", "east-2", "east-3"}
    assert not any(isinstance(step, LeadTo | StopBalancer) for step in done)


def test_it_goes_back_to_the_one_that_stays_before_the_others_leave_and_the_load_balancer_goes_last() -> None:
    (back,) = (at for at, step in story(3, 1) if isinstance(step, LeadTo))
    (to,) = (step.backends for _, step in story(3, 1) if isinstance(step, LeadTo))
    assert len(to) == 1
    stopped = [at for at, step in story(3, 1) if isinstance(step, StopUnit)]
    (gone,) = (at for at, step in story(3, 1) if isinstance(step, StopBalancer))
    drain = promoted(3, 1).settings.drain
    assert back <= min(stopped)
    assert gone - back >= drain


def test_who_changes_his_mind_gets_it_back_from_every_state() -> None:
    start = promoted(1, 3)
    for after in (lambda t, _: len(t.memory.replicas) == 3, lambda t, _: t.record == "east"):
        back = replace(until(start, after), slots=wanted("east", 1))
        done = [step for _, step in steps_until_done(back)]
        assert sum(isinstance(step, LeadTo) for step in done) == (until(start, after).record == "east")


def test_a_single_replica_is_exchanged_without_a_load_balancer() -> None:
    done = [step for _, step in steps_until_done(replace(promoted(1, 1), condemned=("east-1",)))]
    assert not any(isinstance(step, SetBackends | SetRecord) for step in done)
    assert [step.backends for step in done if isinstance(step, LeadTo)][-1] == ("east-2",)


def test_who_could_not_be_reached_at_the_address_is_behind_a_load_balancer() -> None:
    world = observe(promoted(1, 1))
    assert view(world).door == APISERVERS
    assert view(replace(world, elsewhere=frozenset({"east-1"}))).door == "east"


@pytest.mark.parametrize("to", [1, 3])
def test_a_plane_that_moves_leaves_its_address_where_it_is(to: int) -> None:
    away = replace(promoted(1, 1), slots=wanted("west", to))
    assert view(observe(away)).door == "east"
    done = [step for _, step in steps_until_done(away)]
    assert [step.to for step in done if isinstance(step, SetRecord)] == ["east"]


def test_a_plane_that_is_deleted_lets_go_of_its_address_first() -> None:
    first, *_ = steps_until_done(promoted(3, 0))
    assert isinstance(first[1], RemoveRecord)
