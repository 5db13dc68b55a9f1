"""Every state that the small worlds can come to, with faults and wishes anywhere: the invariants hold in each, and each
of them ends well. `pytest -s` shows how much was searched; `QUARTERDECK_SEED=7` searches other samples of what is too
much to be searched whole.
"""

from __future__ import annotations

import time

import pytest
from support.tiers import sized

from model.kinds import Kind
from model.pins import least_of, missing_of
from model.searches import DEEP, LONG, SEARCHES, SMOKE, Search

pytestmark = pytest.mark.timeout(sized(smoke=300, full=1200, soak=7200))


def tier(search: Search) -> list[pytest.MarkDecorator]:
    """The marker of its tier."""
    return [pytest.mark.smoke] if search in SMOKE else [pytest.mark.soak] if search in LONG else []


TIERED = [pytest.param(each, marks=tier(each)) for each in (*SEARCHES, *DEEP)]


@pytest.mark.parametrize("search", TIERED, ids=str)
def test_every_reachable_state_is_safe_and_ends_well(search: Search) -> None:
    began = time.process_time()
    explorer = search.run()
    seconds = time.process_time() - began
    print(f"\n{search}: {explorer.states:,} states, {explorer.walker.steps:,} steps, {seconds:.0f} s of processor time")
    assert explorer.states >= least_of(search), "the search sees less than it did"
    missing = missing_of(search)
    if missing is not None:
        assert set(Kind) - explorer.kinds == missing, "the search sees other classes of faults than it did"


def test_what_the_smoke_tier_searches_is_searched_in_full_as_well() -> None:
    assert set(SEARCHES) - set(LONG) > SMOKE
