"""Larger worlds than can be searched: any number of replicas from any site to any other, with several faults, repairs
and changes of mind at any moment. The same invariants hold, and once all is repaired, the plane is as wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tiers import in_each_tier, sized

from model.faults import mends, survivable
from model.faulty_truth import FaultyTruth
from model.invariants import Broken, check_done, claim, names
from model.walk import Event, Round, State, Walker, Wish, moments
from model.worlds import SITES, empty, settled, wanted

REPLICAS = (1, 3, 5)
#: Rounds with faults, and rounds after them within which the plane has to be as wanted.
ROUNDS = 60
MOST_ROUNDS = 300
#: How many planes live.
EXAMPLES = sized(smoke=15, full=60, soak=1_000)

pytestmark = pytest.mark.timeout(sized(smoke=900, full=900, soak=7200))

WISHES = tuple(Wish(f"{count} at {site}", wanted(site, count)) for site in SITES for count in REPLICAS)


#: A number from 0 up to the bound, exclusive, as the search for a counterexample likes.
Draw = Callable[[int], int]
T = TypeVar("T")


@dataclass
class Tale:
    """One plane's life: its walker, its state, and the way to it."""

    walker: Walker
    state: State
    way: list[str] = field(default_factory=list)

    def disturbed(self, draw: Draw) -> None:
        """Rounds of the planner, and now and then anything else that can happen."""
        for _ in range(ROUNDS):
            now = self.walker.look(self.state)
            if draw(5):
                self._carry_out(now)
                continue
            kind = (self._wish, self._mend, self._driver_fails, self._fails)[draw(4)]
            happening = kind(now, draw)
            if happening is not None:
                self.state = happening.state
                self.way.append(happening.name)

    def undisturbed(self) -> None:
        """All is repaired, and then there are rounds until done."""
        self.way.append("all is repaired")
        self.state = self.state.mended()
        for _ in range(MOST_ROUNDS):
            now = self.walker.look(self.state)
            if now.plan.done:
                check_done(now.state.truth, now.plan)
                return
            self._carry_out(now)
        claim(False, "10: never done")

    def _carry_out(self, now: Round) -> None:
        waiting = f"time passes: {'; '.join(map(str, now.plan.waiting))}"
        self.way.append(names((*now.noted, *now.plan.now)) or waiting)
        self.state = self.walker.carried_out(now)

    def _wish(self, _: Round, draw: Draw) -> Event | None:
        return _one([*self.walker.wished(self.state), *self.walker.landed(self.state)], draw)

    def _mend(self, _: Round, draw: Draw) -> Event | None:
        mend = _one(list(mends(self.state.truth)), draw)
        return Event(None, mend[0], replace(self.state, truth=mend[1]).settled()) if mend else None

    def _driver_fails(self, now: Round, draw: Draw) -> Event | None:
        return _one(list(self.walker.driver_failed(self.state, now)), draw) if self.state.faults else None

    def _fails(self, now: Round, draw: Draw) -> Event | None:
        moment = _one(list(moments(self.state, now)), draw)
        fault = _one(list(self.walker.faults(moment.state.truth)), draw) if moment and self.state.faults else None
        if moment is None or fault is None:
            return None
        struck = moment.struck(fault)
        return Event(fault.kind, f"{fault.name}{moment}", struck) if survivable(struck.truth) else None


def _one(things: list[T], draw: Draw) -> T | None:
    return things[draw(len(things))] if things else None


def lived(start: FaultyTruth, goal: Wish, faults: int, draw: Draw, *, losing: bool) -> int:
    """Live one life; raises Broken. How many steps it had."""
    walker = Walker(wishes=WISHES, with_data_loss=losing)
    tale = Tale(walker, State(goal.of(start), faults=faults, wishes=2).settled(), [f"{goal.name} wanted"])
    try:
        tale.disturbed(draw)
        tale.undisturbed()
    except Broken as broken:
        raise Broken("\n  ".join((str(broken), *tale.way))) from broken
    return walker.steps


@in_each_tier
@pytest.mark.parametrize("losing", [False, True], ids=["faults", "faults and data loss"])
def test_planes_survive_whatever_happens(losing: bool) -> None:
    planes = [settled(empty("east", count, front=front)) for count in REPLICAS for front in (None, "east", "north")]
    counts: list[int] = []

    @settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(data=st.data(), start=st.sampled_from(planes), goal=st.sampled_from(WISHES), faults=st.integers(1, 4))
    def live(data: st.DataObject, start: FaultyTruth, goal: Wish, faults: int) -> None:
        def draw(bound: int) -> int:
            return data.draw(st.integers(0, bound - 1))

        counts.append(lived(start, goal, faults, draw, losing=losing))

    live()
    print(f"\n{len(counts)} planes lived through {sum(counts):,} steps")
