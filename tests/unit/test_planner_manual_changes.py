"""What somebody changed by hand of a program's files or flags is put back, one replica at a time, as a roll does it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import doing, is_done, steps_until, until, whats
from model.worlds import still
from support.components import ALWAYS

from quarterdeck.model.components import Component, ReplicaPrograms
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.simulated.truth import Truth
from quarterdeck.planner.view import view


def altered(truth: Truth, component: Component, *names: str) -> Truth:
    for name in names:
        replica = truth.replica(name)
        truth = truth.with_replica(name, replace(replica, altered=replica.altered | {component}))
    return truth


def any_altered(truth: Truth) -> bool:
    return any(each.altered for _, each in truth.replicas)


@pytest.mark.parametrize("component", ALWAYS, ids=str)
def test_a_program_whose_files_were_changed_by_hand_is_restarted_with_those_of_its_revision(
    component: Component,
) -> None:
    struck = altered(still(3), component, "east-2")
    steps = steps_until(struck, is_done)
    stopped = {each.removeprefix("StopUnit ") for each in steps if each.startswith("StopUnit")}
    expected = ReplicaPrograms().with_dependents({component}).intersection(ALWAYS)
    assert stopped == {f"{each} of east-2" for each in expected}
    done = until(struck, is_done)
    assert not any_altered(done)
    assert set(done.members) == {"east-1", "east-2", "east-3"}


def test_one_replica_after_the_other_and_the_leader_last() -> None:
    truth = still(3)
    struck = altered(truth, Component.ETCD, "east-1", "east-2", "east-3")
    steps = [each for each in steps_until(struck, is_done) if each.startswith("StopUnit etcd of")]
    assert len(steps) == 3
    assert steps[-1].endswith(str(truth.elected))


def test_while_another_one_is_not_well_it_waits_and_says_so() -> None:
    struck = altered(still(3), Component.APISERVER, "east-2")
    ill = struck.with_replica(
        "east-3", replace(struck.replica("east-3"), warm=False, crashed=frozenset({Component.APISERVER}))
    )
    now = plan(observe(ill))
    assert not any("of east-2" in each for each in doing(ill))
    assert any("before east-2 is restarted" in each for each in whats(now))


def test_a_single_replica_is_exchanged_where_its_apiserver_would_have_to_stop() -> None:
    struck = altered(still(1), Component.ETCD, "east-1")
    done = until(struck, is_done)
    assert set(done.members) == {"east-2"}
    controller = altered(still(1), Component.SCHEDULER, "east-1")
    assert set(until(controller, is_done).members) == {"east-1"}


def test_a_cordoned_replica_keeps_what_was_changed_by_hand() -> None:
    struck = replace(altered(still(3), Component.APISERVER, "east-2"), cordoned=("east-2",))
    assert view(observe(struck)).behind == ()
    assert plan(observe(struck)).done
