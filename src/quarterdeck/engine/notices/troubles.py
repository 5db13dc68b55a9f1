"""What a driver makes of errors: which end it, how long it waits after the others, and who is told of them."""

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

#: What a driver may meet and go on after: what ports raise, and what the operating system does beside.
MET = (QuarterdeckError, OSError)
#: Seconds: the longest pause after failures. The pause doubles with each failure, so often at most.
LONGEST_PAUSE = 2.0
_DOUBLINGS = 5


class Disposition(Enum):
    """What an error means for the driver that meets it."""

    AGAIN = auto()  # look again, and try what is then to be done
    OVER = auto()  # this driver has nothing left to do: another one drives, the plane is gone, the user says stop
    HOPELESS = auto()  # no retry mends it: a person has to, and the operation has failed until then


def fate(error: Exception) -> Disposition:
    """What becomes of the driver that meets this error."""
    match error:
        case LeaseLost() | Gone() | Paused():
            return Disposition.OVER
        case EtcdFault():
            return (
                Disposition.AGAIN
            )  # what etcd refuses now is not asked of it again when the next look shows otherwise
        case InvalidInput() | Corrupt() | NotApplied():
            return Disposition.HOPELESS
        case QuarterdeckError() | OSError():
            return Disposition.AGAIN
        case _:
            return Disposition.HOPELESS


@dataclass(kw_only=True)
class Troubles:
    """Of one drive of one plane. Each trouble is told once, in one line, and again only after things went well."""

    store: Store
    plane: str
    clock: Callable[[], float]
    watchers: Watchers = field(default_factory=Watchers)
    operation: str = ""
    _failures: int = 0
    _met: set[str] = field(default_factory=set)
    _so: frozenset[Happening] | None = None
    _untold: list[Happening] = field(default_factory=list)
    _telling: asyncio.Lock = field(default_factory=asyncio.Lock)

    def pause(self, least: float) -> float:
        """Seconds to wait before the next look: ``least`` when all went well."""
        longer: float = least * 2**self._failures
        return min(longer, max(least, LONGEST_PAUSE))

    def went(self, *, well: bool) -> None:
        """How the last round went."""
        self._failures = 0 if well else min(self._failures + 1, _DOUBLINGS)
        if well:
            self._met.clear()

    async def meet(self, error: Exception) -> None:
        """Tell of what ended a round. Raises it when it is not to be tried again."""
        if fate(error) is not Disposition.AGAIN:
            raise error
        self.went(well=False)
        known = in_words(error)
        if str(known) not in self._met:
            self._met.add(str(known))
            await self.watch(lambda watcher: watcher.troubled(known))
            await self._write(Happening(EventReason.TROUBLE, str(known)), str(known))

    async def watch(self, say: Callable[[Watcher], Awaitable[None]]) -> None:
        """Tell all watchers; one that is lost in doing so makes an event."""
        for text in await self.watchers.tell(say):
            await self._write(Happening(EventReason.WATCHER_LOST, text), text)

    async def say(self, error: QuarterdeckError) -> None:
        """Tell the watchers of something that is waited for."""
        await self.watch(lambda watcher: watcher.troubled(error))

    async def say_defect(self, doing: str, error: Exception) -> None:
        """Tell the watchers of what nobody could foresee, with its traceback: it is the cause of what they are told."""
        told = QuarterdeckError(doing, f"{type(error).__name__}: {error}", "this is a defect of quarterdeck: report it")
        told.__cause__ = error
        await self.say(told)

    async def tell(self, *happened: Happening) -> None:
        """Record events, with those that could not be recorded when they came up. Steps may fail at the same time."""
        self._untold += happened
        async with self._telling:
            while self._untold:
                await self.store.record(self._untold[0].event(self.plane, self.clock()))
                self._untold.pop(0)

    async def tell_now(self, so: frozenset[Happening], since: float) -> None:
        """Record what has become so since it was last asked. Another driver may have recorded it before this one: what
        the plane's events have, ``since`` it was created, is no news.
        """
        if self._so is None:
            events = await self.store.events(self.plane)
            recorded = {(each.type, each.reason, each.message) for each in events if each.last >= since}
            self._so = frozenset(each for each in so if (each.type, each.reason, each.message) in recorded)
        await self.tell(*(so - self._so))
        self._so = so

    async def _write(self, happened: Happening, text: str) -> None:
        """In the events and in the journal. A store that is the trouble itself is told of the event later."""
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
    """The error as one of quarterdeck's."""
    if isinstance(error, QuarterdeckError):
        return error
    seen = f"{getattr(error, 'filename', None) or 'the operating system'}: {getattr(error, 'strerror', None) or error}"
    return Unavailable("driving the plane", seen, "it is tried again; look at the disk and the limits of this host")


# Failures of what goes on beside driving a plane: each is told once, and again only after it went well.


@dataclass(kw_only=True)
class Failures:
    """What failed and is tried again, by what it is in words. ``reason`` is that of the events that tell of it. What
    nobody could foresee is a defect: watchers are told of it as well, with its traceback.
    """

    troubles: Troubles
    reason: EventReason
    _told: dict[str, str] = field(default_factory=dict)

    def went_well(self, what: str) -> None:
        """It did not fail: the next failure is news."""
        self._told.pop(what, None)

    async def tell(self, what: str, error: Exception, seen: str = "") -> None:
        """Tell of a failure; ``seen``: in these words."""
        known = isinstance(error, MET)
        seen = seen or (str(in_words(error)) if known else f"{type(error).__name__}: {error}")
        if self._told.get(what) == seen:
            return
        self._told[what] = seen
        with contextlib.suppress(Unavailable):  # then it is told with what comes next
            await self.troubles.tell(Happening(self.reason, f"{what}: {seen}"))
        if not known:
            await self.troubles.say_defect(what, error)
