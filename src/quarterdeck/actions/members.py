"""Membership changes, each idempotent, the voter swap, and maintenance of the members' databases."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass

from pydantic import JsonValue

from quarterdeck.actions.addresses import candidates, client_url, client_urls, metrics_url, peer_url
from quarterdeck.actions.handlers import Detail, Handlers
from quarterdeck.actions.hold import BETWEEN, held
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.units import favour
from quarterdeck.concurrency import beside, cut_off, together
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.facts import AlarmKind
from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.membership import Health
from quarterdeck.model.steps.members import (
    AddLearner,
    CancelDowngrade,
    Compact,
    Defragment,
    Disarm,
    EnableDowngrade,
    Promote,
    ReaddressMember,
    RemoveMember,
    Swap,
    TransferLeadership,
)
from quarterdeck.model.world import World
from quarterdeck.planner.members import voters
from quarterdeck.planner.quorum import Voter, VoterChange, after, quorum_site

#: Seconds: the longest wait for writes to end while clients are paused, and for a voter to apply its promotion.
_QUIET = 1.0
_ABLE = 2.0


def _now() -> float:
    """Seconds on the monotonic clock."""
    return asyncio.get_running_loop().time()


async def add_learner(plane: Plane, step: AddLearner, _: World) -> None:
    """Add the new member to etcd."""
    record = plane.memory.replica(step.replica)
    await plane.etcd.add_learner(client_urls(plane, step.cluster), peer_url(record, step.cluster))


async def promote(plane: Plane, step: Promote, world: World) -> None:
    """Make the learner a voter: from then on writes may wait for it."""
    await favour(plane, plane.memory.replica(step.replica), MEMBER[step.cluster])
    await plane.check()
    await plane.etcd.promote(healthy_urls(plane, world, step.cluster), step.member)


async def readdress_member(plane: Plane, step: ReaddressMember, world: World) -> None:
    """Set the member's peer URL in etcd. While another member has that URL, this one temporarily gets its own client
    URL: no peer finds it there, and no other member may have that URL.
    """
    record, member = plane.memory.replica(step.replica), world.member(step.replica, step.cluster)
    displaced = member is not None and member.displaced_by is not None
    url = (client_url if displaced else peer_url)(record, step.cluster)
    await plane.etcd.readdress(healthy_urls(plane, world, step.cluster), step.member, url)


async def remove_member(plane: Plane, step: RemoveMember, world: World) -> None:
    """Remove the member. The call does not go to the member itself: it could not confirm its own removal."""
    await plane.etcd.remove(healthy_urls(plane, world, step.cluster, without=step.replica), step.member)


async def transfer_leadership(plane: Plane, step: TransferLeadership, world: World) -> None:
    """Transfer leadership while no client's write is in flight.

    A write that a follower forwards to a leader during a transfer is dropped silently (etcd: raft, ErrProposalDropped
    on a forwarded MsgProp), and fails 5 s + 2 x election timeout later. So the load balancers are paused until every
    apiserver's member follows the new leader. The same holds for the events' cluster: a client's event is a request
    like any other, and must not fail either.
    """
    cluster, membership = step.cluster, world.of(step.cluster).membership
    leader = membership.leader if membership is not None else None
    if leader is None:
        raise Unavailable("transferring etcd's leadership", "no member leads", "quarterdeck retries")
    ask = {record.name for record in candidates(plane, cluster)}
    servers = [each for each in plane.memory.replicas if world.replica(each.name).ready and each.name in ask]
    await _until_able(plane, client_url(plane.memory.replica(step.to), cluster), step.to)
    async with AsyncExitStack() as afterwards, held(plane, world, servers) as hold:
        await _until_quiet(plane, [metrics_url(each, cluster) for each in servers])
        await plane.check()
        handing_over = plane.etcd.move_leader(client_url(plane.memory.replica(leader), cluster), step.member)
        moving = await afterwards.enter_async_context(beside(handing_over))
        members = [client_url(each, cluster) for each in servers]
        await _until_followed(plane, members, step.member, moving, hold.until)


async def _until_able(plane: Plane, url: str, name: str) -> None:
    """Return when the member reports that it votes. One that has not applied its promotion yet takes no leadership
    (etcd: raft, hup), and until the leader gives up, an election timeout later, the leader drops all writes.
    """
    deadline = _now() + _ABLE
    while (await plane.etcd.status(url)).is_learner:
        if _now() >= deadline:
            raise Unavailable("transferring etcd's leadership", f"{name} has not applied its promotion yet")
        await asyncio.sleep(BETWEEN)


async def _until_quiet(plane: Plane, members: Sequence[str]) -> None:
    """Return when the members with these metrics report no pending write; or after a while, because writes of the
    apiservers themselves and of controllers never end, and are retried.
    """
    deadline = _now() + _QUIET
    while (left := deadline - _now()) > 0:
        if all(await together(*(_is_quiet(plane, each, left) for each in members))):
            return
        await asyncio.sleep(BETWEEN)


async def _is_quiet(plane: Plane, url: str, within: float) -> bool:
    """Whether a member reports, within so many seconds, that no write is pending. Unknown is not zero."""
    try:
        return await plane.etcd.pending_proposals(url, within=within) == 0
    except Unavailable:
        return False


async def _until_followed(
    plane: Plane, members: Sequence[str], leader: int, moving: asyncio.Task[None], until: float
) -> None:
    """Return when these members follow the new leader, or when the transfer has ended: it returns only at a tick of
    etcd, up to a heartbeat later. At the latest at the time ``until`` of the event loop's clock.
    """
    while not moving.done() and _now() < until:
        try:
            seen = await together(*(plane.etcd.status(each) for each in members))
        except Unavailable:
            seen = []  # then the transfer itself shows the result
        if seen and all(status.leader_id == leader for status in seen):
            return
        await asyncio.sleep(BETWEEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapTimes:
    """How long a swap took, in seconds: all of it, and the part without a quorum site."""

    whole: float
    homeless: float
    changes: tuple[tuple[str, str, float], ...]


async def swap(plane: Plane, step: Swap, world: World) -> SwapTimes:
    """All changes back to back. Each is acknowledged by etcd before the next is requested."""
    joining = [plane.memory.replica(change.replica) for change in step.changes if isinstance(change, Promote)]
    await together(*(favour(plane, each, MEMBER[step.cluster]) for each in joining))
    now = voters(world.of(step.cluster))
    began = _now()
    homeless = 0.0
    lost_at: float | None = None
    done: list[tuple[str, str, float]] = []
    leaving = {change.replica for change in step.changes if isinstance(change, RemoveMember)}
    urls = healthy_urls(plane, world, step.cluster, without=leaving)
    for change in step.changes:
        now = after(now, _as_change(plane, change, now))
        await plane.check()
        asked = _now()
        if isinstance(change, Promote):
            await plane.etcd.promote(urls, change.member)
            ended = _now()
        else:
            ended = await _removed(plane, change.member, urls, _others_at_home(plane, step.cluster, now, urls[:1]))
        if quorum_site(now) is None and lost_at is None:
            # A promotion is acknowledged as soon as it is applied. A removal is acknowledged later: all of the call
            # counts.
            lost_at = ended if isinstance(change, Promote) else asked
        elif quorum_site(now) is not None and lost_at is not None:
            homeless += ended - lost_at
            lost_at = None
        done.append((change.kind, change.replica, ended - began))
    return SwapTimes(whole=_now() - began, homeless=homeless, changes=tuple(done))


def _others_at_home(plane: Plane, cluster: Cluster, now: frozenset[Voter], leader: Sequence[str]) -> list[str]:
    """The client URLs of all voters at the quorum site, if there is one, except the leader."""
    where = quorum_site(now)
    urls = [client_url(plane.memory.replica(voter.replica), cluster) for voter in now if voter.site == where]
    return [url for url in urls if url not in leader]


async def _removed(plane: Plane, member: int, urls: Sequence[str], witnesses: Sequence[str]) -> float:
    """Remove a member; returns when it was gone. A member that is just writing its database to disk applies a removal
    tens of milliseconds after the others (etcd: RaftCluster.RemoveMember waits for the backend), and may be the one
    that acknowledges it. The removal holds as soon as any member has applied it, so the first of them counts.
    """
    watching = [asyncio.create_task(_gone(plane, url, member)) for url in witnesses]
    try:
        await plane.etcd.remove(urls, member)
        return min([_now(), *(each.result() for each in watching if each.done())])
    finally:
        await cut_off(*watching)


async def _gone(plane: Plane, url: str, member: int) -> float:
    """When that one member stopped listing another; infinity when it does not answer."""
    try:
        while True:
            if not await plane.etcd.lists(url, member):
                return _now()
            await asyncio.sleep(BETWEEN)
    except Unavailable:
        return math.inf


def _as_change(plane: Plane, change: Promote | RemoveMember, now: frozenset[Voter]) -> VoterChange:
    if isinstance(change, Promote):
        return VoterChange(False, Voter(change.replica, plane.memory.replica(change.replica).site, healthy=True))
    return VoterChange(True, next(voter for voter in now if voter.replica == change.replica))


def healthy_urls(
    plane: Plane, world: World, cluster: Cluster = Cluster.MAIN, *, without: set[str] | str = ""
) -> tuple[str, ...]:
    """The client URLs of a cluster's healthy members, the leader first."""
    left_out = {without} if isinstance(without, str) else without
    membership = world.of(cluster).membership
    if membership is None:
        return ()
    names = [
        member.replica
        for member in membership.members
        if member.replica and member.health is Health.HEALTHY
        if member.replica not in left_out and not member.learner
    ]
    names.sort(key=lambda name: name != membership.leader)
    return tuple(client_url(plane.memory.replica(name), cluster) for name in names)


async def timed_swap(plane: Plane, step: Swap, world: World) -> Detail:
    """A swap, and how long it took, for reports."""
    times = await swap(plane, step, world)
    changes: list[JsonValue] = [list(change) for change in times.changes]
    return {**asdict(times), "changes": changes, "cluster": step.cluster.value}


async def compact(plane: Plane, step: Compact, world: World) -> None:
    """Compact the history."""
    await plane.etcd.compact(healthy_urls(plane, world, step.cluster), step.revision)


async def defragment(plane: Plane, step: Defragment, _: World) -> Detail:
    """Defragment one member; returns the size of its database before and after, for reports."""
    url = client_url(plane.memory.replica(step.replica), step.cluster)
    before = await plane.etcd.status(url)
    await plane.check()
    await plane.etcd.defragment(url)
    return {"before": before.db_size, "after": (await plane.etcd.status(url)).db_size}


async def disarm(plane: Plane, step: Disarm, world: World) -> None:
    """Disarm the alarm NOSPACE. A member that still has no room raises it again with the next write."""
    await plane.etcd.disarm(healthy_urls(plane, world, step.cluster), AlarmKind.NOSPACE)


async def enable_downgrade(plane: Plane, step: EnableDowngrade, world: World) -> None:
    """Enable etcd's downgrade of one cluster."""
    await plane.etcd.enable_downgrade(healthy_urls(plane, world, step.cluster), step.target)


async def cancel_downgrade(plane: Plane, step: CancelDowngrade, world: World) -> None:
    """Cancel it."""
    await plane.etcd.cancel_downgrade(healthy_urls(plane, world, step.cluster))


HANDLERS: Handlers = {
    AddLearner: add_learner,
    Promote: promote,
    ReaddressMember: readdress_member,
    RemoveMember: remove_member,
    TransferLeadership: transfer_leadership,
    Swap: timed_swap,
    Compact: compact,
    Defragment: defragment,
    Disarm: disarm,
    EnableDowngrade: enable_downgrade,
    CancelDowngrade: cancel_downgrade,
}
