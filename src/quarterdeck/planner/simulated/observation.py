"""The observation of a simulated world by a manager that reaches everything which is not mute."""

from __future__ import annotations

from functools import lru_cache

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaChange, ReplicaPrograms
from quarterdeck.model.edges import by_itself
from quarterdeck.model.endpoints import NameFact
from quarterdeck.model.epochs import MemberWord
from quarterdeck.model.membership import Health, MemberData, MemberFact, Membership
from quarterdeck.model.memory import Replica
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import MachineFact, ReplicaFact, World
from quarterdeck.planner.simulated.members import space_of
from quarterdeck.planner.simulated.parts import DNS, Power, SimMachine, SimMember, SimReplica
from quarterdeck.planner.simulated.time import GRACE
from quarterdeck.planner.simulated.truth import Truth

_STATES = {Power.ON: MachineState.UP, Power.OFF: MachineState.DOWN, Power.FROZEN: MachineState.UNREACHABLE}


def observe(truth: Truth) -> World:
    """The observation of a manager that reaches everything which is not mute."""
    known = truth.fixed or not truth.is_mute(DNS)
    replicas = tuple(_replica_fact(truth, record) for record in truth.memory.replicas)
    recorded = frozenset(truth.recorded)
    name = NameFact(known=known, site=truth.record, replicas=truth.named & recorded, stray=not truth.named <= recorded)
    return World(
        slots=truth.slots,
        memory=truth.memory,
        now=truth.now,
        revision=truth.revision,
        via=truth.via,
        apart=truth.apart,
        changes=truth.changes,
        etcd_minors=truth.etcd_minors,
        keeps_one=truth.keeps_one,
        condemned=truth.condemned,
        cordoned=truth.cordoned,
        expired=frozenset(each.name for each in truth.memory.replicas if (each.name, each.revision) in truth.expired),
        membership=_membership(truth),
        words=_words(truth),
        consent=truth.consent,
        standby=truth.standby,
        programs=truth.programs,
        events_membership=_membership(truth.of(Cluster.EVENTS)) if truth.memory.events.exists else None,
        replicas=replicas,
        balancers=truth.balancer_facts(),
        machines=_machine_facts(truth.machines, truth.unreachable),
        record=truth.record if known else None,
        record_known=known,
        amiss=truth.record_amiss,
        name_servers=0 if truth.front is not None else 1,
        promoted=truth.promoted,
        front=truth.front,
        direct=truth.direct,
        apiservers=by_itself(name, replicas),
        deleting=truth.deleting,
        kubelets_back=truth.kubelets,
        settings=truth.settings,
    )


@lru_cache(maxsize=64)
def _machine_facts(machines: tuple[SimMachine, ...], unreachable: frozenset[str]) -> tuple[MachineFact, ...]:
    return tuple(
        MachineFact(
            name=each.name,
            site=each.site,
            zone=each.zone,
            state=_machine_state(each, unreachable),
            cordoned=each.cordoned,
            why=each.why,
        )
        for each in machines
    )


def _machine_state(machine: SimMachine, unreachable: frozenset[str]) -> MachineState:
    return MachineState.UNREACHABLE if machine.name in unreachable else _STATES[machine.power]


def _membership(truth: Truth) -> Membership | None:
    """What the leader says, if it can be asked. A member is down only when neither it answers, nor has the leader heard
    of it for a while; one that only does not answer the manager is unreachable.
    """
    if not truth.tells_members:
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
                replica=truth.taken_for(name),
                learner=member.learner,
                health=health(name, member),
                lag=member.behind * 1_000_000 if name in heard else None,
                published=name in heard and not member.behind,
                misplaced=member.misplaced and bool(truth.taken_for(name)),
                displaced_by=truth.displacing.get(name),
                lagging=truth.lags(name) if name in heard and truth.etcd_answers(name) else None,
                space=space_of(truth, name) if _says(truth, name) else None,
                revision=1 if _says(truth, name) else None,
                storage=member.storage if _says(truth, name) else None,
            )
            for name, member in truth.members.items()
        ),
        leader=truth.elected if truth.elected in truth.recorded else None,
        alarms=truth.alarms,
        authenticates=truth.asks_for_a_user,
        works_as=truth.works_as if _says_versions(truth) else None,
        downgrade=truth.downgrade if truth.works_as is not None else None,
    )


def _says_versions(truth: Truth) -> bool:
    """Whether the leader answers for the version of the cluster."""
    return truth.elected is not None and truth.etcd_answers(truth.elected)


def _words(truth: Truth) -> tuple[MemberWord, ...]:
    """The members' reports about themselves, which need no quorum."""
    if truth.tells_members:
        return ()
    voters = tuple(
        name if name in truth.recorded else f"{each.id:x}" for name, each in truth.members.items() if not each.learner
    )
    return tuple(
        MemberWord(
            replica=name,
            term=1,
            committed=1,
            applied=0 if member.behind else 1,
            revision=0 if member.behind else 1,
            learner=member.learner,
            follows=name in truth.following or name in truth.deceived,
            voters=voters,
        )
        for name, member in truth.members.items()
        if truth.etcd_answers(name)
    )


def _says(truth: Truth, name: str) -> bool:
    """Whether a member reports its own state."""
    return truth.etcd_answers(name) and name in truth.healthy


def _replica_fact(truth: Truth, record: Replica) -> ReplicaFact:
    replica = truth.replica(record.name)
    if not truth.answers(record.name):
        state = _machine_state(truth.machine_of(record.name), truth.unreachable)
        return ReplicaFact(
            name=record.name,
            machine=state,
            units=tuple((component, UnitState.UNKNOWN) for component in truth.programs.every),
            ready=None,
            reattachable=truth.reattachable,
        )
    refused = _without_its_data(truth, record, replica)
    return ReplicaFact(
        name=record.name,
        machine=MachineState.UP,
        units=_unit_states(truth.programs, replica.units, replica.crashed | refused),
        peer_up=replica.runs(Component.ETCD),
        ready=record.name in truth.serving if truth.apiserver_answers(record.name) else None,
        has_data=replica.data,
        refused="its data is gone" if Component.ETCD in refused else "",
        crash_looping=truth.ended(replica),
        quiet=tuple((component, "") for component in truth.quiet(replica)),
        silent=replica.hung & replica.units,
        hung=replica.hung & replica.units,
        frozen=replica.hung & replica.units & truth.programs.managers if truth.apart else frozenset(),
        altered=replica.altered & replica.units,
        events=MemberData(
            peer_up=replica.runs(Component.EVENTS_ETCD),
            has_data=replica.events_data,
            refused="its data is gone" if Component.EVENTS_ETCD in refused else "",
        ),
        loaded=_loaded(truth, record),
        stuck=replica.stuck,
        reattachable=truth.reattachable,
    )


def _loaded(truth: Truth, record: Replica) -> frozenset[str] | None:
    """The revisions whose files a responding apiserver has loaded; None: unknown, or no revisions differ in them."""
    if not truth.reloads or record.name not in truth.serving or not truth.apiserver_answers(record.name):
        return None
    has = dict(truth.replica(record.name).shapes).get(Component.APISERVER, "")
    alike = {one for one, other, change in truth.changes if other == has and not _differs(truth, change)}
    return frozenset({has} | alike)


def _differs(truth: Truth, change: ReplicaChange) -> bool:
    restarted = truth.programs.with_dependents(change.restart)
    return change.exchange or Component.APISERVER in restarted | change.reload


def _without_its_data(truth: Truth, record: Replica, replica: SimReplica) -> frozenset[Component]:
    """The members of a replica that are to run, and whose data is gone since they had some."""
    started = {
        Component.ETCD: record.started and not replica.data,
        Component.EVENTS_ETCD: record.events is not None and record.events.started and not replica.events_data,
    }
    return frozenset(component for component, gone in started.items() if gone and component in replica.units)


@lru_cache(maxsize=256)
def _unit_states(
    programs: ReplicaPrograms, units: frozenset[Component], crashed: frozenset[Component]
) -> tuple[tuple[Component, UnitState], ...]:
    def state(component: Component) -> UnitState:
        if component in crashed:
            return UnitState.FAILED
        if component in units:
            return UnitState.RUNNING
        # What is not there is soon removed where no revision has it; nothing else makes a difference of the two.
        return UnitState.ABSENT if component.optional and component.is_controller else UnitState.STOPPED

    return tuple((component, state(component)) for component in programs.every)
