"""Reconciling a plane until it is up to date: in this process, or by following the process that drives it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from quarterdeck.app.operation_progress import Onlooker, Progressed, ended, still_awaited, unled
from quarterdeck.engine import status as facts
from quarterdeck.engine.notices.conditions import unled as why_unled
from quarterdeck.engine.preflight.reach import require_plane_in_reach
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import leases, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.recorded import manager_of
from quarterdeck.errors import Conflict, Gone, NotFound, Unavailable
from quarterdeck.linux.turns import use_short_time_slices
from quarterdeck.stores.lease import hold_lease

#: Seconds between two reads of another process's progress.
_LOOK = 0.3
#: Seconds for which an undriven plane is left to the running manager, and for the manager to release it to a command.
_MANAGER = 5.0
_LENDING = 30.0
#: Seconds until the controllers of an up-to-date plane must have a leader: a standby takes 15 s at most, and a program
#: that stopped in an outage has to start first.
_LEADING_S = 60.0


@dataclass(frozen=True, slots=True)
class Hand:
    """The process that drives a plane from now on. ``holder`` describes it, "" for this one (``ours``); ``operation``
    is the name of the operation in progress, "" for none.
    """

    holder: str
    operation: str
    ours: bool = False


async def carried_out(engine: Engine, name: str, *, wait: float) -> None:
    """Drive a plane from this process until it is up to date. See ``Quarterdeck.carry_out``."""
    await require_plane_in_reach(engine.home, name)
    use_short_time_slices()  # clients wait while traffic is paused, and a swap needs both sites
    await engine.drive(name, wait=wait)


@asynccontextmanager
async def alone(engine: Engine, name: str) -> AsyncIterator[None]:
    """See ``Quarterdeck.alone``."""
    store, holder = engine.home.store, engine.requester.name
    async with hold_lease(store, leases.loan_name(name), holder, clocks=engine.clocks):
        if await manager_of(engine.home.store, name):
            with contextlib.suppress(Conflict):  # a process that wrote in between has woken the manager as well
                await store.update(await recorded.existing(store, name))
            async with hold_lease(store, leases.lease_name(name), holder, wait=_LENDING, clocks=engine.clocks):
                pass
        yield


async def followed(
    home: Home,
    name: str,
    *,
    timeout: float | None,
    report: Callable[[Hand], None],
    drive: Callable[[], Awaitable[None]],
    onlooker: Onlooker | None = None,
) -> None:
    """Wait until a plane is up to date: follow the process that drives it; when there is none, ``drive``. Raises
    Unavailable when the plane is up to date and its controllers get no leader.
    """
    following = _Following(
        home=home,
        name=name,
        report=report,
        drive=drive,
        progress=await Progressed.of(home.store, name, onlooker),
        deadline=None if timeout is None else _now() + timeout,
        patience=_now() + _MANAGER,
    )
    while True:
        if await following.over():
            return
        await asyncio.sleep(_LOOK if following.holder else 0)


@dataclass(kw_only=True)
class _Following:
    """One plane that is followed. ``holder``: the process that drives it, as last reported; ``patience``: until when it
    is left to the running manager. Times are the event loop's.
    """

    home: Home
    name: str
    report: Callable[[Hand], None]
    drive: Callable[[], Awaitable[None]]
    progress: Progressed
    deadline: float | None
    patience: float
    holder: str = ""

    async def over(self) -> bool:
        """Observe once, and drive the plane if no process does. Whether nothing is left to wait for."""
        try:
            plane = await recorded.existing(self.home.store, self.name)
        except NotFound:
            if not self.holder:
                raise
            await self.progress.look(None)
            return True  # it was deleted while it was followed
        operation = await recorded.current(self.home.store, self.name)
        under_way = operation.metadata.name if operation is not None else ""
        holder = await self._holder()
        if not holder:
            return await self._driven(under_way)
        if holder != self.holder:
            self.holder = holder
            self.report(Hand(holder, under_way))
        await self.progress.look(plane)
        if ended(plane, operation) and (status := await facts.look(self.home, self.name, sure=True)).plan.done:
            await _wait_until_led(self.home, self.name, status, self.deadline)
            return True
        if self.deadline is not None and _now() > self.deadline:
            raise await _waited_out(self.home, self.name, holder)
        return False

    async def _holder(self) -> str:
        """The process that drives the plane, or is about to take it up; "" for none."""
        held = await self.home.store.lease(leases.lease_name(self.name))
        if held is not None:
            self.patience = _now() + _MANAGER
            return held.holder
        return await manager_of(self.home.store, self.name) if _now() < self.patience else ""

    async def _driven(self, under_way: str) -> bool:
        """Drive the plane; whether that was completed here."""
        self.report(Hand("", under_way, ours=True))
        self.holder = ""
        left = None if self.deadline is None else max(0.0, self.deadline - _now())
        if not await _driven(self.home, self.name, self.drive, left):
            return False
        with contextlib.suppress(Gone):  # it was deleted
            status = await facts.look(self.home, self.name, sure=True)
            await _wait_until_led(self.home, self.name, status, self.deadline)
        return True


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _wait_until_led(home: Home, name: str, status: facts.Status, deadline: float | None) -> None:
    """Wait until the controllers of a plane have a leader: no lease could be renewed while the API was down, and an old
    one may look recent. Raises Unavailable once something prevents its programs from leading, or when the time is up.
    """
    until = _now() + _LEADING_S if deadline is None else min(deadline, _now() + _LEADING_S)
    while not status.world.controls:
        late = _now() > until
        if status.world.unled and (late or any(each.hindered for each in status.world.unled)):
            raise unled(status.plane.name, why_unled(status.world))
        if late:
            return
        await asyncio.sleep(_LOOK)
        status = await facts.look(home, name, sure=True)


async def _waited_out(home: Home, name: str, holder: str = "") -> Unavailable:
    """The error of a command whose time is up: what the plane still waits for, and which process drives it (``holder``;
    "": none any longer).
    """
    try:
        plane = await recorded.existing(home.store, name)
    except NotFound:
        return Unavailable(
            f"waiting for plane {name}", "the plane was deleted in the meantime", "nothing is left to do"
        )
    what = still_awaited(plane) or "the plane is not up to date yet, and its driver has reported no reason"
    seen = f"{what} ({holder} drives it)" if holder else f"{what} (no process drives it now)"
    return Unavailable(f"waiting for plane {name}", seen, f"see 'status {name}', then 'wait {name}' to continue")


async def _driven(home: Home, name: str, drive: Callable[[], Awaitable[None]], seconds: float | None) -> bool:
    """Whether this process drove the plane until it was up to date: another one may have taken it up first."""
    try:
        await asyncio.wait_for(drive(), seconds)
    except TimeoutError:
        raise await _waited_out(home, name) from None
    except Conflict:
        if await home.store.lease(leases.lease_name(name)) is None:
            raise
        return False
    return True
