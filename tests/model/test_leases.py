"""The protocol of locks, searched whole: clocks that run apart, processes that are frozen and crash, answers that are
lost, writes that are stored late. `pytest -s` shows how much was searched.
"""

from __future__ import annotations

import time

import pytest
from support.tiers import first_of_each

from model.leases.explorer import Explorer
from model.leases.mutations import MUTATIONS, Mutation
from model.leases.searches import REFUSED, SEARCHES, SOAK, UNFENCED
from model.leases.world import NO_OLDER_ACT, PROPERTIES, Broken, Search
from quarterdeck.errors import InvalidInput

#: So many states at least each search has come to.
LEAST = {
    "alone": 1_900,
    "nested": 2_400,
    "two": 22_000,
    "faults": 25_000,
    "shortened": 24_000,
    "fickle": 5_500,
    "three": 27_000,
    "types": 31_000,
    "releases": 19_000,
    "client-go": 4_500,
    "other sets": 200,
    "acts": 3_100,
}
#: The smoke tier has those that take a few seconds.
QUICK = {"alone", "nested", "two", "fickle", "client-go", "other sets", "acts"}
TIERED = [pytest.param(each, marks=[pytest.mark.smoke] if each.name in QUICK else []) for each in SEARCHES]


def searched(search: Search) -> Explorer:
    began = time.process_time()
    explorer = Explorer(search)
    explorer.explore()
    seconds = time.process_time() - began
    print(f"\n{search.name}: {explorer.states:,} states, {explorer.steps:,} steps, {seconds:.0f} s of processor time")
    return explorer


@pytest.mark.parametrize("search", TIERED, ids=lambda search: search.name)
def test_every_state_of_locks_is_safe_and_ends_well(search: Search) -> None:
    assert searched(search).states >= LEAST[search.name], "the search sees less than it did"


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("search", SOAK, ids=lambda search: search.name)
def test_every_state_of_more_of_them_is_safe_and_ends_well(search: Search) -> None:
    assert searched(search).states > 10_000


@pytest.mark.parametrize("mutation", first_of_each(MUTATIONS, lambda each: each.breaks), ids=str)
def test_a_rule_that_is_taken_out_is_missed(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.apply(monkeypatch)
    with pytest.raises(Broken) as caught:
        mutation.explore()
    assert caught.value.name == mutation.breaks, str(caught.value)


def test_each_property_of_the_proposal_is_broken_by_a_mutation() -> None:
    assert set(PROPERTIES) <= {mutation.breaks for mutation in MUTATIONS}
    assert {mutation.search for mutation in MUTATIONS} <= {*SEARCHES, *REFUSED}, "the protocol passes the same searches"


@pytest.mark.parametrize("search", REFUSED, ids=lambda search: search.name)
def test_sets_that_nobody_may_have_are_refused(search: Search) -> None:
    with pytest.raises(InvalidInput):
        Explorer(search).explore()


def test_without_the_token_a_frozen_process_acts_after_its_successor() -> None:
    with pytest.raises(Broken) as caught:
        Explorer(UNFENCED).explore()
    assert caught.value.name == NO_OLDER_ACT
