"""The etcd for events gets the data of a backup after the main one, or begins empty where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from model.faulty_truth import FaultyTruth
from model.stories import all_steps, planned, steps_until, until, whats, with_fact, with_memory
from model.worlds import FORMER, NEW, changing, settled
from support.components import having
from support.golden import Golden

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import ReplicaChange
from quarterdeck.model.epochs import BackupOrigin, Consent, EventsPoint, RestorePoint
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import ForgetCluster, RestoreMember
from quarterdeck.model.steps.members import AddLearner
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import Failing, World
from quarterdeck.planner.events import restore
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

BACKUP = BackupOrigin(store="file:///backups", folder="demo/1", epoch=0)
POINT = RestorePoint(origin=BACKUP, revision=5, events=EventsPoint(epoch=1, revision=1234))


def to_events(step: Step) -> bool:
    return isinstance(step, RestoreMember) and step.cluster is Cluster.EVENTS


def asked(point: RestorePoint = POINT) -> FaultyTruth:
    """A plane of three with an etcd for events, which is to be restored from a backup."""
    truth = settled(changing(3, 3, ReplicaChange(), apart=frozenset({FORMER, NEW})))
    return replace(truth, consent=Consent(epoch=1, restore=point))


@cache
def about_to() -> World:
    """The founder of the etcd for events is about to get its data."""

    def restores(_: FaultyTruth, now: Plan) -> bool:
        return any(map(to_events, now.now))

    return observe(until(asked(), restores))


def founder() -> str:
    return about_to().memory.bootstrap[0]


def seeded(**facts: object) -> World:
    """The same with another origin of the etcd for events."""
    events = about_to().memory.events
    assert events.seed is not None
    return with_memory(about_to(), events=replace(events, seed=replace(events.seed, **facts)))  # type: ignore[arg-type]


def test_the_main_etcd_is_restored_first_and_that_for_events_before_it_starts(golden: Golden) -> None:
    (step,) = planned(about_to(), RestoreMember).steps
    assert isinstance(step, RestoreMember)
    assert (step.replica, step.origin, step.cluster) == (founder(), replace(BACKUP, epoch=1), Cluster.EVENTS)
    golden(step.why)
    done = steps_until(asked(), lambda truth, now: now.done)
    main, events = (at for at, step in enumerate(done) if step == f"RestoreMember {founder()}")
    assert main < done.index(f"StartUnit etcd of {founder()}")
    assert events < done.index(f"StartUnit etcd-events of {founder()}")


def test_where_the_backup_has_no_events_nothing_is_restored_for_them() -> None:
    done = steps_until(asked(replace(POINT, events=None)), lambda truth, now: now.done)
    assert done.count(f"RestoreMember {founder()}") == 1
    assert "ForgetCluster" not in done


def test_events_are_restored_once_and_not_before_the_main_etcd() -> None:
    assert restore(view(seeded(restored=True))).steps == ()
    seed = about_to().memory.seed
    assert seed is not None
    assert restore(view(with_memory(about_to(), seed=replace(seed, restored=False)))).steps == ()


def test_events_are_restored_once_the_founder_is_recorded() -> None:
    world = with_memory(about_to(), events=replace(about_to().memory.events, bootstrap=()))
    assert restore(view(world)).steps == ()


def test_the_machine_of_the_founder_is_waited_for(golden: Golden) -> None:
    world = with_fact(about_to(), founder(), lambda fact: replace(fact, machine=MachineState.UNREACHABLE))
    assert restore(view(world)).steps == ()
    golden(whats(restore(view(world))))


def failing(step: Step) -> Callable[[World], World]:
    return lambda world: replace(world, failing=(Failing(step=step, error="the store does not answer"),))


def own() -> RestoreMember:
    (step,) = planned(about_to(), RestoreMember).steps
    assert isinstance(step, RestoreMember)
    return replace(step, why="")


def not_restored() -> dict[str, Callable[[World], World]]:
    """Why events cannot get their data."""
    return {
        "it fails": failing(own()),
        "the machine of the founder is off": lambda world: with_fact(
            world, founder(), lambda fact: replace(fact, machine=MachineState.DOWN)
        ),
        "the founder was released": lambda _: seeded(founder="east-9"),
        "nobody stores events separately": lambda world: replace(world, programs=having()),
    }


@pytest.mark.parametrize("why", not_restored())
def test_events_that_cannot_be_restored_begin_empty(why: str, golden: Golden) -> None:
    (step,) = restore(view(not_restored()[why](about_to()))).steps
    assert isinstance(step, ForgetCluster)
    golden(step.why)


def test_a_failure_of_another_step_says_nothing_of_events() -> None:
    main = replace(own(), cluster=Cluster.MAIN)
    learner = AddLearner(site="east", why="", replica=founder(), cluster=Cluster.EVENTS)
    for step in (main, learner):
        assert all_steps(restore(view(failing(step)(about_to())))) == [f"RestoreMember {founder()}"]
