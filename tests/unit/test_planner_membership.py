"""Who joins, who votes, who leaves, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.faults import repaired
from model.stories import (
    about_to,
    after_round,
    doing,
    is_done,
    step_words,
    steps_until,
    until,
    whats,
    with_fact,
    with_member,
    with_memory,
)
from model.worlds import empty, machines, moving, settled, wanted
from support.golden import Golden

from quarterdeck.model.steps.members import AddLearner, Promote, RemoveMember, Swap, TransferLeadership
from quarterdeck.model.steps.traffic import SetBackends
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import observe, tick
from quarterdeck.planner.simulated.parts import ETCD, Power
from quarterdeck.planner.simulated.truth import Truth


def machine_off(truth: Truth, name: str) -> Truth:
    """The machine of a replica loses its power, and the grace period passes."""
    machine = truth.machine_of(name).name
    machines = tuple(replace(each, power=Power.OFF) if each.name == machine else each for each in truth.machines)
    return tick(tick(replace(truth, machines=machines)))


def test_a_voter_is_never_removed_while_its_replacement_lags(golden: Golden) -> None:
    world = observe(until(moving(3, 3), about_to(Swap)))
    late = with_member(world, "west-6", lambda member: replace(member, lag=world.settings.lag_bound + 1))
    seen = plan(late)
    assert not any(isinstance(step, Swap | RemoveMember | Promote) for step in seen.now)
    golden(whats(seen))
    near = with_member(world, "west-6", lambda member: replace(member, lag=world.settings.lag_bound))
    assert any(isinstance(step, Swap) for step in plan(near).now)


@pytest.mark.parametrize("lag", [None, 1_001, 50_000_000])
def test_a_learner_is_promoted_only_when_its_lag_is_known_and_small(lag: int | None) -> None:
    world = observe(until(moving(3, 3), about_to(Promote)))
    for name in ("west-4", "west-5", "west-6"):
        world = with_member(world, name, lambda member: replace(member, lag=lag))
    assert not any(isinstance(step, Promote) for step in plan(world).now)


def test_promotion_stops_before_the_source_loses_its_quorum() -> None:
    truth = until(moving(3, 3), about_to(Swap))
    assert sorted(voter.replica for voter in truth.voters if voter.site == "west") == ["west-4", "west-5"]
    assert truth.quorum_site == "east"


@pytest.mark.parametrize(
    ("replicas", "to", "swap", "serving"),
    [
        pytest.param(3, 3, "Promote west-6, RemoveMember east-1", {"west-4", "west-5"}, id="promotes and removes"),
        pytest.param(1, 3, "Promote west-2, Promote west-3", {"east-1"}, id="promotes before any apiserver"),
        pytest.param(
            3, 1, "RemoveMember east-1, RemoveMember east-2, RemoveMember east-3", {"west-4"}, id="removes alone"
        ),
    ],
)
def test_the_swap_of_each_kind_of_move(replicas: int, to: int, swap: str, serving: set[str]) -> None:
    truth = until(moving(replicas, to), about_to(Swap))
    assert f"Swap({swap})" in doing(truth)
    assert truth.serving == serving


def test_five_to_three_keeps_a_quorum_of_seven_or_eight_at_the_source_until_the_swap() -> None:
    truth = until(moving(5, 3), about_to(Swap))
    assert len(truth.voters) == 8
    assert truth.quorum_site == "east"


def test_one_to_one_lends_a_second_replica_and_takes_it_back() -> None:
    truth = until(moving(1, 1), about_to(Swap))
    assert doing(truth) == ["Swap(Promote west-2, Promote west-3)"]
    assert [record.site for record in truth.memory.replicas] == ["east", "west", "west"]
    end = until(truth, is_done)
    assert [record.name for record in end.memory.replicas] == ["west-2"]
    assert set(end.members) == {"west-2"}


def test_leadership_is_handed_over_before_the_leader_goes() -> None:
    truth = until(moving(3, 3), about_to(TransferLeadership))
    assert truth.elected == "east-1"
    assert not any(isinstance(step, RemoveMember | Swap) for step in plan(observe(truth)).now)
    assert until(truth, about_to(Swap)).elected == "west-4"


def test_an_abort_at_five_voters_removes_the_targets_one_by_one() -> None:
    truth = until(moving(3, 3), about_to(SetBackends))
    truth = until(truth, lambda now, _: len(now.voters) == 5)
    aborted = replace(truth, slots=wanted("east", 3))
    steps = steps_until(aborted, is_done)
    removals = [step for step in steps if "RemoveMember" in step]
    assert removals == ["RemoveMember west-6", "RemoveMember west-4", "RemoveMember west-5"]
    assert not any(step.startswith("Swap") for step in steps)


def test_an_abort_after_the_swap_is_a_migration_back_on_the_same_replicas() -> None:
    truth = until(moving(3, 3), about_to(Swap))
    truth = after_round(truth, plan(observe(truth)))
    back = until(replace(truth, slots=wanted("east", 3)), is_done)
    assert back.quorum_site == "east"
    assert {"east-2", "east-3"} < set(back.members)
    assert "east-1" not in back.members  # it was removed, and a removed member can never come back


def test_a_changed_target_goes_back_to_the_source_first() -> None:
    truth = until(moving(3, 3), lambda now, _: len(now.voters) == 5)
    north = replace(truth, slots=wanted("north", 3))
    end = until(north, lambda now, _: now.quorum_site == "north")
    assert {voter.site for voter in until(north, about_to(AddLearner)).voters} == {"east"}
    assert until(end, is_done).record == "north"


def test_a_plane_stays_at_its_source_when_the_target_dies() -> None:
    truth = until(moving(3, 3), lambda now, _: len(now.voters) == 5)
    machines = tuple(replace(each, power=Power.OFF) if each.site == "west" else each for each in truth.machines)
    truth = replace(truth, machines=machines, dead_edges=frozenset({"west"}))
    for _ in range(40):
        truth = after_round(truth, plan(observe(truth)))
    assert {voter.site for voter in truth.voters} == {"east"}
    assert truth.record == "east"
    assert truth.reached_from("east") == {"east-1", "east-2", "east-3"}
    assert until(repaired(truth), is_done).record == "west"


def test_a_dead_source_voter_is_removed_at_once_and_does_not_hold_up_the_move(golden: Golden) -> None:
    truth = machine_off(moving(3, 3), "east-3")
    assert "RemoveMember east-3" in steps_until(truth, about_to(AddLearner))
    end = until(truth, is_done)
    assert end.record == "west"
    golden(plan(observe(end)).leftovers)


@pytest.mark.parametrize(("replicas", "to"), [(1, 1), (3, 3), (1, 3), (3, 1), (5, 3)])
def test_nothing_is_taken_away_while_the_membership_is_unknown(replicas: int, to: int) -> None:
    truth, rounds = moving(replicas, to), 0
    while not (now := plan(observe(truth))).done:
        blind = plan(observe(replace(truth, mute=frozenset({ETCD}))))
        assert not blind.done
        assert {type(step).__name__ for step in blind.now} <= {"PlaceReplica", "StartUnit"}
        truth, rounds = after_round(truth, now), rounds + 1
    assert rounds > 20


def test_a_removed_member_is_not_started_on_the_ports_of_another_while_the_membership_is_unknown() -> None:
    start = replace(moving(3, 3), machines=machines("east", "west", per_zone=1))
    away = until(
        start, lambda now, _: now.quorum_site == "west" and {"east-1", "east-2", "east-3"}.isdisjoint(now.members)
    )
    back = until(replace(away, slots=wanted("east", 3)), lambda now, _: "east-7" in now.healthy)
    assert back.machine_of("east-7") == back.machine_of("east-1")
    shared = tuple(replace(record, seat=None) for record in back.memory.replicas)
    back = with_memory(back, replicas=shared)
    assert not any("east-1" in step for step in doing(replace(back, mute=frozenset({ETCD}))))


def test_a_member_that_lost_its_data_is_replaced_under_a_new_name() -> None:
    truth = settled(empty("east", 3))
    truth = truth.with_replica("east-2", replace(truth.replica("east-2"), data=False))
    end = until(truth, is_done)
    assert set(end.members) == {"east-1", "east-3", "east-4"}


def test_the_etcd_of_a_removed_member_is_stopped_and_its_data_kept_until_all_is_done() -> None:
    truth = until(moving(3, 1), lambda now, _: len(now.voters) == 1)
    assert doing(truth) == [f"StopUnit etcd of east-{index}" for index in (1, 2, 3)]
    stopped = after_round(truth, plan(observe(truth)))
    assert all(stopped.replica(f"east-{index}").data for index in (1, 2, 3))
    assert not any(isinstance(step, StopUnit) for step in plan(observe(stopped)).now)


def test_a_lent_replica_fills_a_slot_that_is_wanted_after_all() -> None:
    """It sits on the last machine of its zone."""
    lent = until(moving(1, 1), lambda now, _: {"west-2", "west-3"} <= set(now.members) and now.quorum_site == "west")
    zone = lent.machine_of("west-3").zone
    assert sum(each.site == "west" and each.zone == zone for each in lent.machines) == 2
    end = settled(replace(lent, slots=wanted("west", 5)))
    assert "west-3" in end.members
    assert len(end.members) == 5


def test_a_joiner_whose_etcd_stopped_again_waits_for_its_turn() -> None:
    """It was never healthy, so no other counts on it; a peer that is just starting would hold it for seconds."""
    world = observe(until(moving(3, 3), lambda _, now: "StartUnit etcd of west-4" in map(step_words, now.now)))
    for name in ("west-4", "west-5"):
        world = with_fact(world, name, lambda fact: replace(fact, has_data=True))
    assert [step_words(step) for step in plan(world).now] == ["StartUnit etcd of west-4"]
