"""What is done for a plane beside driving it, under the same lease. A duty is one record, of two shapes: a short turn
between the driver's steps, or a long task that goes on beside them (``long_tasks.py``).
"""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from quarterdeck.actions.plane import Plane
from quarterdeck.engine.background.long_tasks import LongTasks, Work
from quarterdeck.engine.notices.failures import Failures
from quarterdeck.engine.notices.troubles import Troubles
from quarterdeck.model.world import World

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
        self._failures = Failures(troubles=self.troubles, reason="DutyFailed")

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
