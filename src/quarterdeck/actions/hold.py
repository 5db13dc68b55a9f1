"""Holds: all load balancers pause their traffic for a moment, so that clients wait and see no failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.plane import Plane
from quarterdeck.concurrency import together, whole
from quarterdeck.endpoint.port import HoldsClients, LoadBalancer
from quarterdeck.errors import QuarterdeckError, Unavailable
from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.capabilities import RoundTrip
from quarterdeck.model.memory import Replica
from quarterdeck.model.world import World

#: Seconds: how long load balancers may pause, and what a packet needs besides the round trip. A hold takes some 0.1 s,
#: and longer where the machine freezes during it: better than resuming too early.
LONGEST_HOLD = 2.0
_SETTLE = 0.01
#: Seconds between two checks of what clients wait for.
BETWEEN = 0.003
#: Seconds between two holds: a request that has waited for one must not wait for the next as well.
_BREATH = 0.2


@dataclass(frozen=True, slots=True)
class Hold:
    """Paused load balancers. ``settle``: seconds that a packet is on its way at most; ``until``: when the first of them
    resumes by itself, by the event loop's clock.
    """

    settle: float
    until: float


@asynccontextmanager
async def held(plane: Plane, world: World, servers: Sequence[Replica]) -> AsyncIterator[Hold]:
    """Within the block all load balancers are paused, and requests that they passed before have reached the apiservers
    of ``servers``.

    However the block ends (it raises, this process is stopped), all are resumed first; the machines of the load
    balancers resume them by themselves if this process dies. An apiserver that does not answer is not waited for.
    Raises Unavailable when a load balancer cannot be paused, or cannot be resumed before it resumes by itself.
    """
    running: list[HoldsClients] = [
        each for fact in world.balancers if fact.running for each in _answering(plane, fact).values()
    ]
    if isinstance(
        plane.dns, HoldsClients
    ):  # clients may be connected to an apiserver itself, from when it was the only one
        running.append(plane.dns)
    async with plane.holding:
        settle = _SETTLE + await _farthest(plane, world, servers)
        answering = await _ping(plane, servers)  # so that the connections exist when clients wait
        await plane.check()
        try:
            async with _stopped(running, LONGEST_HOLD + 2 * settle) as until:
                await asyncio.sleep(settle)  # packets on their way arrive,
                # and requests before these pings have begun before the pings are answered
                await _ping(plane, answering)
                yield Hold(settle, until)
        finally:
            await asyncio.sleep(_BREATH)


@asynccontextmanager
async def _stopped(balancers: Sequence[HoldsClients], seconds: float) -> AsyncIterator[float]:
    """Within the block these are paused, at most until the time that it yields."""
    until = asyncio.get_running_loop().time() + seconds
    failed: BaseException | None = None
    try:
        # To their end: a cancelled hold may still arrive, after the others were resumed.
        await whole(together(*(each.hold(seconds) for each in balancers)))
        yield until
    except BaseException as error:
        failed = error
        raise
    finally:
        try:
            # All of them: a hold that failed may have taken effect, and only its answer was lost.
            await whole(together(*(_let_go(each, until) for each in balancers)))
        except QuarterdeckError as error:
            if failed is None:
                raise
            failed.add_note(str(error))


async def _let_go(balancer: HoldsClients, until: float) -> None:
    """Resume it: retried until that succeeds, or until it resumes by itself."""
    while True:
        try:
            await balancer.let_go()
        except Unavailable:
            if asyncio.get_running_loop().time() >= until:
                raise
            await asyncio.sleep(BETWEEN)
        else:
            return


async def let_go_all(plane: Plane) -> None:
    """Resume load balancers that a former driver may have left paused. One that does not answer resumes by itself."""
    asked = (each.let_go() for edges in plane.balancers.values() for each in edges.values())
    for ended in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(ended, BaseException) and not isinstance(ended, Unavailable):
            raise ended


async def _ping(plane: Plane, servers: Sequence[Replica]) -> list[Replica]:
    """The replicas whose apiserver answers."""
    answers = await together(*(plane.kube.ping(apiserver_address(each)) for each in servers))
    return [each for each, answer in zip(servers, answers, strict=True) if answer.ok]


async def _farthest(plane: Plane, world: World, servers: Sequence[Replica]) -> float:
    """Seconds of the longest round trip from a load balancer to an apiserver; 0 where nothing answers."""
    one_of_site = {record.site: record for record in servers}
    asked = [
        _round_trip(plane, each.site, edge, record)
        for each in world.balancers
        for site, record in one_of_site.items()
        if each.running and each.site != site
        for edge in _answering(plane, each)
    ]
    times = await asyncio.gather(*asked, return_exceptions=True)
    for each in times:
        if isinstance(each, BaseException) and not isinstance(each, Unavailable):
            raise each
    return max((each for each in times if isinstance(each, float)), default=0.0)


async def _round_trip(plane: Plane, site: str, edge: str, server: Replica) -> float:
    there = apiserver_address(server)
    return await plane.site(site).measure(edge, RoundTrip(there.host, there.port))


def _answering(plane: Plane, fact: BalancerFact) -> Mapping[str, LoadBalancer]:
    """The edges of a load balancer that answer, and can be paused."""
    return {name: each for name, each in plane.edges(fact.site).items() if name not in fact.silent and each.can_hold}
