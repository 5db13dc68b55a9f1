"""Bringing a plane to what is wanted: from this process, or by following the one that is at it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from quarterdeck.app.reach import require_in_reach
from quarterdeck.engine import operations
from quarterdeck.engine.drive import Engine
from quarterdeck.engine.home import Home
from quarterdeck.errors import NotFound, Unavailable
from quarterdeck.turns import take_short_turns

#: Seconds between two looks at what another process does.
_LOOK = 0.3


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


async def followed(
    home: Home,
    name: str,
    *,
    timeout: float | None,
    told: Callable[[Hand], None],
    drive: Callable[[], Awaitable[None]],
) -> None:
    """Be there until a plane is as wanted: while another process drives it, look on; when none does, ``drive``."""
    clock = asyncio.get_running_loop().time
    deadline = None if timeout is None else clock() + timeout
    last = ""
    while True:
        try:
            await operations.existing(home.store, name)
        except NotFound:
            if last:
                return  # it was deleted while it was followed
            raise
        held = await home.store.lease(operations.lease_name(name))
        operation = await operations.current(home.store, name)
        under_way = operation.metadata.name if operation is not None else ""
        if held is None:
            told(Hand("", under_way, ours=True))
            try:
                await asyncio.wait_for(drive(), None if deadline is None else max(0.0, deadline - clock()))
            except TimeoutError:
                raise Unavailable(f"waiting for plane {name}", "it is not yet as wanted", "wait again") from None
            return
        if held.holder != last:
            last = held.holder
            told(Hand(last, under_way))
        if deadline is not None and clock() > deadline:
            raise Unavailable(f"waiting for plane {name}", f"{held.holder} is still at it", "wait again")
        await asyncio.sleep(_LOOK)
