"""Every state that the small worlds can come to, with faults and wishes anywhere: the ten invariants hold in each,
and each of them ends well. `pytest -s` shows how much was searched; `QUARTERDECK_DEEP=1` searches more.
"""

from __future__ import annotations

import os
import time

import pytest

from model.searches import Search

SHAPES = ((5, 3), (3, 3), (3, 1), (1, 3), (1, 1))
BIRTHS = ((3, None), (1, None), (3, 0), (1, 0))

#: The biggest first, so that two workers end at about the same time.
SEARCHES = (
    Search(replicas=1, to=1, faults=1, wishes=1),
    *(Search(replicas=each, to=to, faults=1, data_loss=True) for each, to in SHAPES),
    *(Search(replicas=each, to=to, faults=1, data_loss=True) for each, to in BIRTHS),
    *(Search(replicas=each, to=to, wishes=1) for each, to in SHAPES),
)
DEEP = (
    Search(replicas=3, to=3, faults=1, wishes=1, data_loss=True),
    Search(replicas=3, to=1, faults=1, wishes=1, data_loss=True),
    Search(replicas=1, to=3, faults=1, wishes=1, data_loss=True),
    Search(replicas=1, to=1, faults=2, data_loss=True),
    Search(replicas=3, to=1, faults=2, data_loss=True),
)


@pytest.mark.parametrize("search", (*SEARCHES, *(DEEP if os.environ.get("QUARTERDECK_DEEP") else ())), ids=str)
def test_every_reachable_state_is_safe_and_ends_well(search: Search) -> None:
    began = time.process_time()
    explorer = search.run()
    seconds = time.process_time() - began
    print(f"\n{search}: {explorer.states:,} states, {explorer.walker.steps:,} steps, {seconds:.0f} s of processor time")
    assert explorer.states > 10
