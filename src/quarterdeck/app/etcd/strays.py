"""Removing an etcd member that belongs to no replica: a user, or another program, has added it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from quarterdeck.actions.members import healthy_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.api.events import EventReason
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.observation.observe import observer_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import InvalidInput, NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.clusters import CALLED, Cluster
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.world import World
from quarterdeck.planner.members import strays, voters
from quarterdeck.planner.quorum import has_quorum
from quarterdeck.stores.port import EventType

_ID = re.compile("(0x)?([0-9a-f]{1,16})", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRemoval:
    """A member that may be removed. ``member``: its id; ``description``: its role, id, name and peer URLs, for people;
    ``voters``: the number of voters without it; ``healthy``: how many of them are healthy.
    """

    plane: str
    member: int
    description: str
    voters: int
    healthy: int


async def planned(home: Home, name: str, member: str) -> MemberRemoval:
    """See ``EtcdCare.plan_member_removal``."""
    number = _number(name, member)
    async with open_plane(home, name) as plane:
        removal, _, _ = await _looked(plane, number)
        return removal


async def removed(home: Home, removal: MemberRemoval, requester: Requester) -> None:
    """See ``EtcdCare.remove_member``. No lease is taken: a driver may be waiting for this very removal. Whatever the
    driver does, it counts the member in every quorum, and etcd takes one change at a time.
    """
    async with open_plane(home, removal.plane) as plane:
        now, cluster, world = await _looked(plane, removal.member)
        await plane.etcd.remove(healthy_urls(plane, world, cluster), removal.member)
    message = f"{now.description} was removed by {requester.name}: it belonged to no replica"
    happening = Happening(EventReason.MEMBER_REMOVED, message, EventType.NORMAL)
    await home.store.record(happening.event(removal.plane, requester.now().timestamp()))


def _doing(plane: str, member: str) -> str:
    return f"removing member {member} of etcd of plane {plane}"


def _number(plane: str, member: str) -> int:
    found = _ID.fullmatch(member)
    if found is None:
        seen = "an id has up to 16 hexadecimal digits"
        raise InvalidInput(_doing(plane, repr(member)), seen, f"'quarterdeck status {plane}' names members by id")
    return int(found[2], 16)


async def _looked(plane: Plane, number: int) -> tuple[MemberRemoval, Cluster, World]:
    """The removal as one observation allows it, and the world as the member's cluster has it.

    Raises Unavailable without a quorum, NotFound for an id that is not listed, PreconditionFailed for a replica's
    member, for the leader, and where the rest would be no healthy quorum.
    """
    doing, world = _doing(plane.name, f"{number:x}"), await (await observer_of(plane)).observe()
    for cluster in Cluster:
        of = world.of(cluster)
        members = of.membership.members if of.membership is not None else ()
        found = next((each for each in members if each.id == number), None)
        if found is not None:
            removal = _allowed(plane, doing, of, cluster, found)
            await _require_follower(plane, doing, of, cluster, number)
            return removal, cluster, of
    if world.membership is None:
        seen = "no quorum of its etcd answers, and without one no member can be removed"
        raise Unavailable(doing, seen, f"see 'quarterdeck status {plane.name}' and 'quarterdeck recover {plane.name}'")
    known = [f"{each.description} of {CALLED[cluster]}" for cluster in Cluster for each in strays(world.of(cluster))]
    seen = f"etcd lists no such member; members that belong to no replica: {', '.join(known) or 'none'}"
    raise NotFound(doing, seen)


def _allowed(plane: Plane, doing: str, world: World, cluster: Cluster, member: MemberFact) -> MemberRemoval:
    if member not in strays(world):
        seen, name = f"it is the member of replica {member.replica}", plane.name
        raise PreconditionFailed(doing, seen, f"'quarterdeck replica replace {name} {member.replica}' replaces it")
    rest = [each for each in voters(world) if each.replica != member.key]
    healthy = sum(each.healthy for each in rest)
    if not has_quorum(rest):
        seen = f"without it {healthy} of {len(rest)} voters are healthy, which is no quorum"
        raise PreconditionFailed(doing, seen, f"make the others healthy first: see 'quarterdeck status {plane.name}'")
    role = "learner" if member.learner else "voter"
    description = f"{role} {member.description} of {CALLED[cluster]}"
    return MemberRemoval(plane=plane.name, member=member.id, description=description, voters=len(rest), healthy=healthy)


async def _require_follower(plane: Plane, doing: str, world: World, cluster: Cluster, number: int) -> None:
    """Raise PreconditionFailed for the leader. Until the other members elect a new one, they keep forwarding writes to
    a removed leader, and each of these fails 7 s later.
    """
    urls = healthy_urls(plane, world, cluster)
    if (await plane.etcd.status(urls[0])).leader_id != number:
        return
    members = await plane.etcd.members(urls)
    at = ",".join(url for each in members if each.id == number for url in each.client_urls)
    assert world.membership is not None
    to = next(each.id for each in world.membership.voters if each.replica and each.health is Health.HEALTHY)
    move = f"'etcdctl --endpoints={at} move-leader {to:x}'"
    seen = "it is the leader, and clients' writes would fail until another member is elected"
    raise PreconditionFailed(doing, seen, f"move the leadership to a replica's member first: {move}")
