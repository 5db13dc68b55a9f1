"""A small world in which steps have their effects, for dry runs and for the model checker of the tests.

It knows what is true (``Truth``), from which an observation is derived, and time passes in ticks. Membership
changes obey etcd's rules; apiservers need a healthy voter of their own; supervisors restart what crashed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.remember import remember
from quarterdeck.model.slots import Slot
from quarterdeck.model.steps import (
    AddLearner,
    Promote,
    ReleaseReplica,
    RemoveMember,
    RemoveRecord,
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
    Component,
    Health,
    MachineFact,
    MemberFact,
    Membership,
    ReplicaFact,
    Settings,
    World,
)
from quarterdeck.planner.quorum import quorum

#: Ticks that a learner needs to catch up, and that a member may be silent before it counts as down.
CATCH_UP = 2
GRACE = 2


class Power(StrEnum):
    """The state of a simulated machine."""

    ON = "on"
    OFF = "off"
    FROZEN = "frozen"


class RefusedError(Exception):
    """The simulated world refused a step, as the real one would; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimMember:
    """A member: ``behind`` in ticks of copying still to do, ``silent`` in ticks without a sign of life."""

    id: int
    learner: bool
    behind: int = 0
    silent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimReplica:
    """What is on a machine for one replica. ``units`` are wanted to run; ``crashed`` ones are down until the
    next tick; ``warm`` says that the apiserver has finished starting.
    """

    units: frozenset[Component] = frozenset()
    crashed: frozenset[Component] = frozenset()
    data: bool = False
    warm: bool = False
    member: SimMember | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimMachine:
    """A machine of the simulated sites."""

    name: str
    site: str
    zone: str
    power: Power = Power.ON


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """All that is true. ``cuts`` are pairs of sites (from, to) that packets do not pass."""

    slots: tuple[Slot, ...]
    memory: Memory
    machines: tuple[SimMachine, ...]
    replicas: tuple[tuple[str, SimReplica], ...] = ()
    balancers: tuple[tuple[str, frozenset[str]], ...] = ()
    dead_edges: frozenset[str] = frozenset()
    record: str | None = None
    leader: str | None = None
    cuts: frozenset[tuple[str, str]] = frozenset()
    next_member: int = 1
    now: float = 0.0
    deleting: bool = False
    settings: Settings = field(default_factory=lambda: Settings(ttl=1.0, drain=1.0))

    def replica(self, name: str) -> SimReplica:
        """What is on the machine of a replica."""
        return dict(self.replicas).get(name, SimReplica())

    def with_replica(self, name: str, replica: SimReplica | None) -> Truth:
        """The same truth with one replica changed, or gone."""
        others = tuple(entry for entry in self.replicas if entry[0] != name)
        added = () if replica is None else ((name, replica),)
        return replace(self, replicas=tuple(sorted((*others, *added), key=lambda entry: entry[0])))

    def machine_of(self, name: str) -> SimMachine:
        """The machine of a recorded replica."""
        machine = self.memory.replica(name).machine
        return next(each for each in self.machines if each.name == machine)


def members(truth: Truth) -> dict[str, SimMember]:
    """The members by replica."""
    return {name: replica.member for name, replica in truth.replicas if replica.member is not None}


def _live(truth: Truth, name: str) -> bool:
    replica = truth.replica(name)
    return (
        replica.member is not None
        and replica.data
        and Component.ETCD in replica.units - replica.crashed
        and truth.machine_of(name).power is Power.ON
    )


def _connected(truth: Truth, one: str, other: str) -> bool:
    return one == other or not {(one, other), (other, one)} & truth.cuts


def _followers(truth: Truth, leader: str) -> list[str]:
    """The live members that the would-be leader hears, itself included."""
    site = truth.memory.replica(leader).site
    return [
        name
        for name in members(truth)
        if _live(truth, name) and _connected(truth, site, truth.memory.replica(name).site)
    ]


def elected(truth: Truth) -> str | None:
    """Who leads: the leader of before if it can, else the first voter that a quorum can follow."""
    known = members(truth)
    voters = [name for name, member in known.items() if not member.learner]
    candidates = ([truth.leader] if truth.leader in voters else []) + sorted(voters)
    for name in candidates:
        if name is not None and _live(truth, name):
            following = [each for each in _followers(truth, name) if not known[each].learner]
            if len(following) >= quorum(len(voters)):
                return name
    return None


def healthy(truth: Truth) -> frozenset[str]:
    """The members that follow a leader which a quorum follows."""
    leader = elected(truth)
    return frozenset(_followers(truth, leader)) if leader else frozenset()


def serving(truth: Truth) -> frozenset[str]:
    """The replicas whose apiserver answers clients with 200 on /readyz."""
    well = healthy(truth)
    return frozenset(
        name
        for name, replica in truth.replicas
        if replica.warm
        and Component.APISERVER in replica.units - replica.crashed
        and truth.machine_of(name).power is Power.ON
        and name in well
        and replica.member is not None
        and not replica.member.learner
    )


def observe(truth: Truth) -> World:
    """The observation that a manager which reaches every machine makes."""
    ready = serving(truth)
    return World(
        slots=truth.slots,
        memory=truth.memory,
        now=truth.now,
        membership=_membership(truth),
        replicas=tuple(_replica_fact(truth, record, ready) for record in truth.memory.replicas),
        balancers=_balancer_facts(truth, ready),
        machines=tuple(
            MachineFact(name=each.name, site=each.site, zone=each.zone, state=_machine_state(each))
            for each in truth.machines
        ),
        record=truth.record,
        deleting=truth.deleting,
        settings=truth.settings,
    )


def _balancer_facts(truth: Truth, ready: frozenset[str]) -> tuple[BalancerFact, ...]:
    dark = tuple(BalancerFact(site=site, running=False, reachable=False) for site in sorted(truth.dead_edges))
    lit = tuple(
        BalancerFact(site=site, running=True, ready=bool(names & ready), backends=names)
        for site, names in truth.balancers
        if site not in truth.dead_edges
    )
    return (*lit, *dark)


def _machine_state(machine: SimMachine) -> MachineState:
    return {
        Power.ON: MachineState.UP,
        Power.OFF: MachineState.DOWN,
        Power.FROZEN: MachineState.UNREACHABLE,
    }[machine.power]


def _membership(truth: Truth) -> Membership | None:
    leader = elected(truth)
    if leader is None:
        return None
    well = healthy(truth)

    def health(name: str, member: SimMember) -> Health:
        if name in well:
            return Health.HEALTHY
        return Health.DOWN if member.silent >= GRACE else Health.SUSPECT

    return Membership(
        members=tuple(
            MemberFact(
                id=member.id,
                replica=name,
                learner=member.learner,
                health=health(name, member),
                lag=member.behind * 1_000_000 if name in well else None,
            )
            for name, member in members(truth).items()
        ),
        leader=leader,
    )


def _replica_fact(truth: Truth, record: Replica, ready: frozenset[str]) -> ReplicaFact:
    machine = truth.machine_of(record.name)
    replica = truth.replica(record.name)
    if machine.power is not Power.ON:
        unknown = tuple((component, UnitState.UNKNOWN) for component in Component)
        return ReplicaFact(name=record.name, machine=_machine_state(machine), units=unknown, ready=None)
    return ReplicaFact(
        name=record.name,
        machine=MachineState.UP,
        units=tuple(
            (component, UnitState.RUNNING if component in replica.units else UnitState.STOPPED)
            for component in Component
        ),
        peer_up=Component.ETCD in replica.units - replica.crashed,
        ready=record.name in ready,
        has_data=replica.data,
    )


def apply(truth: Truth, step: Step) -> Truth:
    """The truth after one step (a Swap change by change). Raises RefusedError when the world refuses."""
    if isinstance(step, Swap):
        for change in step.changes:
            truth = apply(truth, change)
        return truth
    changed = _apply(truth, step)
    return replace(changed, memory=remember(changed.memory, step, truth.now))


def _apply(truth: Truth, step: Step) -> Truth:
    match step:
        case StartUnit() | StopUnit():
            return _unit(truth, step)
        case AddLearner() | Promote() | RemoveMember() | TransferLeadership():
            return _change(truth, step)
        case SetBackends():
            if step.site in truth.dead_edges:
                raise RefusedError(f"the edge of {step.site} is off")
            others = tuple(entry for entry in truth.balancers if entry[0] != step.site)
            return replace(truth, balancers=tuple(sorted((*others, (step.site, frozenset(step.backends))))))
        case StopBalancer():
            return replace(truth, balancers=tuple(entry for entry in truth.balancers if entry[0] != step.site))
        case SetRecord():
            return replace(truth, record=step.to)
        case RemoveRecord():
            return replace(truth, record=None)
        case ReleaseReplica():
            return truth.with_replica(step.replica, None)
        case _:
            return truth


def _unit(truth: Truth, step: StartUnit | StopUnit) -> Truth:
    if truth.machine_of(step.replica).power is not Power.ON:
        raise RefusedError(f"the machine of {step.replica} does not answer")
    replica = truth.replica(step.replica)
    if isinstance(step, StartUnit):
        units = replica.units | {step.component}
        data = replica.data or step.component is Component.ETCD
    else:
        units, data = replica.units - {step.component}, replica.data
    warm = replica.warm and Component.APISERVER in units
    crashed = replica.crashed - {step.component}
    return truth.with_replica(step.replica, replace(replica, units=units, crashed=crashed, data=data, warm=warm))


def _change(truth: Truth, step: AddLearner | Promote | RemoveMember | TransferLeadership) -> Truth:
    leader = elected(truth)
    if leader is None:
        raise RefusedError("no quorum")
    if isinstance(step, TransferLeadership):
        return replace(truth, leader=step.to)
    replica = truth.replica(step.replica)
    if isinstance(step, AddLearner):
        member = SimMember(id=truth.next_member, learner=True, behind=CATCH_UP)
        truth = replace(truth, next_member=truth.next_member + 1)
        return truth.with_replica(step.replica, replace(replica, member=member))
    if replica.member is None:
        raise RefusedError(f"{step.replica} is no member")
    if isinstance(step, Promote):
        if replica.member.behind:
            raise RefusedError(f"{step.replica} is not in sync with the leader")
        return truth.with_replica(step.replica, replace(replica, member=replace(replica.member, learner=False)))
    return truth.with_replica(step.replica, replace(replica, member=None))


def found(truth: Truth) -> Truth:
    """Founders whose etcd runs become the first members (as etcd's bootstrap does)."""
    names = truth.memory.bootstrap
    if members(truth) or truth.memory.created or not names:
        return truth
    up = [name for name in names if Component.ETCD in truth.replica(name).units and truth.replica(name).data]
    if len(up) < quorum(len(names)):
        return truth
    for index, name in enumerate(names):
        member = SimMember(id=truth.next_member + index, learner=False)
        truth = truth.with_replica(name, replace(truth.replica(name), member=member))
    return replace(truth, next_member=truth.next_member + len(names))


def tick(truth: Truth, seconds: float = 1.0) -> Truth:
    """Time passes: learners copy, apiservers start, supervisors restart what crashed, silence grows."""
    truth = found(truth)
    truth = replace(truth, now=truth.now + seconds)
    for name, replica in truth.replicas:
        if truth.machine_of(name).power is Power.ON:
            # A listed member that never took part may start afresh on an empty folder.
            afresh = Component.ETCD in replica.units and not truth.memory.replica(name).started
            truth = truth.with_replica(name, replace(replica, crashed=frozenset(), data=replica.data or afresh))
    well = healthy(truth)
    truth = replace(truth, leader=elected(truth))
    for name, replica in truth.replicas:
        member = replica.member
        if member is not None:
            copying = name in well and member.behind > 0
            member = replace(
                member,
                behind=member.behind - copying,
                silent=0 if name in well else min(member.silent + 1, GRACE),
            )
        started = name in well and member is not None and not member.learner
        warm = Component.APISERVER in replica.units and (replica.warm or started)
        truth = truth.with_replica(name, replace(replica, member=member, warm=warm))
    return truth


def from_world(world: World) -> Truth:
    """The truth that an observation suggests, for dry runs: what is unknown is taken to be well."""
    running = {record.name: _from_fact(world, record.name) for record in world.memory.replicas}
    power = {MachineState.UP: Power.ON, MachineState.DOWN: Power.OFF, MachineState.UNREACHABLE: Power.OFF}
    ids = [member.id for member in world.membership.members] if world.membership else []
    return Truth(
        slots=world.slots,
        memory=world.memory,
        machines=tuple(
            SimMachine(name=each.name, site=each.site, zone=each.zone, power=power[each.state])
            for each in world.machines
        ),
        replicas=tuple(sorted(running.items())),
        balancers=tuple((each.site, each.backends) for each in world.balancers if each.running),
        record=world.record,
        leader=world.membership.leader if world.membership else None,
        next_member=max(ids, default=0) + 1,
        now=world.now,
        deleting=world.deleting,
        settings=world.settings,
    )


def _from_fact(world: World, name: str) -> SimReplica:
    fact = world.replica(name)
    listed = world.membership.of(name) if world.membership else None
    bound = world.settings.lag_bound
    member = None
    if listed is not None:
        behind = 0 if not listed.learner or (listed.lag is not None and listed.lag <= bound) else CATCH_UP
        silent = GRACE if listed.health is Health.DOWN else 0
        member = SimMember(id=listed.id, learner=listed.learner, behind=behind, silent=silent)
    on = {component for component, state in fact.units if state not in (UnitState.ABSENT, UnitState.STOPPED)}
    return SimReplica(units=frozenset(on), data=fact.has_data is not False, warm=fact.ready is True, member=member)
