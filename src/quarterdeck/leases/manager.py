"""A controller manager: a primary lock, and migration locks that are held together with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from quarterdeck import clocks
from quarterdeck.errors import InvalidInput
from quarterdeck.leases import protocol
from quarterdeck.leases.keeper import CALL_DEADLINE, LockKeeper, Means
from quarterdeck.leases.protocol import Terms, Under
from quarterdeck.leases.record import Timing
from quarterdeck.leases.sets import ControllerSet, check_sets, check_unchanged
from quarterdeck.leases.store import LockStore
from quarterdeck.leases.watchdog import Watchdog

_LOG = logging.getLogger(__name__)


def end_process(why: str) -> NoReturn:
    """End this process at once, as client-go does (klog.Fatal): another process may act from now on."""
    sys.stderr.write(f"ended: {why}\n")
    sys.stderr.flush()
    os._exit(1)


class Manager:
    """Runs the controllers of its sets, each while it holds the set's lock. Call ``run``.

    ``primary``: acquired before all others, and released after them; it may have no controllers. ``precedence``: the
    manager asks holders of a lower one to release, so that a newer version takes over from an older one, and never
    back.
    """

    def __init__(
        self,
        store: LockStore,
        primary: ControllerSet,
        migration: Sequence[ControllerSet] = (),
        *,
        precedence: int = 0,
        timing: Timing | None = None,
        name: str = "",
        clock: Callable[[], float] = clocks.steady,
        wall: Callable[[], float] = time.time,
        fatal: Callable[[str], NoReturn] = end_process,
        tell: Callable[[str], None] = _LOG.warning,
        watchdog: bool = True,
    ) -> None:
        """``name``: of this program, for people ("": the host's). ``clock`` is monotonic, in seconds, and counts the
        time that the host sleeps; ``wall`` is in seconds since 1970. ``fatal`` ends the process; ``tell`` receives
        messages for people, each once. ``watchdog``: a thread calls ``fatal`` too, if the event loop is blocked. Raises
        InvalidInput for invalid sets.
        """
        timing = timing or Timing()
        #: Of this run alone, as client-go's: no process mistakes another run's record for its own.
        self.identity = f"{name or socket.gethostname()}_{uuid.uuid4()}"
        dog = Watchdog(clock=clock, fatal=fatal, stop_within=timing.stop_within)
        self._means = Means(store=store, clock=clock, wall=wall, fatal=fatal, tell=tell, watchdog=dog)
        self._precedence, self._timing, self._watched = precedence, timing, watchdog
        self._used: dict[str, ControllerSet] = {}
        self._wanted = True
        self._changing = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._news = asyncio.Event()
        for each in self._checked(primary, migration):
            tell(each)
        self._primary = self._keeper(primary, self._above)
        self._migration = {each.lock: self._keeper(each, self._below) for each in migration}

    @property
    def locks(self) -> Mapping[str, LockKeeper]:
        """All its locks by name, the primary one first."""
        return {self._primary.name: self._primary, **self._migration}

    def holds(self, lock: str) -> bool:
        """Whether the controllers of a lock run here, and may act. Raises KeyError for an unknown lock."""
        keeper = self.locks[lock]
        return keeper.lock.running is not protocol.Running.OFF and keeper.left > 0

    async def run(self) -> None:
        """Hold the locks until this is cancelled; then stop the controllers, and release all locks.

        Raises a controller's error, after the same. A lock that cannot be released since the store does not answer
        expires by itself.
        """
        self._wanted = True
        if self._watched:
            self._means.watchdog.start()
        try:
            for keeper in self.locks.values():
                keeper.wanted, keeper.error = True, None
                self._begin(keeper)
            await self._until_one_fails()
        finally:
            await self._let_go()

    async def reconfigure(
        self,
        migration: Sequence[ControllerSet] | None = None,
        *,
        precedence: int | None = None,
        timing: Timing | None = None,
    ) -> None:
        """Use other migration locks, another precedence or other times from now on; None keeps a value.

        Returns when locks that were removed have been released. All others are held all the time. Raises InvalidInput,
        without any change, for invalid sets, and for a lock with other controllers than before.
        """
        async with self._changing:
            wanted = [each.runs for each in self._migration.values()] if migration is None else list(migration)
            for message in self._checked(self._primary.runs, wanted):
                self._means.tell(message)
            self._precedence = self._precedence if precedence is None else precedence
            self._timing = self._timing if timing is None else timing
            self._means.watchdog.stop_within = self._timing.stop_within
            names = {each.lock: each for each in wanted}
            for name, keeper in self.locks.items():
                keeper.terms = replace(keeper.terms, precedence=self._precedence, timing=self._timing)
                keeper.runs = names.get(name, keeper.runs)
                keeper.wanted = keeper is self._primary or name in names
            self._poke()
            await self._drop([each for each in self._migration.values() if not each.wanted])
            for each in wanted:
                if each.lock not in self._migration:
                    self._migration[each.lock] = self._keeper(each, self._below)
                    if self._tasks:
                        self._begin(self._migration[each.lock])

    # the locks

    def _checked(self, primary: ControllerSet, migration: Sequence[ControllerSet]) -> tuple[str, ...]:
        unwise = check_sets(primary, migration)
        check_unchanged(tuple(self._used.values()), (primary, *migration))
        owners = {name: each.lock for each in self._used.values() for name in each.names}
        for each in (primary, *migration):
            for name in each.names:
                if owners.get(name, each.lock) != each.lock:
                    seen = f"controller {name!r} was used under {owners[name]!r}, and would be under {each.lock!r}"
                    raise InvalidInput("changing the locks of a controller manager", seen, "leave it where it was")
        self._used.update({each.lock: each for each in (primary, *migration)})
        return unwise

    def _keeper(self, runs: ControllerSet, under: Callable[[float], Under]) -> LockKeeper:
        terms = Terms(identity=self.identity, controllers=runs.names, precedence=self._precedence, timing=self._timing)
        return LockKeeper(runs=runs, terms=terms, means=self._means, under=under, news=self._poke)

    def _above(self, now: float) -> Under:
        children = tuple(each.lock for each in self._migration.values())
        return protocol.above(children, now, wanted=self._wanted)

    def _below(self, now: float) -> Under:
        return protocol.below(self._primary.lock, wanted=self._wanted)

    def _poke(self) -> None:
        self._news.set()
        for each in self.locks.values():
            each.poke()

    # their tasks

    def _begin(self, keeper: LockKeeper) -> None:
        task = asyncio.create_task(keeper.run(), name=f"lock {keeper.name}")
        task.add_done_callback(lambda _: self._news.set())
        self._tasks[keeper.name] = task

    async def _until_one_fails(self) -> None:
        while True:
            self._news.clear()
            for task in self._tasks.values():
                if task.done():
                    task.result()
            for keeper in self.locks.values():
                if keeper.error is not None:
                    raise keeper.error
            await self._news.wait()

    async def _drop(self, keepers: Sequence[LockKeeper]) -> None:
        """Wait until locks were released, or until they cannot be."""
        tasks = [self._tasks.pop(each.name) for each in keepers if each.name in self._tasks]
        if tasks:
            done, late = await asyncio.wait(tasks, timeout=self._timing.duration + CALL_DEADLINE)
            for task in late:
                task.cancel()
            for task in done:
                task.result()
        for each in keepers:
            del self._migration[each.name]

    async def _let_go(self) -> None:
        self._wanted = False
        for keeper in self.locks.values():
            keeper.wanted = False
        self._poke()
        tasks, self._tasks = list(self._tasks.values()), {}
        if tasks:
            await asyncio.wait(tasks, timeout=self._timing.stop_within + 2 * CALL_DEADLINE)
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._means.watchdog.end()
