"""The course of a drill: clients run, the fault is made, observed and undone, and the plane recovers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from quarterdeck.app.onlookers import DURING
from quarterdeck.concurrency import together, whole
from quarterdeck.drills.judgement import Sight, has_recovered
from quarterdeck.errors import Gone, QuarterdeckError
from quarterdeck.model.faults import MOMENTARY, Fault
from quarterdeck.probe.result import ProbeResult
from quarterdeck.sites.port import MakesFaults

#: Seconds between two observations, and for how long a plane must be unchanged to count as recovered.
_PACE = 0.25
_CALM = 2.0
#: Seconds after its planned end at which a fault ends by itself, if this process cannot undo it.
_GRACE = 10.0


class Clients(Protocol):
    """Real clients that use the plane during the drill: a ``ProbeSession``."""

    async def mark(self, label: str) -> float:
        """Begin a new period; returns its start in Unix seconds."""
        ...

    async def stop(self) -> ProbeResult:
        """Stop them; returns what they measured."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The course of a drill. Times of observations, of ``struck`` and of ``undone`` (None: there was nothing to undo)
    are on one clock; ``marked`` is the time from which the clients count. ``left``: the remains of the faults, in
    words.
    """

    before: Sight
    sights: tuple[Sight, ...]
    struck: float
    marked: float
    undone: float | None
    left: tuple[str, ...]
    result: ProbeResult


@dataclass(kw_only=True)
class Drilling:
    """One drill. ``look`` observes the plane. The faults last for at most ``hold`` seconds, and end as soon as the
    plane has recovered in spite of them; otherwise the drill waits afterwards for at most ``patience`` seconds.
    ``tell`` receives progress messages.
    """

    look: Callable[[], Awaitable[Sight]]
    faults: Sequence[tuple[MakesFaults, Fault]]
    hold: float
    patience: float
    quiet: float
    tell: Callable[[str], None]
    clock: Callable[[], float]
    _sights: list[Sight] = field(default_factory=list)

    async def run(self, before: Sight, clients: Clients) -> Course:
        """Run it. However this ends, the faults are undone first."""
        await asyncio.sleep(self.quiet)
        marked = await clients.mark(DURING)
        struck = self.clock()
        left: list[str] = []
        try:
            await together(*(self._make(site, fault) for site, fault in self.faults))
            if self._lasting:
                await self._watch(before, struck + self.hold, until_seen=True)
        finally:
            left += await whole(self._undo())
        undone = self.clock() if self._lasting else None
        await self._watch(before, self.clock() + self.patience, until_seen=False)
        return Course(
            before=before,
            sights=tuple(self._sights),
            struck=struck,
            marked=marked,
            undone=undone,
            left=tuple(left),
            result=await clients.stop(),
        )

    @property
    def _lasting(self) -> tuple[tuple[MakesFaults, Fault], ...]:
        """The faults that last until they are undone."""
        return tuple(each for each in self.faults if each[1].kind not in MOMENTARY)

    async def _make(self, site: MakesFaults, fault: Fault) -> None:
        await site.make_fault(fault, self.hold + _GRACE)
        self.tell(fault.words)

    async def _undo(self) -> list[str]:
        """Undo all faults that may have been made."""
        if not self._lasting:
            return []
        left = await together(*(site.undo_fault(fault) for site, fault in self._lasting))
        self.tell("the fault is undone")
        return [each for each in left if each]

    async def _watch(self, before: Sight, until: float, *, until_seen: bool) -> None:
        """Observe until the plane has recovered for a while; ``until_seen``: only after it was impaired."""
        calm: float | None = None
        while True:
            seen = await self._looked()
            self._sights.append(seen)
            well = has_recovered(before, seen)
            calm = (seen.at if calm is None else calm) if well else None
            noticed = not until_seen or any(not has_recovered(before, each) for each in self._sights)
            if calm is not None and noticed and seen.at - calm >= _CALM:
                return
            if self.clock() >= until:
                return
            await asyncio.sleep(_PACE)

    async def _looked(self) -> Sight:
        """An observation; a failed one counts as an impaired plane."""
        try:
            return await self.look()
        except Gone:
            raise
        except QuarterdeckError as error:
            return Sight(at=self.clock(), done=False, troubles=frozenset({str(error)}))
