"""How a driver handles errors: which end it, how long it waits after others, and how it reports them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from quarterdeck.api.events import EventReason
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.notices.watchers import Watcher, Watchers
from quarterdeck.errors import Corrupt, Gone, InvalidInput, LeaseLost, NotApplied, Paused, QuarterdeckError, Unavailable
from quarterdeck.etcd.faults import EtcdFault
from quarterdeck.stores.port import EntryOutcome, JournalEntry, Store

#: Errors after which a driver can continue: those of ports, and those of the operating system.
MET = (QuarterdeckError, OSError)
#: Seconds: the longest pause after failures. The pause doubles with each failure, at most so often.
LONGEST_PAUSE = 2.0
_DOUBLINGS = 5


class Disposition(Enum):
    """What an error means for the driver that meets it."""

    AGAIN = auto()  # observe and plan again
    OVER = auto()  # this driver must stop: another one drives, the plane is gone, or it is paused
    HOPELESS = auto()  # no retry helps: a person must act, and the operation has failed until then


def fate(error: Exception) -> Disposition:
    """What this error means for the driver."""
    match error:
        case LeaseLost() | Gone() | Paused():
            return Disposition.OVER
        case EtcdFault():
            return Disposition.AGAIN  # the next observation shows whether the refused call is still needed
        case InvalidInput() | Corrupt() | NotApplied():
            return Disposition.HOPELESS
        case QuarterdeckError() | OSError():
            return Disposition.AGAIN
        case _:
            return Disposition.HOPELESS


@dataclass(kw_only=True)
class Troubles:
    """The errors of one drive of one plane. Each is reported once, in one line, and again only after a success."""

    store: Store
    plane: str
    clock: Callable[[], float]
    watchers: Watchers = field(default_factory=Watchers)
    operation: str = ""
    _failures: int = 0
    _met: set[str] = field(default_factory=set)
    _current: frozenset[Happening] | None = None
    _unrecorded: list[Happening] = field(default_factory=list)
    _recording: asyncio.Lock = field(default_factory=asyncio.Lock)

    def pause(self, least: float) -> float:
        """Seconds to wait before the next observation: ``least`` after a success."""
        longer: float = least * 2**self._failures
        return min(longer, max(least, LONGEST_PAUSE))

    def went(self, *, well: bool) -> None:
        """Record whether the last round succeeded."""
        self._failures = 0 if well else min(self._failures + 1, _DOUBLINGS)
        if well:
            self._met.clear()

    async def meet(self, error: Exception) -> None:
        """Report the error that ended a round. Raises it when it is not retried."""
        if fate(error) is not Disposition.AGAIN:
            raise error
        self.went(well=False)
        known = in_words(error)
        if str(known) not in self._met:
            self._met.add(str(known))
            await self.watch(lambda watcher: watcher.troubled(known))
            await self._write(Happening(EventReason.RECONCILE_ERROR, str(known)), str(known))

    async def watch(self, say: Callable[[Watcher], Awaitable[None]]) -> None:
        """Notify all watchers; one that fails is dropped, which makes an event."""
        for text in await self.watchers.tell(say):
            await self._write(Happening(EventReason.WATCHER_LOST, text), text)

    async def say(self, error: QuarterdeckError) -> None:
        """Notify the watchers of something that is waited for."""
        await self.watch(lambda watcher: watcher.troubled(error))

    async def say_defect(self, doing: str, error: Exception) -> None:
        """Notify the watchers of an unexpected error, which is the cause of the reported one, with its traceback."""
        defect = QuarterdeckError(
            doing, f"{type(error).__name__}: {error}", "this is a bug in quarterdeck: please report it"
        )
        defect.__cause__ = error
        await self.say(defect)

    async def tell(self, *happened: Happening) -> None:
        """Record events, with those that could not be recorded earlier. Steps may fail at the same time."""
        self._unrecorded += happened
        async with self._recording:
            while self._unrecorded:
                await self.store.record(self._unrecorded[0].event(self.plane, self.clock()))
                self._unrecorded.pop(0)

    async def tell_now(self, current: frozenset[Happening], since: float) -> None:
        """Record the facts that are new since the last call. A previous driver may have recorded some: facts among the
        plane's events ``since`` it was created are not new.
        """
        if self._current is None:
            events = await self.store.events(self.plane)
            recorded = {(each.type, each.reason, each.message) for each in events if each.last >= since}
            self._current = frozenset(each for each in current if (each.type, each.reason, each.message) in recorded)
        await self.tell(*(current - self._current))
        self._current = current

    async def _write(self, happened: Happening, text: str) -> None:
        """Write to the events and the journal. If the store itself fails, the event is recorded later."""
        with contextlib.suppress(Unavailable):
            await self.tell(happened)
            await self.store.append(
                JournalEntry(
                    plane=self.plane,
                    time=self.clock(),
                    kind=happened.reason.value,
                    text=text,
                    outcome=EntryOutcome.NOTED,
                    operation=self.operation,
                )
            )


def in_words(error: Exception) -> QuarterdeckError:
    """The error as a QuarterdeckError."""
    if isinstance(error, QuarterdeckError):
        return error
    seen = f"{getattr(error, 'filename', None) or 'the operating system'}: {getattr(error, 'strerror', None) or error}"
    return Unavailable("driving the plane", seen, "quarterdeck retries; check the disk and the limits of this host")


# Failures of background tasks of a plane: each is reported once, and again only after a success.


@dataclass(kw_only=True)
class Failures:
    """Failures of retried tasks, by the name of the task. ``reason`` is the reason of their events. An unexpected error
    is a bug: watchers are notified of it as well, with its traceback.
    """

    troubles: Troubles
    reason: EventReason
    _reported: dict[str, str] = field(default_factory=dict)

    def went_well(self, what: str) -> None:
        """Record a success: the next failure is new."""
        self._reported.pop(what, None)

    async def tell(self, what: str, error: Exception, seen: str = "") -> None:
        """Report a failure, with the words ``seen`` if given."""
        known = isinstance(error, MET)
        seen = seen or (str(in_words(error)) if known else f"{type(error).__name__}: {error}")
        if self._reported.get(what) == seen:
            return
        self._reported[what] = seen
        with contextlib.suppress(Unavailable):  # then it is recorded with the next event
            await self.troubles.tell(Happening(self.reason, f"{what}: {seen}"))
        if not known:
            await self.troubles.say_defect(what, error)
