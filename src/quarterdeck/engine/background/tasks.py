"""Background tasks of a plane, under the driver's lease. A background task has one of two forms: a short turn between
the driver's steps, or a long task that runs concurrently with them.
"""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.plane import Plane
from quarterdeck.api.events import EventReason
from quarterdeck.concurrency import cut_off
from quarterdeck.engine.notices.journal import tell_step
from quarterdeck.engine.notices.troubles import Disposition, Failures, Troubles, fate
from quarterdeck.model.endpoints import Must
from quarterdeck.model.steps.base import Step
from quarterdeck.model.world import World
from quarterdeck.stores.port import EntryOutcome

# Steps that a background task takes while the driver has none, with the same journal entries.


async def tend(plane: Plane, step: Step, world: World) -> None:
    """Take the step, and write it to the journal."""
    began = asyncio.get_running_loop().time()
    detail = await carry_out(plane, step, world)
    assert not isinstance(detail, Must)
    seconds = asyncio.get_running_loop().time() - began
    await tell_step(plane, step, EntryOutcome.DONE, {"seconds": seconds, **detail})


# Tasks of a plane that take minutes: they run concurrently with its steps, and end with its lease.

#: Seconds of backoff after a task failed, doubled with each failure in a row, and the maximum.
SHORTEST_PAUSE = 5.0
LONGEST_PAUSE = 300.0
#: Seconds between two checks of the lease.
_PULSE = 1.0

#: Returns only if no other process can hold the plane's lease now; raises LeaseLost.
Check: TypeAlias = Callable[[], Awaitable[None]]
#: The work of a long task. It gets the check of the lease, which it calls right before each effect. Nothing waits for
#: it. It can be cancelled at any await, and then undoes what must not stay. The plane may be opened again, or be
#: deleted, while it runs: it uses what outlives that, such as the store. An exception is reported once, and the work is
#: started again after a backoff, if it is still due.
Work: TypeAlias = Callable[[Check], Coroutine[Any, Any, None]]


@dataclass(kw_only=True)
class LongTasks:
    """The long tasks of one plane, for as long as its lease is held; at most one of each name at a time."""

    plane: str
    check: Check
    troubles: Troubles
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    #: For tasks whose last run failed: the failures in a row, and the end of the backoff.
    _failed: dict[str, tuple[int, float]] = field(default_factory=dict)
    _failures: Failures = field(init=False)

    def __post_init__(self) -> None:
        self._failures = Failures(troubles=self.troubles, reason=EventReason.BACKGROUND_TASK_FAILED)

    def may_begin(self, name: str) -> bool:
        """Whether no task of that name runs or is in backoff."""
        _, until = self._failed.get(name, (0, 0.0))
        return name not in self._running and asyncio.get_running_loop().time() >= until

    def begin(self, name: str, work: Work) -> None:
        """Start a task that ``may_begin``."""
        assert name not in self._running, f"{name} runs already"
        task = asyncio.create_task(self._whole(name, work), name=f"{name} of {self.plane}")
        self._running[name] = task
        task.add_done_callback(lambda _: self._running.pop(name))

    async def end(self) -> None:
        """Cancel all running tasks, and return when they have ended."""
        await cut_off(*self._running.values())

    async def _whole(self, name: str, work: Work) -> None:
        try:
            await self._while_held(name, work)
        except Exception as error:  # noqa: BLE001 - an error of a task must not end the driver
            await self._ended_badly(name, error)
        else:
            self._failed.pop(name, None)
            self._failures.went_well(name)

    async def _while_held(self, name: str, work: Work) -> None:
        """Run the work, and cancel it when the lease is lost. Raises LeaseLost then, and what the work raises."""
        doing = asyncio.create_task(work(self.check), name=f"{name} of {self.plane}, its work")
        holding = asyncio.create_task(self._held(), name=f"lease of {name} of {self.plane}")
        try:
            await asyncio.wait((doing, holding), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cut_off(doing, holding)
        ended = holding if doing.cancelled() else doing
        ended.result()

    async def _held(self) -> None:
        while True:
            await self.check()
            await asyncio.sleep(_PULSE)

    async def _ended_badly(self, name: str, error: Exception) -> None:
        if fate(error) is Disposition.OVER:
            return  # the driver meets the same error, and ends all tasks
        times = self._failed.get(name, (0, 0.0))[0]
        pause = min(SHORTEST_PAUSE * 2**times, LONGEST_PAUSE)
        self._failed[name] = times + 1, asyncio.get_running_loop().time() + pause
        await self._failures.tell(name, error)


#: Seconds: between the starts of two turns, the timeout of one background task in a turn, and how long steps wait for
#: its end.
EVERY = 5.0
LONGEST = 30.0
_GRACE = 2.0


def share(plane: str) -> float:
    """The elapsed share (0 to 1) of the time until a background task's first turn, so that not all planes begin at
    once.
    """
    return zlib.crc32(plane.encode()) / 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTurn:
    """A background task that works in short turns. ``name`` describes it in a few words, for messages.

    ``turn`` is called with an observation after which the driver has nothing to do. It is short: one change at most. It
    can be cancelled at any await, and is called again later. An exception is reported once, and ends nothing else.
    Right before each effect: ``await plane.check()``.
    """

    name: str
    turn: Callable[[Plane, World], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LongTask:
    """A background task that takes longer than steps may wait. ``due`` is called in turns, while its task does not run,
    and returns the work that is due now, or None. Like a turn, it is short. The work runs concurrently with the steps
    (``Work``).
    """

    name: str
    due: Callable[[Plane, World], Awaitable[Work | None]]


BackgroundTask: TypeAlias = ShortTurn | LongTask


@dataclass(kw_only=True)
class BackgroundTasks:
    """The background tasks of one plane in use. A turn never runs at the same time as a step: steps wait for it, for a
    moment. ``tasks`` are the running long tasks, for which steps do not wait.
    """

    troubles: Troubles
    tasks: LongTasks
    background_tasks: Sequence[BackgroundTask] = ()
    _turn: asyncio.Task[None] | None = None
    _began: float = -math.inf
    _failures: Failures = field(init=False)

    def __post_init__(self) -> None:
        self._failures = Failures(troubles=self.troubles, reason=EventReason.BACKGROUND_TASK_FAILED)

    def begin(self, plane: Plane, world: World) -> None:
        """Start a turn, unless one runs or ran lately."""
        loop = asyncio.get_running_loop()
        if self.background_tasks and self._turn is None and loop.time() - self._began >= EVERY:
            self._began = loop.time()
            self._turn = loop.create_task(self._all(plane, world), name=f"background tasks of {plane.name}")
            self._turn.add_done_callback(self._over)

    async def give_way(self) -> None:
        """Return once no turn runs: one that takes longer than a moment is cancelled."""
        if self._turn is not None:
            await asyncio.wait((self._turn,), timeout=_GRACE)
            await self.end()

    async def end(self) -> None:
        """Cancel the running turn, if there is one. Long tasks keep running."""
        if self._turn is not None:
            turn = self._turn
            turn.cancel()
            await asyncio.wait((turn,))

    def _over(self, turn: asyncio.Task[None]) -> None:
        if self._turn is turn:
            self._turn = None

    async def _all(self, plane: Plane, world: World) -> None:
        for task in self.background_tasks:
            try:
                async with asyncio.timeout(LONGEST):
                    await self._one(task, plane, world)
            except TimeoutError as error:
                await self._failures.tell(task.name, error, f"its turn did not end within {LONGEST:.0f} s")
            except Exception as error:  # noqa: BLE001 - an error of a background task must not end the driver
                await self._failures.tell(task.name, error)
            else:
                self._failures.went_well(task.name)

    async def _one(self, task: BackgroundTask, plane: Plane, world: World) -> None:
        if isinstance(task, ShortTurn):
            await task.turn(plane, world)
        elif self.tasks.may_begin(task.name):
            work = await task.due(plane, world)
            if work is not None:
                await plane.check()
                self.tasks.begin(task.name, work)
