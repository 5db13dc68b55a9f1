"""The status of a plane, for people and programs: one observation, and the leaders of the controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue
from typing_extensions import override

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.engine.notices.conditions import why_stalled
from quarterdeck.engine.notices.events import warnings
from quarterdeck.engine.observation.observe import Observer, observer_of
from quarterdeck.engine.observation.observe_leaders import claims, led_kinds
from quarterdeck.engine.workspace import leases, operations, site_use
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import wants
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.leadership import Leadership
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import BalancerFact, World
from quarterdeck.planner import quorum
from quarterdeck.planner.members import voters
from quarterdeck.planner.planner import plan
from quarterdeck.planner.survival import survivals
from quarterdeck.planner.view import view


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of one kind of controllers. ``replica`` is the one that reports it itself; None when none does, or
    when two do: a frozen one has not noticed yet. ``identity`` is the holder in the Lease: a host name and a random
    part; "" without a holder, None when that is unknown.
    """

    replica: str | None = None
    identity: str | None = None

    @classmethod
    def of(cls, replica: JsonValue, identity: JsonValue) -> Leader:
        """From the JSON of a status."""
        return cls(str(replica) if replica is not None else None, str(identity) if identity is not None else None)

    @override
    def __str__(self) -> str:
        """For people. Identities do not help them: all replicas of a host share its name."""
        if self.replica is not None:
            return self.replica
        return "no one" if self.identity == "" else "a replica that does not report it" if self.identity else "unknown"


def leading(fact: Mapping[str, JsonValue]) -> list[str]:
    """The leaders of a status for people, a line each."""
    replicas, identities, leases = fact["leaders"], fact["leaderIdentities"], fact["controllerLeases"]
    assert isinstance(replicas, dict)
    assert isinstance(identities, dict)
    assert isinstance(leases, dict)
    return [
        f"{kind} led by {_who(Leader.of(replica, identities[kind]), leases.get(kind))}"
        for kind, replica in replicas.items()
    ]


def lease_facts(seen: Leadership) -> dict[str, JsonValue]:
    """A lease of controllers, in the JSON of a status. ``led``: null where it is unknown."""
    return {
        "lease": seen.lease,
        "led": seen.led,
        "holder": seen.holder or None,
        "renewedSecondsAgo": round(seen.idle_s, 1) if seen.idle_s is not None else None,
        "expires": seen.expires or None,
        "expired": seen.expired,
        "trouble": seen.trouble or None,
    }


def _who(leader: Leader, lease: JsonValue) -> str:
    """The leader and, as far as known, when its lease was last renewed, and until when an abandoned lease lasts."""
    if not isinstance(lease, dict):
        return str(leader)
    idle = lease["renewedSecondsAgo"]
    renewed = [f"last renewed {idle:.0f} s ago"] if isinstance(idle, int | float) else []
    if lease["led"] is not False:
        return ", ".join([str(leader), *renewed])
    if not lease["holder"]:
        return "no one: its lease has no holder"
    held = f"no one: its lease {'was' if lease['expired'] else 'is'} held by '{lease['holder']}'"
    return ", ".join([held, *renewed, *([f"until {lease['expires']}"] if lease["expires"] else [])])


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
    said = await claims(plane, component, {each: each.name in running for each in plane.memory.replicas})
    leading = [name for name, leads in said.items() if leads]
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
    resource = await operations.existing(home.store, name)
    async with AsyncExitStack() as stack:
        opened = await home.plane(resource, stack)
        observer = await observer_of(opened)
        world = await observer.observe()
        return await told(home, opened, await observer.sure(world) if sure else world)


async def told(home: Home, plane: Plane, world: World) -> Status:
    """The status from an observation of a plane, the store, and its controllers."""
    leading = await leaders(plane, world)
    lease = await home.store.lease(leases.lease_name(plane.name))
    return Status(
        plane=plane.resource,
        world=world,
        plan=plan(world),
        operation=await operations.current(home.store, plane.name),
        driver=lease.holder if lease is not None else "",
        leaders=leading,
        cordoned=await site_use.of_plane(home.store, plane.resource),
    )


def summary(status: Status) -> dict[str, JsonValue]:
    """The status in one mapping: what `status -o json` prints."""
    world, membership = status.world, status.world.membership
    now = voters(world) if membership is not None else frozenset()
    return {
        "name": status.plane.metadata.name,
        "site": status.plane.spec.placement.site,
        "replicas": status.plane.spec.replicas,
        "kubernetesVersion": status.plane.spec.kubernetes_version,
        "endpoint": status.plane.host,
        "healthy": status.plan.done and not world.unled and not any(each.alarms for each in world.memberships),
        "paused": status.plane.spec.paused_at(datetime.now(UTC)),
        "pausedUntil": _until(status.plane),
        "doing": [step.kind for step in status.plan.now],
        "waiting": [*map(str, status.plan.waiting)],
        "leftovers": [*status.plan.leftovers],
        "operation": status.operation.metadata.name if status.operation else None,
        "driver": status.driver or None,
        "stalled": why_stalled(status.plane) or None,
        "cordoned": [*status.cordoned],
        "addons": [
            {"name": each.name, "objects": each.objects, "why": each.why or None} for each in status.plane.status.addons
        ],
        "voters": len(now) if membership is not None else None,
        "mayFail": quorum.margin(now) if membership is not None else None,
        "quorumAt": quorum.quorum_site(now) if membership is not None else None,
        "survives": [*_survives(world)],
        "nameLeadsTo": world.record if world.record_known else "unknown",
        "warnings": [*warnings(world)],
        "alarms": [*membership.alarms] if membership is not None else None,
        "leaders": {str(kind): leader.replica for kind, leader in status.leaders.items()},
        "leaderIdentities": {str(kind): leader.identity for kind, leader in status.leaders.items()},
        "controllerLeases": {str(each.component): lease_facts(each) for each in world.leading},
        "members": [*_members(world)],
        "loadBalancers": [*map(_balancer, world.balancers)],
    }


def _balancer(seen: BalancerFact) -> JsonValue:
    return {
        "site": seen.site,
        "running": seen.running or (False if seen.reachable else None),
        "backends": [*sorted(seen.backends)],
        "connections": seen.connections,
    }


def _survives(world: World) -> list[JsonValue]:
    """The failures that it survives now; empty for a plane in deletion."""
    if world.deleting:
        return []
    return [
        {"failure": str(each.failure), "answer": str(each.answer), "why": [*each.why]}
        for each in survivals(view(world))
    ]


def _until(plane: ControlPlane) -> str | None:
    """When the pause of a plane ends by itself, if it does."""
    until = plane.spec.paused_until
    return until.isoformat() if until is not None and plane.spec.paused_at(datetime.now(UTC)) else None


def _members(world: World) -> list[JsonValue]:
    rows: list[JsonValue] = []
    for record in world.memory.replicas:
        fact = world.replica(record.name)
        rows.append(
            {
                "replica": record.name,
                "site": record.site,
                "zone": record.slot.zone,
                "machine": record.machine,
                "machineState": str(fact.machine),
                **_member(world, record.name),
                "events": _member(world.of(Cluster.EVENTS), record.name) if record.events is not None else None,
                "apiserver": "ready" if fact.ready else str(fact.unit(Component.APISERVER)),
                **{str(component): str(fact.unit(component)) for component in CATALOGUE},
            }
        )
    return rows


def _member(world: World, name: str) -> dict[str, JsonValue]:
    """The role and health of a replica in a cluster."""
    membership, member = world.membership, world.member(name)
    role = "unknown" if membership is None else "none"
    if member is not None and membership is not None:
        role = "learner" if member.learner else "leader" if membership.leader == name else "voter"
    return {
        "member": role,
        "health": str(member.health) if member is not None else None,
        "lag": member.lag if member is not None else None,
    }


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
        resource = await operations.existing(self.home.store, self.name)
        try:
            plane, observer = await self._opened(resource)
            plane.resource = resource
            return await told(self.home, plane, await observer.observe())
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
