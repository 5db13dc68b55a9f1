"""What is seen of a simulated world by a manager that reaches everything which is not mute."""

from __future__ import annotations

from functools import lru_cache

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.revisions import Change
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
from quarterdeck.planner.simulated.time import GRACE
from quarterdeck.planner.simulated.units import ended
from quarterdeck.planner.simulated.upkeep import space_of
from quarterdeck.planner.truth import DNS, ETCD, Power, SimMachine, SimMember, SimReplica, Truth, all_of

_STATES = {Power.ON: MachineState.UP, Power.OFF: MachineState.DOWN, Power.FROZEN: MachineState.UNREACHABLE}
_UNKNOWN = tuple((component, UnitState.UNKNOWN) for component in Component)


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
        name_servers=0 if truth.front is not None else 1,
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
                space=space_of(member) if _says(truth, name) else None,
                revision=1 if _says(truth, name) else None,
            )
            for name, member in truth.members.items()
        ),
        leader=leader,
        alarms=("alarm:NOSPACE",) if truth.full else (),
    )


def _says(truth: Truth, name: str) -> bool:
    """Whether a member says of itself how it is."""
    return truth.etcd_answers(name) and name in truth.healthy


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
        restless=ended(truth, replica),
        events=MemberData(
            peer_up=replica.runs(Component.EVENTS_ETCD),
            has_data=replica.events_data,
            refused="its data is gone" if Component.EVENTS_ETCD in refused else "",
        ),
        loaded=_loaded(truth, record),
        stuck=replica.stuck,
    )


def _loaded(truth: Truth, record: Replica) -> frozenset[str] | None:
    """The revisions as which an apiserver that answers has its files; nobody asks where none differs in these alone."""
    if not truth.reloads or record.name not in truth.serving or not truth.apiserver_answers(record.name):
        return None
    has = dict(truth.replica(record.name).shapes).get(Component.APISERVER, "")
    alike = {one for one, other, change in truth.changes if other == has and not _differs(change)}
    return frozenset({has} | alike)


def _differs(change: Change) -> bool:
    return change.exchange or Component.APISERVER in change.stops | change.reload


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
