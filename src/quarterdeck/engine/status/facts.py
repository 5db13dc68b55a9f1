"""What is so of a plane, for people and programs to read: one observation, told."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import JsonValue

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.engine.notices.conditions import why_stalled
from quarterdeck.engine.notices.events import warnings
from quarterdeck.engine.observation.observing import observer_of
from quarterdeck.engine.status.leaders import Leader, leaders, lease_facts
from quarterdeck.engine.workspace import cordons, leases, operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.world import BalancerFact, World
from quarterdeck.planner import quorum
from quarterdeck.planner.members import voters
from quarterdeck.planner.planner import plan
from quarterdeck.planner.survival import survivals
from quarterdeck.planner.view import view


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One plane, seen now. ``cordoned``: what of it, and of its sites' machines, a person wants left alone."""

    plane: ControlPlane
    world: World
    plan: Plan
    operation: Operation | None
    driver: str
    leaders: Mapping[Component, Leader]
    cordoned: tuple[str, ...] = ()


async def look(home: Home, name: str, *, sure: bool = False) -> Status:
    """Observe a plane without touching it. ``sure``: wait some seconds, if that is what it takes to know whether its
    controllers are led. Raises NotFound.
    """
    resource = await operations.existing(home.store, name)
    async with AsyncExitStack() as stack:
        opened = await home.plane(resource, stack)
        observer = await observer_of(opened)
        world = await observer.observe()
        return await told(home, opened, await observer.sure(world) if sure else world)


async def told(home: Home, plane: Plane, world: World) -> Status:
    """What was observed of a plane, with what the store and its controllers say of it."""
    leading = await leaders(plane, world)
    lease = await home.store.lease(leases.lease_name(plane.name))
    return Status(
        plane=plane.resource,
        world=world,
        plan=plan(world),
        operation=await operations.current(home.store, plane.name),
        driver=lease.holder if lease is not None else "",
        leaders=leading,
        cordoned=await cordons.of_plane(home.store, plane.resource),
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
        "quorumAt": quorum.home(now) if membership is not None else None,
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
    """Which failures it survives now; nothing is said of a plane that is to go."""
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
    """What a replica is in a cluster, and how it is there."""
    membership, member = world.membership, world.member(name)
    role = "unknown" if membership is None else "none"
    if member is not None and membership is not None:
        role = "learner" if member.learner else "leader" if membership.leader == name else "voter"
    return {
        "member": role,
        "health": str(member.health) if member is not None else None,
        "lag": member.lag if member is not None else None,
    }
