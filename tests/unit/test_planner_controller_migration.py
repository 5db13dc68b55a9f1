"""Controllers go from one manager to another: two revisions that must not run side by side never do."""

from __future__ import annotations

from dataclasses import replace

from model.faulty_truth import FaultyTruth
from model.stories import (
    ROLLING_STEPS,
    planned,
    step_words,
    steps_until_done,
    whats,
    with_fact,
    with_membership,
    with_memory,
    with_unit,
    without_member,
)
from model.worlds import BETWEEN, FORMER, NEW, changing
from support.components import CONTROLLERS
from support.golden import Golden

from quarterdeck.model.components import NAMED, Component, ReplicaChange
from quarterdeck.model.memory import Rejection
from quarterdeck.model.steps.units import AdoptRevision, StartUnit, StopUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.revisions import next_revision, wanted_revision
from quarterdeck.planner.rules.replica_programs import control
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

KUBE, CLOUD = Component.CONTROLLER_MANAGER, Component.CLOUD_CONTROLLER_MANAGER
CHANGED = ReplicaChange(restart=frozenset({KUBE, CLOUD}))
ALL = frozenset({FORMER, BETWEEN, NEW})


def asked(*, together: bool = False, change: ReplicaChange = CHANGED, broken: Component | None = None) -> FaultyTruth:
    """A plane that is well, of which a revision has just been asked for that must not run beside what it runs."""
    return changing(3, 3, change, cloud=ALL, handed=True, together=together, broken=broken)


def of(world: World, **revisions: str) -> World:
    """The world with replicas of other revisions, by their number."""
    names = {f"east-{name.removeprefix('r')}": revision for name, revision in revisions.items()}
    replicas = tuple(replace(each, revision=names.get(each.name, each.revision)) for each in world.memory.replicas)
    return with_memory(world, replicas=replicas)


def story(truth: FaultyTruth) -> list[str]:
    """Which revisions are adopted, one after another, until nothing is left to do."""
    return [step.revision for _, step in steps_until_done(truth) if isinstance(step, AdoptRevision)]


def test_all_come_to_what_lies_between_before_the_first_comes_to_what_is_wanted() -> None:
    assert story(asked()) == [BETWEEN] * 3 + [NEW] * 3


def test_where_nobody_minds_all_stop_and_come_to_what_is_wanted_at_once() -> None:
    truth = asked(together=True)
    first = planned(observe(truth), *ROLLING_STEPS).steps
    assert {(each.replica, each.component) for each in first if isinstance(each, StopUnit)} == {
        (f"east-{number}", component) for number in (1, 2, 3) for component in (KUBE, CLOUD)
    }
    assert story(truth) == [NEW] * 3


def test_none_comes_to_what_is_wanted_before_those_of_all_have_stopped() -> None:
    world = observe(asked(together=True))
    for name in ("east-1", "east-2"):
        for component in (KUBE, CLOUD):
            world = with_unit(world, name, component, UnitState.STOPPED)
    assert {step_words(each) for each in planned(world, *ROLLING_STEPS).steps} == {
        f"StopUnit {each} of east-3" for each in (KUBE, CLOUD)
    }


def test_where_more_than_controllers_would_stop_they_do_not_stop_at_once() -> None:
    more = ReplicaChange(restart=CHANGED.restart | {Component.APISERVER})
    assert next_revision(observe(asked(together=True, change=more))) == BETWEEN


def test_the_farthest_is_wanted_that_may_run_beside_all_that_there_is() -> None:
    world = observe(asked())
    assert next_revision(world) == BETWEEN
    assert next_revision(of(world, r1=BETWEEN)) == BETWEEN
    assert next_revision(of(world, r1=BETWEEN, r2=BETWEEN, r3=BETWEEN)) == NEW
    assert next_revision(of(world, r1=NEW, r2=BETWEEN, r3=BETWEEN)) == NEW


def test_who_goes_back_halfway_goes_the_way_that_it_came() -> None:
    back = replace(observe(asked()), revision=FORMER, via=(NEW, BETWEEN))
    assert next_revision(of(back, r1=NEW, r2=BETWEEN, r3=BETWEEN)) == BETWEEN
    assert next_revision(of(back, r1=BETWEEN)) == FORMER


def test_who_can_do_no_harm_any_more_is_waited_for_by_nobody() -> None:
    """Its machine is dead, and it was taken out: its record stays until the machine is back."""
    world = of(observe(asked()), r1=FORMER, r2=BETWEEN, r3=BETWEEN)
    gone = with_membership(without_member(world, "east-1"), leader="east-2")
    assert next_revision(world) == BETWEEN
    assert next_revision(gone) == NEW
    assert view(gone).kept_from(gone.memory.replica("east-2")) == ()


def test_what_does_not_run_of_what_lies_between_is_given_up_and_all_is_as_before() -> None:
    world = of(observe(asked()), r1=BETWEEN)
    given_up = with_memory(world, rejected=Rejection(revision=BETWEEN, why="it ends"))
    assert wanted_revision(given_up) == FORMER
    last = of(given_up, r1=NEW, r2=BETWEEN, r3=BETWEEN)
    last = with_memory(last, rejected=Rejection(revision=NEW, why="it ends"))
    assert wanted_revision(last) == BETWEEN


def test_controllers_wait_until_those_have_stopped_that_they_must_not_meet(golden: Golden) -> None:
    world = of(observe(asked(together=True)), r1=NEW)
    for component in CONTROLLERS:
        world = with_unit(world, "east-1", component, UnitState.STOPPED)
    now = control(view(world))
    assert [step_words(each) for each in now.steps] == ["StartUnit kube-scheduler of east-1"]
    golden(whats(now))
    scheduler = with_unit(of(observe(asked(together=True)), r1=NEW), "east-1", Component.SCHEDULER, UnitState.STOPPED)
    assert whats(control(view(scheduler))) == (), "that one meets no other"


def test_nobody_stops_for_a_machine_that_does_not_answer_and_who_has_stopped_starts_again(golden: Golden) -> None:
    world = with_fact(
        observe(asked(together=True)),
        "east-2",
        lambda fact: replace(
            fact,
            machine=MachineState.UNREACHABLE,
            units=tuple((each, UnitState.UNKNOWN) for each in NAMED),
        ),
    )
    now = planned(world, *ROLLING_STEPS)
    assert now.steps == ()
    golden(whats(now))
    for component in (KUBE, CLOUD):
        world = with_unit(world, "east-1", component, UnitState.STOPPED)
    assert {step_words(each) for each in planned(world, StartUnit).steps} == {
        f"StartUnit {each} of east-1" for each in (KUBE, CLOUD)
    }


def test_a_person_s_replica_is_not_stopped_for_it(golden: Golden) -> None:
    world = replace(observe(asked(together=True)), cordoned=("east-3",))
    now = planned(world, *ROLLING_STEPS)
    assert now.steps == ()
    golden(whats(now))
