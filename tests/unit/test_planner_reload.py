"""Programs that take new files up while they run: nothing stops for it, and one replica goes after the other."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from model.stories import planned, step_words, whats
from model.stories import with_fact as with_whole
from model.worlds import NEW, changing
from support.golden import Golden

from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.remember import remember
from quarterdeck.model.steps.units import AdoptRevision, StopUnit
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.rollout import reload
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.simulated.dry_run import dry_run
from quarterdeck.planner.view import view

APISERVER = Component.APISERVER
RESTARTED = ReplicaChange(restart=frozenset({Component.SCHEDULER}))


@cache
def asked(*restart: Component, replicas: int = 3) -> World:
    """A plane that is well, of which a revision has just been asked for whose files apiservers take up."""
    change = ReplicaChange(restart=frozenset(restart), reload=frozenset({APISERVER}))
    return observe(changing(replicas, replicas, change))


def does(world: World) -> list[str]:
    return [step_words(step) for step in plan(world).now]


def with_fact(world: World, name: str, **seen: Any) -> World:
    return with_whole(world, name, lambda fact: replace(fact, **seen))


def loaded(world: World, name: str, *revisions: str) -> World:
    return with_fact(world, name, loaded=frozenset(revisions))


@pytest.mark.parametrize("replicas", [1, 3])
def test_nothing_stops_for_what_is_taken_up_and_nobody_is_exchanged(replicas: int) -> None:
    steps = dry_run(asked(replicas=replicas)).steps
    each = ["ReloadUnit", "AdoptRevision"]
    assert [type(every.step).__name__ for every in steps] == each * replicas


def test_a_program_that_has_to_be_restarted_is_alone_in_that() -> None:
    kinds = [step_words(each.step).split(" of ")[0] for each in dry_run(asked(Component.SCHEDULER)).steps]
    one = ["ReloadUnit kube-apiserver", "StopUnit kube-scheduler"]
    assert kinds[:2] == one
    assert "StopUnit kube-apiserver" not in kinds


def test_a_replica_is_of_the_revision_once_its_program_says_so() -> None:
    world = asked()
    assert does(world) == ["ReloadUnit kube-apiserver of east-1"]
    assert does(loaded(world, "east-1", NEW)) == ["AdoptRevision east-1"]


def test_a_replica_is_not_reloaded_while_another_is_ill(golden: Golden) -> None:
    ill = with_fact(asked(), "east-3", ready=False)
    assert "ReloadUnit kube-apiserver of east-1" not in does(ill)
    golden(whats(plan(ill)))


def test_who_does_not_answer_is_not_asked_to_take_anything_up(golden: Golden) -> None:
    silent = with_fact(asked(replicas=1), "east-1", ready=None, loaded=None)
    assert does(silent) == []
    golden(whats(plan(silent)))


def test_what_was_given_is_waited_for(golden: Golden) -> None:
    given = with_fact(asked(), "east-1", given=frozenset({NEW}))
    assert does(given) == []
    golden(whats(plan(given)))


def test_a_program_that_did_not_take_its_files_up_is_restarted_with_them(golden: Golden) -> None:
    stuck = with_fact(asked(), "east-1", stuck=frozenset({NEW}))
    golden(sorted({step.why for step in planned(stuck, StopUnit).steps}))
    golden(sorted({step.why for step in planned(observe(changing(3, 3, RESTARTED)), StopUnit).steps}))
    steps = [step_words(each.step) for each in dry_run(stuck).steps]
    assert "ReloadUnit kube-apiserver of east-1" not in steps
    stops, starts = (steps.index(f"{kind} kube-apiserver of east-1") for kind in ("StopUnit", "StartUnit"))
    assert stops < steps.index("AdoptRevision east-1") < starts


def test_a_program_that_does_not_run_starts_with_the_new_files() -> None:
    world = asked()
    units = {**dict(world.replica("east-1").units), APISERVER: UnitState.STOPPED}
    stopped = with_fact(world, "east-1", units=tuple(units.items()), ready=False, loaded=None)
    assert not [each for each in does(stopped) if each.startswith("ReloadUnit")]


def test_files_of_a_revision_that_is_no_longer_wanted_are_taken_back() -> None:
    world = asked()
    adopted = [AdoptRevision(site="", why="", replica=each.name, revision=NEW) for each in world.memory.replicas]
    memory = world.memory
    for step in adopted:
        memory = remember(memory, step, 0.0)
    settled = replace(world, memory=memory)
    for each in memory.replicas:
        settled = loaded(settled, each.name, NEW)
    assert plan(settled).done
    assert does(loaded(settled, "east-2", "r1")) == ["ReloadUnit kube-apiserver of east-2"]
    assert plan(with_fact(settled, "east-2", loaded=None)).done, "who only looks does not ask"
    assert does(replace(loaded(settled, "east-2", "r1"), cordoned=("east-2",))) == []


def test_a_replica_that_is_to_be_restarted_gets_no_files_before() -> None:
    restarted = observe(changing(3, 3, RESTARTED))
    assert reload(view(loaded(restarted, "east-1", "r1"))).steps == ()
