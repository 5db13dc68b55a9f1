"""What an observation shows about members: pure functions without decisions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from quarterdeck.model.clusters import CALLED, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner.quorum import Voter, has_quorum

CORRUPT = "CORRUPT"
#: No alarm of etcd's, but the same for the planner: a state of the whole cluster in which it cannot be changed.
AUTHENTICATION = "AUTHENTICATION"
NOSPACE = "NOSPACE"
#: etcd's alarms (etcd: api/etcdserverpb, AlarmType).
ALARMS = (CORRUPT, NOSPACE)


def has_the_data(world: World, member: MemberFact) -> bool:
    """Whether a member is known to have the data, except for the latest entries (``lag_bound``)."""
    return member.lag is not None and member.lag <= world.settings.lag_bound


def voters(world: World) -> frozenset[Voter]:
    """The voters of a world whose membership is known: every one that etcd lists. One that belongs to no replica counts
    as well, as at no site.
    """
    assert world.membership is not None
    sites = {record.name: record.site for record in world.memory.replicas}
    return frozenset(
        Voter(member.key, sites.get(member.replica, ""), member.health is Health.HEALTHY)
        for member in world.membership.voters
    )


def strays(world: World) -> tuple[MemberFact, ...]:
    """The members that belong to no recorded replica; none where the membership is not known."""
    known = {record.name for record in world.memory.replicas}
    members = world.membership.members if world.membership is not None else ()
    return tuple(member for member in members if member.replica not in known)


def stray_voters(world: World, cluster: Cluster) -> tuple[Wait, ...]:
    """Each voter of a cluster that belongs to no replica: a person must remove it. ``world`` is the world of that
    cluster.
    """
    return tuple(
        Wait(
            f"voter {each.description} of {CALLED[cluster]} to be removed: it belongs to no replica",
            world.command("etcd remove-member", f"{each.id:x}"),
        )
        for each in strays(world)
        if not each.learner
    )


def can_spare(world: World, record: Replica) -> bool:
    """Rule 1 for a member that stops: without it, the voters that are seen healthy are a quorum of all that etcd lists.
    A member without a vote can always be spared.
    """
    member = world.member(record.name)
    if member is None or member.learner:
        return True
    return has_quorum(replace(each, healthy=each.healthy and each.replica != record.name) for each in voters(world))


def listed(membership: Membership, record: Replica) -> bool:
    """Whether etcd lists the replica as a member now."""
    return membership.of(record.name) is not None


def was_removed(membership: Membership, record: Replica) -> bool:
    """Whether a replica was a member and no longer is."""
    return record.listed and not listed(membership, record)


def acts(world: World, record: Replica) -> bool:
    """Whether controllers of a replica may act: they use only its apiserver, which needs a member."""
    if world.memory.is_former(record):
        return False
    membership = world.membership
    if membership is None or listed(membership, record):
        return True
    return not (was_removed(membership, record) or record.name in world.memory.given_up)


def is_lost(world: World, record: Replica) -> bool:
    """Whether a member can never be used again: it was removed, is of a former epoch, or its data is gone."""
    if world.memory.is_former(record) or record.standby:
        return True  # (a standby that a person promoted by hand)
    if world.membership is None:
        return False
    return was_removed(world.membership, record) or (record.started and world.replica(record.name).has_data is False)


def lost(world: World) -> frozenset[str]:
    """The replicas whose members are lost."""
    return frozenset(record.name for record in world.memory.replicas if is_lost(world, record))


def lost_events(world: World) -> frozenset[str]:
    """The replicas whose members of the events' cluster are lost, or marked for replacement: no rule waits for them."""
    if world.membership_of(Cluster.EVENTS) is None:
        return frozenset()
    given_up = (each.replica for each in world.memory.condemned if each.program == Component.EVENTS_ETCD)
    return lost(world.of(Cluster.EVENTS)).union(given_up)


def serves(world: World, record: Replica) -> bool:
    """Whether a replica is a healthy voter that has the data, and its apiserver is ready."""
    member = world.member(record.name)
    if member is None or member.learner or member.health is not Health.HEALTHY:
        return False
    fact = world.replica(record.name)
    return fact.machine is MachineState.UP and fact.ready is True and has_the_data(world, member)


def awaited(world: World, kind: str) -> Wait:
    """The wait for the end of an alarm, or of AUTHENTICATION."""
    if kind == AUTHENTICATION:
        return Wait("authentication in etcd to be off (it was enabled by hand)", disable_authentication(world))
    if kind == CORRUPT:
        return Wait("the members of etcd to agree about the data (alarm CORRUPT)", disarm_corrupt(world))
    made = "quarterdeck makes room and continues once the alarm is off"
    return Wait(
        "room in etcd (alarm NOSPACE)",
        f"{made}; if it lasts, see {world.command('status')}",
    )


def disarm_corrupt(world: World) -> str:
    """What ends CORRUPT, with the commands for it."""
    return (
        f"keep all volumes as they are, compare the members with {world.command('etcd check')}, then turn off the"
        f" alarm with {world.command('etcd disarm')}"
    )


def disable_authentication(world: World) -> str:
    """What ends AUTHENTICATION, with the command for it."""
    return f"turn off authentication in etcd with {world.command('etcd disable-auth')}"


def all_raised(world: World) -> tuple[str, ...]:
    """The alarms that members of any cluster report."""
    return tuple(dict.fromkeys(kind for each in world.memberships for kind in raised(each)))


def raised(membership: Membership) -> tuple[str, ...]:
    """The alarms that members report, and AUTHENTICATION where that is on."""
    text = "".join(membership.alarms).replace(" ", "")
    alarms = tuple(kind for kind in ALARMS if f"alarm:{kind}" in text)
    return (*alarms, AUTHENTICATION) if membership.authenticates else alarms


def wants_events(world: World, wanted: Iterable[Replica], revision: str) -> bool:
    """Whether any replica stores events separately: now, or in the desired ``revision``."""
    return any(map(world.keeps_events_apart, (revision, *(record.revision for record in wanted))))


def is_stale(world: World, record: Replica) -> bool:
    """Whether a replica still has a member of an events' cluster that no longer exists."""
    member, now = record.events, world.memory.events
    return member is not None and not (now.exists and member.epoch == now.epoch)
