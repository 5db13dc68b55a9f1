"""One lock of a manager: carries out the protocol's moves, and reports their outcome to it."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import NoReturn, TypeVar

from quarterdeck.errors import Conflict, QuarterdeckError, TimedOut
from quarterdeck.leases import protocol
from quarterdeck.leases.protocol import (
    End,
    LockView,
    Move,
    Read,
    Running,
    Start,
    Stop,
    Terms,
    Under,
    WaitUntil,
    Write,
    WriteKind,
)
from quarterdeck.leases.record import MICROSECONDS, Record
from quarterdeck.leases.sets import ControllerSet, ControllerTasks, Held
from quarterdeck.leases.store import LockStore
from quarterdeck.leases.watchdog import Watchdog

T = TypeVar("T")

#: Seconds that a call to the store may take.
CALL_DEADLINE = 5.0


@dataclass(frozen=True, kw_only=True)
class Means:
    """Shared by all locks of a manager. ``clock`` is monotonic, ``wall`` since 1970, both in seconds; ``fatal`` ends
    the process; ``tell`` receives messages for people.
    """

    store: LockStore
    clock: Callable[[], float]
    wall: Callable[[], float]
    fatal: Callable[[str], NoReturn]
    tell: Callable[[str], None]
    watchdog: Watchdog


@dataclass(kw_only=True)
class LockKeeper:
    """Holds one lock, as long as it is ``wanted``. ``under`` returns the state it depends on; ``news`` is called with
    each change of the lock. ``error``: the failure of a controller, which ends all of them. ``writes`` counts writes by
    kind and outcome.
    """

    runs: ControllerSet
    terms: Terms
    means: Means
    under: Callable[[float], Under]
    news: Callable[[], None]
    wanted: bool = True
    lock: LockView = field(default_factory=LockView)
    error: BaseException | None = None
    writes: Counter[tuple[str, str]] = field(default_factory=Counter)
    _crew: ControllerTasks | None = None
    _poked: asyncio.Event = field(default_factory=asyncio.Event)
    _watch: asyncio.Future[Record | None] | None = None
    _watched: str | None = None
    _reported: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the lock."""
        return self.runs.lock

    @property
    def left(self) -> float:
        """Seconds for which no other process may act under the lock."""
        now = self.means.clock()
        return protocol.may_act_until(self.lock, self._stands_under(now)) - now

    @property
    def is_blocked(self) -> bool:
        """Whether a holder of a lower precedence has the lock."""
        return protocol.in_the_way(self.lock, self.terms)

    def poke(self) -> None:
        """Something has changed: evaluate again."""
        self._poked.set()

    async def run(self) -> None:
        """Hold it until it is not wanted any more, and was released."""
        try:
            while self.wanted or not self._is_gone():
                self._look_at_controllers()
                self._expect()  # the state it depends on may have changed
                now = self.means.clock()
                await self._do(protocol.next_move(self.lock, self.terms, self._stands_under(now), now))
        finally:
            self._end_watch()
            self.means.watchdog.forget(self.name)
            if self._crew is not None:
                self._crew.stop()

    def _is_gone(self) -> bool:
        record = self.lock.record
        mine = record is not None and record.holder == self.terms.identity
        return self.lock.known and not mine and self.lock.running is Running.OFF

    def _stands_under(self, now: float) -> Under:
        under = self.under(now)
        return under if self.wanted else replace(under, wanted=False)

    def _look_at_controllers(self) -> None:
        if self._crew is None:
            return
        if self._crew.error is not None:
            self.error, self.wanted = self._crew.error, False
        if self.lock.running is Running.ON and self._crew.lost:
            self._stop()
        if self.lock.running is Running.STOPPING and self._crew.ended:
            self._crew = None
            self._now(protocol.ended(self.lock))

    async def _do(self, move: Move) -> None:
        match move:
            case WaitUntil(until):
                self._tell_what_is_odd()
                await self._wait(until)
            case Read():
                await self._read()
            case Write():
                await self._write(move)
            case Start(token):
                held = Held(self.name, token, self.terms.identity, lambda: self.left)
                self._crew = ControllerTasks(self.runs, held, self.poke)
                self._now(protocol.started(self.lock, token))
            case Stop():
                self._stop()
                await asyncio.sleep(0)  # controllers that do nothing have ended by then
            case End():
                self.means.fatal(f"controllers of lock {self.name!r} have not ended, and it is not held any more")

    def _stop(self) -> None:
        assert self._crew is not None
        self._crew.stop()
        self._now(protocol.stopping(self.lock, self.means.clock()))

    def _now(self, lock: LockView) -> None:
        """The lock has changed: all that depend on it evaluate again."""
        self.lock = lock
        self.news()
        self._expect()

    def _expect(self) -> None:
        """Set the watchdog's deadline for the controllers."""
        if self.lock.running is Running.OFF:
            self.means.watchdog.forget(self.name)
            return
        under = self._stands_under(self.means.clock())
        stop, until = protocol.to_stop_at(self.lock, self.terms, under), protocol.may_act_until(self.lock, under)
        self.means.watchdog.expect(self.name, stop, until)

    # the store

    async def _read(self) -> None:
        try:
            record = await self._call(self.means.store.read(self.name))
        except QuarterdeckError as error:
            self._fail("reading", error)
        else:
            self._now(protocol.saw(self.lock, self.terms, record, self.means.clock()))

    async def _write(self, asked: Write) -> None:
        write = protocol.stamped(self.lock, asked, self.means.wall())
        sent = self.means.clock()
        self._now(protocol.sending(self.lock, self.terms, write, sent))
        store = self.means.store
        call = store.create if write.kind is WriteKind.CREATE else store.update
        kind = write.kind.name.lower()
        try:
            record = await self._call(call(self.name, write.record))
        except Conflict:
            self.writes[kind, "refused"] += 1
            self._now(protocol.refused(self.lock))
        except QuarterdeckError as error:
            self.writes[kind, "failed"] += 1
            self._fail("writing", error)
        else:
            self.writes[kind, "done"] += 1
            self._reported.pop("writing", None)
            self._now(protocol.wrote(self.lock, self.terms, write, record, sent, self.means.clock()))

    async def _call(self, call: Awaitable[T]) -> T:
        """The store's answer. Raises QuarterdeckError; when it is time to stop, the call is not waited for."""
        now = self.means.clock()
        safe = protocol.next_safety(self.lock, self.terms, self._stands_under(now))
        try:
            async with asyncio.timeout(max(0.0, min(CALL_DEADLINE, safe - now))):
                return await call
        except TimeoutError:
            raise TimedOut(f"reading or writing lock {self.name!r}", "the store did not answer in time") from None

    def _fail(self, doing: str, error: QuarterdeckError) -> None:
        self._say(doing, str(error))
        self._now(protocol.failed(self.lock, self.means.clock()))

    # waiting

    async def _wait(self, until: float) -> None:
        """Wait until then, or until something has changed. Results of a watch are handled only here, when no write is
        in flight: the result of a write may be older than they are.
        """
        if self.lock.known:
            self._watch_on()
        seconds = until - self.means.clock()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds) if seconds < math.inf else None):
                await self._poked.wait()
        self._poked.clear()
        if self._watch is not None and self._watch.done() and self._watched == self._version:
            self._hear(self._watch)

    @property
    def _version(self) -> str:
        return self.lock.record.version if self.lock.record is not None else ""

    def _watch_on(self) -> None:
        if self._watch is None or self._watched != self._version:
            self._end_watch()
            self._watched = self._version
            changed = self.means.store.changed(self.name, self._version)
            self._watch = asyncio.ensure_future(changed)
            self._watch.add_done_callback(self._watch_ended)

    def _watch_ended(self, watch: asyncio.Future[Record | None]) -> None:
        if not watch.cancelled():
            watch.exception()  # a call that was abandoned gets no result
            self.poke()

    def _hear(self, watch: asyncio.Future[Record | None]) -> None:
        self._watch = None
        try:
            record = watch.result()
        except QuarterdeckError as error:
            self._fail("watching", error)
        else:
            self._reported.pop("watching", None)
            self._now(protocol.saw(self.lock, self.terms, record, self.means.clock()))

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch = None

    # messages

    def _tell_what_is_odd(self) -> None:
        record, terms = self.lock.record, self.terms
        if record is not None and protocol.mismatch(record, terms):
            has, would = ", ".join(record.controllers), ", ".join(terms.controllers)
            self._say("set", f"lock {self.name!r} is for {has}, not for {would}: it is not taken; use another name")
        if protocol.overdue(self.lock, terms, self.means.clock()) and record is not None:
            since = self.means.wall() - (self.means.clock() - self.lock.asked)
            how = (
                f"was asked to release it at {_time(since)}" if record.can_be_asked else "cannot be asked to release it"
            )
            held = f"{record.holder} since {_time(record.acquired / MICROSECONDS)}"
            self._say("holder", f"lock {self.name!r} is held by {held}, which {how}")
        elif not protocol.in_the_way(self.lock, terms):
            self._reported.pop("holder", None)

    def _say(self, about: str, text: str) -> None:
        """Report it once."""
        if self._reported.get(about) != text:
            self._reported[about] = text
            self.means.tell(text)


def _time(wall: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall))
