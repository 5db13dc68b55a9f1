"""A small world in which steps have their effects, for dry runs and for the model checker of the tests.

From what is true (``Truth``) an observation is derived, and time passes in ticks. Membership changes obey etcd's
rules; apiservers need a healthy voter of their own; supervisors restart what crashed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.remember import remember
from quarterdeck.model.seats import Endpoint, Seat, SeatPort
from quarterdeck.model.steps import (
    AddLearner,
    ForgetCluster,
    PlaceReplica,
    Promote,
    ReleaseMember,
    ReleaseReplica,
    RemoveMember,
    RemoveRecord,
    RestartUnit,
    SetBackends,
    SetRecord,
    StartUnit,
    Step,
    StopBalancer,
    StopUnit,
    Swap,
    TransferLeadership,
)
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import (
    BalancerFact,
    Health,
    MachineFact,
    MemberData,
    MemberFact,
    Membership,
    ReplicaFact,
    World,
)
from quarterdeck.planner.quorum import has_quorum, quorum
from quarterdeck.planner.truth import DNS, ETCD, Power, SimMachine, SimMember, SimReplica, Truth, all_of

#: Ticks that a learner needs to catch up, and that a member may be silent before it counts as down.
CATCH_UP = 2
GRACE = 2

_STATES = {Power.ON: MachineState.UP, Power.OFF: MachineState.DOWN, Power.FROZEN: MachineState.UNREACHABLE}
_UNKNOWN = tuple((component, UnitState.UNKNOWN) for component in Component)


class RefusedError(Exception):
    """The simulated world refused a step, as the real one would; nothing was changed."""


def observe(truth: Truth) -> World:
    """The observation that a manager makes which reaches everything that is not mute."""
    known = truth.front is not None or DNS not in truth.mute
    return World(
        slots=truth.slots,
        memory=truth.memory,
        now=truth.now,
        revision=truth.revision,
        changes=truth.changes,
        condemned=truth.condemned,
        membership=_membership(truth),
        separate=truth.separate,
        events_membership=_membership(truth.of(Cluster.EVENTS)) if truth.memory.events.exists else None,
        replicas=tuple(_replica_fact(truth, record) for record in truth.memory.replicas),
        balancers=_balancer_facts(truth),
        machines=_machine_facts(truth.machines, truth.mute),
        record=truth.record if known else None,
        record_known=known,
        front=truth.front,
        deleting=truth.deleting,
        settings=truth.settings,
    )


@lru_cache(maxsize=64)
def _machine_facts(machines: tuple[SimMachine, ...], mute: frozenset[str]) -> tuple[MachineFact, ...]:
    return tuple(
        MachineFact(name=each.name, site=each.site, zone=each.zone, state=_machine_state(each, mute))
        for each in machines
    )


def _machine_state(machine: SimMachine, mute: frozenset[str]) -> MachineState:
    if all_of(machine.site) in mute or (machine.power is Power.ON and machine.name in mute):
        return MachineState.UNREACHABLE
    return _STATES[machine.power]


def _balancer_facts(truth: Truth) -> tuple[BalancerFact, ...]:
    unseen = {machine.site for machine in truth.machines if all_of(machine.site) in truth.mute}
    sites = {site for site, _ in truth.balancers} | truth.dead_edges | unseen
    dark = tuple(
        BalancerFact(site=site, running=False, reachable=False)
        for site in sorted(sites)
        if not truth.edge_answers(site)
    )
    held_healthy = dict(truth.checked)
    lit = tuple(
        BalancerFact(site=site, running=True, backends=names, healthy=held_healthy.get(site, frozenset()))
        for site, names in truth.balancers
        if truth.edge_answers(site)
    )
    return (*lit, *dark)


def _membership(truth: Truth) -> Membership | None:
    """What the leader says, if it can be asked. A member is down only when neither it answers, nor has the leader heard
    of it for a while; who only does not answer the manager is unreachable.
    """
    leader = truth.elected
    if leader is None or ETCD in truth.mute or not truth.etcd_answers(leader):
        return None
    well = truth.healthy | truth.deceived
    heard = truth.following | truth.deceived

    def health(name: str, member: SimMember) -> Health:
        if truth.etcd_answers(name):
            return Health.HEALTHY if name in well else Health.SUSPECT
        if name in truth.following:
            return Health.UNREACHABLE
        return Health.DOWN if member.silent >= GRACE else Health.SUSPECT

    return Membership(
        members=tuple(
            MemberFact(
                id=member.id,
                replica=name if name in truth.recorded else "",
                learner=member.learner,
                health=health(name, member),
                lag=member.behind * 1_000_000 if name in heard else None,
                published=name in heard and not member.behind,
            )
            for name, member in truth.members.items()
        ),
        leader=leader,
    )


def _replica_fact(truth: Truth, record: Replica) -> ReplicaFact:
    replica = truth.replica(record.name)
    if not truth.answers(record.name):
        state = _machine_state(truth.machine_of(record.name), truth.mute)
        return ReplicaFact(name=record.name, machine=state, units=_UNKNOWN, ready=None)
    refused = _without_its_data(truth, record, replica)
    return ReplicaFact(
        name=record.name,
        machine=MachineState.UP,
        units=_unit_states(replica.units, replica.crashed | refused),
        peer_up=replica.runs(Component.ETCD),
        ready=record.name in truth.serving if truth.apiserver_answers(record.name) else None,
        has_data=replica.data,
        refused="its data is gone" if Component.ETCD in refused else "",
        restless=_ended(truth, replica),
        events=MemberData(
            peer_up=replica.runs(Component.EVENTS_ETCD),
            has_data=replica.events_data,
            refused="its data is gone" if Component.EVENTS_ETCD in refused else "",
        ),
    )


def _without_its_data(truth: Truth, record: Replica, replica: SimReplica) -> frozenset[Component]:
    """The members of a replica that are to run, and whose data is gone since they had some."""
    started = {
        Component.ETCD: record.started and not replica.data,
        Component.EVENTS_ETCD: record.events is not None and record.events.started and not replica.events_data,
    }
    return frozenset(component for component, gone in started.items() if gone and component in replica.units)


@lru_cache(maxsize=256)
def _unit_states(units: frozenset[Component], crashed: frozenset[Component]) -> tuple[tuple[Component, UnitState], ...]:
    def state(component: Component) -> UnitState:
        if component in crashed:
            return UnitState.FAILED
        return UnitState.RUNNING if component in units else UnitState.STOPPED

    return tuple((component, state(component)) for component in Component)


def apply(truth: Truth, step: Step) -> Truth:
    """The truth after one step (a Swap change by change). Raises RefusedError when the world refuses."""
    if isinstance(step, Swap):
        for change in step.changes:
            truth = apply(truth, change)
        return truth
    if isinstance(step, PlaceReplica) and step.seat is None:
        step = replace(step, seat=_free_seat(truth, step.machine))
    changed = _apply(truth, step)
    memory = remember(changed.memory, step, truth.now)
    return changed if memory is changed.memory else replace(changed, memory=memory)


def _apply(truth: Truth, step: Step) -> Truth:
    match step:
        case StartUnit() | StopUnit() | RestartUnit():
            return _unit(truth, step)
        case AddLearner() | Promote() | RemoveMember() | TransferLeadership():
            changed = _change(truth.of(step.cluster), step)
            return changed if step.cluster is Cluster.MAIN else truth.with_events(changed)
        case SetBackends() | StopBalancer():
            return _balance(truth, step)
        case SetRecord() | RemoveRecord():
            if truth.front is not None:
                raise RefusedError("the endpoint is a fixed address")
            if DNS in truth.mute:
                raise RefusedError("the DNS server does not answer")
            return replace(truth, record=step.to if isinstance(step, SetRecord) else None)
        case ReleaseReplica():
            _must_answer(truth, step.replica)
            return truth.with_replica(step.replica, None)
        case ForgetCluster():
            nobody = tuple((name, replace(each, events=None)) for name, each in truth.replicas)
            return replace(truth, replicas=nobody, events_leader=None)
        case ReleaseMember():
            _must_answer(truth, step.replica)
            kept = replace(truth.replica(step.replica), events=None, events_data=False)
            return truth.with_replica(step.replica, kept)
        case _:
            return truth


def _must_answer(truth: Truth, name: str) -> None:
    if not truth.answers(name):
        raise RefusedError(f"the machine of {name} does not answer")


def _balance(truth: Truth, step: SetBackends | StopBalancer) -> Truth:
    if not truth.edge_answers(step.site):
        raise RefusedError(f"the machine of the load balancer at {step.site} does not answer")
    balancers, checked = dict(truth.balancers), dict(truth.checked)
    balancers.pop(step.site, None)
    held_healthy = checked.pop(step.site, frozenset())
    if isinstance(step, SetBackends):
        balancers[step.site] = frozenset(step.backends)
        # What it has not checked yet gets nothing.
        checked[step.site] = held_healthy & frozenset(step.backends)
    return replace(truth, balancers=_by_site(balancers), checked=_by_site(checked))


def _by_site(of: dict[str, frozenset[str]]) -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple(sorted(of.items(), key=lambda entry: entry[0]))


def _unit(truth: Truth, step: StartUnit | StopUnit | RestartUnit) -> Truth:
    _must_answer(truth, step.replica)
    replica = truth.replica(step.replica)
    if isinstance(step, RestartUnit):
        replica = _served(replica, step.component)
    data, events_data = replica.data, replica.events_data
    if isinstance(step, StartUnit | RestartUnit):
        _must_fit(truth, step)
        units = replica.units | {step.component}
        data |= step.component is Component.ETCD
        events_data |= step.component is Component.EVENTS_ETCD
        shapes = dict(replica.shapes) | {step.component: truth.memory.replica(step.replica).revision}
    else:
        units = replica.units - {step.component}
        shapes = {component: shape for component, shape in replica.shapes if component in units}
    replica = replace(
        replica,
        units=units,
        shapes=tuple(sorted(shapes.items())) if any(shapes.values()) else (),
        data=data,
        events_data=events_data,
        warm=replica.warm and Component.APISERVER in units,
    )
    crashed = (replica.crashed - {step.component}) & units | _ended(truth, replica)
    return truth.with_replica(step.replica, replace(replica, crashed=crashed))


def _served(replica: SimReplica, component: Component) -> SimReplica:
    """A member that is restarted has its own publication."""
    if component is Component.EVENTS_ETCD and replica.events is not None:
        return replace(replica, events=replace(replica.events, unserved=0))
    if component is Component.ETCD and replica.member is not None:
        return replace(replica, member=replace(replica.member, unserved=0))
    return replica


def _ended(truth: Truth, replica: SimReplica) -> frozenset[Component]:
    """The programs that end as soon as they have started."""
    if not truth.broken:
        return frozenset()
    return frozenset(component for component, shape in replica.shapes if (shape, component) in truth.broken)


def _free_seat(truth: Truth, machine: str) -> Seat:
    """The first seat of a machine that nobody has. One port stands for all."""
    number, taken = 1, {record.seat for record in truth.memory.replicas}
    while (seat := _seat(machine, number)) in taken:
        number += 1
    return seat


@lru_cache(maxsize=64)
def _seat(machine: str, number: int) -> Seat:
    at = Endpoint(machine, number)
    return Seat(machine=machine, ports=(SeatPort(name="all", listen=at, advertised=at),))


def _must_fit(truth: Truth, step: StartUnit | RestartUnit) -> None:
    """A seat has one set of ports; and etcd that had its data starts on nothing else."""
    for cluster, component in MEMBER.items():
        if step.component is component and _lacks_its_data(truth.of(cluster), step.replica):
            raise RefusedError(f"the data of {step.replica} is gone")
    seat = truth.memory.replica(step.replica).seat
    for record in truth.memory.replicas:
        other = truth.replica(record.name)
        if record.name != step.replica and record.seat == seat is not None and step.component in other.units:
            raise RefusedError(f"{step.component} of {record.name} has the ports of {record.machine}")


def _lacks_its_data(truth: Truth, name: str) -> bool:
    return truth.memory.replica(name).started and not truth.replica(name).data


def _change(truth: Truth, step: AddLearner | Promote | RemoveMember | TransferLeadership) -> Truth:
    """A membership change, by the member's id, with the refusals of etcd's strict-reconfig-check (mayAddMember,
    mayRemoveMember).
    """
    if truth.elected is None:
        raise RefusedError("no quorum")
    if isinstance(step, AddLearner):
        return _with_learner(truth, step.replica)
    name = truth.with_id(step.member)
    if name is None:
        raise RefusedError(f"there is no member {step.member}")
    if isinstance(step, TransferLeadership):
        if name not in truth.healthy or name not in truth.electable:
            raise RefusedError(f"{name} cannot lead")
        return replace(truth, leader=name)
    replica, member = truth.replica(name), truth.members[name]
    if isinstance(step, Promote):
        if member.behind or name not in truth.following or not member.learner:
            raise RefusedError(f"{name} is no learner that is in sync with the leader")
        return truth.with_replica(name, replace(replica, member=replace(member, learner=False)))
    rest = [voter for voter in truth.voters if voter.replica != name]
    if not member.learner and not has_quorum(rest):
        raise RefusedError("unhealthy cluster")
    left = replace(replica, member=None)
    return truth.with_replica(name, None if name not in truth.recorded else left)


def _with_learner(truth: Truth, name: str) -> Truth:
    if not all(voter.healthy for voter in truth.voters):
        raise RefusedError("unhealthy cluster")
    if name in truth.members:
        raise RefusedError(f"{name} is a member")
    member = SimMember(id=truth.next_member, learner=True, behind=CATCH_UP)
    truth = replace(truth, next_member=truth.next_member + 1)
    return truth.with_replica(name, replace(truth.replica(name), member=member))


def found(truth: Truth) -> Truth:
    """Founders whose etcd runs become the first members (as etcd's bootstrap does)."""
    names = truth.memory.bootstrap
    if truth.members or truth.memory.created or not names:
        return truth
    up = [name for name in names if Component.ETCD in truth.replica(name).units and truth.replica(name).data]
    if len(up) < quorum(len(names)):
        return truth
    for index, name in enumerate(names):
        member = SimMember(id=truth.next_member + index, learner=False)
        truth = truth.with_replica(name, replace(truth.replica(name), member=member))
    return replace(truth, next_member=truth.next_member + len(names))


def tick(truth: Truth, seconds: float = 1.0) -> Truth:
    """Time passes: learners copy, apiservers start, supervisors restart what crashed, silence grows, and then load
    balancers check what they send to.
    """
    apart = truth.memory.events.exists
    truth = found(truth)
    if apart:
        truth = truth.with_events(found(truth.of(Cluster.EVENTS)))
    restarted = tuple((name, _restarted(truth, name, replica)) for name, replica in truth.replicas)
    truth = replace(truth, now=truth.now + seconds, replicas=restarted)
    later = tuple((name, _later(truth, name, replica)) for name, replica in truth.replicas)
    leads_events = truth.of(Cluster.EVENTS).elected if apart else None
    truth = replace(truth, leader=truth.elected, events_leader=leads_events, replicas=later)
    checked = _by_site(dict(truth.checked) | truth.well_behind)
    return truth if checked == truth.checked else replace(truth, checked=checked)


def _restarted(truth: Truth, name: str, replica: SimReplica) -> SimReplica:
    """What a supervisor does. A listed member that never took part may start afresh on an empty folder."""
    if not truth.up(name):
        return replica  # nor does anything restart what no record names
    record = truth.memory.replica(name)
    data = replica.data or (Component.ETCD in replica.units and not record.started)
    had = record.events is not None and record.events.started
    events_data = replica.events_data or (Component.EVENTS_ETCD in replica.units and not had)
    if not replica.crashed and (data, events_data) == (replica.data, replica.events_data):
        return replica
    return replace(replica, crashed=_ended(truth, replica), data=data, events_data=events_data)


def _aged(truth: Truth, name: str, member: SimMember | None) -> SimMember | None:
    """A member a tick later."""
    if member is None:
        return None
    follows = name in truth.following
    behind = member.behind - (follows and member.behind > 0)
    unserved = member.unserved - (follows and member.unserved > 0)
    silent = 0 if follows else min(member.silent + 1, GRACE)
    if (behind, unserved, silent) == (member.behind, member.unserved, member.silent):
        return member
    return replace(member, behind=behind, unserved=unserved, silent=silent)


def _later(truth: Truth, name: str, replica: SimReplica) -> SimReplica:
    """What is on a replica's machine a tick later. An apiserver starts when every cluster that it needs answers it."""
    member, events = _aged(truth, name, replica.member), replica.events
    if events is not None:
        events = _aged(truth.of(Cluster.EVENTS), name, events)
    warm = Component.APISERVER in replica.units and (replica.warm or _starts(truth, name))
    if member is replica.member and events is replica.events and warm == replica.warm:
        return replica
    return replace(replica, member=member, events=events, warm=warm)


def _starts(truth: Truth, name: str) -> bool:
    needs = [truth, *([truth.of(Cluster.EVENTS)] if truth.keeps_events_apart(name) else [])]
    return all(name in each.healthy and not each.members[name].learner for each in needs)


def from_world(world: World) -> Truth:
    """The truth that an observation suggests, for dry runs: what is unknown is taken to be well."""
    running = {record.name: _from_fact(world, record.name) for record in world.memory.replicas}
    power = {MachineState.UP: Power.ON, MachineState.DOWN: Power.OFF, MachineState.UNREACHABLE: Power.OFF}
    known = [each for each in (world.membership, world.events_membership) if each is not None]
    ids = [member.id for each in known for member in each.members]
    return Truth(
        slots=world.slots,
        memory=world.memory,
        revision=world.revision,
        changes=world.changes,
        condemned=world.condemned,
        machines=tuple(
            SimMachine(name=each.name, site=each.site, zone=each.zone, power=power[each.state])
            for each in world.machines
        ),
        replicas=tuple(sorted(running.items())),
        balancers=tuple((each.site, each.backends) for each in world.balancers if each.running),
        checked=tuple((each.site, each.healthy) for each in world.balancers if each.running),
        record=world.record,
        front=world.front,
        leader=world.membership.leader if world.membership else None,
        events_leader=world.events_membership.leader if world.events_membership else None,
        separate=world.separate,
        next_member=max(ids, default=0) + 1,
        now=world.now,
        deleting=world.deleting,
        settings=world.settings,
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
        member=_member_from(world.membership, name, world.settings.lag_bound),
        events=_member_from(world.events_membership, name, world.settings.lag_bound),
        events_data=fact.events.has_data is True,
    )


def _member_from(membership: Membership | None, name: str, bound: int) -> SimMember | None:
    listed = membership.of(name) if membership is not None else None
    if listed is None:
        return None
    behind = 0 if not listed.learner or (listed.lag is not None and listed.lag <= bound) else CATCH_UP
    silent = GRACE if listed.health is Health.DOWN else 0
    return SimMember(id=listed.id, learner=listed.learner, behind=behind, silent=silent)
