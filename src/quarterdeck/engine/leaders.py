"""Which replicas lead the controllers: of each kind one works, the others stand by."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from quarterdeck.actions.addresses import apiserver_address, server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.engine.asking import or_none
from quarterdeck.model.components import Component, controllers
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import World


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads one kind of controllers. ``replica`` is the one that says so itself; None when none does, or when two
    do: one that stood still has not noticed yet. ``identity`` is the name that the Lease has: a host's and a random
    one, "" when nobody holds it, None when that is not known.
    """

    replica: str | None = None
    identity: str | None = None

    @classmethod
    def of(cls, replica: JsonValue, identity: JsonValue) -> Leader:
        """As a status in JSON has it."""
        return cls(str(replica) if replica is not None else None, str(identity) if identity is not None else None)

    def __str__(self) -> str:
        """In words. Identities are of no use to people: all replicas of a host share its name."""
        if self.replica is not None:
            return self.replica
        return "nobody" if self.identity == "" else "a replica that does not say so" if self.identity else "unknown"


def leading(fact: Mapping[str, JsonValue]) -> list[str]:
    """A status's leaders in words, a line each."""
    replicas, identities = fact["leaders"], fact["leaderIdentities"]
    assert isinstance(replicas, dict)
    assert isinstance(identities, dict)
    return [f"{kind} led by {Leader.of(replica, identities[kind])}" for kind, replica in replicas.items()]


async def leaders(plane: Plane, world: World) -> Mapping[Component, Leader]:
    """Who leads, asked of the controllers that run and of an apiserver that is ready."""
    kinds = controllers(cloud=any(each.revision in world.cloud for each in world.memory.replicas))
    found = await asyncio.gather(*(_leader(plane, world, each) for each in kinds))
    return dict(zip(kinds, found, strict=True))


async def _leader(plane: Plane, world: World, component: Component) -> Leader:
    running = [fact.name for fact in world.replicas if fact.unit(component) is UnitState.RUNNING]
    (port,), lease = CATALOGUE[component].ports, CATALOGUE[component].lease
    asked = (plane.kube.leads(server_address(plane, plane.memory.replica(name), port), lease) for name in running)
    identity, answers = await asyncio.gather(_identity(plane, world, component), asyncio.gather(*asked))
    leading = [name for name, leads in zip(running, answers, strict=True) if leads]
    return Leader(leading[0] if len(leading) == 1 else None, identity)


async def _identity(plane: Plane, world: World, component: Component) -> str | None:
    ready = next((fact.name for fact in world.replicas if fact.ready), None)
    if ready is None:
        return None
    apiserver = apiserver_address(plane, plane.memory.replica(ready))
    lease = await or_none(plane.kube.leader_lease(apiserver, CATALOGUE[component].lease))
    return lease.holder if lease is not None else None
