"""How a plane begins and ends: placing, founding, releasing, deleting."""

from __future__ import annotations

from dataclasses import replace

from model.stories import about_to, is_done, step_words, steps_until, until, whats, with_fact
from model.worlds import empty, machines, moving, settled, wanted
from support.golden import Golden

from quarterdeck.model.steps.members import AddLearner
from quarterdeck.model.steps.placement import PlaceReplica, ReleaseReplica
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.units import MachineState
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import apply, observe, tick


def test_each_zone_gets_its_replica() -> None:
    truth = empty("east", 5)
    placed = [step for step in plan(observe(truth)).now if isinstance(step, PlaceReplica)]
    assert [step.machine for step in placed] == ["east-a1", "east-b1", "east-c1", "east-a2", "east-b2"]
    assert [step.replica for step in placed] == [f"east-{index}" for index in range(1, 6)]


def test_names_are_never_used_again() -> None:
    truth = until(moving(3, 3), about_to(AddLearner))
    back = until(replace(truth, slots=wanted("east", 3)), is_done)
    again = until(replace(back, slots=wanted("west", 3)), is_done)
    assert {record.name for record in again.memory.replicas} == {"west-7", "west-8", "west-9"}


def test_a_machine_of_a_member_is_never_given_away() -> None:
    truth = replace(settled(empty("east", 1)), machines=machines("east", per_zone=1))
    lost = truth.with_replica("east-1", replace(truth.replica("east-1"), data=False))
    assert not any(isinstance(step, PlaceReplica) for step in plan(observe(lost)).now)


def test_founders_never_change_even_if_the_user_asks_for_more() -> None:
    truth = until(empty("east", 1), about_to(StartUnit))
    more = replace(truth, slots=wanted("east", 3))
    end = until(more, is_done)
    assert end.memory.bootstrap == ("east-1",)
    assert len(end.members) == 3


def test_what_is_left_on_a_machine_that_does_not_answer_is_named_and_holds_nothing_up(golden: Golden) -> None:
    world = observe(until(moving(3, 3), about_to(ReleaseReplica)))
    deaf = with_fact(world, "east-2", lambda fact: replace(fact, machine=MachineState.UNREACHABLE))
    seen = plan(deaf)
    assert [step_words(step) for step in seen.now] == ["ReleaseReplica east-1", "ReleaseReplica east-3"]
    golden(seen.leftovers)


def test_a_plane_is_deleted_from_its_name_to_its_data() -> None:
    truth = replace(settled(empty("east", 1)), deleting=True)
    assert steps_until(truth, is_done) == [
        "RemoveRecord",
        "StopBalancer east",
        "StopUnit kube-scheduler of east-1",
        "StopUnit kube-controller-manager of east-1",
        "StopUnit kube-apiserver of east-1",
        "StopUnit etcd of east-1",
        "ReleaseReplica east-1",
    ]


def test_a_deletion_does_not_end_while_a_load_balancer_with_its_key_may_be_left_behind(golden: Golden) -> None:
    truth = replace(settled(empty("east", 1)), deleting=True, dead_edges=frozenset({"east"}))
    held = truth
    for _ in range(30):
        for step in plan(observe(held)).now:
            assert not isinstance(step, ReleaseReplica), "nothing else remembers where to look for it"
            held = apply(held, step)
        held = tick(held)
    seen = plan(observe(held))
    assert not seen.done
    golden(whats(seen)[0])
    golden(seen.waiting[0].then)
    back = replace(held, dead_edges=frozenset())
    assert steps_until(back, is_done) == ["StopBalancer east", "ReleaseReplica east-1"]
    assert until(back, is_done).balancers == ()
