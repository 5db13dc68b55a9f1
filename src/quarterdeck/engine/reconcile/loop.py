"""The loop: observe, plan, act, until the plane is up to date. Crash, retry and abort take the same path."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.hold import let_go_all
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import adopt, refresh, remember, write_status
from quarterdeck.api.events import EventReason
from quarterdeck.concurrency import together
from quarterdeck.endpoint.port import OwnServer
from quarterdeck.engine.background.tasks import BackgroundTasks
from quarterdeck.engine.notices.conditions import judged, reworded, turned
from quarterdeck.engine.notices.events import Happening, event_of, happenings
from quarterdeck.engine.notices.journal import JournalFilter, tell_step
from quarterdeck.engine.notices.troubles import MET, Disposition, Troubles, fate, in_words
from quarterdeck.engine.observation.membership_watch import MembershipWatch
from quarterdeck.engine.observation.observe import Observer
from quarterdeck.engine.reconcile.step_backoff import StepBackoff
from quarterdeck.model.endpoints import Must
from quarterdeck.model.steps.base import Note, Step
from quarterdeck.model.steps.members import AddLearner
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.model.steps.traffic import SetRecord
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan as planned
from quarterdeck.stores.port import EntryOutcome, JournalEntry

#: Seconds between two observations while the plan has waits.
POLL = 0.1
#: A pause is at least this many times as long as the processor time of the last observation.
_LOOKING_SHARE = 6
#: Seconds between two writes of conditions that differ only in messages.
_WORDS_APART = 2.0
#: Seconds after which a running step is reported.
_LASTS = 10.0
#: The wait of a plan that is not carried out.
_OTHER = Wait("the new spec", "quarterdeck continues once it has read it")
#: Seconds between two attempts to start a DNS server of quarterdeck's that does not answer.
_NAME_AGAIN = 2.0


@dataclass(kw_only=True)
class Driver:
    """Drives one plane in this process. ``troubles`` decides about errors, and reports events.

    ``monotonic`` and ``processor`` (the processor time of this process) are clocks, in seconds. ``acted`` counts the
    observations that were followed by steps.
    """

    plane: Plane
    observer: Observer
    troubles: Troubles
    monotonic: Callable[[], float] = time.monotonic
    processor: Callable[[], float] = time.process_time
    background_tasks: BackgroundTasks | None = None
    acted: int = 0
    _timeline: JournalFilter = field(default_factory=JournalFilter)
    _looks: int = 0
    _pause: float = POLL
    _asked: dict[Step, float] = field(default_factory=dict)
    _aside: StepBackoff = field(default_factory=StepBackoff)
    _worded: float = -math.inf
    _name_started: float = -math.inf
    _left: tuple[str, ...] = ()
    _membership: MembershipWatch = field(default_factory=MembershipWatch)

    async def run(self, *, changed: Callable[[Plane], bool] = lambda _: False) -> Plan:
        """Drive until done, or until ``changed`` reports a new spec. Returns the last plan.

        Failures are retried, each time from a new observation. Raises only errors that ``fate`` does not retry.
        """
        while True:
            try:
                plan, well = await self._round(changed)
            except MET as error:
                await self.troubles.meet(error)
            else:
                if plan is not None:
                    return plan
                self.troubles.went(well=well is not False)
                if well is True:
                    continue
            await asyncio.sleep(self.troubles.pause(self._pause))

    async def look_on(self, paused: str) -> None:
        """One observation without steps, for a paused plane; ``paused`` is the reason."""
        await self.plane.check()
        await refresh(self.plane)
        world = await self.observer.observe()
        plan = planned(world.with_memory(self.plane.memory))
        await self._sample(world, plan)
        await self._tell(world, plan, paused)

    async def _round(self, changed: Callable[[Plane], bool]) -> tuple[Plan | None, bool | None]:
        """Observe, note, act. The plan if it was the last one, and whether all steps succeeded (None: none)."""
        await self.plane.check()
        await refresh(self.plane)
        await adopt(self.plane)
        if changed(self.plane):
            return Plan(waiting=(_OTHER,)), None
        world = await self._look()
        await self._name_server(world)
        await self._see_done(world)
        plan = await self._write_down(world)
        await self._tell(world, plan)
        if not plan.now and self.background_tasks is not None:
            self.background_tasks.begin(self.plane, world)
        if self._is_over(plan):
            return plan, None
        return None, await self._act(plan, world) if plan.now else None

    def _is_over(self, plan: Plan) -> bool:
        """Whether nothing is left to do. One unanswered observation is no reason to accept a leftover: two observations
        in a row must find it.
        """
        before, self._left = self._left, plan.leftovers if plan.done else ()
        return plan.done and plan.leftovers in ((), before)

    async def _look(self) -> World:
        """One observation. With the first one, load balancers that a previous driver may have paused are resumed."""
        began = self.processor()
        if self._looks == 0:
            world, _ = await together(self.observer.observe(), let_go_all(self.plane))
            assert isinstance(world, World)
        else:
            world = await self.observer.observe()
        self._looks += 1
        # Observation must not take the processor from the observed programs.
        self._pause = max(POLL, _LOOKING_SHARE * (self.processor() - began))
        return world

    async def _name_server(self, world: World) -> None:
        """Restart a DNS server of quarterdeck's that does not answer: a managed plane is rarely opened again."""
        now, well = self.monotonic(), world.record_known and not world.torn
        if well or not isinstance(self.plane.dns, OwnServer) or now - self._name_started < _NAME_AGAIN:
            return
        self._name_started = now
        await self.plane.check()
        try:
            await self.plane.dns.start()
        except MET as error:
            await self.troubles.meet(error)

    async def _see_done(self, world: World) -> None:
        """Finish the steps whose manual change a person has made: the plan no longer has them."""
        for step, began in tuple(self._asked.items()):
            if isinstance(step, SetRecord):
                done = world.record == step.to
            else:
                done = world.record_known and world.record is None
            if done:
                await remember(self.plane, (step,))
                await self._done(step, began, {})

    async def _write_down(self, world: World) -> Plan:
        """The plan for a world, after all notes are written.

        Notes change nothing outside, so the observation is still valid after them, except for what it says of an etcd
        that a new epoch replaces.
        """
        while True:
            now = replace(world.with_memory(self.plane.memory), failing=self._aside.now(self.monotonic()))
            plan = planned(now)
            await self._sample(world, plan)
            notes = tuple(step for step in plan.now if isinstance(step, Note))
            if not notes or len(notes) < len(plan.now):
                return plan
            await self.plane.check()
            await remember(self.plane, notes)
            for step in notes:
                await self._journal(step, EntryOutcome.NOTED, {})
            await self.troubles.tell(*(happening for step in notes if (happening := event_of(step)) is not None))

    async def _tell(self, world: World, plan: Plan, paused: str = "") -> None:
        """Write the conditions that changed; changes of messages alone at most every two seconds. A deleted plane of
        which nothing is left gets none.
        """
        if plan.done and world.deleting:
            return
        asked = tuple(f"{step.words} needs a manual change" for step in self._asked)
        late = self.monotonic() - self._worded > _WORDS_APART
        async with self.plane.writing:  # so that no condition of a background task is overwritten with an older one
            resource = self.plane.resource
            before, generation = resource.status.conditions, resource.metadata.generation
            now = self.plane.clock()
            conditions = judged(before, world, plan, asked=asked, generation=generation, now=now, paused=paused)
            if turned(before, conditions) or (reworded(before, conditions) and (late or plan.done)):
                await write_status(self.plane, conditions=conditions, observed_generation=generation)
                self._worded = self.monotonic()

    async def _sample(self, world: World, plan: Plan) -> None:
        await self.troubles.watch(lambda watcher: watcher.observed(world, plan))
        current = happenings(world)
        created = self.plane.resource.metadata.creation_timestamp
        await self.troubles.tell_now(current, created.timestamp() if created is not None else 0.0)
        await self.troubles.tell(*self._membership.news(world))
        seen = self._timeline.news(world, self.monotonic())
        if seen is not None:
            await self.plane.store.append(
                JournalEntry(
                    plane=self.plane.name,
                    time=self.plane.clock(),
                    kind="Observed",
                    text="",
                    operation=self.troubles.operation,
                    detail=seen,
                )
            )

    async def _act(self, plan: Plan, world: World) -> bool:
        """Take all steps of the plan at once. Returns whether all succeeded and need no pause."""
        if self.background_tasks is not None:
            await self.background_tasks.give_way()
        self.acted += 1
        world = world.with_memory(self.plane.memory)
        self._aside.looked(plan, self.monotonic())
        if any(isinstance(step, AddLearner) for step in plan.now):
            # etcd takes one membership change at a time, and delays a second one for seconds.
            outcomes = [await self._take(step, world) for step in plan.now]
        else:
            outcomes = await together(*(self._take(step, world) for step in plan.now))
        return all(outcomes)

    async def _take(self, step: Step, world: World) -> bool:
        tried = self.monotonic()
        began = self._asked.get(step, tried)
        if step not in self._asked and not self._aside.knows(step):
            await self.troubles.watch(lambda watcher: watcher.begins(step))
            await self._journal(step, EntryOutcome.STARTED, {})
        self._membership.tried(step)
        lasts = asyncio.create_task(self._tell_that_it_lasts(step), name=f"report that this step lasts: {step.words}")
        try:
            detail = await carry_out(self.plane, step, world)
        except MET as error:
            if fate(error) is not Disposition.AGAIN:
                raise
            await self._not_yet(step, tried, error)
            return False
        finally:
            lasts.cancel()
        if isinstance(detail, Must):
            if step not in self._asked:
                self._asked[step] = began
                await self.troubles.tell(Happening(EventReason.MANUAL_CHANGE_REQUIRED, detail.wish))
            await self.troubles.watch(lambda watcher: watcher.asks(step, detail))
            return False
        await self._done(step, began, detail)
        return True

    async def _tell_that_it_lasts(self, step: Step) -> None:
        await asyncio.sleep(_LASTS)
        await self.troubles.watch(lambda watcher: watcher.lasts(step, _LASTS))

    async def _not_yet(self, step: Step, began: float, error: Exception) -> None:
        """A step failed: it is in backoff, and then taken again if it is still planned. The same error is reported
        once.
        """
        self._asked.pop(step, None)
        known, now = in_words(error), self.monotonic()
        if not self._aside.put(step, str(known), began=began, at=now):
            return
        seconds = now - began
        await self.troubles.watch(lambda watcher: watcher.ended(step, seconds, known))
        await self._journal(step, EntryOutcome.FAILED, {"seconds": seconds, "error": str(known)})
        await self.troubles.tell(Happening(EventReason.STEP_FAILED, f"{step.words}: {known}"))

    async def _done(self, step: Step, began: float, detail: Mapping[str, JsonValue]) -> None:
        self._asked.pop(step, None)
        seconds = self.monotonic() - began
        if self._aside.went(step):
            await self._journal(step, EntryOutcome.STARTED, {}, ago=seconds)  # the attempt that succeeded
        await self._journal(step, EntryOutcome.DONE, {"seconds": seconds, **detail})
        await self.troubles.watch(lambda watcher: watcher.ended(step, seconds, None))

    async def _journal(
        self, step: Step, outcome: EntryOutcome, detail: Mapping[str, JsonValue], ago: float = 0.0
    ) -> None:
        await tell_step(self.plane, step, outcome, detail, operation=self.troubles.operation, ago=ago)
