"""The loop: observe, plan, act, until all is as wanted. Crash, retry and abort are the same path as the normal run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import JsonValue

from quarterdeck.actions.carry_out import NOTES, carry_out
from quarterdeck.actions.plane import Plane
from quarterdeck.engine.events import Happening, happenings
from quarterdeck.engine.observe import Observer
from quarterdeck.engine.timeline import snapshot
from quarterdeck.engine.wording import what
from quarterdeck.errors import QuarterdeckError, Unavailable
from quarterdeck.etcd.faults import EtcdFault
from quarterdeck.model.endpoints import PersonMust
from quarterdeck.model.steps import AddLearner, Plan, SetRecord, Step
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan as planned
from quarterdeck.stores.port import JournalEntry, Outcome

#: Seconds between two observations while something is waited for, and the longest pause after failures.
POLL = 0.1
LONGEST_PAUSE = 2.0
#: A pause is at least this many times as long as the processor time of the look before it.
_LOOKING_SHARE = 6


class Watcher(Protocol):
    """Somebody who is told what happens: the terminal, a probe that has to be told in time."""

    async def observed(self, world: World, plan: Plan) -> None:
        """After each observation."""
        ...

    async def begins(self, step: Step) -> None:
        """Before a step."""
        ...

    async def ended(self, step: Step, seconds: float, error: QuarterdeckError | None) -> None:
        """After a step; ``error`` when it failed (it is tried again)."""
        ...

    async def asks(self, step: Step, must: PersonMust) -> None:
        """Again and again until a person has done what a step needs; then it ends."""
        ...


class Unwatched:
    """Nobody is told."""

    async def observed(self, world: World, plan: Plan) -> None:
        """See ``Watcher``."""

    async def begins(self, step: Step) -> None:
        """See ``Watcher``."""

    async def ended(self, step: Step, seconds: float, error: QuarterdeckError | None) -> None:
        """See ``Watcher``."""

    async def asks(self, step: Step, must: PersonMust) -> None:
        """See ``Watcher``."""


@dataclass(kw_only=True)
class Driver:
    """Drives one plane in this process. ``operation`` names what the journal's entries belong to.

    ``monotonic`` and ``processor`` (the time that this process has had of the processor) are clocks, in seconds.
    """

    plane: Plane
    observer: Observer
    operation: str = ""
    watcher: Watcher = field(default_factory=Unwatched)
    monotonic: Callable[[], float] = time.monotonic
    processor: Callable[[], float] = time.process_time
    _failures: int = 0
    _last: Mapping[str, JsonValue] = field(default_factory=dict)
    _told: frozenset[Happening] = frozenset()
    _asked: dict[Step, float] = field(default_factory=dict)

    async def run(self, *, changed: Callable[[Plane], bool] = lambda _: False) -> Plan:
        """Drive until done, or until ``changed`` says that the user wants something else. The last plan.

        Raises Conflict when another process has taken over, and what no retry can mend.
        """
        while True:
            await self._check()
            await self.plane.refresh()
            if changed(self.plane):
                return Plan(waiting=("the user wants something else",))
            began = self.processor()
            world = await self.observer.observe()
            looked = self.processor() - began
            await self._see_done(world)
            plan = await self._write_down(world)
            if plan.done:
                return plan
            if not plan.now or not await self._act(plan, world):
                # Looking must not take the processor from those that are looked at.
                pause = max(POLL, _LOOKING_SHARE * looked)
                await asyncio.sleep(min(pause * 2**self._failures, LONGEST_PAUSE))

    async def _check(self) -> None:
        if self.plane.guard is not None:
            await self.plane.guard.check()

    async def _see_done(self, world: World) -> None:
        """End the steps that a person was asked for and has taken: the plan does not have them again."""
        for step, began in tuple(self._asked.items()):
            if isinstance(step, SetRecord):
                done = world.record == step.to
            else:
                done = world.record_known and world.record is None
            if done:
                await self.plane.remember((step,))
                await self._done(step, self.monotonic() - began, {})

    async def _write_down(self, world: World) -> Plan:
        """The plan for a world, after everything that only had to be written down is written down.

        Notes change nothing outside, so what was observed is still true after them.
        """
        while True:
            plan = planned(replace(world, memory=self.plane.memory))
            await self._sample(world, plan)
            notes = tuple(step for step in plan.now if isinstance(step, NOTES))
            if not notes or len(notes) < len(plan.now):
                return plan
            await self._check()
            await self.plane.remember(notes)
            for step in notes:
                await self._journal(step, Outcome.NOTED, {})

    async def _sample(self, world: World, plan: Plan) -> None:
        await self.watcher.observed(world, plan)
        so = happenings(world)
        await self._tell(so - self._told)
        self._told = so
        seen = snapshot(world)
        if seen != self._last:
            self._last = seen
            await self.plane.store.append(
                JournalEntry(
                    plane=self.plane.name,
                    time=self.plane.clock(),
                    kind="Observed",
                    text="",
                    operation=self.operation,
                    detail=seen,
                )
            )

    async def _tell(self, happened: Iterable[Happening]) -> None:
        for each in happened:
            await self.plane.store.record(each.event(self.plane.name, self.plane.clock()))

    async def _act(self, plan: Plan, world: World) -> bool:
        """Take all steps of the plan at once. Whether they all went well and need no pause."""
        world = replace(world, memory=self.plane.memory)
        if any(isinstance(step, AddLearner) for step in plan.now):
            # etcd takes one membership change at a time, and holds up a second one for seconds.
            outcomes = [await self._take(step, world) for step in plan.now]
        else:
            taken = await asyncio.gather(*(self._take(step, world) for step in plan.now), return_exceptions=True)
            for outcome in taken:
                if isinstance(outcome, BaseException):
                    raise outcome  # after all have ended: a step is never cut off in the middle
            outcomes = [outcome is True for outcome in taken]
        well = all(outcomes)
        self._failures = 0 if well else min(self._failures + 1, 5)
        return well

    async def _take(self, step: Step, world: World) -> bool:
        await self._check()
        began = self._asked.get(step)
        if began is None:
            await self.watcher.begins(step)
            await self._journal(step, Outcome.STARTED, {})
            began = self.monotonic()
        try:
            detail = await carry_out(self.plane, step, world)
        except (Unavailable, EtcdFault) as error:
            self._asked.pop(step, None)
            seconds = self.monotonic() - began
            await self._journal(step, Outcome.FAILED, {"seconds": seconds, "error": str(error)})
            await self._tell((Happening("StepFailed", f"{what(step)}: {error}"),))
            await self.watcher.ended(step, seconds, error)
            return False
        if isinstance(detail, PersonMust):
            if step not in self._asked:
                self._asked[step] = began
                await self._tell((Happening("RecordWanted", detail.wish),))
            await self.watcher.asks(step, detail)
            return False
        await self._done(step, self.monotonic() - began, detail)
        return True

    async def _done(self, step: Step, seconds: float, detail: Mapping[str, JsonValue]) -> None:
        self._asked.pop(step, None)
        await self._journal(step, Outcome.DONE, {"seconds": seconds, **detail})
        await self.watcher.ended(step, seconds, None)

    async def _journal(self, step: Step, outcome: Outcome, detail: Mapping[str, JsonValue]) -> None:
        await self.plane.store.append(
            JournalEntry(
                plane=self.plane.name,
                time=self.plane.clock(),
                kind=type(step).__name__,
                text=what(step),
                outcome=outcome,
                operation=self.operation,
                site=step.site,
                replica=str(getattr(step, "replica", "")),
                detail={"why": step.why, **detail},
            )
        )
