"""Looking at a plane again and again without touching it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.engine.observation.observe import Observer
from quarterdeck.engine.observation.observing import observer_of
from quarterdeck.engine.status.facts import Status, told
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import wants


@dataclass(kw_only=True)
class Onlooker:
    """Looks at one plane. It keeps its connections, and remembers who is silent, so that what it says of members is
    what a driver would say. Close it.
    """

    home: Home
    name: str
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _plane: Plane | None = None
    _observer: Observer | None = None

    async def look(self) -> Status:
        """One look. Raises Gone when there is no such plane, and what a look raises; the next one begins anew then."""
        resource = await operations.existing(self.home.store, self.name)
        try:
            plane, observer = await self._opened(resource)
            plane.resource = resource
            return await told(self.home, plane, await observer.observe())
        except BaseException:
            await self.close()
            raise

    async def _opened(self, resource: ControlPlane) -> tuple[Plane, Observer]:
        """The plane with its ports, opened anew when something else is wanted of it."""
        if self._plane is None or self._observer is None or wants(self._plane.resource) != wants(resource):
            await self.close()
            self._plane = await self.home.plane(resource, self._stack)
            self._observer = await observer_of(self._plane)
        return self._plane, self._observer

    async def close(self) -> None:
        """Let go of all connections."""
        self._plane = self._observer = None
        await self._stack.aclose()
        self._stack = AsyncExitStack()
