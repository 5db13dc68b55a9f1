"""Holding a lease: renew it, and detect at once when it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from quarterdeck.errors import Conflict, LeaseLost, QuarterdeckError, Unavailable
from quarterdeck.stores.port import Lease, Store

#: Seconds. A frozen holder's lease expires after this long; that of a dead process ends at once where its death can be
#: detected.
DEFAULT_TTL = 10.0
_POLL = 0.1


@dataclass(frozen=True, slots=True)
class Clocks:
    """The monotonic clock stops while the host sleeps, the wall clock may be set: so both are read. Seconds."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


class LeaseGuard:
    """A lease that this process holds. Call ``check`` before each step; run ``keep`` as a task."""

    def __init__(self, store: Store, lease: Lease, asked: tuple[float, float], clocks: Clocks) -> None:
        """``asked``: the clocks (monotonic, wall) before the lease was acquired."""
        self._store = store
        self._lease = lease
        self._asked = asked
        self._clocks = clocks
        self._lost: QuarterdeckError | None = None

    @property
    def lease(self) -> Lease:
        """The lease as last renewed; writes carry it."""
        return self._lease

    async def check(self) -> None:
        """Return only if no other process can hold the lease now, nor in the next third of its ttl.

        Raises LeaseLost when it is lost, or expired by either clock (this process was frozen, the host slept, the store
        did not answer) and cannot be renewed now. A process can still be frozen right after this: that is why writes to
        the store carry the lease as well, and why steps are safe to be done late.
        """
        if self._lost is not None:
            raise self._lost
        if self._remaining() > self._lease.ttl / 3:
            return
        try:
            await self._renew()
        except Unavailable as error:
            if self._remaining() <= 0:
                raise LeaseLost(
                    f"acting under lease {self._lease.name!r} as {self._lease.holder}",
                    f"it expired and could not be renewed ({error.seen})",
                    error.next_step,
                ) from error

    async def keep(self) -> None:
        """Renew the lease each third of its ttl until it is lost, which ``check`` reports."""
        while self._lost is None:
            await asyncio.sleep(self._lease.ttl / 3)
            # A loss is kept for check(), which also decides how long a silent store is tolerated.
            with contextlib.suppress(QuarterdeckError):
                await self._renew()

    async def _renew(self) -> None:
        asked = _now(self._clocks)
        try:
            self._lease = await self._store.renew(self._lease)
        except Unavailable:
            raise
        except QuarterdeckError as error:
            self._lost = error
            raise
        self._asked = asked

    def _remaining(self) -> float:
        """Seconds for which the lease is certainly held; none if the wall clock was set back."""
        monotonic, wall = _now(self._clocks)
        since, since_wall = monotonic - self._asked[0], wall - self._asked[1]
        return -1.0 if since_wall < 0 else self._lease.ttl - max(since, since_wall)


@contextlib.asynccontextmanager
async def hold_lease(
    store: Store,
    name: str,
    holder: str,
    *,
    ttl: float = DEFAULT_TTL,
    wait: float = 0.0,
    clocks: Clocks = Clocks(),
) -> AsyncIterator[LeaseGuard]:
    """Hold the lease in this block, renewed by a task, released at the end.

    Waits up to ``wait`` seconds for another holder to end or to expire; then raises Conflict that names it.
    """
    guard = await _acquired(store, name, holder, ttl=ttl, wait=wait, clocks=clocks)
    keeper = asyncio.create_task(guard.keep(), name=f"keep lease {name}")
    try:
        yield guard
    finally:
        keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeper
        # A lease that cannot be released expires by itself; the work done under it is done.
        with contextlib.suppress(Unavailable):
            await store.release(guard.lease)


async def _acquired(store: Store, name: str, holder: str, *, ttl: float, wait: float, clocks: Clocks) -> LeaseGuard:
    deadline = clocks.monotonic() + wait
    while True:
        asked = _now(clocks)
        try:
            lease = await store.acquire(name, holder, ttl)
        except Conflict:
            if clocks.monotonic() >= deadline:
                raise
            await asyncio.sleep(min(_POLL, max(0.0, deadline - clocks.monotonic())))
        else:
            return LeaseGuard(store, lease, asked, clocks)


def _now(clocks: Clocks) -> tuple[float, float]:
    return clocks.monotonic(), clocks.wall()


# Identities of resources and processes.

#: A process as ``this_process`` describes it, also with the user before it.
_NAMED = re.compile(r"(?:^|@)(?P<host>[^@]*):(?P<pid>\d+) \(")


def new_uid() -> str:
    """A random UUID."""
    return str(uuid.uuid4())


def this_process(command: str) -> str:
    """A lease's holder as text: ``host:pid (quarterdeck migrate alpha)``. ``command`` must hold no secret."""
    return f"{socket.gethostname()}:{os.getpid()} ({command})"


def process_named(holder: str) -> int | None:
    """The pid of a lease's holder on this host; None: it is on another host, or the text has another form."""
    found = _NAMED.search(holder)
    return int(found["pid"]) if found is not None and found["host"] == socket.gethostname() else None
