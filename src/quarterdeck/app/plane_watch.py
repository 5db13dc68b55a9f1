"""Continuous observation of planes, all in parallel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field, replace

from quarterdeck.api.base import Condition
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.output.status import PlaneStatus
from quarterdeck.app.plane_status import summary
from quarterdeck.engine.preflight.reach import require_plane_in_reach
from quarterdeck.engine.status import StatusReader
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Gone, QuarterdeckError
from quarterdeck.stores.port import Event

__all__ = ["Event", "Watch", "WatchedPlane"]

#: This many planes are observed as often as requested; more than that are observed less often, so that observing many
#: planes does not take the processor from the planes themselves.
_AT_ONCE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedPlane:
    """The last observation of a plane. ``facts`` is its ``summary`` (None: not observed yet), ``looked`` the number of
    observations; ``trouble``: why the last observation failed ("" if it did not); ``gone``: no plane has that name.
    """

    name: str
    facts: PlaneStatus | None = None
    conditions: tuple[Condition, ...] = ()
    events: tuple[Event, ...] = ()
    looked: int = 0
    trouble: str = ""
    gone: bool = False


@dataclass(kw_only=True)
class Watch:
    """Observes planes until it is closed; ``every``: seconds between two observations of one."""

    home: Home
    every: float
    _seen: dict[str, WatchedPlane] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def moments(self, name: str | None) -> AsyncGenerator[tuple[WatchedPlane, ...], None]:
        """Plane ``name``, or all planes, again and again: the last observation of each, by name. Ends when the one is
        deleted; raises Gone when it never existed.
        """
        if name is not None:
            await recorded.existing(self.home.store, name)
        try:
            while True:
                await self._attend([name] if name is not None else await self._names())
                seen = tuple(self._seen[each] for each in sorted(self._seen))
                if all(each.looked or each.trouble for each in seen):
                    yield seen
                if name is not None and self._seen[name].gone:
                    return
                await asyncio.sleep(self._pause())
        finally:
            await self._end(self._tasks)

    def _pause(self) -> float:
        """Until the first observation of each, check more often whether it is finished."""
        waited = any(not (each.looked or each.trouble) for each in self._seen.values())
        return min(self.every, 0.1) if waited else self.every

    async def _names(self) -> list[str]:
        return [each.metadata.name for each in await self.home.store.list(ControlPlane)]

    async def _attend(self, names: Iterable[str]) -> None:
        """Observe exactly these. Raises the unexpected errors of observations."""
        for task in self._tasks.values():
            if task.done():
                task.result()
        wanted = set(names)
        await self._end(self._tasks.keys() - wanted)
        for name in wanted - self._tasks.keys():
            self._seen[name] = WatchedPlane(name=name)
            self._tasks[name] = asyncio.create_task(self._look_on(name))

    async def _end(self, names: Iterable[str]) -> None:
        tasks = [self._tasks.pop(name) for name in tuple(names)]
        self._seen = {name: seen for name, seen in self._seen.items() if name in self._tasks}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_on(self, name: str) -> None:
        onlooker = StatusReader(home=self.home, name=name)
        try:
            while not self._seen[name].gone:
                self._seen[name] = await self._look(onlooker, self._seen[name])
                await asyncio.sleep(self.every * max(1.0, len(self._tasks) / _AT_ONCE))
        finally:
            await onlooker.close()

    async def _look(self, onlooker: StatusReader, before: WatchedPlane) -> WatchedPlane:
        name, store = before.name, self.home.store
        try:
            await require_plane_in_reach(self.home, name)
            status = await onlooker.look()
            events = await store.events(name)
        except Gone as error:
            return replace(before, trouble=str(error), gone=True)
        except QuarterdeckError as error:
            return replace(before, trouble=str(error))
        return WatchedPlane(
            name=name,
            facts=summary(status),
            conditions=status.plane.status.conditions,
            events=tuple(events),
            looked=before.looked + 1,
        )
