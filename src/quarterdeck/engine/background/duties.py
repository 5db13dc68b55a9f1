"""What is done for a plane beside driving it, under the same lease: each duty in turns between the driver's steps."""

from __future__ import annotations

import asyncio
import contextlib
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from quarterdeck.actions.plane import Plane
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.notices.troubles import MET, Troubles, in_words
from quarterdeck.errors import Unavailable
from quarterdeck.model.world import World

#: Seconds: between the beginnings of two turns, for one duty in one turn, and for how long steps wait for its end.
EVERY = 5.0
LONGEST = 30.0
_GRACE = 2.0


def share(plane: str) -> float:
    """How much of the time until a duty's first turn has passed already (0 to 1): not all planes begin at once."""
    return zlib.crc32(plane.encode()) / 2**32


class Duty(Protocol):
    """Something that is done for one plane for as long as it is kept. It may remember what it has done."""

    @property
    def name(self) -> str:
        """What it is, in a word, as people read it when it fails."""
        ...

    async def turn(self, plane: Plane, world: World) -> None:
        """See to it once, by a look at which the driver has nothing to do. Small: one change at most, and done in a
        moment. It can be cancelled at any await, and comes again. What it raises is told once, and ends nothing.

        Right before each effect: ``await plane.check()``.
        """
        ...


@dataclass(kw_only=True)
class Duties:
    """The duties of one plane in use. A turn never runs beside a step: steps wait for it, for a moment."""

    troubles: Troubles
    duties: Sequence[Duty] = ()
    _turn: asyncio.Task[None] | None = None
    _began: float = -math.inf
    _told: dict[str, str] = field(default_factory=dict)

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
        """Cancel the turn that is under way, if one is."""
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
                    await duty.turn(plane, world)
            except TimeoutError:
                await self._failed(duty, f"its turn was not over after {LONGEST:.0f} s")
            except MET as error:
                await self._failed(duty, str(in_words(error)))
            except Exception as error:  # noqa: BLE001 - whatever ails a duty, the plane is kept
                await self._failed(duty, f"{type(error).__name__}: {error}")
            else:
                self._told.pop(duty.name, None)

    async def _failed(self, duty: Duty, seen: str) -> None:
        if self._told.get(duty.name) != seen:
            self._told[duty.name] = seen
            with contextlib.suppress(Unavailable):  # then it is told with what comes next
                await self.troubles.tell(Happening("DutyFailed", f"{duty.name}: {seen}"))
