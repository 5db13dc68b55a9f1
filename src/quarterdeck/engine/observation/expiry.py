"""Replicas whose certificates have expired, by the keys that quarterdeck has issued."""

from __future__ import annotations

from datetime import UTC, datetime

from quarterdeck.actions.plane import Plane
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.model.clusters import CLUSTER, Cluster
from quarterdeck.model.membership import Health
from quarterdeck.model.world import World

#: The certificates of members, by name.
_OF_MEMBERS = frozenset(each.name for program in CLUSTER for each in CATALOGUE[program].certificates)


def expired_replicas(plane: Plane, world: World) -> frozenset[str]:
    """The replicas with a member whose certificates have expired by this host's clock. None while all members are
    healthy, since reading certificates takes a library that is slow to load.
    """
    issued = {} if _all_healthy(world) else {each.name: _issued(plane, each.name) for each in world.memory.replicas}
    if not any(issued.values()):
        return frozenset()
    from quarterdeck.pki.validity import expiry

    now = datetime.fromtimestamp(plane.clock(), UTC)
    return frozenset(name for name, found in issued.items() if any(expiry(each) <= now for each in found))


def _issued(plane: Plane, replica: str) -> tuple[bytes, ...]:
    """The certificates of a replica's members (PEM)."""
    found = plane.secrets.replica(replica)
    pairs = found.pairs.items() if found is not None else ()
    return tuple(pair.certificate for name, pair in pairs if name in _OF_MEMBERS)


def _all_healthy(world: World) -> bool:
    there = [world.of(each).membership for each in Cluster if each is Cluster.MAIN or world.memory.events.exists]
    return all(each is not None and all(member.health is Health.HEALTHY for member in each.members) for each in there)
