"""A cloud controller manager comes to one replica after the other, is run and mended where it is to be, and goes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import ROLLING_STEPS, planned, step_words, whats, with_fact, with_unit
from model.worlds import FORMER, NEW, changing, settled
from support.components import ALWAYS
from support.golden import Golden

from quarterdeck.model.components import Component, ReplicaChange, ReplicaPrograms
from quarterdeck.model.steps.units import AdoptRevision, RejectRevision, StartUnit, StopUnit
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.planner import plan
from quarterdeck.planner.revisions import costs_nothing
from quarterdeck.planner.rules.replica_programs import dismiss
from quarterdeck.planner.simulated import apply, observe
from quarterdeck.planner.simulated.truth import Truth
from quarterdeck.planner.unhealthy_programs import is_due
from quarterdeck.planner.view import view

CLOUD, SCHEDULER = Component.CLOUD_CONTROLLER_MANAGER, Component.SCHEDULER
ADDED = ReplicaChange(restart=frozenset({CLOUD}))


def asked(replicas: int = 3, *, broken: Component | None = None, has: str = NEW) -> Truth:
    """A plane that is well, of which a revision has just been asked for that has a cloud controller manager, or has
    none any more.
    """
    return changing(replicas, replicas, ADDED, cloud=frozenset({has}), broken=broken)


def adopting(truth: Truth) -> list[str]:
    """Who adopts the next revision now."""
    return [each.replica for each in planned(observe(truth), AdoptRevision).steps if isinstance(each, AdoptRevision)]


def first() -> Truth:
    """The first replica has it, and it runs."""
    truth = asked()
    (step,) = planned(observe(truth), *ROLLING_STEPS).steps
    truth = apply(truth, step)
    (start,) = planned(observe(truth), StartUnit).steps
    return apply(truth, start)


def test_it_comes_to_one_replica_although_nothing_has_to_stop_for_it() -> None:
    truth = asked()
    assert adopting(truth) == ["east-2"]
    world = observe(truth)
    assert not costs_nothing(world, world.memory.replica("east-2"), frozenset({CLOUD}))
    after = apply(truth, planned(world, *ROLLING_STEPS).steps[0])
    assert [step_words(each) for each in planned(observe(after), StartUnit).steps] == [f"StartUnit {CLOUD} of east-2"]
    assert adopting(after) == [], "the next one waits until it runs"


def test_the_next_one_waits_until_the_one_before_says_that_it_is_well(golden: Golden) -> None:
    def silent(component: Component) -> RuleOutcome:
        programs = frozenset({component})
        return planned(
            with_fact(observe(first()), "east-2", lambda fact: replace(fact, silent=programs)), *ROLLING_STEPS
        )

    assert adopting(first()) == ["east-3"]
    assert not silent(CLOUD).steps
    golden(whats(silent(CLOUD)))
    assert silent(SCHEDULER).steps, "the change has not brought that one"


@pytest.mark.parametrize("state", [UnitState.FAILED, UnitState.STOPPED, UnitState.UNKNOWN])
def test_nor_does_it_go_on_where_it_does_not_run(state: UnitState) -> None:
    assert planned(with_unit(observe(first()), "east-2", CLOUD, state), *ROLLING_STEPS).steps == ()


def test_a_single_replica_gets_it_where_it_is() -> None:
    done = settled(asked(1))
    assert [each.name for each in done.memory.replicas] == ["east-1"]
    assert CLOUD in done.replica("east-1").units


def test_one_that_ends_when_it_starts_is_given_up_on_the_first_replica() -> None:
    truth = asked(broken=CLOUD)
    had = set()
    for _ in range(40):
        now = plan(observe(truth))
        had |= {name for name, each in truth.replicas if CLOUD in each.units}
        if any(isinstance(each, RejectRevision) for each in now.now):
            break
        for step in now.now:
            truth = apply(truth, step)
    else:
        pytest.fail("it was never given up")
    assert had == {"east-2"}
    assert {each.revision for each in settled(truth).memory.replicas} == {FORMER}


def test_every_replica_has_one_and_it_is_looked_after_only_where_its_revision_says_so(golden: Golden) -> None:
    done = settled(asked())
    world = observe(done)
    assert all(CLOUD in each.units for _, each in done.replicas)
    for each in world.memory.replicas:
        assert is_due(view(world), each, CLOUD)
        assert is_due(view(replace(world, programs=ReplicaPrograms())), each, SCHEDULER)
        assert not is_due(view(replace(world, programs=ReplicaPrograms())), each, CLOUD)
    missing = with_unit(world, "east-3", CLOUD, UnitState.FAILED)
    golden(whats(planned(missing)))
    assert [
        step_words(each) for each in planned(with_unit(world, "east-3", CLOUD, UnitState.STOPPED), StartUnit).steps
    ] == [f"StartUnit {CLOUD} of east-3"]


def test_it_stops_on_one_replica_after_the_other_and_what_is_left_is_removed() -> None:
    truth = asked(has=FORMER)
    (step,) = planned(observe(truth), *ROLLING_STEPS).steps
    assert isinstance(step, StopUnit)
    assert (step.component, step.replica) == (CLOUD, "east-2")
    done = settled(truth)
    assert all(each.units == frozenset(ALWAYS) for _, each in done.replicas)
    stopped: World = with_unit(observe(done), "east-2", CLOUD, UnitState.STOPPED)
    assert [step_words(each) for each in dismiss(view(stopped)).steps] == [f"StopUnit {CLOUD} of east-2"]
    for state in (UnitState.ABSENT, UnitState.UNKNOWN):
        assert dismiss(view(with_unit(stopped, "east-2", CLOUD, state))).steps == ()
    still = with_unit(observe(truth), "east-2", CLOUD, UnitState.STOPPED)
    assert dismiss(view(still)).steps == (), "its revision still has one"
