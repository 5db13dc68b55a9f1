"""Every state that the small worlds can come to, with faults and wishes anywhere: the invariants hold in each, and each
of them ends well. `pytest -s` shows how much was searched; `QUARTERDECK_DEEP=1` searches more, and `QUARTERDECK_SEED=7`
other samples of what is too much to be searched whole.
"""

from __future__ import annotations

import os
import time

import pytest

from model.kinds import Kind
from model.pins import least_of, missing_of
from model.searches import DEEP, SEARCHES, Search

pytestmark = pytest.mark.timeout(7200 if os.environ.get("QUARTERDECK_DEEP") else 1200)


@pytest.mark.parametrize("search", (*SEARCHES, *(DEEP if os.environ.get("QUARTERDECK_DEEP") else ())), ids=str)
def test_every_reachable_state_is_safe_and_ends_well(search: Search) -> None:
    began = time.process_time()
    explorer = search.run()
    seconds = time.process_time() - began
    print(f"\n{search}: {explorer.states:,} states, {explorer.walker.steps:,} steps, {seconds:.0f} s of processor time")
    assert explorer.states >= least_of(search), "the search sees less than it did"
    missing = missing_of(search)
    if missing is not None:
        assert set(Kind) - explorer.kinds == missing, "the search sees other classes of faults than it did"
