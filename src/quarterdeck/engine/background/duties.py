"""What is done for a plane beside driving it, under the same lease. A duty is one record, of two shapes: a short turn
between the driver's steps, or a long task that goes on beside them.
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
from quarterdeck.actions.tasks import cut_off
from quarterdeck.api.events import EventReason
from quarterdeck.engine.notices.journal import tell_step
from quarterdeck.engine.notices.troubles import Disposition, Failures, Troubles, fate
from quarterdeck.model.endpoints import Must
from quarterdeck.model.steps.base import Step
from quarterdeck.model.world import World
from quarterdeck.stores.port import EntryOutcome

# Steps that a duty takes for a plane at rest, told in its journal as those of its driver are.


async def tend(plane: Plane, step: Step, world: World) -> None:
    """Take it, and tell of it."""
    began = asyncio.get_running_loop().time()
    detail = await carry_out(plane, step, world)
    assert not isinstance(detail, Must)
    seconds = asyncio.get_running_loop().time() - began
    await tell_step(plane, step, EntryOutcome.DONE, {"seconds": seconds, **detail})


# Tasks of a plane that take minutes: they go on beside its steps, and end with its lease.

#: Seconds for which a task that failed is not begun again, doubled with each failure in a row, and the longest.
SHORTEST_PAUSE = 5.0
LONGEST_PAUSE = 300.0
#: Seconds between two looks whether the lease is still held.
_PULSE = 1.0

#: Returns only if nobody else can hold the plane's lease now; raises LeaseLost.
Check: TypeAlias = Callable[[], Awaitable[None]]
#: What a long task does, from its beginning to its end. It gets the check of the lease, for right before each effect.
#: Nobody waits for it. It can be cancelled at any await, and undoes then what must not stay. The plane may be opened
#: again, or be deleted, while it goes on: it uses what outlives that, such as the store. What it raises is told once,
#: and it is begun again after a while, if it is still due.
Work: TypeAlias = Callable[[Check], Coroutine[Any, Any, None]]


@dataclass(kw_only=True)
class LongTasks:
    """The long tasks of one plane, for as long as its lease is held; at most one of each name at a time."""

    plane: str
    check: Check
    troubles: Troubles
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    #: Of tasks that failed when they last ran: how often in a row, and until when each is not begun again.
    _failed: dict[str, tuple[int, float]] = field(default_factory=dict)
    _failures: Failures = field(init=False)

    def __post_init__(self) -> None:
        self._failures = Failures(troubles=self.troubles, reason=EventReason.DUTY_FAILED)

    def may_begin(self, name: str) -> bool:
        """Whether none of that name is under way, nor has just failed."""
        _, until = self._failed.get(name, (0, 0.0))
        return name not in self._running and asyncio.get_running_loop().time() >= until

    def begin(self, name: str, work: Work) -> None:
        """Have a task begin that ``may_begin``."""
        assert name not in self._running, f"{name} is under way"
        task = asyncio.create_task(self._whole(name, work), name=f"{name} of {self.plane}")
        self._running[name] = task
        task.add_done_callback(lambda _: self._running.pop(name))

    async def end(self) -> None:
        """Cancel all that are under way, and return when they have ended."""
        await cut_off(*self._running.values())

    async def _whole(self, name: str, work: Work) -> None:
        try:
            await self._while_held(name, work)
        except Exception as error:  # noqa: BLE001 - whatever ails a task, the plane is kept
            await self._ended_badly(name, error)
        else:
            self._failed.pop(name, None)
            self._failures.went_well(name)

    async def _while_held(self, name: str, work: Work) -> None:
        """Do the work, and cancel it when the lease is lost. Raises LeaseLost then, and what the work raises."""
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
            return  # the driver learns of it by itself, and ends the others
        times = self._failed.get(name, (0, 0.0))[0]
        pause = min(SHORTEST_PAUSE * 2**times, LONGEST_PAUSE)
        self._failed[name] = times + 1, asyncio.get_running_loop().time() + pause
        await self._failures.tell(name, error)


#: Seconds: between the beginnings of two turns, for one duty in one turn, and for how long steps wait for its end.
EVERY = 5.0
LONGEST = 30.0
_GRACE = 2.0


def share(plane: str) -> float:
    """How much of the time until a duty's first turn has passed already (0 to 1): not all planes begin at once."""
    return zlib.crc32(plane.encode()) / 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTurn:
    """A duty that is seen to in turns. ``name`` is what it is, in a few words, as people read it when it fails.

    ``turn`` sees to it once, by a look at which the driver has nothing to do. It is small: one change at most, and done
    in a moment. It can be cancelled at any await, and comes again. What it raises is told once, and ends nothing. Right
    before each effect: ``await plane.check()``.
    """

    name: str
    turn: Callable[[Plane, World], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LongTask:
    """A duty that takes longer than steps may wait. ``due`` is asked in turns, while none of it is under way, and says
    what is to be done now, or None. Like a turn, it is small. What it returns is begun beside the steps (``Work``).
    """

    name: str
    due: Callable[[Plane, World], Awaitable[Work | None]]


Duty: TypeAlias = ShortTurn | LongTask


@dataclass(kw_only=True)
class Duties:
    """The duties of one plane in use. A turn never runs beside a step: steps wait for it, for a moment. ``tasks`` are
    the long ones that are under way, which steps do not wait for.
    """

    troubles: Troubles
    tasks: LongTasks
    duties: Sequence[Duty] = ()
    _turn: asyncio.Task[None] | None = None
    _began: float = -math.inf
    _failures: Failures = field(init=False)

    def __post_init__(self) -> None:
        self._failures = Failures(troubles=self.troubles, reason=EventReason.DUTY_FAILED)

    def begin(self, plane: Plane, world: World) -> None:
        """Have a turn taken, unless one is under way or was lately."""
        loop = asyncio.get_running_loop()
        if self.duties and self._turn is None and loop.time() - self._began >= EVERY:
            self._began = loop.time()
            self._turn = loop.create_task(self._all(plane, world), name=f"duties of {plane.name}")
            self._turn.add_done_callback(self._over)

    async def give_way(self) -> None:
        """Return once no turn is under way: one that takes longer than a moment is cancelled."""
        if self._turn is not None:
            await asyncio.wait((self._turn,), timeout=_GRACE)
            await self.end()

    async def end(self) -> None:
        """Cancel the turn that is under way, if one is. Long tasks go on."""
        if self._turn is not None:
            turn = self._turn
            turn.cancel()
            await asyncio.wait((turn,))

    def _over(self, turn: asyncio.Task[None]) -> None:
        if self._turn is turn:
            self._turn = None

    async def _all(self, plane: Plane, world: World) -> None:
        for duty in self.duties:
            try:
                async with asyncio.timeout(LONGEST):
                    await self._one(duty, plane, world)
            except TimeoutError as error:
                await self._failures.tell(duty.name, error, f"its turn was not over after {LONGEST:.0f} s")
            except Exception as error:  # noqa: BLE001 - whatever ails a duty, the plane is kept
                await self._failures.tell(duty.name, error)
            else:
                self._failures.went_well(duty.name)

    async def _one(self, duty: Duty, plane: Plane, world: World) -> None:
        if isinstance(duty, ShortTurn):
            await duty.turn(plane, world)
        elif self.tasks.may_begin(duty.name):
            work = await duty.due(plane, world)
            if work is not None:
                await plane.check()
                self.tasks.begin(duty.name, work)
