"""Healing: who is condemned, when, and why not; and that the rules then exchange it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import (
    is_done,
    later,
    step_words,
    steps_until,
    until,
    whats,
    why_not,
    with_member,
    with_memory,
)
from model.worlds import ZONES, empty, settled, wanted
from support.golden import Golden

from quarterdeck.model.bounds import HealingBounds
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Condemned
from quarterdeck.model.steps.healing import Condemn, Pardon
from quarterdeck.model.steps.members import RemoveMember
from quarterdeck.planner.machines import flapping, machine_for
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.healing import held_back
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.simulated.parts import Power, SimMachine, all_of, etcd_of
from quarterdeck.planner.simulated.truth import Truth
from quarterdeck.planner.view import view

HEALING = HealingBounds(budget=3, window=60.0, after=2.0, later=10.0)


def plane(replicas: int = 3, healing: HealingBounds = HEALING, *machines: str) -> Truth:
    """A plane at east, as wanted, whose site has these machines (none named: two in each zone)."""
    truth = empty("east", replicas, sites=("east",))
    if machines:
        truth = replace(
            truth, machines=tuple(SimMachine(name=f"east-{each}", site="east", zone=each[0]) for each in machines)
        )
    return settled(replace(truth, settings=replace(truth.settings, healing=healing)))


def with_power(truth: Truth, power: Power, *names: str) -> Truth:
    return replace(
        truth, machines=tuple(replace(each, power=power) if each.name in names else each for each in truth.machines)
    )


def dead(truth: Truth, *replicas: str, power: Power = Power.OFF) -> Truth:
    """Their machines are off."""
    return with_power(truth, power, *(truth.memory.replica(each).machine for each in replicas))


def condemned(truth: Truth) -> list[str]:
    return [each.replica for each in truth.memory.condemned]


@pytest.mark.parametrize("power", [Power.OFF, Power.FROZEN], ids=str)
def test_a_machine_that_dies_for_good_is_replaced_and_the_plane_is_as_wanted(power: Power) -> None:
    struck = dead(plane(), "east-2", power=power)
    steps = steps_until(struck, is_done)
    kinds = [each.split()[0] for each in steps]
    order = ["NoteDown", "Condemn", "PlaceReplica", "RemoveMember", "AddLearner", "Promote"]
    assert [each for each in kinds if each in order] == order
    healed = until(struck, is_done)
    assert set(healed.members) == {"east-1", "east-3", "east-4"}
    assert healed.machine_of("east-4").zone == healed.memory.replica("east-2").slot.zone
    assert any("east-2" in each for each in plan(observe(healed)).leftovers)


def test_once_the_machine_is_back_nothing_is_left_of_it() -> None:
    healed = until(dead(plane(), "east-2"), is_done)
    back = until(with_power(healed, Power.ON, "east-b1"), is_done)
    assert back.recorded == {"east-1", "east-3", "east-4"} == set(back.members)
    assert condemned(back) == []


def test_nobody_is_condemned_before_it_is_down_for_long_enough_in_the_eyes_of_the_cluster() -> None:
    struck = dead(plane(), "east-2", power=Power.FROZEN)
    noted = until(struck, lambda truth, _: bool(truth.memory.down))
    assert health(noted, "east-2") is Health.DOWN
    assert condemned(later(noted, 1)) == []
    assert condemned(later(noted, 2)) == ["east-2"]


def health(truth: Truth, name: str) -> Health:
    member = observe(truth).member(name)
    assert member is not None
    return member.health


def test_of_a_machine_that_is_off_the_time_counts_at_once_and_the_cluster_is_to_miss_it_all_the_same() -> None:
    off = dead(plane(3, replace(HEALING, after=1.0)), "east-2")
    noted = until(off, lambda truth, _: bool(truth.memory.down))
    assert noted.now == off.now
    assert health(noted, "east-2") is Health.SUSPECT
    waits = later(noted, 1)
    assert health(waits, "east-2") is Health.SUSPECT
    assert condemned(waits) == []
    due = until(waits, lambda truth, _: bool(truth.memory.condemned))
    assert health(due, "east-2") is Health.DOWN
    assert due.now - off.now == 2.0


def test_who_is_back_before_that_is_not_even_remembered() -> None:
    noted = until(dead(plane(), "east-2"), lambda truth, _: bool(truth.memory.down))
    back = until(with_power(noted, Power.ON, "east-b1"), is_done)
    assert back.memory.down == () == back.memory.condemned


def test_whoever_only_we_do_not_see_is_never_condemned() -> None:
    truth = plane()
    unseen = replace(truth, mute=frozenset({"east-b1", etcd_of("east-2")}))
    assert condemned(later(unseen, 60)) == []
    site = replace(truth, mute=frozenset({all_of("east")}))
    assert condemned(later(site, 60)) == []


def test_without_a_spare_machine_nothing_is_taken_away_and_the_plan_says_so() -> None:
    struck = later(dead(plane(3, HEALING, "a1", "b1", "c1"), "east-2"), 60)
    assert condemned(struck) == []
    assert set(struck.members) == {"east-1", "east-2", "east-3"}
    assert why_not(struck) == {"east-2": "there is no spare machine: the plane stays degraded"}
    assert any("no spare machine: the plane stays degraded" in each for each in whats(plan(observe(struck))))


def test_who_was_condemned_stays_a_member_until_somebody_comes_in_its_place() -> None:
    """The spare machine died in the very moment between."""
    decided = until(
        dead(plane(3, HEALING, "a1", "b1", "b2", "c1"), "east-2"), lambda truth, _: bool(truth.memory.condemned)
    )
    stuck = later(with_power(decided, Power.OFF, "east-b2"), 60)
    assert condemned(stuck) == ["east-2"]
    assert "east-2" in stuck.members
    back = until(with_power(stuck, Power.ON, "east-b1"), is_done)
    assert set(back.members) == {"east-1", "east-2", "east-3"}
    assert condemned(back) == []


def test_who_is_well_again_before_it_was_taken_out_is_pardoned() -> None:
    decided = until(dead(plane(), "east-2"), lambda truth, now: any(isinstance(each, RemoveMember) for each in now.now))
    assert condemned(decided) == ["east-2"]
    back = with_power(decided, Power.ON, "east-b1")
    assert [step_words(each) for each in plan(observe(back)).now if isinstance(each, RemoveMember)] == []
    done = until(later(back, 1), is_done)
    assert condemned(done) == []
    assert set(done.members) == {"east-1", "east-2", "east-3"} == done.recorded


def test_two_of_five_are_exchanged_the_second_once_the_first_is_no_member() -> None:
    nine = [f"{zone}{number}" for zone in ZONES for number in (1, 2, 3)]
    struck = dead(plane(5, HEALING, *nine), "east-2", "east-3")
    steps = [each for each in steps_until(struck, is_done) if each.split()[0] in ("Condemn", "RemoveMember")]
    assert [each.split()[0] for each in steps] == ["Condemn", "RemoveMember"] * 2
    assert len(until(struck, is_done).members) == 5


def test_nobody_is_condemned_where_the_rest_is_no_quorum() -> None:
    struck = later(dead(plane(3), "east-2", "east-3"), 60)
    assert condemned(struck) == []
    alone = later(dead(plane(1), "east-1"), 60)
    assert condemned(alone) == []
    assert "east-1" in alone.members


def test_a_rest_that_lags_is_no_quorum() -> None:
    frozen = dead(plane(), "east-2", power=Power.FROZEN)
    world = observe(later(until(frozen, lambda truth, _: bool(truth.memory.down)), 1))
    lagging = with_member(replace(world, now=world.now + 5.0), "east-3", lambda member: replace(member, lag=9_999_999))
    assert dict(held_back(view(lagging))) == {"east-2": "the others are not a healthy quorum without it"}
    assert not any(isinstance(each, Condemn) for each in plan(lagging).now)


def test_the_budget_is_kept_and_0_means_never(golden: Golden) -> None:
    once = until(dead(plane(3, replace(HEALING, budget=1)), "east-2"), is_done)
    again = dead(once, "east-3")
    assert condemned(later(again, 20)) == ["east-2"]
    golden(why_not(later(again, 20))["east-3"])
    assert "east-3" in condemned(later(again, 70))
    never = later(dead(plane(3, replace(HEALING, budget=0)), "east-2"), 60)
    assert never.memory.down == () == never.memory.condemned


def test_when_half_of_a_site_looks_dead_at_once_it_is_waited_for_longer(golden: Golden) -> None:
    struck = dead(plane(3), "east-2")
    many = with_power(struck, Power.FROZEN, "east-a2", "east-c2")
    assert condemned(later(many, 8)) == []
    golden(why_not(later(many, 8))["east-2"])
    assert condemned(later(many, 16)) == ["east-2"]
    two_of_six = with_power(struck, Power.FROZEN, "east-a2")
    assert condemned(later(two_of_six, 8)) == ["east-2"]


def test_a_zone_that_is_lost_is_rebuilt_in_another_one_and_balance_returns_when_it_is_back(golden: Golden) -> None:
    struck = with_power(plane(3, HEALING, "a1", "b1", "c1", "c2"), Power.OFF, "east-b1")
    assert condemned(later(struck, 8)) == []
    golden(why_not(later(struck, 8))["east-2"])
    rebuilt = until(later(struck, 16), is_done)
    assert rebuilt.machine_of("east-4").name == "east-c2"
    back = until(later(with_power(rebuilt, Power.ON, "east-b1"), 1), is_done)
    assert sorted(back.machine_of(each).zone for each in back.members) == [*ZONES]


def test_where_the_user_insists_on_zones_none_is_rebuilt_in_another() -> None:
    insists = replace(HEALING, other_zones=False)
    struck = later(with_power(plane(3, insists, "a1", "b1", "c1", "c2"), Power.OFF, "east-b1"), 60)
    assert condemned(struck) == []
    assert why_not(struck) == {"east-2": "there is no spare machine: the plane stays degraded"}


def test_a_replacement_that_dies_too_is_replaced() -> None:
    joined = until(dead(plane(), "east-2"), lambda truth, _: "east-4" in truth.members)
    struck = dead(joined, "east-4")
    # No machine of its zone is left: it goes to another one after a longer time.
    healed = until(later(struck, 16), is_done)
    assert set(healed.members) == {"east-1", "east-3", "east-5"}


def test_a_replacement_whose_machine_dies_before_it_is_a_member_is_replaced() -> None:
    truth = plane(3, HEALING, "a1", "b1", "b2", "b3", "c1")
    placed = until(dead(truth, "east-2"), lambda truth, _: "east-4" in truth.recorded)
    assert "east-4" not in placed.members
    healed = until(dead(placed, "east-4"), is_done)
    assert set(healed.members) == {"east-1", "east-3", "east-5"}


def test_a_machine_that_died_twice_is_given_nothing_new() -> None:
    truth = plane()
    twice = replace(truth.memory, healed=(("east-b2", truth.now - 9.0), ("east-b2", truth.now)))
    world = observe(replace(truth, memory=twice))
    assert flapping(world) == {"east-b2"}
    slot = world.memory.replica("east-2").slot
    assert machine_for(world, slot, {"east-b1"}) is None
    assert machine_for(observe(truth), slot, {"east-b1"}) is not None
    assert flapping(replace(world, now=world.now + 51.5)) == set()


def test_a_machine_that_died_twice_is_cordoned_once_and_still_counts_for_the_budget() -> None:
    truth = plane()
    twice = replace(truth.memory, healed=(("east-b2", truth.now - 9.0), ("east-b2", truth.now)))
    flaps = replace(truth, memory=twice)
    assert steps_until(flaps, is_done) == ["CordonMachine east"]
    then = until(flaps, is_done)
    assert [each.name for each in then.machines if each.cordoned] == ["east-b2"]
    assert len(then.memory.healed) == 2
    by_hand = replace(then, machines=tuple(replace(each, cordoned=False) for each in then.machines))
    assert plan(observe(by_hand)).done, "a person's word is not taken back"


def test_a_target_that_dies_in_a_move_is_replaced_there() -> None:
    truth = replace(plane(), machines=empty("east", 3).machines, slots=wanted("west", 3))
    joined = until(truth, lambda truth, _: all(f"west-{each}" in truth.members for each in (4, 5, 6)))
    moved = until(later(dead(joined, "west-5"), 6), is_done)
    assert set(moved.members) == {"west-4", "west-6", "west-7"}


def test_on_the_way_back_nobody_is_condemned() -> None:
    truth = replace(plane(), machines=empty("east", 3).machines, slots=wanted("west", 3))
    world = with_member(observe(dead(truth, "east-2")), "east-2", lambda each: replace(each, health=Health.DOWN))
    retreat = replace(view(world), heading="north")
    noted = replace(
        retreat,
        world=with_memory(world, down=(("east-2", -99.0),)),
        wanted=world.memory.replicas,
    )
    assert dict(held_back(noted)) == {"east-2": "the plane moves to site north first"}


def test_one_that_is_condemned_is_forgotten_with_its_replica() -> None:
    memory = plane().memory
    known = replace(memory, condemned=(Condemned(replica="east-2", why="", since=0.0),))
    pardon = Pardon(site="", why="", replica="east-2")
    assert pardon.remembered(known, 1.0) == memory
