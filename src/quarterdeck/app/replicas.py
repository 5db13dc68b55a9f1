"""The replicas of a plane, as they were just observed."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.api.site import cordon_text
from quarterdeck.engine.status import Status
from quarterdeck.engine.workspace.home import Home
from quarterdeck.model.steps.placement import PlaceReplica
from quarterdeck.model.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFacts:
    """A replica. ``revision`` is what it runs; ``current``: whether that is the current revision (None: not known yet).
    ``member`` is leader, voter, learner or none, unknown without a quorum; ``health`` is that of its member, "" where
    it has none. ``since``: when it was placed (seconds since 1970), as long as the journal has it. ``cordoned``: who
    cordoned it and when, as text; "" if it is not. ``reattachable``: all its volumes outlive its machine.
    """

    name: str
    site: str
    zone: str
    machine: str
    revision: str
    current: bool | None
    condemned: bool
    member: str
    health: str
    ready: bool | None
    since: float | None
    cordoned: str = ""
    reattachable: bool = False


async def listed(home: Home, status: Status) -> tuple[ReplicaFacts, ...]:
    """See ``Quarterdeck.replicas``."""
    plane, world = status.plane, status.world
    placed = {each.replica: each.time for each in await home.store.journal(plane.name, kind=PlaceReplica.kind)}
    wanted = plane.status.revision
    cordoned = {each.replica: cordon_text(each) for each in plane.spec.cordoned_replicas}
    return tuple(
        ReplicaFacts(
            name=record.name,
            site=record.site,
            zone=record.slot.zone,
            machine=record.machine,
            revision=record.revision,
            current=record.revision == wanted if record.revision and wanted else None,
            condemned=record.name in (*plane.spec.replace_replicas, *world.memory.given_up),
            member=role(world, record.name),
            health=health(world, record.name),
            ready=world.replica(record.name).ready,
            since=placed.get(record.name),
            cordoned=cordoned.get(record.name, ""),
            reattachable=world.replica(record.name).reattachable,
        )
        for record in world.memory.replicas
    )


def role(world: World, replica: str) -> str:
    """The role of a replica's member in etcd."""
    if world.membership is None:
        return "unknown"
    member = world.membership.of(replica)
    if member is None:
        return "none"
    if member.learner and any(each.name == replica for each in world.memory.standbys):
        return "standby"
    return "learner" if member.learner else "leader" if world.membership.leader == replica else "voter"


def health(world: World, replica: str) -> str:
    """The health of a replica's member."""
    member = world.membership.of(replica) if world.membership is not None else None
    return str(member.health) if member is not None else ""
