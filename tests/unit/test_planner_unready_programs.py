"""A program of a revision that is rolled out may run without being ready for a long time, but not for ever."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from model.stories import planned, step_words, until, with_fact, with_member, with_membership, with_memory, with_unit
from model.worlds import FORMER, NEW, changing, creating, settled
from support.golden import Golden

from quarterdeck.engine.notices.events import warnings
from quarterdeck.model.bounds import Settings
from quarterdeck.model.components import NAMED, Component, ReplicaChange
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Rejection
from quarterdeck.model.remember import remember
from quarterdeck.model.steps.units import NoteProven, NoteUnready, RejectRevision
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rolling_restart import rest
from quarterdeck.planner.rules.rollout import prove, reject, watch
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

ETCD, APISERVER = Component.ETCD, Component.APISERVER
START = Settings().start


@cache
def stuck(component: Component) -> World:
    """The first replica runs another revision now, of which a program has just been noted not to be ready."""
    truth = changing(3, 3, ReplicaChange(restart=frozenset({component})), hangs=component)
    truth = until(truth, lambda now, _: bool(now.memory.unready))
    return replace(observe(truth), settings=Settings())


def name(world: World) -> str:
    return next(record.name for record in world.memory.replicas if record.revision == NEW)


def later(world: World, seconds: float) -> World:
    return replace(world, now=world.now + seconds)


def noted(world: World) -> tuple[str, ...] | None:
    """What is to be written down; None: nothing new."""
    steps = watch(view(world)).steps
    assert all(isinstance(step, NoteUnready) for step in steps)
    return next((step.units for step in steps if isinstance(step, NoteUnready)), None)


def given_up(world: World) -> bool:
    return any(isinstance(step, RejectRevision) for step in reject(view(world)).steps)


@pytest.mark.parametrize("component", [ETCD, APISERVER])
def test_a_program_that_runs_and_is_never_ready_is_given_up_after_the_time_that_any_start_takes(
    component: Component,
    golden: Golden,
) -> None:
    world = stuck(component)
    assert [unit for unit, _ in world.memory.unready] == [f"{component} of {name(world)}"]
    assert not given_up(later(world, START - 1.0))
    (step,) = planned(later(world, START), RejectRevision).steps
    assert isinstance(step, RejectRevision)
    assert (step.revision, step.replica, step.component) == (NEW, name(world), component)
    golden(step.why)


@pytest.mark.parametrize("component", [ETCD, APISERVER])
def test_after_it_was_given_up_its_replica_goes_back_at_once_and_the_note_with_it(component: Component) -> None:
    world = later(stuck(component), START)
    (step,) = planned(world, RejectRevision).steps
    after = replace(world, memory=remember(world.memory, step, world.now))
    assert noted(after) == ()
    assert not given_up(after)
    resting = rest(view(after))
    assert resting is not None
    assert resting.words == name(world)


def unwell(world: World, health: Health) -> World:
    return with_member(world, name(world), lambda member: replace(member, health=health))


def learner(world: World) -> World:
    return with_member(world, name(world), lambda member: replace(member, learner=True))


def unseen(world: World) -> World:
    units = tuple((component, UnitState.UNKNOWN) for component in NAMED)
    return with_fact(
        world,
        name(world),
        lambda fact: replace(fact, machine=MachineState.UNREACHABLE, units=units, ready=None),
    )


def silent(world: World) -> World:
    return with_fact(world, name(world), lambda fact: replace(fact, ready=None))


def unread(world: World) -> World:
    return replace(world, membership=None)


def alarmed(world: World) -> World:
    return with_membership(world, alarms=("memberID:1 alarm:NOSPACE",))


def stopped(world: World) -> World:
    return with_unit(world, name(world), APISERVER, UnitState.STOPPED)


def another_down(world: World) -> World:
    other = next(record.name for record in world.memory.replicas if record.revision == FORMER)
    return with_member(world, other, lambda member: replace(member, health=Health.DOWN))


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(unwell(stuck(APISERVER), Health.DOWN), id="its member is down"),
        pytest.param(unwell(stuck(APISERVER), Health.SUSPECT), id="its member may be down"),
        pytest.param(learner(stuck(APISERVER)), id="its member does not vote yet"),
        pytest.param(silent(stuck(APISERVER)), id="it is not known whether it is ready"),
        pytest.param(unwell(stuck(ETCD), Health.UNREACHABLE), id="the leader hears it"),
        pytest.param(another_down(stuck(ETCD)), id="another member is down"),
        pytest.param(stopped(stuck(APISERVER)), id="it was stopped"),
        *(
            pytest.param(change(stuck(each)), id=f"{each}: {why}")
            for each in (ETCD, APISERVER)
            for change, why in (
                (unseen, "its machine does not answer"),
                (unread, "nobody knows who is a member"),
            )
        ),
    ],
)
def test_the_time_begins_again_when_something_else_may_be_the_reason(seen: World) -> None:
    world = later(seen, 10 * START)
    assert not given_up(world)
    assert noted(world) == ()


def test_the_time_begins_again_after_an_alarm() -> None:
    assert noted(alarmed(stuck(APISERVER))) == ()


def test_what_is_ready_in_the_end_or_was_with_another_replica_is_not_given_up() -> None:
    world = stuck(APISERVER)
    assert noted(with_fact(world, name(world), lambda fact: replace(fact, ready=True))) == ()
    other = next(record.name for record in world.memory.replicas if record.revision == FORMER)
    records = tuple(replace(each, revision=NEW) if each.name == other else each for each in world.memory.replicas)
    assert noted(with_memory(world, replicas=records)) == ()


def test_nothing_is_noted_of_a_program_that_the_change_does_not_touch_or_where_nothing_is_given_up() -> None:
    world = stuck(APISERVER)
    assert noted(replace(world, changes=((FORMER, NEW, ReplicaChange(restart=frozenset({ETCD}))),))) == ()
    assert noted(replace(world, settings=replace(world.settings, goes_back=False))) == ()


def test_it_is_noted_once_and_keeps_its_moment() -> None:
    world = stuck(APISERVER)
    assert noted(world) is None
    assert [step_words(step) for step in plan(later(world, 5.0)).now] == []
    again = NoteUnready(site="", why="", units=tuple(unit for unit, _ in world.memory.unready))
    assert remember(world.memory, again, world.now + 5.0).unready == world.memory.unready


@cache
def hanging(component: Component) -> World:
    """A plane that is created, of which a program runs and is never ready, as was just noted."""
    truth = until(creating(3, component, hangs=True), lambda now, _: bool(now.memory.unready))
    return replace(observe(truth), settings=Settings())


def quiet(world: World, *names: str, component: Component, says: str) -> World:
    for each in names:
        world = with_fact(world, each, lambda fact: replace(fact, quiet=((component, says),)))
    return world


ALL = ("east-1", "east-2", "east-3")


@pytest.mark.parametrize("component", [ETCD, APISERVER])
def test_a_first_revision_whose_program_shows_nothing_new_is_given_up_with_what_it_says(
    component: Component, golden: Golden
) -> None:
    world = quiet(hanging(component), *ALL, component=component, says="cannot reach it")
    limit = Settings().first_ready
    assert not given_up(later(world, limit - 1.0))
    (step,) = planned(later(world, limit), RejectRevision).steps
    assert isinstance(step, RejectRevision)
    assert step.component == component
    golden(step.complaint)
    golden(step.why)


@cache
def ending(component: Component) -> World:
    """A plane that is created, of which a program exits repeatedly, as was just noted."""
    truth = until(creating(3, component), lambda now, _: bool(now.memory.unready))
    return replace(observe(truth), settings=Settings())


@pytest.mark.parametrize("component", [ETCD, APISERVER])
def test_a_first_revision_whose_program_exits_repeatedly_is_given_up_once_after_its_time(
    component: Component, golden: Golden
) -> None:
    limit = Settings().first_start
    assert not given_up(later(ending(component), limit - 1.0))
    world = later(ending(component), limit)
    (step,) = planned(world, RejectRevision).steps
    assert isinstance(step, RejectRevision)
    assert (step.revision, step.component, step.runs) == (FORMER, component, False)
    golden(step.why)
    assert given_up(with_memory(world, rejected=Rejection(revision="another", why=""))), "that was another one"
    after = replace(world, memory=remember(world.memory, step, world.now))
    assert not given_up(after)
    assert noted(after) in (None, ())


def test_a_first_revision_is_not_given_up_for_what_runs_with_one_that_is_no_longer_wanted() -> None:
    world = replace(later(ending(APISERVER), Settings().first_start), revision=NEW)
    assert not given_up(world)
    assert noted(world) == ()


# --- what is gone back to -------------------------------------------------------------------------------------------


def proven(world: World) -> list[str]:
    return [step.revision for step in prove(view(world)).steps if isinstance(step, NoteProven)]


def test_a_revision_is_one_to_go_back_to_once_all_programs_are_healthy_with_it() -> None:
    world = with_memory(observe(settled(changing(3, 3, ReplicaChange()))), proven=False)
    assert proven(world) == [NEW]
    assert proven(with_unit(world, "east-2", Component.SCHEDULER, UnitState.FAILED)) == []
    assert proven(with_memory(world, replicas=())) == [], "nothing runs"


def test_that_is_noted_once_and_again_of_one_that_was_given_up_and_works_after_all() -> None:
    world = observe(settled(changing(3, 3, ReplicaChange())))
    assert proven(world) == []
    assert proven(with_memory(world, rejected=Rejection(revision=FORMER, why=""))) == []
    assert proven(with_memory(world, rejected=Rejection(revision=NEW, why=""))) == [NEW]


@pytest.mark.parametrize("component", [ETCD, APISERVER])
def test_one_that_shows_something_new_has_its_time_again(component: Component) -> None:
    world = hanging(component)
    for name in ALL:
        world = with_fact(world, name, lambda fact: replace(fact, quiet=()))
    assert noted(world) == ()
    assert not given_up(later(world, 10 * START))


@pytest.mark.parametrize("component", [ETCD, APISERVER])
def test_what_is_waited_for_names_it_with_what_it_says(component: Component, golden: Golden) -> None:
    world = replace(quiet(hanging(component), *ALL, component=component, says="cannot reach it"), plane_name="demo")
    (wait,) = {str(each) for each in plan(world).waiting if "east-1" in each.what}
    golden(wait)


def test_an_event_names_who_stands_still_once_all_that_it_depends_on_is_well() -> None:
    world = replace(quiet(hanging(APISERVER), *ALL, component=APISERVER, says="no"), plane_name="demo")
    expected = (
        f"{APISERVER} of east-1 runs, is not ready, and reports nothing new; its last error is: no: see 'quarterdeck"
    )
    assert any(each.startswith(expected) for each in warnings(world))
    starting = with_fact(world, "east-1", lambda fact: replace(fact, quiet=()))
    assert not any(each.startswith(f"{APISERVER} of east-1") for each in warnings(starting))


def test_founders_are_not_blamed_while_one_of_them_does_not_run_or_is_not_seen(golden: Golden) -> None:
    world = hanging(ETCD)
    assert noted(with_unit(world, "east-2", ETCD, UnitState.STOPPED)) == ()
    unknown = ((ETCD, UnitState.UNKNOWN),)
    silent = replace(world.replica("east-2"), machine=MachineState.UNREACHABLE, units=unknown, quiet=())
    unseen_one = with_fact(world, "east-2", lambda _: silent)
    assert noted(unseen_one) == ()
    (wait, *_) = plan(with_memory(unseen_one, unready=())).waiting
    golden(wait.what)
