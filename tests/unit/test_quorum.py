"""The quorum arithmetic, against brute force and by example."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.planner.quorum import Voter, VoterChange, after, has_quorum, margin, quorum, quorum_site, shortest_swap


def voters(**sites: int) -> frozenset[Voter]:
    return frozenset(Voter(f"{site}-{index}", site) for site, count in sites.items() for index in range(count))


def test_any_two_quorums_meet() -> None:
    for size in range(1, 12):
        members = set(range(size))
        for one in combinations(members, quorum(size)):
            assert not members - set(one) or quorum(size) > len(members - set(one))


def test_an_unhealthy_voter_counts_for_the_size_but_not_for_the_quorum() -> None:
    well = voters(east=2)
    assert has_quorum(well)
    assert not has_quorum(well | {Voter("east-8", "east", False), Voter("east-9", "east", False)})


def test_margin_is_how_many_more_may_fail() -> None:
    assert [margin(voters(east=count)) for count in (1, 2, 3, 4, 5)] == [0, 0, 1, 1, 2]
    assert margin([Voter("a", "x", True), Voter("b", "x", False), Voter("c", "x", False)]) == -1


def test_the_quorum_site_is_the_one_that_needs_no_other() -> None:
    assert quorum_site(voters(east=3, west=2)) == "east"
    assert quorum_site(voters(east=2, west=3)) == "west"
    assert quorum_site(voters(east=3, west=3)) is None
    assert quorum_site(()) is None


def test_three_to_three_swaps_by_one_promotion_and_one_removal() -> None:
    now = voters(east=3, west=2)
    path = shortest_swap(now, "west", (Voter("west-2", "west"),), tuple(sorted(voters(east=3))))
    assert path is not None
    assert [(change.remove, change.voter.replica) for change in path] == [(False, "west-2"), (True, "east-0")]


def test_one_to_three_swaps_by_promotions_alone() -> None:
    path = shortest_swap(voters(east=1), "west", tuple(sorted(voters(west=3))), ())
    assert path is not None
    assert [change.remove for change in path] == [False, False]


def test_there_is_no_swap_without_somebody_to_promote() -> None:
    assert shortest_swap(voters(east=3), "west", (), tuple(sorted(voters(east=3)))) is None


def some(kind: str, sites: str, *, healthy: bool = True) -> tuple[Voter, ...]:
    """One voter for each of these sites, which have names of one letter."""
    return tuple(Voter(f"{kind}-{site}{index}", site, healthy) for index, site in enumerate(sites))


def all_ways(now: frozenset[Voter], coming: tuple[Voter, ...], leaving: tuple[Voter, ...]) -> Iterator[tuple[int, ...]]:
    """Each way to let site w hold the quorum, as what it costs: states in which no site does, changes, and removals."""
    for length in range(len(coming) + len(leaving) + 1):
        for removals in range(length + 1):
            for places in combinations(range(length), removals):
                if removals <= len(leaving) and length - removals <= len(coming):
                    order = [place in places for place in range(length)]
                    homeless = _homeless(now, order, iter(coming), iter(leaving))
                    if homeless is not None:
                        yield (homeless, length, removals)


def _homeless(
    now: frozenset[Voter], order: list[bool], coming: Iterator[Voter], leaving: Iterator[Voter]
) -> int | None:
    """How often no site holds the quorum on this way (None: it does not get there, or the quorum is lost)."""
    homeless = 0
    for remove in order:
        now = after(now, VoterChange(remove, next(leaving if remove else coming)))
        if not has_quorum(now):
            return None
        homeless += quorum_site(now) is None
    return homeless if quorum_site(now) == "w" else None


@pytest.mark.parametrize("east", ["e", "ee", "eee"])
@pytest.mark.parametrize("west", ["", "w", "ww"])
@pytest.mark.parametrize("coming", ["", "w", "ww", "www", "wwww"])
@pytest.mark.parametrize("sick", [True, False])
def test_a_swap_is_the_shortest_of_all_ways(east: str, west: str, coming: str, sick: bool) -> None:
    """Voters of the target that leave cost changes and gain nothing."""
    promotable = some("comes", coming)
    removable = (*some("leaves", west[:1] + east), *some("dead", "e" * sick, healthy=False))
    now = frozenset((*some("stays", west[1:]), *removable))
    path = shortest_swap(now, "w", promotable, removable)
    best = min(all_ways(now, promotable, removable), default=None)
    if path is None:
        assert best is None
        return
    removals = [change.remove for change in path]
    homeless = _homeless(now, removals, iter(promotable), iter(removable))
    assert best == (homeless, len(path), sum(removals))


def test_a_change_leaves_all_other_voters_as_they_are() -> None:
    both = frozenset(some("stays", "ew"))
    one, new = some("stays", "e")[0], Voter("new", "w")
    assert after(both, VoterChange(False, new)) == both | {new}
    assert after(both, VoterChange(True, one)) == both - {one}


@given(
    east=st.integers(1, 5),
    west=st.integers(0, 5),
    learners=st.integers(0, 5),
    sick=st.sets(st.integers(0, 4), max_size=2),
)
def test_a_swap_never_passes_a_state_without_a_healthy_quorum(
    east: int, west: int, learners: int, sick: set[int]
) -> None:
    leaving = tuple(Voter(f"east-{index}", "east", index not in sick) for index in range(east))
    now = frozenset(leaving) | voters(west=west)
    coming = tuple(Voter(f"west-{west + index}", "west") for index in range(learners))
    path = shortest_swap(now, "west", coming, leaving)
    for change in path or ():
        now = after(now, change)
        assert has_quorum(now)
    assert path is None or quorum_site(now) == "west"
