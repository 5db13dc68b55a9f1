"""Having all load balancers pass nothing on for a moment: clients wait, and see no failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager

from quarterdeck.actions.plane import Plane
from quarterdeck.errors import Unavailable
from quarterdeck.model.memory import Replica
from quarterdeck.model.world import World

#: Seconds: how long load balancers may pass nothing on, and what a packet needs besides the round trip. A hold takes
#: some 0.1 s, and longer where the machine stands still in the middle of it: better than to let go too early.
LONGEST_HOLD = 2.0
_SETTLE = 0.01
#: Seconds between two looks at what clients wait for.
BETWEEN = 0.003
#: Seconds between two holds: what has waited for one is not to wait for the next as well.
_BREATH = 0.2


@asynccontextmanager
async def held(plane: Plane, world: World, servers: Sequence[Replica]) -> AsyncIterator[float]:
    """Within the block no load balancer passes anything on, and what one passed on before has been begun by the
    apiservers of ``servers``. Yields the seconds that a packet is on its way at most.

    The machines of the load balancers let them go by themselves if this process dies. An apiserver that does not answer
    is not waited for. Raises Unavailable when a load balancer cannot be held.
    """
    running = [plane.balancers[each.site] for each in world.balancers if each.running and each.reachable]
    async with plane.holding:
        settle = _SETTLE + await _farthest(plane, world, servers)
        await _ping(plane, servers)  # so that the connections are there when clients wait
        try:
            await _all(each.hold(LONGEST_HOLD + 2 * settle) for each in running)
            await asyncio.sleep(settle)  # what is on its way arrives,
            # and what came before this was begun before this was answered
            await _ping(plane, servers)
            yield settle
        finally:
            await _all(each.let_go() for each in running)
            await asyncio.sleep(_BREATH)


async def _ping(plane: Plane, servers: Sequence[Replica]) -> None:
    await asyncio.gather(*(plane.kube.ping(plane.apiserver(each)) for each in servers))


async def _all(calls: Iterable[Awaitable[None]]) -> None:
    """Make all calls at once, and raise what one of them raised only after all have ended: a load balancer must not
    be held after the others were let go.
    """
    for ended in await asyncio.gather(*calls, return_exceptions=True):
        if ended is not None:
            raise ended


async def _farthest(plane: Plane, world: World, servers: Sequence[Replica]) -> float:
    """Seconds of the longest round trip from a load balancer to an apiserver; 0 where nothing answers."""
    one_of_site = {record.site: record for record in servers}
    asked = [
        plane.site(each.site).round_trip(
            plane.edge(each.site).name, plane.address(record), plane.settings.ports.apiserver
        )
        for each in world.balancers
        for site, record in one_of_site.items()
        if each.running and each.site != site
    ]
    times = await asyncio.gather(*asked, return_exceptions=True)
    for each in times:
        if isinstance(each, BaseException) and not isinstance(each, Unavailable):
            raise each
    return max((each for each in times if isinstance(each, float)), default=0.0)
