"""Each safety rule is taken out of the planner once, and the checker names the invariant that then does not hold.

And the planner as it is passes the very same searches, so it is the mutation that was caught.
"""

from __future__ import annotations

import pytest
from support.tiers import first_of_each

from model.invariants import Broken
from model.mutations import MUTATIONS, Mutation
from model.searches import SEARCHES
from quarterdeck.planner import planner


@pytest.mark.parametrize("mutation", first_of_each(MUTATIONS, lambda each: each.breaks), ids=str)
def test_a_mutated_planner_is_caught(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    start = mutation.search.start()
    mutation.apply(monkeypatch)
    with pytest.raises(Broken) as caught:
        mutation.search.explorer(planner.plan).explore(start)
    assert caught.value.number == mutation.breaks, str(caught.value)
    print(f"\n{mutation}: {str(caught.value).splitlines()[0]}")


def test_each_mutation_can_be_made() -> None:
    """Most of them are searched only in a soak, and some name what they change in a string."""
    for mutation in MUTATIONS:
        with pytest.MonkeyPatch.context() as patch:
            mutation.apply(patch)


def test_the_planner_itself_passes_the_very_same_searches() -> None:
    """As test_exhaustive.py shows of each of them."""
    assert {mutation.search for mutation in MUTATIONS} <= set(SEARCHES)
