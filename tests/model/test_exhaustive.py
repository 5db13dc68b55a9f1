"""Every state that the small worlds can come to, with faults and wishes anywhere: the ten invariants hold in each,
and each of them ends well. `pytest -s` shows how much was searched; `QUARTERDECK_DEEP=1` searches more.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace

import pytest
from model.explorer import Explorer
from model.walk import State, Walker, Wish
from model.worlds import empty, moving, settled, wanted
from quarterdeck.planner.truth import Truth


@dataclass(frozen=True, kw_only=True)
class Search:
    """``replicas`` at east, of which ``to`` (None: the plane is created, 0: deleted) are asked for at west."""

    replicas: int
    to: int | None
    faults: int = 0
    wishes: int = 0
    data_loss: bool = False

    def __str__(self) -> str:
        match self.to:
            case None:
                what = f"create {self.replicas}"
            case 0:
                what = f"delete {self.replicas}"
            case _:
                what = f"{self.replicas} to {self.to}"
        return f"{what}, {self.faults} faults, {self.wishes} wishes"

    def start(self) -> Truth:
        match self.to:
            case None:
                return empty("east", self.replicas)
            case 0:
                return replace(settled(empty("east", self.replicas)), deleting=True)
            case _:
                return moving(self.replicas, self.to)

    def wish_for(self) -> tuple[Wish, ...]:
        """Abort, and a third site; of a plane that is being created, that it goes."""
        match self.to:
            case None:
                return Wish("it gone"), Wish("north", wanted("north", self.replicas))
            case 0:
                return ()
            case _:
                return Wish("to go back", wanted("east", self.replicas)), Wish("north", wanted("north", self.to))


SHAPES = ((5, 3), (3, 3), (3, 1), (1, 3), (1, 1))
BIRTHS = ((3, None), (1, None), (3, 0), (1, 0))

#: The biggest first, so that two workers end at about the same time.
SEARCHES = (
    Search(replicas=1, to=1, faults=1, wishes=1, data_loss=True),
    *(Search(replicas=each, to=to, faults=1, data_loss=True) for each, to in SHAPES),
    *(Search(replicas=each, to=to, faults=1) for each, to in BIRTHS),
    *(Search(replicas=each, to=to, wishes=1) for each, to in SHAPES),
)
DEEP = (
    Search(replicas=3, to=3, faults=1, wishes=1),
    Search(replicas=3, to=1, faults=1, wishes=1),
    Search(replicas=1, to=3, faults=1, wishes=1),
    Search(replicas=1, to=1, faults=2),
    Search(replicas=3, to=1, faults=2),
)


def explored(search: Search) -> Explorer:
    walker = Walker(wishes=search.wish_for(), with_data_loss=search.data_loss)
    explorer = Explorer(walker)
    began = time.process_time()
    explorer.explore(State(search.start(), faults=search.faults, wishes=search.wishes))
    seconds = time.process_time() - began
    print(f"\n{search}: {explorer.states:,} states, {walker.steps:,} steps, {seconds:.0f} s")
    return explorer


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_every_reachable_state_is_safe_and_ends_well(search: Search) -> None:
    assert explored(search).states > 20
