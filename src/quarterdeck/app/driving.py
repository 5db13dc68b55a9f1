"""Bringing a plane to what is wanted: from this process, or by following the one that is at it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from quarterdeck.app.following import Onlooker, Progressed, ended, still_awaited, unled
from quarterdeck.app.reach import manager_of, require_in_reach
from quarterdeck.engine.notices.conditions import unled as why_unled
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.status import facts
from quarterdeck.engine.workspace import leases, operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Conflict, Gone, NotFound, Unavailable
from quarterdeck.linux.turns import take_short_turns
from quarterdeck.stores.lease import hold_lease

#: Seconds between two looks at what another process does.
_LOOK = 0.3
#: Seconds for which a plane that nobody drives is left to the manager that runs, and to let go of it for a command.
_MANAGER = 5.0
_LENDING = 30.0
#: Seconds until the controllers of a plane that is up to date must be led: a standby takes 15 s at most, and a program
#: that ended in an outage has to start first.
_LEADING_S = 60.0


@dataclass(frozen=True, slots=True)
class Hand:
    """Whose hand a plane is in from now on. ``holder`` says which process in words, "" for this one (``ours``);
    ``operation`` is the name of what is under way, "" for nothing.
    """

    holder: str
    operation: str
    ours: bool = False


async def carried_out(engine: Engine, name: str, *, wait: float) -> None:
    """Drive a plane from this process until it is as wanted. See ``Quarterdeck.carry_out``."""
    await require_in_reach(engine.home, await operations.existing(engine.home.store, name))
    take_short_turns()  # clients wait for it while they are held, and two sites need each other in a swap
    await engine.drive(name, wait=wait)


@asynccontextmanager
async def alone(engine: Engine, name: str) -> AsyncIterator[None]:
    """See ``Quarterdeck.alone``."""
    store, who = engine.home.store, engine.asker.who
    async with hold_lease(store, leases.loan_name(name), who, clocks=engine.clocks):
        if await manager_of(engine.home, name):
            with contextlib.suppress(Conflict):  # who wrote in between has woken the manager as well
                await store.update(await operations.existing(store, name))
            async with hold_lease(store, leases.lease_name(name), who, wait=_LENDING, clocks=engine.clocks):
                pass
        yield


async def followed(
    home: Home,
    name: str,
    *,
    timeout: float | None,
    told: Callable[[Hand], None],
    drive: Callable[[], Awaitable[None]],
    onlooker: Onlooker | None = None,
) -> None:
    """Be there until a plane is as wanted: while another process drives it, look on; when none does, ``drive``. Raises
    Unavailable when it is, and nobody comes to lead its controllers.
    """
    clock = asyncio.get_running_loop().time
    deadline = None if timeout is None else clock() + timeout
    last, patience = "", clock() + _MANAGER
    progress = await Progressed.of(home.store, name, onlooker)
    while True:
        try:
            plane = await operations.existing(home.store, name)
        except NotFound:
            if last:
                await progress.look(None)
                return  # it was deleted while it was followed
            raise
        held = await home.store.lease(leases.lease_name(name))
        operation = await operations.current(home.store, name)
        under_way = operation.metadata.name if operation is not None else ""
        holder = held.holder if held is not None else ""
        if held is None and clock() < patience:
            holder = await manager_of(home, name)  # it is about to take it up
        if not holder:
            told(Hand("", under_way, ours=True))
            if await _driven(home, name, drive, None if deadline is None else max(0.0, deadline - clock())):
                with contextlib.suppress(Gone):  # it was deleted
                    await _wait_until_led(home, name, await facts.look(home, name, sure=True), deadline)
                return
            last = ""
            continue
        if held is not None:
            patience = clock() + _MANAGER
        if holder != last:
            last = holder
            told(Hand(last, under_way))
        await progress.look(plane)
        if ended(plane, operation) and (status := await facts.look(home, name, sure=True)).plan.done:
            await _wait_until_led(home, name, status, deadline)
            return
        if deadline is not None and clock() > deadline:
            raise await _waited_out(home, name, holder)
        await asyncio.sleep(_LOOK)


async def _wait_until_led(home: Home, name: str, status: facts.Status, deadline: float | None) -> None:
    """Wait until the controllers of a plane work: nobody could renew a lease while the API did not serve, and one from
    before that may look young enough. Raises Unavailable once something keeps its programs from leading, or when they
    have not done it in time.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + _LEADING_S if deadline is None else min(deadline, clock() + _LEADING_S)
    while not status.world.controls:
        late = clock() > until
        if status.world.unled and (late or any(each.hindered for each in status.world.unled)):
            raise unled(status.plane.name, why_unled(status.world))
        if late:
            return
        await asyncio.sleep(_LOOK)
        status = await facts.look(home, name, sure=True)


async def _waited_out(home: Home, name: str, holder: str = "") -> Unavailable:
    """What a command ends with whose time is over: what the plane still waits for, and who drives it (``holder``; "":
    nobody does any more).
    """
    try:
        plane = await operations.existing(home.store, name)
    except NotFound:
        return Unavailable(f"waiting for plane {name}", "the plane was deleted meanwhile", "nothing is left to do")
    what = still_awaited(plane) or "the plane is not up to date yet, and its driver has not said why"
    seen = f"{what} ({holder} drives it)" if holder else f"{what} (nobody drives it now)"
    return Unavailable(f"waiting for plane {name}", seen, f"see 'status {name}', then 'wait {name}' to go on")


async def _driven(home: Home, name: str, drive: Callable[[], Awaitable[None]], seconds: float | None) -> bool:
    """Whether this process has driven the plane to its end: another one may have been quicker to take it up."""
    try:
        await asyncio.wait_for(drive(), seconds)
    except TimeoutError:
        raise await _waited_out(home, name) from None
    except Conflict:
        if await home.store.lease(leases.lease_name(name)) is None:
            raise
        return False
    return True
