"""How a plane begins and ends: placing, founding, releasing, deleting."""

from __future__ import annotations

from dataclasses import replace

from model.stories import about_to, after_round, doing, is_done, steps_until, told, until, whats, with_fact, with_memory
from model.worlds import empty, machines, moving, settled, wanted
from support.golden import Golden

from quarterdeck.model.components import Component
from quarterdeck.model.steps.clusters import DecideBootstrap
from quarterdeck.model.steps.members import AddLearner
from quarterdeck.model.steps.placing import PlaceReplica, ReleaseReplica
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import apply, observe, tick
from quarterdeck.planner.simulated.parts import Power
from quarterdeck.planner.simulated.truth import Truth


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


def test_a_machine_that_does_not_answer_gets_no_replica() -> None:
    truth = empty("east", 1)
    off = replace(
        truth, machines=tuple(replace(each, power=Power.OFF) if "a1" in each.name else each for each in truth.machines)
    )
    placed = [step.machine for step in plan(observe(off)).now if isinstance(step, PlaceReplica)]
    assert placed == ["east-a2"]


def test_a_zone_without_a_free_machine_is_named(golden: Golden) -> None:
    truth = replace(empty("east", 3), machines=machines("east", per_zone=1)[:2])
    seen = plan(observe(truth))
    assert len(seen.now) == 2
    golden(whats(seen))


def test_a_machine_of_a_member_is_never_given_away() -> None:
    truth = replace(settled(empty("east", 1)), machines=machines("east", per_zone=1))
    lost = truth.with_replica("east-1", replace(truth.replica("east-1"), data=False))
    assert not any(isinstance(step, PlaceReplica) for step in plan(observe(lost)).now)


def test_founders_are_written_down_before_the_first_starts() -> None:
    truth = until(empty("east", 3), about_to(DecideBootstrap))
    assert doing(truth) == ["DecideBootstrap"]
    assert not any(replica.units for _, replica in truth.replicas)
    founded = after_round(truth, plan(observe(truth)))
    assert doing(founded) == [f"StartUnit etcd of east-{index}" for index in (1, 2, 3)]


def test_founders_never_change_even_if_the_user_asks_for_more() -> None:
    truth = until(empty("east", 1), about_to(StartUnit))
    more = replace(truth, slots=wanted("east", 3))
    end = until(more, is_done)
    assert end.memory.bootstrap == ("east-1",)
    assert len(end.members) == 3


def test_a_founder_that_its_machine_does_not_start_by_itself_is_started_again_until_there_is_a_cluster() -> None:
    truth = until(empty("east", 1), about_to(StartUnit))

    def refused(truth: Truth) -> list[str]:
        world = with_fact(
            observe(truth),
            "east-1",
            lambda fact: replace(fact, units=((Component.ETCD, UnitState.FAILED),), refused="it has no data yet"),
        )
        return [told(step) for step in plan(world).now]

    assert refused(truth) == ["StartUnit etcd of east-1"]
    assert refused(with_memory(truth, created=True)) == []


def test_a_cluster_that_is_silent_is_never_founded_again(golden: Golden) -> None:
    truth = settled(empty("east", 3))
    silent = replace(observe(truth), membership=None)
    seen = plan(silent)
    assert not any(isinstance(step, DecideBootstrap) for step in seen.now)
    golden(whats(seen))


def test_volumes_are_released_last_and_only_when_the_plane_is_as_wanted() -> None:
    truth = until(moving(3, 3), about_to(ReleaseReplica))
    assert doing(truth) == [f"ReleaseReplica east-{index}" for index in (1, 2, 3)]
    assert truth.serving == {"west-4", "west-5", "west-6"}
    unwell = with_fact(observe(truth), "west-5", lambda fact: replace(fact, ready=False))
    assert not any(isinstance(step, ReleaseReplica) for step in plan(unwell).now)


def test_what_is_left_on_a_machine_that_does_not_answer_is_named_and_holds_nothing_up(golden: Golden) -> None:
    world = observe(until(moving(3, 3), about_to(ReleaseReplica)))
    deaf = with_fact(world, "east-2", lambda fact: replace(fact, machine=MachineState.UNREACHABLE))
    seen = plan(deaf)
    assert [told(step) for step in seen.now] == ["ReleaseReplica east-1", "ReleaseReplica east-3"]
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


def test_a_fixed_address_cannot_be_removed_and_does_not_hold_up_a_deletion() -> None:
    world = replace(observe(replace(settled(empty("east", 1)), deleting=True)), front="east")
    assert [told(step) for step in plan(world).now] == ["StopBalancer east"]
    down = replace(world, balancers=())
    assert [told(step) for step in plan(down).now] == ["StopUnit kube-scheduler of east-1"]


def test_a_deletion_waits_for_machines_that_do_not_answer(golden: Golden) -> None:
    def off(truth: Truth) -> Truth:
        cut = tuple(replace(each, power=Power.OFF) if each.name == "east-b1" else each for each in truth.machines)
        return replace(truth, machines=cut)

    truth = off(replace(settled(empty("east", 3)), deleting=True))
    rest = until(truth, lambda now, _: len(now.memory.replicas) == 1)
    golden(whats(plan(observe(rest))))


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


def test_what_a_plane_left_at_a_site_is_remembered_until_its_load_balancer_is_seen_to_be_gone(golden: Golden) -> None:
    world = observe(until(moving(3, 3), about_to(ReleaseReplica)))
    dark = replace(world.balancer("east"), running=False, reachable=False)
    unseen = replace(world, balancers=(*(each for each in world.balancers if each.site != "east"), dark))
    seen = plan(replace(unseen, memory=replace(world.memory, held=())))
    assert seen.now == ()
    golden(seen.leftovers[0])
    golden(seen.leftovers)
