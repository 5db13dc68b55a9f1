"""How full the databases of etcd are, and whether anything but a larger quota makes room in them."""

from __future__ import annotations

from quarterdeck.model.clusters import CALLED, MEMBER, QUOTA, Cluster, Full
from quarterdeck.model.membership import Health, MemberFact, Space
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.world import World
from quarterdeck.planner.members import NOSPACE, raised

#: Shares of the quota: a larger database has no room; and defragmentation gives it enough only where no more than
#: ``WORTH`` is in use (a defragmented one is up to a tenth larger than what is in use).
NO_ROOM = 0.9
WORTH = 0.75


def needs_quota(world: World) -> bool:
    """Whether a cluster takes no writes until its quota is larger."""
    return any(lacks_quota(world.of(each), each) is not None for each in Cluster)


def lacks_quota(world: World, cluster: Cluster) -> Wait | None:
    """The wait for a larger quota where the present one is too small for what is in use; None if it is not.
    ``world`` is the world of that cluster.
    """
    membership, full = world.membership, world.memory.full
    if membership is None or full is None or NOSPACE not in raised(membership):
        return None
    spaces = [each.space for each in membership.voters if each.space is not None and not _gets_room(each, full)]
    if not spaces:
        return None
    most = max(spaces, key=lambda each: each.size)
    used, quota = (f"{count / 2**20:,.0f} MiB" for count in (most.size, most.quota))
    held = _held(world, cluster)
    next_step = f"{QUOTA[cluster]} must be more than {quota}; {held}" if held else f"raise {QUOTA[cluster]}"
    return Wait(f"a larger quota of {CALLED[cluster]}: {used} of {quota} are in use", next_step)


def _held(world: World, cluster: Cluster) -> str:
    """Why replicas do not adopt the wanted revision, and so not its larger quota; "" if nothing prevents it."""
    found = []
    for record in world.memory.replicas:
        change = world.change(record.revision, world.revision)
        if record.revision == world.revision or not (change.exchange or MEMBER[cluster] in world.stops(change)):
            continue
        if record.name in world.cordoned:
            found.append(f"{record.name} is cordoned ({world.command('replica uncordon', record.name)})")
        elif change.exchange:
            why = "would be replaced for the other changes, and no replacement begins under an alarm"
            found.append(f"{record.name} {why}: change the quota alone")
    return f"revision {world.revision} is not adopted: {'; '.join(found)}" if found else ""


def has_no_room(space: Space) -> bool:
    """Whether a database is so large that its member may take no writes."""
    return space.size > NO_ROOM * space.quota


def is_cramped(space: Space) -> bool:
    """Whether so much of it is in use that it has no room even after defragmentation."""
    return space.in_use > WORTH * space.quota


def _gets_room(member: MemberFact, full: Full) -> bool:
    """Whether a member has room, or may get it. It reports what is in use as of its last write, and takes none now:
    after a compaction, only defragmentation shows it.
    """
    if member.space is None or member.health is Health.DOWN or not has_no_room(member.space):
        return True
    return not is_cramped(member.space) or not full.compacted or member.replica not in full.defragmented
