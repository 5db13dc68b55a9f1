"""A watch of the locks of a plane's controllers, for its journal, as long as the plane is driven or managed."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace

from quarterdeck.actions.addresses import apiservers
from quarterdeck.actions.plane import Plane
from quarterdeck.api.events import EventReason
from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.engine.controller_sets.lock_history import Taken, Tenures, Transition
from quarterdeck.engine.controller_sets.set_holders import Holder, locks_of, manager_of, taker
from quarterdeck.engine.notices.troubles import MET, Disposition, Failures, Troubles, fate
from quarterdeck.errors import Unavailable
from quarterdeck.handover.tenures import LEFT, TAKEN
from quarterdeck.kube.port import Address
from quarterdeck.stores.port import JournalEntry

#: Seconds until a failure is retried.
AGAIN = 1.0
#: So many entries of each kind are read to know the recorded tenures of each lock.
_READ = 200
#: Seconds for which the end of the block waits until all observations are written.
_LAST = 2.0
_SEEING, _WRITING = "watching the history of locks", "writing the history of locks"


@asynccontextmanager
async def locks_watched(plane: Plane, troubles: Troubles) -> AsyncIterator[None]:
    """For the block, which must be under the plane's lease, every transition of the locks of its controllers is written
    to the journal, if it has controller sets. Failures are reported once, and retried; they neither block nor end the
    block.
    """
    locks = locks_of(plane)
    if not locks or plane.resource.metadata.deletion_timestamp is not None:
        yield
        return
    watch = LockWatch(plane=plane, troubles=troubles, locks=locks)
    tasks = [asyncio.create_task(each, name=f"locks of {plane.name}") for each in (watch.see(), watch.write())]
    try:
        yield
        with contextlib.suppress(TimeoutError):  # the holder of a lock is queried while it can still answer
            async with asyncio.timeout(_LAST):
                await watch.written()
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)
    await watch.finish()


@dataclass(frozen=True, slots=True)
class _News:
    """A transition, its time and operation; and its holder, once that is known."""

    seen: Transition
    at: float
    operation: str
    holder: Holder | None = None


@dataclass(kw_only=True)
class LockWatch:
    """Observes transitions (``see``) and writes them (``write``): it may take seconds to find out the holder of a lock,
    during which the next transition is still observed.
    """

    plane: Plane
    troubles: Troubles
    locks: frozenset[str]
    _news: deque[_News] = field(default_factory=deque)
    _came: asyncio.Event = field(default_factory=asyncio.Event)
    _gone: asyncio.Event = field(default_factory=asyncio.Event)
    _tenures: Tenures | None = None
    _holders: dict[str, Holder] = field(default_factory=dict)
    _last: Address | None = None
    _saw: bool = True
    _failures: Failures = field(init=False)

    def __post_init__(self) -> None:
        self._failures = Failures(troubles=self.troubles, reason=EventReason.LOCK_HISTORY_FAILED)

    async def see(self) -> None:
        """Watch, by one ready apiserver after another, until cancelled."""
        while True:
            try:
                await self._see()
            except Unavailable as error:
                # That an apiserver ends is nothing to tell of, nor that none is ready: the driver does.
                if not self._saw:
                    await self._failures.tell(_SEEING, error)
                self._saw = False
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the plane is driven
                await self._failures.tell(_SEEING, error)
            await asyncio.sleep(AGAIN)

    async def _see(self) -> None:
        """Watch by one of them. Returns when none is ready; raises what ends the watch."""
        if self._tenures is None:
            self._tenures = await self._journal()
        self._last = await self._ready()
        if self._last is None:
            return
        async with aclosing(self.plane.kube.lease_changes(self._last)) as changes:
            async for lease in changes:
                self._saw = True
                self._failures.went_well(_SEEING)
                if lease.name in self.locks:
                    now, operation = self.plane.clock(), self.troubles.operation
                    self._news += (_News(each, now, operation) for each in self._tenures.see(lease))
                    self._came.set()

    async def _journal(self) -> Tenures:
        """The tenures that earlier watchers recorded."""
        store, name = self.plane.store, self.plane.name
        taken, left = [await store.journal(name, kind=each, limit=_READ) for each in (TAKEN, LEFT)]
        for each in sorted((*taken, *left), key=lambda entry: entry.id):
            lock = str(each.detail["lock"])
            if each.kind == TAKEN:
                component = str(each.detail["component"])
                self._holders[lock] = Holder(
                    ControllerProgram(component) if component else None, each.replica, each.site
                )
            elif each.detail["released"]:
                self._holders.pop(lock, None)
        return Tenures.of((*taken, *left))

    async def _ready(self) -> Address | None:
        """An apiserver that is ready; another one than the last, if there is."""
        there = tuple(apiservers(self.plane).values())
        answers = await asyncio.gather(*(self.plane.kube.readyz(each, founded=True) for each in there))
        ready = [where for where, answer in zip(there, answers, strict=True) if answer.ok]
        return min(ready, key=lambda each: each == self._last, default=None)

    async def write(self) -> None:
        """Write down what is seen, one after the other, until cancelled or somebody else drives."""
        while True:
            while self._news:
                try:
                    await self._write_next()
                except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the plane is driven
                    if fate(error) is Disposition.OVER:
                        return
                    await self._failures.tell(_WRITING, error)
                    await asyncio.sleep(AGAIN)
            self._came.clear()
            await self._came.wait()

    async def written(self) -> None:
        """Return once all that was seen is written."""
        while self._news:
            self._gone.clear()
            await self._gone.wait()

    async def _write_next(self) -> None:
        news = self._news[0]
        holder = news.holder or await self._holder_of(news.seen)
        self._news[0] = replace(news, holder=holder)
        await self._write(news, holder)
        self._news.popleft()
        self._gone.set()
        self._failures.went_well(_WRITING)

    async def finish(self) -> None:
        """Write the remaining observations, without querying the holders."""
        with contextlib.suppress(*MET):  # the next watcher observes the lock and records it
            for each in self._news:
                await self._write(each, each.holder or Holder(manager_of(self.plane, each.seen.lease.manager)))

    async def _holder_of(self, seen: Transition) -> Holder:
        lock, former = seen.lease.name, self._holders.get(seen.lease.name)
        if isinstance(seen, Taken):
            self._holders[lock] = await taker(self.plane, lock, seen.lease.manager, former)
            return self._holders[lock]
        if seen.released:  # by itself, or because its process is gone: it no longer reports the lock
            self._holders.pop(lock, None)
        return former or Holder(manager_of(self.plane, seen.lease.manager))

    async def _write(self, news: _News, holder: Holder) -> None:
        seen = news.seen
        await self.plane.check()
        await self.plane.store.append(
            JournalEntry(
                plane=self.plane.name,
                time=news.at,
                kind=TAKEN if isinstance(seen, Taken) else LEFT,
                text=_words(seen, holder),
                operation=news.operation,
                site=holder.site,
                replica=holder.replica,
                detail={**seen.detail, **(_of(holder) if isinstance(seen, Taken) else {})},
            )
        )


def _of(holder: Holder) -> dict[str, str]:
    return {"component": holder.manager.value if holder.manager is not None else "", "replica": holder.replica}


def _words(seen: Transition, holder: Holder) -> str:
    lock = seen.lease.name
    if isinstance(seen, Taken):
        missed = f", after {seen.missed} unobserved holders" if seen.missed else ""
        return f"{holder} took lock {lock}{missed}"
    return f"{holder} released lock {lock}" if seen.released else f"{holder} lost lock {lock}"
