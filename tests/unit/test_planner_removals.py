"""How members go: what each rule does and leaves where few stories lead."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.observations import Seen, dead, learner, left, placed, viewed, voters_at
from model.stories import all_steps, whats
from support.golden import Golden

from quarterdeck.model.membership import Health
from quarterdeck.model.steps.members import Swap
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules.membership import (
    lead,
    remove,
    remove_dead,
    stop_removed,
    swap,
)

OFF = MachineState.DOWN
CUT_OFF = MachineState.UNREACHABLE
STOPPED, RUNNING, FAILED, ABSENT = UnitState.STOPPED, UnitState.RUNNING, UnitState.FAILED, UnitState.ABSENT
DOWN, SUSPECT, UNREACHABLE = Health.DOWN, Health.SUSPECT, Health.UNREACHABLE


# --- remove_dead ----------------------------------------------------------------------------------------------------


def dies(one: Seen, *rest: Seen, leader: str | None = None, count: int = 3) -> bool:
    """Whether quarterdeck removes it as one of those that nobody wants and that are dead, lost or only listen."""
    now = viewed(*(rest or voters_at("west", 3)), one, to="west", count=count, leader=leader)
    steps = all_steps(remove_dead(now))
    assert steps in ([], [f"RemoveMember {one.name}"])
    return bool(steps)


LOST = left(Seen("east-1", has_data=False))


@pytest.mark.parametrize(
    ("one", "goes"),
    [
        (dead("east-1"), True),
        (LOST, True),
        (learner("east-1"), True),
        (Seen("east-1", member=False), False),
        (Seen("east-1"), False),
        (left(Seen("east-1")), False),
        (Seen("east-1", health=SUSPECT, machine=OFF), False),
        (Seen("east-1", health=UNREACHABLE, machine=CUT_OFF), False),
        (replace(LOST, apiserver=RUNNING), False),
        (Seen("east-1", health=DOWN), False),  # its apiserver runs
    ],
)
def test_an_unwanted_member_goes_at_once_only_if_it_is_dead_or_lost_and_serves_nobody_or_only_listens(
    one: Seen, goes: bool
) -> None:
    assert dies(one) is goes


@pytest.mark.parametrize("one", [learner("east-1"), LOST, dead("east-1")])
def test_a_leader_is_never_removed_however_dead_it_looks(one: Seen) -> None:
    assert not dies(one, leader="east-1")
    assert dies(one, leader="west-1")


def test_a_dead_voter_goes_only_when_a_quorum_of_the_rest_is_well_and_has_the_data() -> None:
    well = voters_at("west", 2)
    assert dies(dead("east-1"), *well)
    assert dies(dead("east-1"), *well, Seen("west-3", health=SUSPECT)), "it does not count for the size either"
    assert not dies(LOST, Seen("west-1"), Seen("west-2", health=SUSPECT)), "nor, where it still runs, with the rest"
    assert not dies(dead("east-1"), Seen("west-1"), Seen("west-2", health=SUSPECT))
    assert not dies(dead("east-1"), Seen("west-1"), Seen("west-2", lag=1_001))
    assert not dies(dead("east-1"), Seen("west-1"), Seen("west-2", health=SUSPECT), Seen("west-3", lag=None))


def test_a_dead_voter_stays_while_the_site_that_holds_the_quorum_would_lose_it() -> None:
    """Of five voters three are at east; of four, three would have to be."""
    assert not dies(LOST, *voters_at("east", 2, first=2), *voters_at("west", 2))
    assert dies(LOST, *voters_at("east", 3, first=2), *voters_at("west", 2))


def test_a_dead_voter_goes_while_no_site_holds_the_quorum() -> None:
    assert dies(dead("east-1"), *voters_at("east", 2, first=2), *voters_at("west", 2), count=2)
    assert dies(dead("east-1"), Seen("east-2"), *voters_at("west", 2), count=2), "and gives it to one"


def test_whoever_is_not_to_go_keeps_nobody_else() -> None:
    now = viewed(
        Seen("east-1", member=False), Seen("east-2"), dead("east-3"), *voters_at("west", 4), to="west", count=4
    )
    assert all_steps(remove_dead(now)) == ["RemoveMember east-3"]


# --- lead -----------------------------------------------------------------------------------------------------------


def led(*replicas: Seen, leader: str = "east-1", count: int = 2) -> RuleOutcome:
    return lead(viewed(*replicas, to="west", count=count, leader=leader))


GONE = tuple(map(left, voters_at("east", 3)))


def test_leadership_goes_to_a_wanted_voter_once_no_unwanted_apiserver_serves() -> None:
    assert all_steps(led(*GONE, *voters_at("west", 2))) == ["TransferLeadership west-1"]
    assert led(*GONE, *voters_at("west", 2)).steps[0].site == "west"
    assert not led(*GONE, *voters_at("west", 2), leader="west-2").steps
    assert not led(*GONE[:2], Seen("east-3"), *voters_at("west", 2)).steps
    assert not led(Seen("east-1"), Seen("east-2"), Seen("east-3"), *voters_at("west", 2)).steps


def test_leadership_stays_until_the_wanted_apiservers_carry_the_traffic() -> None:
    assert not led(*GONE, Seen("west-1"), Seen("west-2", ready=False)).steps


def test_an_apiserver_without_a_healthy_voter_behind_it_keeps_no_leadership() -> None:
    """It serves nobody, though its machine does not say so."""
    sick = Seen("east-3", health=UNREACHABLE, machine=CUT_OFF, ready=None)
    assert all_steps(led(*GONE[:2], sick, *voters_at("west", 2))) == ["TransferLeadership west-1"]


def test_who_lags_is_passed_over_for_leadership(golden: Golden) -> None:
    late = Seen("west-1", lag=1_001)
    assert all_steps(led(*GONE, late, Seen("west-2"))) == ["TransferLeadership west-2"]
    nobody = led(*GONE, late, replace(late, name="west-2"))
    assert nobody.steps == ()
    golden(whats(nobody))


# --- swap -----------------------------------------------------------------------------------------------------------


def swapped(*replicas: Seen, count: int = 3, leader: str | None = "west-1") -> RuleOutcome:
    return swap(viewed(*replicas, to="west", count=count, leader=leader))


READY = (*GONE, *voters_at("west", 2), learner("west-3"))


def test_the_swap_promotes_the_last_one_and_removes_the_first() -> None:
    outcome = swapped(*READY)
    assert all_steps(outcome) == ["Swap(Promote west-3, RemoveMember east-1)"]
    (step,) = outcome.steps
    assert isinstance(step, Swap)
    assert [(change.site, change.member, change.why) for change in step.changes] == [
        ("west", 6, "one voter more at the target"),
        ("east", 1, "one voter less at the source"),
    ]
    assert step.site == "west"
    assert not swapped(*voters_at("east", 1), *voters_at("west", 2)).steps, "the quorum is there"


def test_the_leader_is_in_no_swap() -> None:
    assert all_steps(swapped(*READY, leader="east-1")) == ["Swap(Promote west-3, RemoveMember east-2)"]


def test_the_dead_go_first_in_a_swap() -> None:
    """Whose apiserver serves nobody is known of them too."""
    one = dead("east-3")
    assert all_steps(swapped(*GONE[:2], one, *voters_at("west", 2), learner("west-3"))) == [
        "Swap(Promote west-3, RemoveMember east-3)"
    ]


@pytest.mark.parametrize(
    ("replicas", "count"),
    [
        (READY, 4),
        ((*READY[:5], replace(learner("west-3"), lag=2_000)), 3),
        ((*READY[:5], replace(learner("west-3"), lag=None)), 3),
        ((*READY[:5], replace(learner("west-3"), health=SUSPECT)), 3),
        ((*READY[:5], placed("west-3")), 3),
        ((*READY[:4], Seen("west-2", lag=2_000), READY[5]), 3),
        ((*READY[:4], Seen("west-2", health=SUSPECT), READY[5]), 3),
        ((*READY[:4], Seen("west-2", ready=False), READY[5]), 3),
        ((Seen("east-1"), *READY[1:]), 3),
        ((Seen("east-1"), Seen("east-2"), *READY[2:]), 3),
        ((*voters_at("east", 3), *READY[3:]), 3),
    ],
)
def test_what_a_swap_waits_for_is_named(replicas: tuple[Seen, ...], count: int, golden: Golden) -> None:
    found = swapped(*replicas, count=count)
    assert found.steps == ()
    golden(whats(found))


def test_an_apiserver_whose_member_is_not_well_holds_up_no_swap_and_its_member_is_not_in_it() -> None:
    sick = Seen("east-1", health=UNREACHABLE, machine=CUT_OFF, ready=None)
    five = (sick, *map(left, voters_at("east", 4, first=2)))
    west = (*voters_at("west", 2), learner("west-3"), learner("west-4"), learner("west-5"))
    swapping = "Swap(Promote west-3, Promote west-4, Promote west-5, RemoveMember east-2)"
    assert all_steps(swapped(*five, *west, count=5)) == [swapping]


def test_a_swap_of_promotions_alone_waits_for_no_apiserver() -> None:
    """An apiserver cannot start on a learner."""
    joined = (learner("west-1"), learner("west-2"), learner("west-3"))
    assert all_steps(swapped(Seen("east-1"), *joined)) == ["Swap(Promote west-1, Promote west-2)"]


def test_a_swap_that_has_begun_is_finished_whatever_has_happened_since() -> None:
    amid = (*GONE, Seen("west-1"), Seen("west-2"), Seen("west-3", ready=False))
    assert all_steps(swapped(*amid, count=4)) == ["Swap(RemoveMember east-1)"]


def test_a_swap_promotes_nobody_who_has_not_caught_up() -> None:
    """Not even one that is only to be finished."""
    amid = (*voters_at("east", 2), *voters_at("west", 2), replace(learner("west-3"), lag=1_001), learner("west-4"))
    assert all_steps(swapped(*amid, count=4)) == ["Swap(Promote west-4)"]


def test_an_unwanted_learner_is_in_no_swap() -> None:
    """Another rule removes it, and it has no vote to be counted."""
    sick = replace(learner("north-1"), health=DOWN, machine=OFF)
    assert all_steps(swapped(*READY, sick)) == ["Swap(Promote west-3, RemoveMember east-1)"]


def test_a_swap_that_has_begun_takes_nobody_out_whose_apiserver_may_serve(golden: Golden) -> None:
    amid = (*voters_at("east", 3), *voters_at("west", 3))
    found = swapped(*amid)
    assert found.steps == ()
    golden(whats(found))


def test_nothing_is_swapped_while_only_we_do_not_see_who_holds_the_quorum(golden: Golden) -> None:
    unseen = Seen("west-3", health=UNREACHABLE, machine=CUT_OFF)
    found = swapped(*GONE[:2], Seen("west-1"), Seen("west-2"), unseen)
    assert found.steps == ()
    golden(whats(found))
    down = dead("west-3")
    assert all_steps(swapped(*GONE[:2], Seen("west-1"), Seen("west-2"), down)) == [
        "Swap(RemoveMember east-1, RemoveMember east-2)"
    ]


# --- remove ---------------------------------------------------------------------------------------------------------


def removed(*replicas: Seen, count: int = 3, leader: str | None = "west-1") -> RuleOutcome:
    return remove(viewed(*replicas, to="west", count=count, leader=leader))


WEST = voters_at("west", 3)


def test_unwanted_voters_leave_one_by_one() -> None:
    assert all_steps(removed(*GONE[:2], *WEST)) == ["RemoveMember east-1"]
    assert removed(*WEST) == RuleOutcome()
    assert removed(*WEST, learner("west-4"), count=5) == RuleOutcome(), (
        "where nobody is to leave, nothing is waited for"
    )
    assert removed(Seen("east-1", member=False), *WEST) == RuleOutcome()
    assert removed(learner("east-1"), *WEST) == RuleOutcome(), "another rule removes those"


def test_no_voter_leaves_while_another_site_holds_the_quorum_or_none_does() -> None:
    for count in (3, 4):
        assert removed(*map(left, voters_at("east", count)), *WEST) == RuleOutcome()


@pytest.mark.parametrize(
    ("replicas", "count"),
    [
        ((*GONE[:2], *WEST), 4),
        ((*GONE[:1], *WEST, learner("west-4")), 4),
        ((*GONE[:1], *WEST, learner("west-4")), 5),
        ((Seen("east-1"), *WEST), 3),
        ((Seen("east-1", health=SUSPECT), *WEST), 3),
        ((Seen("east-1", machine=CUT_OFF), *WEST), 3),
        ((Seen("east-1", health=UNREACHABLE, machine=CUT_OFF), *WEST), 3),
        ((Seen("east-1", health=SUSPECT, machine=OFF), *WEST), 3),
        ((GONE[0], *WEST[:1], Seen("west-2", lag=1_001), Seen("west-3", lag=1_001)), 3),
    ],
)
def test_what_the_removal_of_a_voter_waits_for_is_named(replicas: tuple[Seen, ...], count: int, golden: Golden) -> None:
    found = removed(*replicas, count=count)
    assert found.steps == ()
    golden(whats(found))


def test_a_voter_that_leads_hands_over_before_it_leaves_and_the_next_leaves_meanwhile(golden: Golden) -> None:
    found = removed(GONE[0], *WEST, leader="east-1")
    assert found.steps == ()
    golden(whats(found))
    both = removed(*GONE[:2], *WEST, leader="east-1")
    assert all_steps(both) == ["RemoveMember east-2"]


def test_a_voter_that_is_sick_leaves_like_any_other_when_its_apiserver_is_seen_to_be_off() -> None:
    assert all_steps(removed(left(Seen("east-1", health=SUSPECT)), *WEST)) == ["RemoveMember east-1"]
    down = Seen("east-1", health=DOWN, machine=CUT_OFF)
    assert all_steps(removed(down, *WEST)) == ["RemoveMember east-1"]


# --- stop_removed ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "stops"),
    [
        (Seen("east-1", member=False), True),
        (Seen("east-1", member=False, etcd=FAILED), True),
        (Seen("east-1", member=False, etcd=STOPPED), False),
        (Seen("east-1", member=False, etcd=ABSENT), False),
        (Seen("east-1", member=False, etcd=UnitState.UNKNOWN), False),
        (Seen("east-1", member=False, machine=CUT_OFF), False),
        (Seen("east-1"), False),
        (learner("east-1"), False),
    ],
)
def test_only_the_etcd_of_who_is_no_member_any_more_is_stopped(one: Seen, stops: bool) -> None:
    assert all_steps(stop_removed(viewed(one, *WEST, to="west", count=3))) == ["StopUnit etcd of east-1"] * stops
