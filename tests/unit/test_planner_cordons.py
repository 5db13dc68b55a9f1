"""What a person wants left alone is: no replica comes to a cordoned machine, and none that is cordoned is touched."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import is_done, later, serving, steps_until, until, whats, without_member
from model.worlds import FORMER, NEW, ZONES, changing, empty, settled, still, wanted
from support.golden import Golden

from quarterdeck.app.drains import drained
from quarterdeck.model.bounds import HealingBounds
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.world import World
from quarterdeck.planner.machines import machine_for
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.simulated.dry_run import dry_run
from quarterdeck.planner.simulated.parts import Power
from quarterdeck.planner.simulated.truth import Truth
from quarterdeck.planner.view import view

A_FLAG = ReplicaChange(restart=frozenset({Component.APISERVER}))
HEALING = HealingBounds(budget=3, window=60.0, after=2.0, later=10.0)


def cordon(truth: Truth, *machines: str) -> Truth:
    return replace(truth, machines=tuple(replace(each, cordoned=each.name in machines) for each in truth.machines))


def with_dead(truth: Truth, *machines: str) -> Truth:
    """These machines are off for good, and healing may do something about it."""
    off = tuple(replace(each, power=Power.OFF) if each.name in machines else each for each in truth.machines)
    return replace(truth, machines=off, settings=replace(truth.settings, healing=HEALING))


def hosts(truth: Truth) -> set[str]:
    return {each.machine for each in truth.memory.replicas}


def test_no_replica_is_put_on_a_cordoned_machine_also_not_beside_the_one_that_leaves() -> None:
    truth = still(3)
    slot = truth.memory.replica("east-2").slot
    world = observe(cordon(truth, "east-b1"))
    found = machine_for(world, slot, {"east-b1"}, [truth.memory.replica("east-2")])
    assert found is not None
    assert found.name == "east-b2"
    both = observe(cordon(truth, "east-b1", "east-b2"))
    assert machine_for(both, slot, set()) is None
    assert machine_for(both, slot, {"east-b1"}, [truth.memory.replica("east-2")]) is None


def test_what_is_on_a_cordoned_machine_goes_on() -> None:
    assert plan(observe(cordon(still(3), "east-a1", "east-b1", "east-c1"))).done


def test_a_plane_that_finds_no_machine_says_which_are_cordoned() -> None:
    truth = cordon(empty("east", 3), "east-b1", "east-b2")
    stuck = later(truth, 5)
    assert any(
        "a free machine in zone b of site east: east-b1 is cordoned" in each and "; east-b2 is cordoned" in each
        for each in whats(plan(observe(stuck)))
    )
    assert len(settled(cordon(stuck)).members) == 3


def test_a_drained_replica_is_exchanged_for_one_elsewhere_while_it_still_serves() -> None:
    truth = replace(cordon(still(3), "east-b1"), condemned=("east-2",))
    kinds = [each.split()[0] for each in steps_until(truth, is_done)]
    order = ["PlaceReplica", "AddLearner", "Promote", "RemoveMember"]
    assert [each for each in kinds if each in order] == order
    done = until(truth, is_done)
    assert "east-b1" not in hosts(done)
    assert {done.machine_of(each).zone for each in done.members} == {*ZONES}


def stuck_on(world: World, machine: str) -> tuple[Wait, ...]:
    """What exchanging east-2 would wait for, were the machine drained."""
    return dry_run(replace(drained(world, site="east", machine=machine), condemned=("east-2",))).stuck_on


def test_a_drain_says_beforehand_that_there_is_no_other_machine(golden: Golden) -> None:
    world = observe(still(3, ("a1", "b1", "c1")))
    golden({each.what for each in stuck_on(world, "east-b1")})
    known = replace(world, machines=tuple(replace(each, cordoned=True) for each in world.machines))
    why, *_ = stuck_on(known, "east-b1")
    golden(why.what)  # that was so before the drain
    assert stuck_on(observe(still(3)), "east-b1") == ()
    # Without the cordon it would come to sit beside itself.
    assert stuck_on(world, "east-none") == ()


def test_healing_gives_nothing_to_a_cordoned_machine() -> None:
    healed = until(later(with_dead(cordon(still(3), "east-b2"), "east-b1"), 16), is_done)
    assert healed.machine_of("east-4").zone != "b"


def test_healing_does_not_touch_a_cordoned_replica() -> None:
    left = later(with_dead(replace(still(3), cordoned=("east-2",)), "east-b1"), 60)
    assert left.memory.down == () == left.memory.condemned
    assert "east-2" in left.members
    assert later(with_dead(still(3), "east-b1"), 60).memory.healed


def test_who_is_cordoned_after_it_was_condemned_is_pardoned_if_it_still_is_a_member() -> None:
    decided = until(with_dead(still(3), "east-b1"), lambda truth, _: bool(truth.memory.condemned))
    assert "east-2" in decided.members
    spared = later(replace(decided, cordoned=("east-2",)), 30)
    assert spared.memory.condemned == ()
    assert "east-2" in spared.members


def test_a_cordoned_replica_whose_data_is_gone_stays_a_person_s() -> None:
    truth = still(3)
    gone = truth.with_replica("east-2", replace(truth.replica("east-2"), data=False))
    assert "east-2" not in until(gone, is_done).members
    kept = later(replace(gone, cordoned=("east-2",)), 30)
    assert "east-2" in kept.members
    assert len(kept.memory.replicas) == 3


def test_a_cordoned_replica_that_was_removed_is_replaced_like_any_other() -> None:
    world = replace(serving(), cordoned=("east-2",))
    assert "east-2" in [record.name for record in view(world).wanted]
    assert "east-2" in [record.name for record in view(without_member(world, "east-2")).unwanted]


def test_a_change_goes_by_a_cordoned_replica_and_waits_for_the_person(golden: Golden) -> None:
    truth = replace(changing(3, 3, A_FLAG), cordoned=("east-1",))
    rolled = later(truth, 30)
    runs = {each.name: each.revision for each in rolled.memory.replicas}
    assert runs == {"east-1": FORMER, "east-2": NEW, "east-3": NEW}
    golden(whats(plan(observe(rolled))))
    done = until(replace(rolled, cordoned=()), is_done)
    assert {each.revision for each in done.memory.replicas} == {NEW}


def test_a_cordoned_replica_is_not_exchanged_also_when_all_others_are() -> None:
    truth = replace(changing(3, 3, ReplicaChange(exchange=True)), cordoned=("east-2",))
    left = later(truth, 60)
    assert "east-2" in left.members
    assert {left.memory.replica(each).revision for each in left.members if each != "east-2"} == {NEW}
    assert len(left.members) == 3
    assert view(observe(left)).outdated.isdisjoint({"east-2"})


@pytest.mark.parametrize("kept", ["east-2", "east-3"])
def test_of_two_that_do_not_fit_their_zones_any_more_the_one_that_is_cordoned_stays(kept: str, golden: Golden) -> None:
    in_a = tuple(replace(each, zone="a") for each in wanted("east", 3))
    seen = view(observe(replace(still(3, ("a1", "a2", "a3", "b1", "c1")), slots=in_a, cordoned=(kept,))))
    assert kept in [each.name for each in seen.wanted]
    assert len(seen.wanted) == 2
    a_b_a = (in_a[0], wanted("east", 3)[1], in_a[0])
    asked = replace(still(3, ("a1", "a2", "b1", "c1")), slots=a_b_a, condemned=("east-1",), cordoned=("east-3",))
    assert [each.name for each in view(observe(asked)).unwanted] == ["east-1"], "the other one is exchanged meanwhile"
    both = view(observe(replace(still(3), slots=in_a, cordoned=("east-2", "east-3"))))
    assert both.missing == ()
    golden({each.what for each in both.held_up})


def test_who_goes_when_there_are_to_be_fewer_is_none_that_is_cordoned() -> None:
    truth = replace(still(3), slots=wanted("east", 3)[:1])
    leader = truth.elected
    others = sorted({"east-1", "east-2", "east-3"} - {leader})
    anywhere = tuple(replace(each, zone="") for each in truth.slots)
    fewer = replace(truth, slots=anywhere, cordoned=(others[0],))
    assert set(until(fewer, is_done).members) == {others[0]}
    assert set(until(replace(fewer, cordoned=()), is_done).members) == {leader}


def test_one_that_is_cordoned_and_dead_does_not_keep_another_from_being_condemned() -> None:
    five = replace(settled(empty("east", 5)), cordoned=("east-1",))
    dead = with_dead(five, *(five.machine_of(each).name for each in ("east-1", "east-2")))
    assert [each.replica for each in until(dead, lambda now, _: bool(now.memory.condemned)).memory.condemned] == [
        "east-2"
    ]
