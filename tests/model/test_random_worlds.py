"""Larger worlds than can be searched: any number of replicas from any site to any other, with several faults, repairs
and changes of mind at any moment. The same invariants hold, and once all is repaired, the plane is as wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model.faults import Fault, mends, repaired
from model.invariants import Broken, check_done, claim, names
from model.walk import State, Walker, Wish
from model.worlds import SITES, empty, settled, wanted
from quarterdeck.planner.truth import Truth

REPLICAS = (1, 3, 5)
#: Rounds with faults, and rounds after them within which the plane has to be as wanted.
ROUNDS = 60
MOST_ROUNDS = 300

WISHES = tuple(Wish(f"{count} at {site}", wanted(site, count)) for site in SITES for count in REPLICAS)


def settled_planes() -> dict[int, Truth]:
    return {count: settled(empty("east", count)) for count in REPLICAS}


PLANES = settled_planes()


class Told:
    """The way so far, and how much was done."""

    def __init__(self) -> None:
        self.way: list[str] = []


def mended(state: State) -> Iterator[tuple[str, State]]:
    fault: Fault
    for fault in mends(state.truth):
        yield fault.name, replace(state, truth=fault.truth).settled()


def disturbed(walker: Walker, state: State, data: st.DataObject, way: list[str]) -> State:
    """Rounds of the planner, and anything else that can happen in between."""
    for _ in range(ROUNDS):
        now = walker.look(state)
        if data.draw(st.integers(0, 4)):
            way.append(names((*now.noted, *now.plan.now)) or "time passes")
            state = walker.carried_out(now)
            continue
        options = [*mended(state), *walker.others(state, now)]
        if options:
            name, state = options[data.draw(st.integers(0, len(options) - 1))]
            way.append(name)
    return state


def undisturbed(walker: Walker, state: State, way: list[str]) -> None:
    """Rounds until done."""
    for _ in range(MOST_ROUNDS):
        now = walker.look(state)
        if now.plan.done:
            check_done(now.state.truth, now.plan)
            return
        way.append(names((*now.noted, *now.plan.now)) or f"time passes, waiting for {'; '.join(now.plan.waiting)}")
        state = walker.carried_out(now)
    claim(False, "10: never done")


@pytest.mark.parametrize("losing", [False, True], ids=["faults", "faults and data loss"])
@settings(max_examples=60, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), start=st.sampled_from(REPLICAS), goal=st.sampled_from(WISHES), faults=st.integers(1, 4))
def test_planes_survive_whatever_happens(
    losing: bool, data: st.DataObject, start: int, goal: Wish, faults: int
) -> None:
    walker = Walker(wishes=WISHES, with_data_loss=losing)
    state = State(goal.of(PLANES[start]), faults=faults, wishes=2).settled()
    way = [f"{start} at east, {goal.name} wanted"]
    try:
        state = disturbed(walker, state, data, way)
        undisturbed(walker, replace(state, truth=repaired(state.truth)).settled(), way)
    except Broken as broken:
        raise Broken("\n  ".join((str(broken), *way))) from broken
