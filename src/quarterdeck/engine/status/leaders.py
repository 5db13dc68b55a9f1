"""Which replicas lead the controllers: of each kind one works, the others stand by."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue
from typing_extensions import override

from quarterdeck.actions.plane import Plane
from quarterdeck.engine.observation.observe_leaders import claims, led_kinds
from quarterdeck.model.components import Component
from quarterdeck.model.leadership import Leadership
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

    @override
    def __str__(self) -> str:
        """In words. Identities are of no use to people: all replicas of a host share its name."""
        if self.replica is not None:
            return self.replica
        return "nobody" if self.identity == "" else "a replica that does not say so" if self.identity else "unknown"


def leading(fact: Mapping[str, JsonValue]) -> list[str]:
    """A status's leaders in words, a line each."""
    replicas, identities, leases = fact["leaders"], fact["leaderIdentities"], fact["controllerLeases"]
    assert isinstance(replicas, dict)
    assert isinstance(identities, dict)
    assert isinstance(leases, dict)
    return [
        f"{kind} led by {_who(Leader.of(replica, identities[kind]), leases.get(kind))}"
        for kind, replica in replicas.items()
    ]


def lease_facts(seen: Leadership) -> dict[str, JsonValue]:
    """A lease of controllers, as a status in JSON has it. ``led``: null where it is not known."""
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
    """Who leads and, as far as it is known, when its lease was last renewed, and until when a ghost's lasts."""
    if not isinstance(lease, dict):
        return str(leader)
    idle = lease["renewedSecondsAgo"]
    renewed = [f"last renewed {idle:.0f} s ago"] if isinstance(idle, int | float) else []
    if lease["led"] is not False:
        return ", ".join([str(leader), *renewed])
    if not lease["holder"]:
        return "nobody: nobody holds its lease"
    held = f"nobody: its lease {'was' if lease['expired'] else 'is'} held by '{lease['holder']}'"
    return ", ".join([held, *renewed, *([f"until {lease['expires']}"] if lease["expires"] else [])])


async def leaders(plane: Plane, world: World) -> Mapping[Component, Leader]:
    """Who leads, as an apiserver and the controllers were seen to say; asked of the controllers that run where no
    apiserver says it.
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
