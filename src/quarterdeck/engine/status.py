"""The status of a plane: one observation, and the leaders of its controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from typing_extensions import override

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.engine.observation.observe import Observer, observer_of
from quarterdeck.engine.observation.observe_leaders import claims, led_kinds
from quarterdeck.engine.workspace import leases, recorded, site_use
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import wants
from quarterdeck.model.components import Component
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of one kind of controllers. ``replica`` is the one that reports it itself; None when none does, or
    when two do: a frozen one has not noticed yet. ``identity`` is the holder in the Lease: a host name and a random
    part; "" without a holder, None when that is unknown.
    """

    replica: str | None = None
    identity: str | None = None

    @override
    def __str__(self) -> str:
        """For people. Identities do not help them: all replicas of a host share its name."""
        if self.replica is not None:
            return self.replica
        return "no one" if self.identity == "" else "a replica that does not report it" if self.identity else "unknown"


async def leaders(plane: Plane, world: World) -> Mapping[Component, Leader]:
    """The leaders, as an apiserver and the controllers report them; running controllers are queried where no apiserver
    reports it.
    """
    kinds = led_kinds(plane, {each.revision for each in world.memory.replicas} or {world.revision})
    known = {each.component: Leader(each.replica or None, each.holder) for each in world.leading}
    unknown = [each for each in kinds if each not in known]
    found = await asyncio.gather(*(_leader(plane, world, each) for each in unknown))
    return {**dict(zip(unknown, found, strict=True)), **known}


async def _leader(plane: Plane, world: World, component: Component) -> Leader:
    running = {fact.name for fact in world.replicas if fact.unit(component) is UnitState.RUNNING}
    claimed = await claims(plane, component, {each: each.name in running for each in plane.memory.replicas})
    leading = [name for name, leads in claimed.items() if leads]
    return Leader(leading[0] if len(leading) == 1 else None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of one plane. ``cordoned``: its cordoned replicas, and the cordoned machines of its sites."""

    plane: ControlPlane
    world: World
    plan: Plan
    operation: Operation | None
    driver: str
    leaders: Mapping[Component, Leader]
    cordoned: tuple[str, ...] = ()


async def look(home: Home, name: str, *, sure: bool = False) -> Status:
    """Observe a plane without changing it. ``sure``: wait some seconds if needed to know whether its controllers have
    leaders. Raises NotFound.
    """
    resource = await recorded.existing(home.store, name)
    async with AsyncExitStack() as stack:
        opened = await home.plane(resource, stack)
        observer = await observer_of(opened)
        world = await observer.observe()
        return await status_of(home, opened, await observer.sure(world) if sure else world)


async def status_of(home: Home, plane: Plane, world: World) -> Status:
    """The status from an observation of a plane, the store, and its controllers."""
    leading = await leaders(plane, world)
    lease = await home.store.lease(leases.lease_name(plane.name))
    return Status(
        plane=plane.resource,
        world=world,
        plan=plan(world),
        operation=await recorded.current(home.store, plane.name),
        driver=lease.holder if lease is not None else "",
        leaders=leading,
        cordoned=await site_use.of_plane(home.store, plane.resource),
    )


@dataclass(kw_only=True)
class StatusReader:
    """Observes one plane repeatedly. It keeps its connections, and remembers silent members, so that it reports members
    like a driver does. Close it.
    """

    home: Home
    name: str
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _plane: Plane | None = None
    _observer: Observer | None = None

    async def look(self) -> Status:
        """One observation. Raises Gone when there is no such plane; after any error the next one starts again."""
        resource = await recorded.existing(self.home.store, self.name)
        try:
            plane, observer = await self._opened(resource)
            plane.resource = resource
            return await status_of(self.home, plane, await observer.observe())
        except BaseException:
            await self.close()
            raise

    async def _opened(self, resource: ControlPlane) -> tuple[Plane, Observer]:
        """The plane with its ports, opened again when its wanted state changed."""
        if self._plane is None or self._observer is None or wants(self._plane.resource) != wants(resource):
            await self.close()
            self._plane = await self.home.plane(resource, self._stack)
            self._observer = await observer_of(self._plane)
        return self._plane, self._observer

    async def close(self) -> None:
        """Close all connections."""
        self._plane = self._observer = None
        await self._stack.aclose()
        self._stack = AsyncExitStack()
