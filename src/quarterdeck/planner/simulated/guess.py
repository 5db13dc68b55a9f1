"""The truth that an observation suggests."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.membership import EtcdMinor, Health, Membership, Space
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import MachineFact, World
from quarterdeck.planner.members import NOSPACE, raised, strays
from quarterdeck.planner.simulated.members import CATCH_UP
from quarterdeck.planner.simulated.parts import Fill, Power, SimMachine, SimMember, SimReplica
from quarterdeck.planner.simulated.time import GRACE
from quarterdeck.planner.simulated.truth import Truth
from quarterdeck.planner.space import has_no_room, is_cramped


def from_world(world: World) -> Truth:
    """The truth that an observation suggests, for dry runs: unknown things are assumed to be healthy."""
    running = {record.name: _from_fact(world, record.name) for record in world.memory.replicas}
    running |= _strays(world)
    ids = [member.id for each in world.memberships for member in each.members]
    truth = Truth(
        slots=world.slots,
        memory=world.memory,
        revision=world.revision,
        via=world.via,
        apart=world.apart,
        changes=world.changes,
        condemned=world.condemned,
        cordoned=world.cordoned,
        machines=tuple(map(_machine, world.machines)),
        replicas=tuple(sorted(running.items())),
        balancers=tuple((each.site, each.backends) for each in world.balancers if each.running),
        checked=tuple((each.site, each.healthy) for each in world.balancers if each.running),
        record=world.record,
        front=world.front,
        direct=world.direct,
        promoted=world.promoted,
        named=world.apiservers.backends,
        leader=world.membership.leader if world.membership else None,
        events_leader=world.events_membership.leader if world.events_membership else None,
        programs=world.programs,
        full=_is_full(world.membership),
        events_full=_is_full(world.events_membership),
        next_member=max(ids, default=0) + 1,
        now=world.now,
        deleting=world.deleting,
        standby=world.standby,
        expired=frozenset((name, world.memory.replica(name).revision) for name in world.expired),
        reattachable=bool(world.replicas) and all(each.reattachable for each in world.replicas),
        settings=world.settings,
    )
    return _with_versions_of_etcd(truth, world)


def _with_versions_of_etcd(truth: Truth, world: World) -> Truth:
    return replace(
        truth,
        etcd_minors=world.etcd_minors,
        keeps_one=world.keeps_one,
        works_as=_works_as(world, Cluster.MAIN),
        events_works_as=_works_as(world, Cluster.EVENTS),
        downgrade=world.membership.downgrade if world.membership else None,
        events_downgrade=world.events_membership.downgrade if world.events_membership else None,
    )


def _works_as(world: World, cluster: Cluster) -> EtcdMinor | None:
    """The version of a cluster: the oldest that a replica has, where it was not read."""
    membership = world.membership_of(cluster)
    if membership is not None and membership.works_as is not None:
        return membership.works_as
    minors = (world.etcd_minor(each.revision) for each in world.memory.replicas)
    return min((each for each in minors if each is not None), default=None)


def _machine(seen: MachineFact) -> SimMachine:
    power = {MachineState.UP: Power.ON, MachineState.DOWN: Power.OFF, MachineState.UNREACHABLE: Power.OFF}
    return SimMachine(
        name=seen.name,
        site=seen.site,
        zone=seen.zone,
        power=power[seen.state],
        cordoned=seen.cordoned,
        why=seen.why,
    )


def _from_fact(world: World, name: str) -> SimReplica:
    fact = world.replica(name)
    on = {component for component, state in fact.units if state not in (UnitState.ABSENT, UnitState.STOPPED)}
    revision = world.memory.replica(name).revision
    shapes = tuple(sorted((component, revision) for component in on)) if revision else ()
    return SimReplica(
        units=frozenset(on),
        shapes=shapes,
        data=fact.has_data is not False,
        warm=fact.ready is True,
        member=_member_from(world.membership, name, world.settings.lag_bound) or _remembered(world, name),
        events=_member_from(world.events_membership, name, world.settings.lag_bound),
        events_data=fact.events.has_data is True,
        stuck=fact.stuck,
        hung=fact.hung,
        altered=fact.altered,
    )


def _strays(world: World) -> dict[str, SimReplica]:
    """The members that belong to no replica: they count in every quorum."""
    found: dict[str, SimReplica] = {}
    for cluster in Cluster:
        for each in strays(world.of(cluster)):
            member = SimMember(id=each.id, learner=each.learner, silent=GRACE)
            held = SimReplica(member=member) if cluster is Cluster.MAIN else SimReplica(events=member)
            found[f"{cluster} {each.key}"] = held
    return found


def _member_from(membership: Membership | None, name: str, bound: int) -> SimMember | None:
    listed = membership.of(name) if membership is not None else None
    if membership is None or listed is None:
        return None
    behind = 0 if not listed.learner or (listed.lag is not None and listed.lag <= bound) else CATCH_UP
    silent = GRACE if listed.health is Health.DOWN else 0
    return SimMember(
        id=listed.id,
        learner=listed.learner,
        behind=behind,
        silent=silent,
        fill=_fill(listed.space),
        storage=listed.storage or membership.works_as,
    )


def _remembered(world: World, name: str) -> SimMember | None:
    """Members with expired certificates tell nobody who is a member: those that were are assumed to be."""
    record = world.memory.replica(name)
    if world.membership is not None or not world.expired or not record.listed or world.memory.is_former(record):
        return None
    return SimMember(id=record.member_id, learner=record.standby)


def _is_full(membership: Membership | None) -> bool:
    return membership is not None and NOSPACE in raised(membership)


def _fill(space: Space | None) -> Fill:
    """The content of a member's database, on the assumption that compaction frees enough of it."""
    if space is None or not has_no_room(space):
        return Fill.ROOM
    return Fill.HISTORY if is_cramped(space) else Fill.FREE
