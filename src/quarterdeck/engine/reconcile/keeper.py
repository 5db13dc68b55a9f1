"""The manager's task for one plane: it holds the lease, drives the plane, and observes it periodically."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from typing_extensions import override

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.engine.background.tasks import BackgroundTask
from quarterdeck.engine.notices.troubles import MET
from quarterdeck.engine.notices.watchers import Unwatched, Watcher
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import leases
from quarterdeck.engine.workspace.operations import Wants, wants
from quarterdeck.errors import Conflict, Gone, LeaseLost, NotFound, QuarterdeckError
from quarterdeck.model.steps.base import Step

#: Seconds between two observations of a plane that is up to date. Planes of one phase share site observations.
CADENCE = 5.0
_SOONEST = 0.5
#: Seconds of backoff of a keeper after an error that no retry fixes, doubled each time, and the maximum.
SHORTEST = 5.0
LONGEST = 300.0
#: Seconds between two checks whether another driver has ended.
_STANDING_BY = 1.0


class Log(Protocol):
    """The log of a manager: an event in a few words, and facts by name."""

    def info(self, event: str, **facts: object) -> object:
        """Log a normal event."""
        ...

    def warning(self, event: str, **facts: object) -> object:
        """Log an event that may need a person."""
        ...


@dataclass(kw_only=True, eq=False)
class Keeper:
    """Manages one plane until it is deleted. ``clock`` is monotonic, in seconds. Its errors end no other keeper."""

    plane: str
    engine: Engine
    log: Log
    background_tasks: Sequence[BackgroundTask] = ()
    clock: Callable[[], float] = time.monotonic
    news: int = 0
    _poked: asyncio.Event = field(default_factory=asyncio.Event)
    _logged: str = ""

    def poke(self, *, news: bool = False) -> None:
        """The stored plane has changed; ``news``: something else on which it depends has changed."""
        self.news += news
        self._poked.set()

    async def run(self) -> None:
        """Manage the plane. Returns when it is deleted."""
        pause = SHORTEST
        while True:
            began = self.clock()
            try:
                await self._stand_by()
                await self.engine.keep(self.plane, self)
                return
            except Gone:
                return
            except Conflict as error:  # another driver has its lease, or took it from a frozen process
                self._tell(f"another process drives it: {error.seen}")
                await asyncio.sleep(_STANDING_BY)
                continue
            except Exception as error:  # noqa: BLE001 - an error of one plane must not end the others
                known = isinstance(error, QuarterdeckError)
                self._tell(str(error) or type(error).__name__, exc_info=None if known else error)
            pause = SHORTEST if self.clock() - began > LONGEST else pause
            pause = SHORTEST if await self._changed_within(pause) else min(2 * pause, LONGEST)

    async def go_on(self) -> None:
        """See ``IdleWait``: another process may have requested to drive the plane alone."""
        lent = await self.engine.home.store.lease(leases.loan_name(self.plane))
        if lent is not None:
            raise LeaseLost(
                f"managing plane {self.plane}", f"{lent.holder} wants to drive it", "it is managed again afterwards"
            )

    async def over(self, wanted: Wants) -> None:
        """See ``IdleWait``: the plane's turn comes, or its wanted state changes."""
        self._tell("")
        await self._until(self._turn(self.clock()), wanted, self.news)

    def _turn(self, now: float) -> float:
        """The time of the plane's next observation."""
        own = zlib.crc32(self.plane.encode()) % CADENCE
        next_one = now - (now - own) % CADENCE + CADENCE
        return next_one if next_one - now >= _SOONEST else next_one + CADENCE

    async def _changed_within(self, seconds: float) -> bool:
        """Wait so long, or until the wanted state changes. Returns whether it changed."""
        end = self.clock() + seconds
        try:
            stored = await self._stored()
            if stored is not None:
                return await self._until(end, wants(stored), self.news)
        except MET:  # the store is the cause, or fails as well
            await asyncio.sleep(max(0.0, end - self.clock()))
        return False

    async def _until(self, end: float, wanted: Wants, news: int) -> bool:
        """Wait until then, or until the wanted state changes: own writes wake it, too. Returns whether it changed."""
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
        """Return when no process holds the plane's lease, or requests it."""
        for lease in (leases.loan_name(self.plane), leases.lease_name(self.plane)):
            while await self.engine.home.store.lease(lease) is not None:  # noqa: ASYNC110 - a lease can expire without an event
                await asyncio.sleep(_STANDING_BY)

    def _tell(self, trouble: str, **facts: object) -> None:
        """Log a trouble once, and its end."""
        if trouble and trouble != self._logged:
            self.log.warning(trouble, plane=self.plane, **facts)
        elif self._logged and not trouble:
            self.log.info("it is managed again", plane=self.plane)
        self._logged = trouble


@dataclass(frozen=True, kw_only=True)
class Steps(Unwatched, Watcher):
    """A ``Watcher`` that logs a plane's steps."""

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
        """See ``Watcher``. For a defect, the log has the traceback."""
        cause = error.__cause__
        defect = cause if cause is not None and not isinstance(cause, MET) else None
        self.log.warning(str(error), plane=self.plane, **({"exc_info": defect} if defect is not None else {}))
