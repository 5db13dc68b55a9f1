"""Members of two minor versions of etcd in one cluster: which may start, and which replica keeps the older one.

The cluster version rises by itself once every listed member runs the newer etcd, also those that are down; until then
the older one may start at any time. Once it has risen, the older one panics when it starts, until etcd's downgrade has
taken the cluster version back, and every member has changed its database to what the older one reads (etcd:
server/etcdserver/version/monitor.go and downgrade.go; server/storage/schema).
"""

from __future__ import annotations

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.membership import EtcdMinor
from quarterdeck.model.memory import Replica
from quarterdeck.model.world import World

#: The first minor version that panics on entries of the log that etcd 3.5 has written (etcd: server/etcdserver/apply,
#: Apply; 3.6 still reads them). A member reads the log from its last snapshot on, and a downgrade makes one.
_READS_NO_OLD_LOG: EtcdMinor = (3, 7)


def is_closed(world: World, revision: str) -> bool:
    """Whether members must not start with the etcd of a revision: a cluster may work as a newer version, or members may
    have logs that it cannot read.
    """
    return not all(admits(each, revision) for each in _clusters(world))


def admits(world: World, revision: str) -> bool:
    """Whether members of a cluster may start with the etcd of a revision. ``world`` is the world of that cluster."""
    minor, target = world.etcd_minor(revision), taken_back_to(world, revision)
    if minor is None or target is None:
        return True
    membership = world.membership
    if membership is None or world.memory.lowered != revision:
        return False
    if target == minor:
        return membership.works_as == membership.downgrade == minor
    return membership.works_as == _before(minor) and membership.downgrade is None


def is_lowered(world: World, revision: str) -> bool:
    """Whether all members of all clusters are seen to work and store as the version that they must be taken back to."""
    return all(_has_gone_back(each, taken_back_to(each, revision)) for each in _clusters(world))


def is_undone(world: World, revision: str) -> bool:
    """Whether etcd's downgrade to the etcd of a revision was ended before a member had it, as a person may do."""
    minor = world.etcd_minor(revision)
    seen = (each.membership for each in _clusters(world) if taken_back_to(each, revision) == minor is not None)
    return any(each is not None and each.works_as is not None and each.downgrade is None for each in seen)


def taken_back_to(world: World, revision: str) -> EtcdMinor | None:
    """The version that a cluster must work as for a moment before its first member starts with the etcd of a revision:
    that of an older one, or the one before its own where members may have an old log. None: it need not.
    """
    minor = world.etcd_minor(revision)
    if minor is None:
        return None
    listed = [each for each in world.memory.replicas if _belongs(world, each)]
    if any(_is_newer(world, each, minor) for each in world.memory.replicas):
        return minor if all(_is_newer(world, each, minor) for each in listed) else None
    if minor != _READS_NO_OLD_LOG or not listed or not all(_is_older(world, each, minor) for each in listed):
        return None
    return _before(_before(minor))


def kept_back(world: World, revision: str) -> str:
    """The replica that keeps its older minor version of etcd, as the user wants one to, although it does not have the
    wanted ``revision``; "": none.
    """
    minor = world.etcd_minor(revision)
    if not world.keeps_one or minor is None:
        return ""
    older = [each.name for each in world.memory.replicas if _is_older(world, each, minor)]
    return older[0] if len(older) == 1 < len(world.memory.replicas) else ""


def is_newer(world: World, record: Replica, revision: str) -> bool:
    """Whether a replica has a newer minor version of etcd than a revision."""
    minor = world.etcd_minor(revision)
    return minor is not None and _is_newer(world, record, minor)


def _clusters(world: World) -> tuple[World, ...]:
    """The world of each cluster that exists."""
    return world, *([world.of(Cluster.EVENTS)] if world.memory.events.exists else [])


def _has_gone_back(world: World, target: EtcdMinor | None) -> bool:
    if target is None:
        return True
    return (
        world.membership is not None
        and world.membership.works_as == world.membership.downgrade == target
        and all(member.storage == target for member in world.membership.members)
    )


def _is_newer(world: World, record: Replica, minor: EtcdMinor) -> bool:
    its = world.etcd_minor(record.revision)
    return its is not None and its > minor


def _is_older(world: World, record: Replica, minor: EtcdMinor) -> bool:
    its = world.etcd_minor(record.revision)
    return its is not None and its < minor


def _before(minor: EtcdMinor) -> EtcdMinor:
    return minor[0], minor[1] - 1


def _belongs(world: World, record: Replica) -> bool:
    """Whether a replica is a member of the cluster, as far as is known: then the version of its etcd counts."""
    if world.memory.is_former(record):
        return False
    return record.listed if world.membership is None else world.membership.of(record.name) is not None
