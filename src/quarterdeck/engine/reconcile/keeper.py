"""Keeping one plane: its lease is held, what is wanted is brought about, and it is looked at again and again."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from typing_extensions import override

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.engine.background.duties import Duty
from quarterdeck.engine.notices.troubles import MET
from quarterdeck.engine.notices.watchers import Unwatched, Watcher
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import leases
from quarterdeck.engine.workspace.operations import Wants, wants
from quarterdeck.errors import Conflict, Gone, LeaseLost, NotFound, QuarterdeckError
from quarterdeck.model.steps.base import Step

#: Seconds between two looks at a plane that is as wanted. Planes take turns: all of one second share their looks.
CADENCE = 5.0
_SOONEST = 0.5
#: Seconds for which a keeper that met what no retry mends does nothing, doubled each time, and the longest.
SHORTEST = 5.0
LONGEST = 300.0
#: Seconds between two looks whether another driver has ended.
_STANDING_BY = 1.0


class Log(Protocol):
    """Where a manager tells what it does: an event in a few words, and facts by name."""

    def info(self, event: str, **facts: object) -> object:
        """What is as it should be."""
        ...

    def warning(self, event: str, **facts: object) -> object:
        """What a person may have to look at."""
        ...


@dataclass(kw_only=True, eq=False)
class Keeper:
    """Keeps one plane until it is gone. ``clock`` only grows, in seconds. What it meets ends no other keeper."""

    plane: str
    engine: Engine
    log: Log
    duties: Sequence[Duty] = ()
    clock: Callable[[], float] = time.monotonic
    news: int = 0
    _poked: asyncio.Event = field(default_factory=asyncio.Event)
    _told: str = ""

    def poke(self, *, news: bool = False) -> None:
        """Something that is stored of the plane has changed; ``news``: something beside it that it depends on."""
        self.news += news
        self._poked.set()

    async def run(self) -> None:
        """Keep it. Returns when it is gone."""
        pause = SHORTEST
        while True:
            began = self.clock()
            try:
                await self._stand_by()
                await self.engine.keep(self.plane, self)
                return
            except Gone:
                return
            except Conflict as error:  # another driver has its lease, or took it from a process that stood still
                self._tell(f"another one drives: {error.seen}")
                await asyncio.sleep(_STANDING_BY)
                continue
            except Exception as error:  # noqa: BLE001 - whatever ails one plane, the others are kept
                known = isinstance(error, QuarterdeckError)
                self._tell(str(error) or type(error).__name__, exc_info=None if known else error)
            pause = SHORTEST if self.clock() - began > LONGEST else pause
            pause = SHORTEST if await self._changed_within(pause) else min(2 * pause, LONGEST)

    async def go_on(self) -> None:
        """See ``IdleWait``: a process may have asked to be left alone with the plane."""
        lent = await self.engine.home.store.lease(leases.loan_name(self.plane))
        if lent is not None:
            raise LeaseLost(f"keeping plane {self.plane}", f"{lent.holder} wants to drive it", "it is kept afterwards")

    async def over(self, wanted: Wants) -> None:
        """See ``IdleWait``: the plane's turn comes, or something else is wanted."""
        self._tell("")
        await self._until(self._turn(self.clock()), wanted, self.news)

    def _turn(self, now: float) -> float:
        """When the plane is to be looked at again."""
        own = zlib.crc32(self.plane.encode()) % CADENCE
        next_one = now - (now - own) % CADENCE + CADENCE
        return next_one if next_one - now >= _SOONEST else next_one + CADENCE

    async def _changed_within(self, seconds: float) -> bool:
        """Wait so long, or until something else is wanted. Whether that is so."""
        end = self.clock() + seconds
        try:
            stored = await self._stored()
            if stored is not None:
                return await self._until(end, wants(stored), self.news)
        except MET:  # the store is the trouble, or is in trouble as well
            await asyncio.sleep(max(0.0, end - self.clock()))
        return False

    async def _until(self, end: float, wanted: Wants, news: int) -> bool:
        """Wait until then, or until something else is wanted: its own writes wake it, too. Whether that is so."""
        while self.news == news:
            try:
                async with asyncio.timeout(end - self.clock()):
                    await self._poked.wait()
            except TimeoutError:
                return False
            self._poked.clear()
            stored = await self._stored()
            if stored is None or wants(stored) != wanted:
                return True
        return True

    async def _stored(self) -> ControlPlane | None:
        try:
            return await self.engine.home.store.get(ControlPlane, self.plane)
        except NotFound:
            return None

    async def _stand_by(self) -> None:
        """Return when nobody holds the plane's lease, or wants to."""
        for lease in (leases.loan_name(self.plane), leases.lease_name(self.plane)):
            while await self.engine.home.store.lease(lease) is not None:  # noqa: ASYNC110 - it may run out in silence
                await asyncio.sleep(_STANDING_BY)

    def _tell(self, trouble: str, **facts: object) -> None:
        """Tell of a trouble once, and of its end."""
        if trouble and trouble != self._told:
            self.log.warning(trouble, plane=self.plane, **facts)
        elif self._told and not trouble:
            self.log.info("it is kept again", plane=self.plane)
        self._told = trouble


@dataclass(frozen=True, kw_only=True)
class Steps(Unwatched, Watcher):
    """A ``Watcher`` that tells a log of a plane's steps."""

    plane: str
    log: Log

    @override
    async def lasts(self, step: Step, seconds: float) -> None:
        facts = {"plane": self.plane, "kind": step.kind, "so_far_s": seconds}
        self.log.info(step.words, **facts, why=step.takes_long)

    @override
    async def ended(self, step: Step, seconds: float, error: QuarterdeckError | None) -> None:
        facts = {"plane": self.plane, "kind": step.kind, "seconds": round(seconds, 3)}
        if error is None:
            self.log.info(step.words, **facts)
        else:
            self.log.warning(step.words, failed=str(error), **facts)

    @override
    async def troubled(self, error: QuarterdeckError) -> None:
        """See ``Watcher``. Of a defect the log keeps the traceback."""
        cause = error.__cause__
        defect = cause if cause is not None and not isinstance(cause, MET) else None
        self.log.warning(str(error), plane=self.plane, **({"exc_info": defect} if defect is not None else {}))
