"""Facts that must be recorded before any step that depends on them."""

from __future__ import annotations

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import NoteCluster, NoteCreated, NoteMembers, NoteServed
from quarterdeck.model.steps.traffic import NoteDraining, NoteLifetime, NoteRecord, NoteUnsettled
from quarterdeck.model.units import IDLE
from quarterdeck.model.world import World
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules.traffic import to_leave
from quarterdeck.planner.view import View


def note(view: View) -> RuleOutcome:
    """Facts that were just observed and that no later observation can tell are noted, all in one write."""
    world, whole = view.world, view.whole
    steps: list[Step] = []
    for cluster in Cluster:
        membership = whole.membership_of(cluster)
        if membership is not None:
            steps.extend(_cluster_and_members(whole.of(cluster), membership, cluster))
    # A fixed address leads there before anything serves.
    leads = not world.fixed or world.balancer(world.front or "").ready
    if leads and world.record is not None and world.record_known:
        steps.extend(_name(world, world.record))
    if world.record_known:
        steps.extend(_lifetime(world))
    if world.membership is not None:
        steps.extend(_draining(view))
        steps.extend(_served(view))
    return RuleOutcome(tuple(steps))


def _cluster_and_members(world: World, membership: Membership, cluster: Cluster) -> list[Step]:
    steps: list[Step] = []
    if not world.memory.created and world.memory.bootstrap:
        steps.append(NoteCreated(site="", why="a quorum of the founders answers", cluster=cluster))
    steps.extend(_members(world, membership, cluster))
    if steps:
        steps.extend(_cluster(world.memory, membership, cluster))
    return steps


def _cluster(memory: Memory, membership: Membership, cluster: Cluster) -> list[Step]:
    """The cluster's id and revision, where something is written anyway (and at the end of each drive:
    ``engine/observation/identity.py``). The revision grows for ever, so it is no reason by itself to write, or to call
    a plane not up to date.
    """
    if not membership.cluster_id or not memory.bootstrap:
        return []
    if memory.cluster_id and membership.revision <= memory.revision:
        return []
    why = "data of another cluster, or from before that revision, is not the plane's"
    known = membership.cluster_id, membership.revision
    return [NoteCluster(site="", why=why, cluster_id=known[0], revision=known[1], cluster=cluster)]


def _name(world: World, record: str) -> list[Step]:
    """The time to live of an address begins when no authoritative server returns it any longer."""
    memory = world.memory
    if not world.torn:
        if record == memory.served_site and not memory.unsettled:
            return []
        return [NoteRecord(site="", why="clients may hold the previous address for its time to live", to=record)]
    new = {record, *world.also} - {memory.served_site, *memory.unsettled}
    return [NoteUnsettled(site="", why=world.torn, sites=tuple(sorted(new)))] if new else []


def _lifetime(world: World) -> list[Step]:
    """A previous answer may be held for its own time to live, also after that was shortened."""
    longer, ttl = world.memory.longer, world.record_ttl or 0.0
    if ttl > world.settings.ttl:
        known = longer is not None and longer.until is None and longer.ttl >= ttl
        why = "clients may hold an answer for its own time to live"
        return [] if known else [NoteLifetime(site="", why=why, ttl=ttl, over=False)]
    if longer is not None and longer.until is None:
        return [NoteLifetime(site="", why="answers have the time to live of the spec now", ttl=longer.ttl, over=True)]
    return []


def _members(world: World, membership: Membership, cluster: Cluster) -> list[Step]:
    memory = world.memory
    members = {member.replica: member for member in membership.members if member.replica}
    records = [record for record in memory.replicas if record.name in members]
    listed = tuple(record.name for record in records if not record.listed)
    started = tuple(
        record.name
        for record in records
        if not record.started and members[record.name].health is Health.HEALTHY and _has_begun(world, record)
    )
    ids = tuple((record.name, members[record.name].id) for record in records if not record.member_id)
    if not (listed or started or ids):
        return []
    storage_class = world.storage_class if cluster is Cluster.EVENTS else ""
    why = "they are members now"
    noted = NoteMembers(
        site="", why=why, listed=listed, started=started, ids=ids, storage_class=storage_class, cluster=cluster
    )
    return [noted]


def _has_begun(world: World, record: Replica) -> bool:
    """Whether no fact shows that a member has no data yet. The parts of an observation are from different moments: the
    volume may have been read just before the member began to write. A member that counted as started then would seem
    to have lost its data.
    """
    return world.replica(record.name).has_data is not False


def _served(view: View) -> list[Step]:
    memory = view.world.memory
    if memory.seed is None or not memory.seed.restored or memory.seed.served is not None:
        return []
    if not any(view.ready(each) for each in memory.replicas if not memory.is_former(each)):
        return []
    return [NoteServed(site="", why="controllers wait for kubelets from then on, but not for ever")]


def _draining(view: View) -> list[Step]:
    listed = {name for balancer in view.world.balancers for name in balancer.backends} | view.named
    off = {each.name for each in view.world.memory.replicas if view.unit(each, Component.APISERVER) in IDLE}
    draining = tuple(sorted(to_leave(view) - listed - off))
    if draining == tuple(sorted(name for name, _ in view.world.memory.draining)):
        return []
    return [NoteDraining(site="", why="they receive no new connections", draining=draining)]
