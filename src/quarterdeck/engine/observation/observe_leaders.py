"""The observation of who leads a plane's controllers: by their leases, and by what the programs say themselves."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from quarterdeck.actions.addresses import apiserver_address, server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.engine.observation.lead_obstacles import obstacles
from quarterdeck.engine.observation.lead_watch import SURE_S, Watched
from quarterdeck.errors import NotFound, Unavailable
from quarterdeck.kube.address import Address
from quarterdeck.model.components import Component
from quarterdeck.model.leadership import Leadership, Obstacle
from quarterdeck.model.memory import Memory, Replica

T = TypeVar("T")

#: Seconds between two readings while each showed a renewal.
EVERY_S = 9.0
#: Seconds between two readings else, and between two searches for what keeps everybody from leading.
_CLOSELY_S = 1.0
_SEARCHED_S = 20.0
#: Seconds for an answer: no look waits longer for who leads.
_WITHIN_S = 1.0


@dataclass(kw_only=True)
class LeadersObserver:
    """Observes those of one plane, again and again. It remembers what it read, and asks the programs themselves only
    where it does not know whose holder a lease has.
    """

    plane: Plane
    _watched: dict[Component, Watched] = field(default_factory=dict)
    _found: dict[Component, tuple[float, tuple[Obstacle, ...]]] = field(default_factory=dict)
    _read: float = -math.inf
    _leading: tuple[Leadership, ...] = ()

    async def observe(
        self, memory: Memory, ready: Mapping[str, bool | None], *, once: bool = False
    ) -> tuple[Leadership, ...]:
        """One look, by an apiserver that is ``ready``, of the replicas whose machines answer; nothing where none is.
        ``once``: see ``Watched.judged``.
        """
        serving = next((name for name, answer in ready.items() if answer), None)
        if serving is None:
            return ()
        now, well = self.plane.steady(), all(each.led and (each.idle_s or 0.0) < SURE_S for each in self._leading)
        if now - self._read < (EVERY_S if well and self._leading else _CLOSELY_S):
            return self._leading
        self._read = now
        apiserver = apiserver_address(memory.replica(serving))
        kinds = led_kinds(self.plane, {each.revision for each in memory.replicas})
        reached = {record: record.name in ready for record in memory.replicas}
        found = await asyncio.gather(*(self._observe(each, reached, apiserver, once=once) for each in kinds))
        self._leading = tuple(each for each in found if each is not None)
        return self._leading

    async def sure(self, memory: Memory, ready: Mapping[str, bool | None]) -> tuple[Leadership, ...]:
        """The same for who looks only once: it is read again until it is known whether somebody leads."""
        until = self.plane.steady() + SURE_S + _CLOSELY_S
        leading = await self.observe(memory, ready)
        while self._suspects() and self.plane.steady() < until:
            await asyncio.sleep(_CLOSELY_S)
            leading = await self.observe(memory, ready, once=True)
        return leading

    def _suspects(self) -> bool:
        """Whether another look may tell more: a renewal that is seen outweighs what clocks say of the one before."""
        unsure = any(each.led is None or (each.led and not each.works) for each in self._leading)
        return unsure or any(each.alone is not None and not each.foreign for each in self._watched.values())

    async def _observe(
        self, component: Component, reached: Mapping[Replica, bool], apiserver: Address, *, once: bool
    ) -> Leadership | None:
        """One of them; None when the apiserver does not say."""
        lease = CATALOGUE[component].lease
        try:
            async with asyncio.timeout(_WITHIN_S):
                seen = await self.plane.kube.leader_lease(apiserver, lease)
        except (TimeoutError, Unavailable):
            return None
        now, before = self.plane.steady(), self._watched.get(component)
        watched = Watched.begun(seen, now) if before is None else before.after(seen, now)
        if seen is not None and seen.holder and not watched.replica:
            watched = watched.claimed(await claims(self.plane, component, reached))
        self._watched[component] = watched
        judged = watched.judged(component, lease, once=once)
        if judged.led is not False:
            self._found.pop(component, None)
            return judged
        return replace(judged, obstacles=await self._obstacles(component, apiserver, now))

    async def _obstacles(self, component: Component, apiserver: Address, now: float) -> tuple[Obstacle, ...]:
        """What keeps everybody from it, as it was found out lately."""
        at, known = self._found.get(component, (-math.inf, ()))
        if now - at < _SEARCHED_S:
            return known
        found = await obstacles(self.plane, apiserver, component)
        if _plain(found) == _plain(known):
            found = known  # what is told of it is one event, though a port or a time in its words is another one
        self._found[component] = now, found
        return found


def _plain(found: tuple[Obstacle, ...]) -> list[str]:
    return [re.sub(r"\d+", "#", each.seen) for each in found]


def led_kinds(plane: Plane, revisions: Iterable[str]) -> tuple[Component, ...]:
    """The programs of replicas of these revisions of which one leads, by a lease."""
    there = {component for each in revisions for component in plane.revisions.programs.of(each)}
    return tuple(component for component, spec in CATALOGUE.items() if spec.lease and component in there)


async def claims(plane: Plane, component: Component, reached: Mapping[Replica, bool]) -> Mapping[str, bool | None]:
    """Which replicas' programs say that they lead, by replica; None for one that does not answer. ``reached``: whether
    its machine does.
    """
    (port,), lease = CATALOGUE[component].ports, CATALOGUE[component].lease

    async def asked(record: Replica) -> bool | None:
        if not reached[record]:
            return None
        try:
            return await _soon(plane.kube.leads(server_address(record, port.name), lease))
        except (NotFound, Unavailable):
            return None

    said = await asyncio.gather(*map(asked, reached))
    return {record.name: leads for record, leads in zip(reached, said, strict=True)}


async def _soon(asked: Awaitable[T]) -> T | None:
    try:
        async with asyncio.timeout(_WITHIN_S):
            return await asked
    except TimeoutError:
        return None
