"""Keeping all planes of a home: those on the host's own network here, those on others by a process in each of them."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from quarterdeck import clocks
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.site import Isolation
from quarterdeck.app.reach import network_of
from quarterdeck.engine.drive import Engine
from quarterdeck.engine.keeper import Log
from quarterdeck.engine.manager import Manager
from quarterdeck.engine.troubles import MET, in_words
from quarterdeck.turns import take_short_turns

#: Seconds before a process that ended is started again, doubled each time, and the longest; for how long one must have
#: run so that its end is no sign of trouble, and how long it gets to end in good order.
_SHORTEST = 1.0
_LONGEST = 60.0
_WELL = 60.0
_GRACE = 15.0
#: Seconds within which a manager that is well says so.
_BEAT = 30.0


@dataclass(kw_only=True)
class Outpost:
    """The process that keeps the planes on another network, from inside of it: started when there are any, started
    again when it ends, and ended with this one. It ends by itself when its standard input does, however this one died.
    """

    engine: Engine
    network: Isolation
    argv: Callable[[], Awaitable[tuple[str, ...]]]
    environment: dict[str, str]
    log: Log
    _needed: asyncio.Event = field(default_factory=asyncio.Event)

    def need(self) -> None:
        """There is a plane for it."""
        self._needed.set()

    async def run(self) -> None:
        """Until cancelled."""
        loop, pause = asyncio.get_running_loop(), _SHORTEST
        while True:
            await self._needed.wait()
            self._needed.clear()
            began = loop.time()
            try:
                if not await self._planes():
                    continue
                code = await self._once()
                self.log.warning("the process on another network ended", network=str(self.network), code=code)
            except MET as error:
                self.log.warning(str(in_words(error)), network=str(self.network))
            pause = _SHORTEST if loop.time() - began > _WELL else min(2 * pause, _LONGEST)
            self._needed.set()
            await asyncio.sleep(pause)

    async def _planes(self) -> tuple[ControlPlane, ...]:
        """The planes on its network; their programs are there then, since from inside there is no way to get them."""
        home = self.engine.home
        planes = await home.store.list(ControlPlane)
        found = [each for each in planes if await network_of(home, each) is self.network]
        for each in found:
            try:
                await self.engine.programs(each)
            except MET as error:  # what it has may do; the keeper says what is missing
                self.log.warning(str(in_words(error)), plane=each.name)
        return tuple(found)

    async def _once(self) -> int:
        argv = await self.argv()
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.PIPE, start_new_session=True, env=self.environment
        )
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                assert process.stdin is not None
                process.stdin.close()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GRACE):
                        await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()


async def served(
    engine: Engine,
    network: Isolation,
    *,
    outposts: tuple[Outpost, ...],
    log: Log,
    alive: Callable[[], None],
    metrics: str,
) -> None:
    """Keep the planes on ``network``, and have ``outposts`` keep the others. Until cancelled. ``metrics``: the address
    and port at which they are told ("": nowhere).
    """
    take_short_turns()  # clients wait for it while they are held, and two sites need each other in a swap

    def elsewhere(where: Isolation) -> None:
        for each in outposts:
            if each.network is where:
                each.need()

    manager = Manager(engine=engine, network=network, log=log, alive=alive, elsewhere=elsewhere)
    async with contextlib.AsyncExitStack() as stack:
        if metrics:
            manager = await measured(manager, metrics, stack)
        await _kept(manager, outposts)


async def measured(manager: Manager, address: str, stack: contextlib.AsyncExitStack) -> Manager:
    """The manager, with metrics of its planes told until ``stack`` ends. Raises InvalidInput, PreconditionFailed."""
    from quarterdeck.metrics.measures import Measures  # few ask for them
    from quarterdeck.metrics.metrics import Metrics
    from quarterdeck.metrics.server import Address, telling

    metrics, beat = Metrics(), -math.inf

    def alive() -> None:
        nonlocal beat
        beat = clocks.steady()
        manager.alive()

    def ready() -> str:
        return "" if clocks.steady() - beat < _BEAT else "it keeps no planes: another one does, or it hangs"

    store = manager.engine.home.store
    at = await stack.enter_async_context(telling(metrics, Address.parse(address), store=store, ready=ready))
    manager.log.info("telling metrics", address=f"http://{at}/metrics")
    return replace(
        manager,
        alive=alive,
        watchers=lambda name: (metrics.of(name),),
        duties=lambda _: (Measures(metrics=metrics),),
    )


async def _kept(manager: Manager, outposts: tuple[Outpost, ...]) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(manager.run(), name=f"manager of {manager.network}")
        for each in outposts:
            group.create_task(each.run(), name=f"outpost on {each.network}")
