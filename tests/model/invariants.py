"""The invariants of the design, as claims on plans, on single steps, and on states.

A fault can take a property away; a step must not. So the claims on a step are: what held before holds after, in truth,
whatever the driver sees of it. Where nothing of the world has failed so far (``calm``), the claims on the state are
absolute. Besides the ten: (11) controllers work as long as apiservers serve, and inside a site at most one wanted voter
is out by our own doing and at most one member more than wanted there; (12) each replica has a machine for itself, but
while it takes the place of another that sits there, in the zone of its slot; (13) no program runs as a former revision
has it; (14) events are written, also where they have a cluster of their own (``apart``); (15) where there is no room in
etcd one member after the other is defragmented while all others are well, and writes are taken once all have room, and
only where nothing but a larger quota makes room the only voter stops to get it; no exchange goes on while members
disagree about the data, or etcd lets nobody change them; (16) nobody copies data that differs from what most have, or
from a leader that a person wants exchanged where another one can lead; (17) an epoch of the cluster begins only where
no quorum lives, from what a survivor has, or where a person restores a backup; nothing of one that is over is started,
all of it that can be reached is stopped before anything else is done, and its data is kept; (18) nobody is condemned
but who is dead in the eyes of its cluster too, or does not get well though it was restarted, one at a time, within
the budget, and where another one can come; nothing is killed but what hangs, or lags; (19) no replica comes to a
cordoned machine; (20) a volume is taken from no machine that answers, nor from a member that anybody counts on, keeps
what is in it, stays in its zone, and is never open for writing on two machines; (21) programs of two revisions that
must not meet never run at the same time: controllers under two locks, versions that are no neighbours, holders of
certificates or keys that others do not accept; (22) what only a person ends is named for a person as long as a quorum
answers: a voter that belongs to no replica, an alarm CORRUPT, authentication (``explorer``); (23) in a new epoch
kube-controller-manager waits for kubelets; (24) a standby is a learner that runs nothing but etcd, is never promoted,
has a machine for itself, and is in place in the end; (25) no etcd is started that its cluster or its data is too new
for (``versions_of_etcd``); (26) an apiserver of an older minor version, or without an encryption key, is only started
once all that is stored was read, and no apiserver has run since that stores what it cannot read.
"""

from __future__ import annotations

from dataclasses import replace

from model.addresses import felt, held_healthy
from model.clients import Clients, listed
from model.events_cluster import cluster_of, in_use, steps_of, why_not_done
from model.faulty_truth import FaultyTruth
from model.versions_of_etcd import lowered_for_nothing, panics, why_not_started
from quarterdeck.model.clusters import CLUSTER, Cluster
from quarterdeck.model.components import NAMED, Component, ReplicaChange
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.epochs import BackupOrigin, StandbyOrigin, SurvivorOrigin
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.base import Note, Step
from quarterdeck.model.steps.clusters import BeginEpoch, DecideBootstrap, DeleteKept, ReleaseMember
from quarterdeck.model.steps.healing import Condemn, CordonMachine, renewal_of
from quarterdeck.model.steps.members import (
    AddLearner,
    Compact,
    Defragment,
    Disarm,
    Promote,
    RemoveMember,
    Swap,
    TransferLeadership,
)
from quarterdeck.model.steps.placement import AttachVolumes, LeaveMachine, PlaceReplica, ReleaseReplica
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.traffic import LeadTo, RemoveRecord, SetBackends, SetRecord, StopBalancer
from quarterdeck.model.steps.units import (
    AdoptRevision,
    NoteProven,
    RejectRevision,
    ReloadUnit,
    RestartUnit,
    ReviveUnit,
    StartUnit,
    StopUnit,
)
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.machines import busy
from quarterdeck.planner.members import is_stale, serves
from quarterdeck.planner.quorum import Voter, has_quorum, quorum_site
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.simulated.parts import Fill, Power, apiserver_of, edge, second
from quarterdeck.planner.slots import match
from quarterdeck.planner.view import view

#: Steps that need to know who is a member, or that take something away.
NEEDS_A_QUORUM = (
    RemoveMember,
    Swap,
    StopUnit,
    RestartUnit,
    ReviveUnit,
    ReleaseReplica,
    StopBalancer,
    AddLearner,
    Promote,
    TransferLeadership,
    Compact,
    Defragment,
    Disarm,
)


#: Steps of an exchange.
EXCHANGES = (PlaceReplica, AddLearner, Promote, RemoveMember, Swap, ReleaseReplica)


class Broken(AssertionError):
    """An invariant does not hold. The text begins with its number."""

    @property
    def number(self) -> int:
        """Which of them."""
        return int(str(self).split(":", 1)[0])


def claim(holds: bool, text: str) -> None:
    if not holds:
        raise Broken(text)


def flat(step: Step) -> tuple[Step, ...]:
    return step.changes if isinstance(step, Swap) else (step,)


def names(steps: tuple[Step, ...]) -> str:
    return ", ".join(map(_name, steps))


def _name(step: Step) -> str:
    if cluster_of(step) is Cluster.EVENTS and not isinstance(step, StartUnit | StopUnit | RestartUnit | ReviveUnit):
        return f"{_named(step)} of events"
    return _named(step)


def _named(step: Step) -> str:
    match step:
        case StartUnit() | StopUnit() | RestartUnit() | ReviveUnit() | ReloadUnit():
            return f"{type(step).__name__} {step.component} of {step.replica}"
        case SetBackends():
            return f"SetBackends {step.site}: {' '.join(step.backends)}"
        case LeadTo():
            return f"LeadTo {' '.join(step.backends)}"
        case Swap():
            return f"Swap({names(step.changes)})"
        case _:
            of = getattr(step, "replica", "") or getattr(step, "to", "") or step.site
            return f"{type(step).__name__} {of}".strip()


# --- a plan, given nothing but its observation ----------------------------------------------------------------------


def check_plan(world: World, plan: Plan) -> None:
    """What a plan may hold, given nothing but its observation."""
    _check_epochs(world, plan)
    _check_standbys(world, plan)
    _check_plan(world, replace(plan, now=steps_of(plan.now, Cluster.MAIN)))
    for step in plan.now:
        if isinstance(step, ReviveUnit):
            _check_revived(world, step)
    if in_use_by(world):
        _check_members(world.of(Cluster.EVENTS), _on_members_that_count(world, plan))


def in_use_by(world: World) -> bool:
    """Whether there is an events' cluster of which anything may be claimed: nobody misses one that goes."""
    if not world.memory.events.exists or not world.slots or world.deleting:
        return False
    events = view(world).events
    return events is not None and bool(events.wanted)


def _on_members_that_count(world: World, plan: Plan) -> Plan:
    """The steps about the events' cluster that there is; not about what is left of one before."""
    old = {each.name for each in world.memory.replicas if is_stale(world, each)}
    about = steps_of(plan.now, Cluster.EVENTS)
    return replace(plan, now=tuple(each for each in about if getattr(each, "replica", "") not in old))


def _check_plan(world: World, plan: Plan) -> None:
    _check_members(world, plan)
    for step in (change for each in plan.now for change in flat(each)):
        _check_known(world, step)
        if isinstance(step, PlaceReplica):
            _check_place(world, step)
        if isinstance(step, Condemn):
            _check_condemned(world, step)
        if isinstance(step, AttachVolumes) and not world.replica(step.replica).volume_at:
            _check_attached(world, step)
        if isinstance(step, CordonMachine):
            lately = [name for name, when in world.memory.healed if world.now - when < world.settings.healing.window]
            claim(lately.count(step.machine) > 1, f"19: {step.machine} is cordoned, and did not flap")
        if isinstance(step, RemoveMember) and step.replica in world.memory.given_up and not world.deleting:
            _check_replaced(world, step)
    _check_one_rests(world, plan)
    _check_exchange(world, plan)


def _check_exchange(world: World, plan: Plan) -> None:
    """No exchange goes on while members disagree about the data, or etcd lets nobody change them."""
    known = () if world.deleting else world.memberships
    if any(each.authenticates or any("CORRUPT" in alarm for alarm in each.alarms) for each in known):
        about = tuple(each for each in plan.now if isinstance(each, EXCHANGES))
        claim(not about, f"15: {names(about)} while etcd is in a state that a person must end")


def _check_epochs(world: World, plan: Plan) -> None:
    """What runs of an epoch that is over stops where it can be reached, whatever else is to be done, and never
    starts.
    """
    stops = {(step.replica, step.component) for step in plan.now if isinstance(step, StopUnit)}
    former = [each.name for each in world.memory.replicas if world.memory.is_former(each)]
    noted = bool(plan.now) and all(isinstance(step, Note) for step in plan.now)  # and then all is asked again
    for name in former if not world.deleting and not world.failing and not noted else ():
        fact = world.replica(name)
        runs = {each for each in NAMED if fact.unit(each) is UnitState.RUNNING}
        left = {each for each in runs if (name, each) not in stops} if fact.machine is MachineState.UP else set()
        claim(not left, f"17: {sorted(left)} of {name} run on, of an epoch that is over")
    for step in plan.now:
        if isinstance(step, StartUnit | RestartUnit | AddLearner):
            claim(step.replica not in former, f"17: {_name(step)}, of an epoch that is over")
        if isinstance(step, StartUnit) and step.component == Component.ETCD:
            seed = world.memory.seeding
            claim(seed is None or seed.founder != step.replica, f"17: {step.replica} starts before it has the data")
        if isinstance(step, StartUnit) and step.component == Component.EVENTS_ETCD:
            seed = world.memory.of(Cluster.EVENTS).seeding
            claim(seed is None or seed.founder != step.replica, f"17: events of {step.replica} start before the data")
        if isinstance(step, StartUnit) and step.component == Component.CONTROLLER_MANAGER:
            _check_kubelets(world)
        if isinstance(step, BeginEpoch):
            may = world.memory.created or _died(world) or isinstance(step.origin, BackupOrigin)
            claim(may, "17: an epoch begins while another one is about to")


def _check_kubelets(world: World) -> None:
    """A kube-controller-manager starts, which evicts the pods of nodes that are silent."""
    seed = world.memory.seed
    if seed is None or world.kubelets_back:
        return
    waited = seed.served is not None and world.now - seed.served >= world.settings.kubelets
    claim(waited, "23: kube-controller-manager starts before kubelets had a chance to come back")


def _check_standbys(world: World, plan: Plan) -> None:
    """A standby gets nothing but a member that listens, and nothing else counts on its machine."""
    names_of_them = {each.name for each in world.memory.standbys}
    used = {each.machine for each in world.memory.replicas if busy(world, each)}
    theirs = {each.machine for each in world.memory.standbys if busy(world, each)}
    for step in (change for each in plan.now for change in flat(each)):
        name = getattr(step, "replica", "")
        if name in names_of_them:
            claim(not isinstance(step, Promote | AttachVolumes), f"24: {_name(step)}, the standby")
            runs = getattr(step, "component", Component.ETCD)
            claim(runs == Component.ETCD, f"24: {_name(step)}, the standby")
        if isinstance(step, TransferLeadership | SetBackends | LeadTo):
            to = {step.to} if isinstance(step, TransferLeadership) else set(step.backends)
            claim(not to & names_of_them, f"24: {_name(step)}, the standby")
        if isinstance(step, DecideBootstrap):
            claim(not names_of_them.intersection(step.replicas), "24: the standby founds the cluster")
        if isinstance(step, PlaceReplica):
            closed = used if step.standby else theirs
            claim(step.machine not in closed, f"24: {step.replica} and the standby share machine {step.machine}")


def _died(world: World) -> bool:
    """Whether what an epoch was to begin from is not there any more."""
    seed = world.memory.seeding
    source = seed.source if seed is not None else None
    fact = world.replica(source) if source is not None else None
    return fact is not None and (fact.machine is not MachineState.UP or fact.has_data is False)


def _is_over(world: World, step: Step) -> bool:
    """Whether a step is about a replica of an epoch that is over."""
    name = getattr(step, "replica", "")
    return any(each.name == name and world.memory.is_former(each) for each in world.memory.replicas)


def _check_members(world: World, plan: Plan) -> None:
    """What a plan may do to the members of a cluster."""
    if world.membership is None and not world.deleting:
        taking = [
            step
            for step in plan.now
            if isinstance(step, NEEDS_A_QUORUM) and not _withholds(world, step) and not _ends_anyway(world, step)
            if not _is_over(world, step) and not _renews(world, step)
        ]
        claim(not taking, "8: unknown membership is not zero")
        claim(not plan.done, "8: unknown membership is not done")
    for step in (change for each in plan.now for change in flat(each)):
        match step:
            case Promote():
                _check_promotion(world, step)
            case AddLearner():
                _check_source(world, step.replica)
            case StartUnit(component=Component.ETCD):
                started = world.memory.replica(step.replica).started
                claim(not started or world.replica(step.replica).has_data is True, "9: a member starts on no data")
                member = world.member(step.replica)
                if member is not None and member.learner and not started:
                    _check_source(world, step.replica)
            case DecideBootstrap():
                claim(not world.memory.bootstrap and not world.memory.created, "9: the cluster is founded twice")
            case _:
                pass
    _check_room(world, plan)
    _check_all_added(world, plan)
    _check_voters(world, plan)
    _check_unseen(world, plan)


def _check_source(world: World, joiner: str) -> None:
    """A joiner copies from the leader: its data is that of most, and where anybody else can lead, nobody wants it
    exchanged.
    """
    leader = world.membership.leader if world.membership is not None else None
    wrong = {each.name for each in world.memory.replicas if each.differs}
    claim(leader not in wrong, f"16: {joiner} copies from {leader}, whose data differs")
    voters = world.membership.voters if world.membership is not None else ()
    others = [each.replica for each in voters if each.replica and each.replica not in wrong | set(world.condemned)]
    claim(leader not in world.condemned or not others, f"16: {joiner} copies from {leader}, which is to be exchanged")


def _withholds(world: World, step: Step) -> bool:
    """Whether a step takes away no more than what an apiserver remembers of data that its own member has lost, or than
    data that is not the plane's.
    """
    if not isinstance(step, StopUnit) or step.component != Component.APISERVER:
        return False
    fact, record = world.replica(step.replica), world.memory.replica(step.replica)
    idle = fact.unit(Component.ETCD) is not UnitState.RUNNING
    wrong = any(each.replica == step.replica for each in world.wrong)
    return wrong or (record.started and fact.has_data is False and idle)


def _ends_anyway(world: World, step: Step) -> bool:
    """Whether a step stops what is of no use to anybody: it exits repeatedly, or its apiserver is known not to
    serve, or it is a founder that says nothing new, of a cluster that never had a quorum.
    """
    if not isinstance(step, StopUnit):
        return False
    fact = world.replica(step.replica)
    if fact.unit(step.component) is UnitState.FAILED:
        return True
    if step.component == Component.ETCD:
        return not world.memory.created and fact.complaint(Component.ETCD) is not None
    return fact.ready is False


def _renews(world: World, step: Step) -> bool:
    """Whether a step stops what only has certificates that have expired: where no quorum answers, as the user consents;
    beside a quorum, where nobody hears of it.
    """
    if not isinstance(step, StopUnit) or step.replica not in world.expired:
        return False
    if world.membership is None:
        return world.settings.offline
    member = world.member(step.replica)
    return member is None or member.health is Health.DOWN


def _check_room(world: World, plan: Plan) -> None:
    """One member is defragmented at a time, and who leads last; history is forgotten that all have; and writes are
    taken once all that may be well have room.
    """
    about = [step for step in plan.now if isinstance(step, Compact | Defragment | Disarm)]
    if not about or world.membership is None:
        return
    claim(len(about) == 1, f"15: {names(tuple(about))} at once")
    claim(not any("CORRUPT" in each for each in world.membership.alarms), "15: members that disagree are touched")
    voters = [each for each in world.membership.voters if each.replica and each.health is not Health.DOWN]
    match about[0]:
        case Compact() as step:
            has = [each.revision for each in voters if each.revision is not None]
            claim(len(has) == len(voters) and min(has) >= step.revision, "15: history goes that somebody lacks")
            seen = world.memory.full
            kept = seen is not None and world.now - seen.since >= world.settings.history
            claim(kept, "15: history goes that somebody may just be reading")
        case Defragment() as step:
            others = [each for each in voters if each.replica != step.replica]
            ill = [each.replica for each in others if not _has_all(world, each)]
            claim(not ill, f"15: {step.replica} is defragmented while {ill} are not well")
            all_ours = all(each.replica for each in world.membership.voters)
            able = sum(each.health is Health.HEALTHY for each in others)
            enough = 2 * able > len(world.membership.voters)
            claim(all_ours or enough, f"1: {step.replica} is defragmented beside a stray voter, without a quorum")
            claim(
                world.membership.leader != step.replica or not others, f"15: {step.replica} is defragmented as it leads"
            )
            copying = [each.replica for each in world.membership.learners if each.lag and not _has_all(world, each)]
            claim(not copying, f"15: {step.replica} is defragmented while {copying} copy")
        case _:
            full = [each.replica for each in voters if each.space is None or each.space.size > 0.9 * each.space.quota]
            claim(not full, f"15: writes are taken while {full} may have no room")


def _has_all(world: World, member: MemberFact) -> bool:
    lags = member.lag is None or member.lag > world.settings.lag_bound
    return member.health is Health.HEALTHY and not lags


def _check_one_rests(world: World, plan: Plan) -> None:
    """Inside a site at most one wanted voter is out by our own doing."""
    about = [
        step
        for step in plan.now
        if isinstance(step, StopUnit | ReloadUnit) and step.component in (Component.ETCD, Component.APISERVER)
    ]
    if not about or world.membership is None or world.deleting:
        return
    now = view(world)
    for step in about:
        rested = next((each for each in now.wanted if each.name == step.replica), None)
        kept = rested is None or (rested.revision == now.revision and not world.replica(rested.name).altered)
        if rested is None or kept or _ends_anyway(world, step) or _needs_quota_alone(world, step):
            continue
        if _renews(world, step):
            continue
        out = [each.name for each in now.wanted if each is not rested and not serves(world, each)]
        claim(not out, f"11: {_name(step)} while {out} does not serve")
        spared = step.component in now.change(rested).reload and not _withholds(world, step)
        claim(isinstance(step, ReloadUnit) or not spared, f"11: {_name(step)}, which takes its new files up as it runs")


def _check_condemned(world: World, step: Condemn) -> None:
    """What an observation must say before anybody is condemned by it."""
    healing, record, fact = world.settings.healing, world.memory.replica(step.replica), world.replica(step.replica)
    assert world.membership is not None, "who is a member is not known"
    member = world.membership.of(step.replica)
    if step.alone:
        _check_renewed(world, step)
        return
    if record.standby:
        _check_standby_condemned(world, step)
        return
    if step.program:
        _check_unhealthy(world, step.replica, step.program)
        tried = {name for name, _ in world.memory.revived} | {_name(each.step) for each in world.failing}
        cannot = f"StartUnit {step.program} of {step.replica}" in tried
        was_tried = cannot or f"{step.program} of {step.replica}" in tried
        claim(was_tried, f"18: {step.replica} is condemned, and nothing was tried")
    else:
        unheard = member.health is Health.DOWN if member is not None else not record.listed
        claim(unheard and fact.machine is not MachineState.UP, f"18: {step.replica} is condemned, and is not dead")
        since = dict(world.memory.down).get(step.replica, world.now)
        claim(world.now - since >= healing.after, f"18: {step.replica} is condemned too soon")
    lately = [when for _, when in world.memory.healed if world.now - when < healing.window]
    claim(len(lately) < healing.budget, f"18: {step.replica} is condemned beyond the budget")
    standing = {each.name for each in world.memory.standbys}
    others = [name for name in world.memory.given_up - standing if world.member(name) is not None]
    claim(not others, f"18: {step.replica} is condemned while {others} is exchanged")
    rest = [each for each in world.membership.voters if each.replica != step.replica]
    sure = sum(each.health is Health.HEALTHY for each in rest) > len(rest) // 2
    claim(sure or member is None or member.learner, f"18: {step.replica} is condemned, and the rest is no quorum")
    used = {each.machine for each in world.memory.replicas if busy(world, each)}
    here = [each for each in world.machines if each.site == record.site and each.state is MachineState.UP]
    old = {each.machine for each in world.memory.replicas if each.revision != world.revision}
    claim(
        any(each.name not in used - old for each in here), f"18: {step.replica} is condemned, and there is no machine"
    )
    seen = view(world)
    resting = [
        each.name
        for each in seen.wanted
        if each.name != step.replica
        and each.revision != seen.revision
        and world.member(each.name) is not None
        and world.replica(each.name).machine is MachineState.UP
        and not {UnitState.STOPPED, UnitState.ABSENT}.isdisjoint(
            world.replica(each.name).unit(kind) for kind in (Component.ETCD, Component.APISERVER)
        )
    ]
    claim(not resting, f"18: {step.replica} is condemned while {resting} is restarted")


def _check_standby_condemned(world: World, step: Condemn) -> None:
    """What an observation must say before a standby is replaced: it is dead, or did not get well by a restart."""
    healing, record, fact = world.settings.healing, world.memory.replica(step.replica), world.replica(step.replica)
    member = world.member(step.replica)
    unheard = member.health is Health.DOWN if member is not None else not record.listed
    sick = record.restarted and member is not None and (unheard or bool(member.lagging))
    claim(sick or (unheard and fact.machine is not MachineState.UP), f"18: {step.replica} is condemned, and is well")
    lately = [when for _, when in world.memory.healed if world.now - when < healing.window]
    claim(len(lately) < healing.budget, f"18: {step.replica} is condemned beyond the budget")
    used = {each.machine for each in world.memory.replicas}
    here = [each for each in world.machines if each.site == record.site and each.state is MachineState.UP]
    free = [each.name for each in here if each.name not in used]
    claim(bool(free), f"18: {step.replica} is condemned, and there is no machine")


def _check_renewed(world: World, step: Condemn) -> None:
    """What an observation must say before a replica gets another member of the events' cluster: as much as before it is
    exchanged for one of the main cluster, but for what only an exchange takes.
    """
    _check_unhealthy(world, step.replica, step.program, alone=True)
    tried = {name for name, _ in world.memory.revived} | {_name(each.step) for each in world.failing}
    unit = f"{step.program} of {step.replica}"
    claim(bool({unit, f"StartUnit {unit}"} & tried), f"18: {unit} is condemned, and nothing was tried")
    assert world.events_membership is not None, "who is a member is not known"
    member, rest = world.member(step.replica, Cluster.EVENTS), world.events_membership.voters
    ill = member is not None and (member.health is Health.DOWN or member.lagging)
    claim(bool(ill), f"18: {unit} is condemned, and is neither down nor lags")
    rest = tuple(each for each in rest if each.replica != step.replica)
    sure = sum(each.health is Health.HEALTHY for each in rest) > len(rest) // 2
    claim(sure, f"18: {unit} is condemned, and the rest is no quorum")
    when = dict(world.memory.revived).get(renewal_of(step.replica), -world.settings.healing.window)
    claim(world.now - when >= world.settings.healing.window, f"18: {unit} is condemned again")


def _check_attached(world: World, step: AttachVolumes) -> None:
    """What an observation must say before a volume is taken from its machine by it."""
    fact, record = world.replica(step.replica), world.memory.replica(step.replica)
    claim(fact.machine is not MachineState.UP, f"20: the volume of {step.replica} is taken from a machine that answers")
    member = world.member(step.replica)
    down = world.membership is None or (member is not None and member.health is Health.DOWN)
    claim(down, f"20: the volume of {step.replica} is taken, which its cluster may hear")
    where = next(each for each in world.machines if each.name == step.machine)
    claim((where.site, where.zone) == (record.site, record.slot.zone), f"20: {step.replica} leaves its zone")
    claim(not where.cordoned, f"19: {step.replica} comes to a machine that is cordoned")
    used = {each.machine for each in world.memory.replicas if busy(world, each)}
    claim(step.machine not in used, f"12: {step.replica} comes to the machine of another one")


def _check_unhealthy(world: World, replica: str, component: str, *, alone: bool = False) -> None:
    """What an observation must say before anything is done about a program that does not get well. Nothing is waited
    for by who may be waited for by all that come (``alone``).
    """
    healing, name = world.settings.healing, f"{component} of {replica}"
    since = dict(world.memory.unhealthy).get(name, world.now)
    cluster = CLUSTER.get(Component(component))
    member = world.member(replica, cluster) if cluster is not None else None
    lags = member is not None and member.health is not Health.DOWN
    time = healing.lagging if lags else healing.hung
    time = max(time, world.settings.start) if lags and member is not None and member.learner else time
    claim(world.now - since >= time, f"18: {name} is given up too soon")
    if lags and member is not None and cluster is not None:
        claim(member.lagging is True, f"18: {name} is given up, and nothing is known to ail it")
        membership = world.membership_of(cluster)
        assert membership is not None, "who is a member is not known"
        slow = [each for each in membership.voters if each is not member and not _has_all(world, each)]
        claim(not slow, f"18: {name} is given up, which lags as others do")
    claim(world.replica(replica).machine is MachineState.UP, f"18: {name} is given up, and its machine is silent")
    tried = [each for each, _ in world.memory.unhealthy if each != name and each in dict(world.memory.revived)]
    counted = {Component.ETCD} if component == Component.ETCD else set(NAMED) - {Component.EVENTS_ETCD}
    waited = [each for each in tried if each.partition(" of ")[0] in counted and not alone]
    claim(not waited, f"18: {name} is given up while {waited} is to get well")
    now = view(world).resting
    claim(now is None or now.words == replica, f"18: {name} is given up while another one is restarted")


def _check_restart(before: FaultyTruth, step: RestartUnit | ReviveUnit) -> None:
    """Only a learner is ever killed to be restarted, once, or what hangs."""
    replica, member = before.replica(step.replica), before.members.get(step.replica)
    if isinstance(step, ReviveUnit):
        lags = step.component in CLUSTER and _lags(before.of(CLUSTER[step.component]), step)
        works = step.component not in replica.hung and replica.runs(step.component) and not lags
        claim(not works, f"18: {_name(step)}, which works")
        return
    claim(member is not None and member.learner, f"1: {step.replica} is restarted, and is no learner")
    claim(not before.memory.replica(step.replica).restarted, f"1: {step.replica} is restarted again and again")


def _lags(before: FaultyTruth, step: ReviveUnit) -> bool:
    """Whether a member lags that is to be restarted, and is missed by nobody meanwhile."""
    if step.replica not in before.members or not before.lags(step.replica):
        return False
    rest = [voter for voter in _counted_on(before) if voter.healthy and voter.replica != step.replica]
    alone = before.members[step.replica].learner or 2 * len(rest) > len(before.voters)
    claim(alone, f"18: {_name(step)}, and the rest is no quorum")
    return True


def _check_revived(world: World, step: ReviveUnit) -> None:
    _check_unhealthy(world, step.replica, step.component)
    healing = world.settings.healing
    lately = [when for _, when in world.memory.healed if world.now - when < healing.window]
    claim(len(lately) < healing.budget, f"18: {_name(step)} beyond the budget")
    tried = dict(world.memory.revived).get(f"{step.component} of {step.replica}", -healing.window)
    claim(world.now - tried >= healing.window, f"18: {_name(step)} again")


def _check_replaced(world: World, step: RemoveMember) -> None:
    """Without a spare nothing is taken away."""
    member = world.member(step.replica, step.cluster)
    if member is None or member.learner:
        return
    site, gone = world.slots[0].site, world.memory.given_up
    come = [each for each in world.memory.replicas if each.site == site and each.name not in gone]
    claim(len(come) >= len(world.slots), f"18: {step.replica} is taken out, and nobody comes in its place")


def _check_known(world: World, step: Step) -> None:
    """No step on what does not answer: it is not known what the step would do."""
    if isinstance(step, SetRecord | LeadTo | RemoveRecord | StopBalancer):
        claim(world.record_known, f"8: {type(step).__name__} while it is not known where the name leads")
    if isinstance(step, SetBackends | StopBalancer):
        claim(world.balancer(step.site).reachable, f"8: {type(step).__name__} on a machine that does not answer")
    if isinstance(step, StartUnit | StopUnit | RestartUnit | ReviveUnit | ReloadUnit | ReleaseReplica):
        state = world.replica(step.replica).machine
        claim(state is MachineState.UP, f"8: {type(step).__name__} on a machine that does not answer")


def _check_unseen(world: World, plan: Plan) -> None:
    """One observer's view is not everybody's: a voter that only we do not see may serve."""
    if world.membership is None or world.deleting:
        return
    by_id = {member.id: member for member in world.membership.members}
    for step in (change for each in plan.now for change in flat(each)):
        if isinstance(step, Promote | RemoveMember | TransferLeadership):
            named = step.to if isinstance(step, TransferLeadership) else step.replica
            member = by_id.get(step.member)
            claim(member is not None and member.replica == named, f"1: {_name(step)} has the id of another member")
        if not isinstance(step, RemoveMember) or by_id[step.member].learner:
            continue
        known_down = by_id[step.member].health is Health.DOWN
        seen = world.replica(step.replica).machine is not MachineState.UNREACHABLE
        claim(known_down or seen, f"8: {step.replica} is removed because we do not see it")


def _check_place(world: World, step: PlaceReplica) -> None:
    closed = {each.name for each in world.machines if each.cordoned}
    claim(step.machine not in closed, f"19: {step.replica} is placed on a machine that is cordoned")
    names = {record.name for record in world.memory.replicas}
    claim(step.replica not in names, f"7: the name {step.replica} is used again")
    members = {member.replica for member in world.membership.members} if world.membership else names
    crowd = [record for record in world.memory.replicas if record.machine == step.machine and record.name in members]
    used = {record.machine for record in world.memory.replicas if busy(world, record)}
    where = next(each for each in world.machines if each.name == step.machine)
    free = [
        each.name
        for each in world.machines
        if (each.site, each.zone) == (where.site, where.zone) and each.state is MachineState.UP
    ]
    alone = set(free) - used
    if world.memory.seeding is not None and world.memory.seeding.founder == step.replica:
        return  # it begins from data that is there
    claim(not crowd or not alone, f"12: {step.replica} is placed on the machine of a member, and {alone} is free")
    claim(len(crowd) <= 1, f"12: {step.replica} is placed on {step.machine}, where {len(crowd)} members are")


def _check_promotion(world: World, step: Promote) -> None:
    member = world.membership.of(step.replica) if world.membership else None
    claim(member is not None and member.learner, f"2: {step.replica} is promoted, but is no learner")
    assert member is not None
    close = member.lag is not None and member.lag <= world.settings.lag_bound
    claim(close and member.health is Health.HEALTHY, f"2: {step.replica} is promoted while it lags")


def _check_all_added(world: World, plan: Plan) -> None:
    added = {step.replica for step in plan.now if isinstance(step, AddLearner)}
    if not added or world.membership is None:
        return
    wanted = {record.name for record in view(world).wanted}
    needed = {
        record.name
        for record in world.memory.replicas
        if record.name in wanted and world.membership.of(record.name) is None
    }
    reachable = {name for name in needed if world.replica(name).machine is MachineState.UP}
    claim(reachable <= added, "2: learners are added one after the other")


def _check_voters(world: World, plan: Plan) -> None:
    """Rules 1 and 4 on the healthy voters of the observation, change by change."""
    if world.membership is None or world.deleting:
        return
    sites = {record.name: record.site for record in world.memory.replicas}
    now = {
        member.key: Voter(member.key, sites.get(member.replica, ""), member.health is Health.HEALTHY)
        for member in world.membership.voters
    }
    bound = world.settings.lag_bound
    lagging = {each.replica for each in world.membership.voters if each.lag is not None and each.lag > bound}
    for step in (change for each in plan.now for change in flat(each)):
        if isinstance(step, Promote):
            now[step.replica] = Voter(step.replica, sites[step.replica], healthy=True)
        elif isinstance(step, RemoveMember):
            claim(world.membership.leader != step.replica, f"4: the leader {step.replica} is removed")
            voted = now.pop(step.replica, None) is not None
            claim(not voted or has_quorum(now.values()), f"1: {step.replica} goes, and the healthy rest is no quorum")
            able = [voter for voter in now.values() if voter.replica in lagging]
            rest = [replace(voter, healthy=False) if voter in able else voter for voter in now.values()]
            claim(not voted or has_quorum(rest), f"1: {step.replica} goes, and the rest that has the data is no quorum")
        elif isinstance(step, StopUnit) and step.component == Component.ETCD and step.replica in now:
            if _ends_anyway(world, step) or _needs_quota_alone(world, step):
                continue
            now[step.replica] = replace(now[step.replica], healthy=False)
            claim(has_quorum(now.values()), f"1: {step.replica} is stopped, and the healthy rest is no quorum")


def _needs_quota_alone(world: World, step: StopUnit | ReloadUnit) -> bool:
    """Whether a step stops the only voter of a cluster that takes no writes, and that gets room in no other way."""
    assert world.membership is not None
    voters = world.membership.voters
    full = any("NOSPACE" in each for each in world.membership.alarms)
    if not full or [each.replica for each in voters] != [step.replica]:
        return False
    space, tried = voters[0].space, world.memory.full
    done = tried is not None and tried.compacted and step.replica in tried.defragmented
    return done and space is not None and space.in_use > 0.75 * space.quota


# --- one step, and what it does to the truth ------------------------------------------------------------------------


def check_step(
    before: FaultyTruth, step: Step, after: FaultyTruth, clients: Clients, *, swapping: bool = False
) -> None:
    """What one step may do. ``clients``: what they hold before it. ``swapping``: it is one change of a swap."""
    if before.deleting:
        _check_deletion(before, step)
        return
    kind = type(step).__name__
    if isinstance(step, StopUnit) and _takes_up_quota_alone(before, step.replica):
        return
    if _restores(step):
        _check_begin(before, step)  # the person who asked for it wants the present epoch to end
        return
    if before.elected is not None:
        claim(after.elected is not None, f"1: {kind} loses the quorum")
    for component in _needed(before) if not _may_stop_at_once(before) else ():
        claim(not before.working(component) or bool(after.working(component)), f"11: {kind} leaves no {component}")
    if not swapping and before.quorum_site is not None:
        claim(after.quorum_site == before.quorum_site, f"3: {kind} takes the quorum from its site")
    _check_etcds(before, step, after)
    _check_addresses(before, step, after, clients)
    _check_traffic(before, step, clients.sites(before))
    _check_begin(before, step)
    _check_writers(after)
    _check_strangers(after)
    if isinstance(step, AttachVolumes):
        claim(step.replica not in before.following, f"20: the volume of {step.replica} is taken, which votes")
    for cluster in Cluster:
        for mine in steps_of((step,), cluster):
            try:
                _check_unit_and_member(before.of(cluster), mine, clients, cluster)
            except Broken as broken:
                raise Broken(f"{broken} (etcd cluster {cluster})") from None
    if in_use(before) and in_use(after):
        _check_events(before, step, after, swapping=swapping)


def _check_etcds(before: FaultyTruth, step: Step, after: FaultyTruth) -> None:
    """No member panics, or has data that it cannot open."""
    for why in (why_not_started(before, step), panics(after)):
        claim(not why, f"25: {why}")


def _takes_up_quota_alone(truth: FaultyTruth, name: str) -> bool:
    """Whether a replica has the only voter of a cluster that takes no writes, and stops to get a larger quota, without
    which nothing makes room.
    """
    voters = [voter.replica for voter in truth.voters]
    larger = truth.revision in truth.roomy and truth.memory.replica(name).revision not in truth.roomy
    return truth.full and voters == [name] and larger and truth.members[name].fill is Fill.DATA


def _may_stop_at_once(truth: FaultyTruth) -> bool:
    """Whether nobody minds that no controller works for a moment, or there is but one replica."""
    return bool(truth.apart) and (truth.settings.together or len(truth.slots) == 1)


def _check_strangers(truth: FaultyTruth) -> None:
    """Two managers never run controllers under two locks, nor do programs of revisions that must not meet: of those
    programs that differ between them.
    """
    running = sorted(
        (shape, component, name)
        for name, replica in truth.replicas
        for component, shape in replica.shapes
        if component in replica.units and name in truth.members and truth.up(name)
    )
    for one, other in map(sorted, truth.apart):
        (differ,) = (change.restart for before, after, change in truth.changes if (before, after) == (one, other))
        meet = [
            {name for shape, component, name in running if shape == each and component in differ}
            for each in (one, other)
        ]
        claim(
            not meet[0] or not meet[1] or len(meet[0] | meet[1]) == 1,
            f"21: programs of {meet[0]} run as {one} has them, and those of {meet[1]} as {other} has them",
        )


def unreadable(truth: FaultyTruth) -> frozenset[str]:
    """The revisions of an older minor version that cannot read what apiservers that run now may store."""
    running = {
        dict(each.shapes).get(Component.APISERVER)
        for name, each in truth.replicas
        if each.runs(Component.APISERVER) and name in truth.members and truth.up(name)
    }
    return frozenset(
        after
        for before, after, change in truth.changes
        if change.downgrade and before in running and frozenset((before, after)) in truth.apart
    )


def check_read(before: FaultyTruth, step: Step, unread: frozenset[str]) -> None:
    """``unread``: the revisions that may not be able to read all that is stored."""
    if isinstance(step, StartUnit | RestartUnit | ReviveUnit) and step.component == Component.APISERVER:
        revision = before.memory.replica(step.replica).revision
        claim(revision not in unread, f"26: {step.replica} starts as {revision}, and nobody has read what is stored")


def _needed(truth: FaultyTruth) -> tuple[Component, ...]:
    """The controllers that somebody has to run: those that each replica is to have."""
    has = [truth.programs.of(each.revision) for each in truth.memory.replicas]
    return tuple(each for each in truth.programs.controllers if all(each in programs for programs in has))


def _check_addresses(before: FaultyTruth, step: Step, after: FaultyTruth, clients: Clients) -> None:
    """Every address that a client may use goes on leading to a ready apiserver, and to one whose events are written."""
    kind = type(step).__name__
    for name in clients.edges(before):
        if before.reached_by(name):
            # A cut that has struck since the last check, and that no member feels, looks to us exactly like no
            # cut: whoever ever takes away what comes before the last backend can meet it.
            site = after.holder(name).removeprefix(edge(""))
            well = bool(after.reached_by(name)) or (held_healthy(after, site) and not felt(before))
            claim(well, f"5: {kind} makes the address of the {name} lead nowhere")
        if before.reached_by(name) & before.taking_events and not felt(before):
            well = _used(after, frozenset({name})) & after.taking_events
            claim(bool(well), f"14: {kind} leaves nobody behind the {name} whose events are written")


def _check_begin(before: FaultyTruth, step: Step) -> None:
    if not isinstance(step, BeginEpoch):
        return
    alone = before.consent.even_if_others_live
    if isinstance(step.origin, SurvivorOrigin):
        claim(before.elected is None or alone, f"17: epoch {step.epoch} begins, and a quorum lives")
        claim(before.replica(step.origin.replica).data, f"17: epoch {step.epoch} begins from nothing")
        return
    if isinstance(step.origin, StandbyOrigin):
        record = before.memory.replica(step.origin.standby)
        claim(before.consent.standby and before.consent.epoch == step.epoch, "17: nobody asked for a failover")
        claim(before.elected is None or alone, f"17: epoch {step.epoch} begins, and a quorum lives")
        claim(alone or not _may_live_on(before), f"17: epoch {step.epoch} begins, and a quorum may live on")
        claim(record.standby and before.replica(record.name).data, f"17: epoch {step.epoch} begins from nothing")
        return
    restore = before.consent.restore
    consented = restore is not None and before.consent.epoch == step.epoch
    claim(consented, f"17: epoch {step.epoch} begins from a backup, and nobody has asked for it")
    claim(alone or not _may_live_on(before), f"17: epoch {step.epoch} begins, and a quorum may live on")


def _restores(step: Step) -> bool:
    """Whether it begins an epoch from a backup."""
    return isinstance(step, BeginEpoch) and isinstance(step.origin, BackupOrigin)


def _may_live_on(truth: FaultyTruth) -> bool:
    """Whether so many voters cannot be reached, to be stopped, that they may be a quorum."""
    world, voters = observe(truth), [name for name, member in truth.members.items() if not member.learner]
    silent = [name for name in voters if world.replica(name).machine is MachineState.UNREACHABLE]
    return world.membership is None and len(silent) >= len(voters) // 2 + 1


def _check_events(plane: FaultyTruth, step: Step, then: FaultyTruth, *, swapping: bool) -> None:
    kind, before, after = type(step).__name__, plane.of(Cluster.EVENTS), then.of(Cluster.EVENTS)
    if isinstance(step, RemoveMember) and step.cluster is Cluster.EVENTS:
        writes = step.replica in plane.taking_events and plane.keeps_events_apart(step.replica)
        claim(not writes, f"14: {step.replica} is removed while its apiserver writes events there")
    if isinstance(step, ReleaseMember) and plane.memory.events.exists:
        claim(step.replica not in before.members, f"7: {step.replica}, a member of the events' cluster, loses its data")
        runs = Component.EVENTS_ETCD in plane.replica(step.replica).units
        claim(not runs, f"7: {step.replica} loses its data in the events' cluster while it runs")
    if before.elected is not None:
        claim(after.elected is not None, f"1: {kind} loses the quorum of the events' cluster")
    if not swapping and before.quorum_site is not None:
        claim(
            after.quorum_site == before.quorum_site, f"3: {kind} takes the quorum of the events' cluster from its site"
        )


def _check_unit_and_member(before: FaultyTruth, step: Step, clients: Clients, cluster: Cluster) -> None:
    match step:
        case Promote() | TransferLeadership():
            _check_id(before, step)
        case StopUnit(component=Component.APISERVER):
            _check_farewell(before, step, clients)
        case StopUnit(component=Component.ETCD):
            rolled = _to_be_changed(before, step.replica)
            claim(step.replica not in before.members or rolled, f"1: etcd of the member {step.replica} is stopped")
            claim(before.elected != step.replica, f"4: etcd of the leader {step.replica} is stopped")
        case RestartUnit() | ReviveUnit():
            _check_restart(before, step)
        case AdoptRevision():
            _check_adoption(before, step)
        case DecideBootstrap():
            old = [name for name in step.replicas if before.replica(name).data]
            claim(not old, f"9: {old} found a cluster with the data of another one")
        case RejectRevision() | NoteProven():
            _check_verdict(before, step)
        case AddLearner():
            _check_seats(before, step)
            joins = f"9: {step.replica} joins with the data of another member"
            claim(not before.replica(step.replica).data, joins)
        case StartUnit(component=Component.ETCD):
            known = step.replica in before.members and before.memory.replica(step.replica).started
            claim(not known or before.replica(step.replica).data, f"9: {step.replica} starts on no data")
        case RemoveMember():
            _check_id(before, step)
            _check_removal(before, step, cluster)
        case ReleaseReplica():
            record = before.memory.replica(step.replica)
            old = before.memory.is_former(record) and record.started
            claim(step.keep or not old, f"17: the data of {step.replica}, of an epoch that is over, is deleted")
            claim(step.replica not in before.members, f"7: the member {step.replica} is released")
            events = before.of(Cluster.EVENTS).members
            claim(step.replica not in events, f"7: {step.replica}, a member of the events' cluster, is released")
            enough = record.standby or _as_many(before)
            claim(enough, f"7: {step.replica} is released before the exchange is done")
        case _:
            pass


def _check_verdict(before: FaultyTruth, step: RejectRevision | NoteProven) -> None:
    """A revision is given up for a program that does not run, and noted to run if all of its programs do."""
    unfit = before.broken | before.hanging
    if isinstance(step, NoteProven):
        bad = any(revision == step.revision for revision, _ in unfit)
        claim(not bad, f"13: {step.revision} is said to run, and a program of it does not")
        return
    there = before.replica(step.replica)
    bad = (step.revision, step.component) in unfit or step.component in there.hung | there.slow
    claim(bad, f"13: {step.revision} is given up, though {step.component} of it runs")


def _check_id(before: FaultyTruth, step: Promote | RemoveMember | TransferLeadership) -> None:
    found = before.with_id(step.member)
    named = step.to if isinstance(step, TransferLeadership) else step.replica
    of_it = before.taken_for(found) if found is not None else ""
    claim(found is None or of_it == named, f"1: {_name(step)} has the id of another member")


def _to_be_changed(truth: FaultyTruth, name: str) -> bool:
    """Whether a replica is of another revision than wanted, or of one that was given up, or has files that somebody
    changed.
    """
    revision, rejected = truth.memory.replica(name).revision, truth.memory.rejected
    given_up = rejected is not None and rejected.revision == revision
    return revision != truth.revision or given_up or bool(truth.replica(name).altered)


def _check_adoption(before: FaultyTruth, step: AdoptRevision) -> None:
    """No program goes on as a former revision had it."""
    former = before.memory.replica(step.replica).revision
    change = next(each for one, other, each in before.changes if (one, other) == (former, step.revision))
    claim(not change.exchange, f"13: {step.replica} adopts a revision that it can never have")
    there = before.replica(step.replica)
    has = {component for component, shape in there.shapes if shape == step.revision}
    runs = (change.restart | change.reload) & there.units - has
    claim(not runs, f"13: {step.replica} adopts a revision while {runs} run as the one before has them")


def _check_seats(before: FaultyTruth, step: AddLearner) -> None:
    """Inside a site there is at most one member more than wanted; a move of one lends another slot."""
    site = before.site_of(step.replica)
    there = [name for name in before.members if before.site_of(name) == site]
    lends = len(before.slots) == 1 and any(record.site != site for record in before.memory.replicas)
    there_are = f"11: {step.replica} joins, though {len(there)} members are at {site}"
    claim(len(there) <= len(before.slots) + lends, there_are)


def check_blind(before: FaultyTruth, step: Step, after: FaultyTruth, *, swapping: bool = False) -> None:
    """What a step must not do even when the world is no longer as it was observed, or when a driver calls that was
    replaced long ago. (A cut at the very moment of the swap may stop the plane.)
    """
    if before.deleting:
        return
    _check_writers(after)
    _check_strangers(after)
    for cluster in Cluster:
        for mine in steps_of((step,), cluster):
            _check_blind(before.of(cluster), mine, after.of(cluster))


def _check_writers(truth: FaultyTruth) -> None:
    on = {each.name for each in truth.machines if each.power is Power.ON}
    both = {name for machine, name in truth.haunted if machine in on and truth.replica(name).runs(Component.ETCD)}
    claim(not both, f"20: two machines write to the volume of {both}")


def _check_blind(before: FaultyTruth, step: Step, after: FaultyTruth) -> None:
    kind = type(step).__name__
    # A member that rests comes back with its data, also when another one fails at this very moment.
    rests = isinstance(step, StopUnit) and step.component == Component.ETCD
    if before.elected is not None:
        claim(rests or _restores(step) or after.elected is not None, f"1: {kind} loses the quorum")
    lost = [name for name in before.members if before.replica(name).data and not after.replica(name).data]
    if not isinstance(step, RemoveMember):
        claim(not lost, f"7: {kind} deletes the data of {lost}")
    first = not before.members and not before.memory.created
    claim(first or len(after.members) - len(before.members) <= 1, f"9: {kind} founds again")
    if isinstance(step, ReleaseReplica):
        claim(step.replica not in before.members, f"7: the member {step.replica} is released")
    if isinstance(step, StartUnit) and step.component == Component.ETCD:
        known = step.replica in before.members and before.memory.replica(step.replica).started
        claim(not known or before.replica(step.replica).data, f"9: {step.replica} starts on no data")


def _check_traffic(before: FaultyTruth, step: Step, held: frozenset[str]) -> None:
    match step:
        case SetBackends():
            listed_now = _listed_by_all(before, step.site)
            claim(set(step.backends) - listed_now <= before.serving, "6: a backend is added that is not ready")
            claim(bool(step.backends), f"5: the load balancer at {step.site} is left with nothing")
        case StopBalancer():
            claim(step.site not in held, f"5: the load balancer at {step.site} goes while clients hold its address")
        case SetRecord():
            # A load balancer's check is a moment old: from nowhere to nowhere takes nothing away. And where the one
            # that the name leads to is not seen, it may well be dead: going on to another one is worth that moment.
            lost = before.record and not _leads(before, before.record)
            # Where there was no record, even a cut that joiners feel costs no more than the load balancer's next check.
            lost = lost or (before.cuts and before.record is None and held_healthy(before, step.to))
            leads = before.reached_from(step.to) or before.behind(second(step.to))
            claim(bool(leads or lost), f"5: the name leads to {step.to}, which leads nowhere")
            believed = before.edge_answers(step.to) and dict(before.checked).get(step.to)
            believed = believed or (before.second_answers(step.to) and leads)
            claim(bool(believed), f"5: the name leads to {step.to}, where no backend was found healthy")
        case LeadTo():
            claim(bool(step.backends), "5: the name leads to no apiserver at all")
            claim(set(step.backends) - before.named <= before.serving, "6: the name leads to one that is not ready")
        case RemoveRecord():
            claim(False, "5: the name is removed")
        case _:
            pass


def _leads(truth: FaultyTruth, site: str) -> bool:
    """Whether an edge of a site that answers leads somewhere, or the name to an apiserver itself."""
    if site == APISERVERS:
        return not truth.named.isdisjoint(truth.serving)
    first = bool(truth.reached_from(site)) and truth.edge_answers(site)
    return first or (truth.second_answers(site) and bool(truth.behind(second(site))))


def _listed_by_all(truth: FaultyTruth, site: str) -> frozenset[str]:
    """The apiservers that every edge of a site which is told something sends to."""
    lists = [dict(truth.balancers).get(site)] if truth.edge_answers(site) else []
    lists += [dict(truth.seconds).get(site)] if truth.second_answers(site) else []
    return frozenset.intersection(*(names or frozenset() for names in lists)) if lists else frozenset()


def _used(truth: FaultyTruth, edges: frozenset[str]) -> set[str]:
    """The apiservers that these edges send to, those of them which run."""
    first = {edge(site): names for site, names in truth.balancers if site not in truth.dead_edges | truth.looping}
    other = {second(site): names for site, names in truth.seconds if site not in truth.dead_seconds}
    themselves = {apiserver_of(name): frozenset({name}) for name in truth.recorded}
    holders = {truth.holder(each) for each in edges}
    return {name for each, names in (first | other | themselves).items() if each in holders for name in names}


def _check_farewell(before: FaultyTruth, step: StopUnit, clients: Clients) -> None:
    """An apiserver stops only when no load balancer that a client may use sends to it, nor has until just now, and when
    no client may hold its own address.
    """
    if step.replica not in before.serving:
        return
    used = _used(before, clients.edges(before))
    claim(step.replica not in used, f"6: the apiserver of {step.replica} stops while clients are led to it")
    claim(not clients.may_be_at(before, step.replica), f"6: apiserver {step.replica} stops before it has drained")


def _check_removal(before: FaultyTruth, step: RemoveMember, cluster: Cluster) -> None:
    claim(before.elected != step.replica, f"4: the leader {step.replica} is removed")
    if step.replica not in before.recorded or cluster is Cluster.EVENTS:
        return  # whether its events are written is claimed of the plane as a whole
    runs = before.answers(step.replica) and Component.APISERVER in before.replica(step.replica).units
    claim(not (runs or step.replica in before.serving), f"6: {step.replica} is removed while its apiserver runs")


def _check_deletion(before: FaultyTruth, step: Step) -> None:
    """The name goes first, then the load balancers, then the programs, and the data last."""
    match step:
        case StopBalancer():
            named = before.record is not None and not before.fixed
            claim(not named, "5: a load balancer goes before the name that leads to it")
        case StopUnit():
            answering = {name for site, names in before.balancers if before.edge_answers(site) for name in names}
            answering |= {name for site, names in before.seconds if before.second_answers(site) for name in names}
            claim(not answering & listed(before), f"6: {step.component} stops while load balancers use it")
        case ReleaseReplica():
            claim(not before.replica(step.replica).units, f"7: {step.replica} is released while its programs run")
        case RemoveRecord():
            pass
        case DeleteKept() | LeaveMachine():
            claim(not before.memory.replicas, "7: what was kept or left goes before all else")
        case _:
            claim(False, f"7: {type(step).__name__} on a plane that is being deleted")


def check_swap(states: list[FaultyTruth], step: Swap) -> None:
    """The swap is the shortest way from one site's quorum to another's. ``states``: before, between, and after."""
    if step.cluster is Cluster.EVENTS and any(isinstance(change, RemoveMember) for change in step.changes):
        claim(
            states[0].quorum_site == step.site, "14: the quorum of the events' cluster goes before that of the main one"
        )
    states = [state.of(step.cluster) for state in states]
    quorum_sites = [state.quorum_site for state in states]
    claim(quorum_sites[-1] == step.site, f"3: after the swap {step.site} holds no quorum by itself")
    sure = [quorum_site(_counted_on(state)) for state in states]
    claim(step.site not in sure[:-1], f"3: the swap goes on although {step.site} holds a quorum by itself")
    if quorum_sites[0] is not None and all(voter.healthy for voter in states[0].voters):
        claim(
            quorum_sites.count(None) <= 1,
            f"3: between {len(quorum_sites)} states of the swap no site holds a quorum by itself",
        )


def _counted_on(truth: FaultyTruth) -> list[Voter]:
    """The voters, healthy only if they have the data and are seen to."""
    return [
        replace(
            voter,
            healthy=voter.healthy and not truth.members[voter.replica].behind and truth.etcd_answers(voter.replica),
        )
        for voter in truth.voters
    ]


# --- states ---------------------------------------------------------------------------------------------------------


def check_calm(truth: FaultyTruth, clients: Clients, *, swapping: bool) -> None:
    """As long as nothing has failed but the driver: clients are served at every address that they may use, and one
    site holds a quorum by itself (``swapping``: a driver died amid the swap).
    """
    if truth.deleting or not truth.memory.created:
        return
    claim(truth.elected is not None, "1: there is no quorum, and nothing has failed")
    if in_use(truth) and truth.memory.events.created:
        events = truth.of(Cluster.EVENTS)
        claim(events.elected is not None, "1: there is no quorum of the events' cluster, and nothing has failed")
        settled = swapping or events.quorum_site is not None
        claim(settled, "3: no site holds a quorum of the events' cluster by itself, and nothing has failed")
    if truth.memory.served_site is None and truth.fixed:
        return  # clients know a fixed address before anything serves there
    claim(swapping or truth.quorum_site is not None, "3: no site holds a quorum by itself, and nothing has failed")
    for name in clients.edges(truth):
        claim(bool(truth.reached_by(name)), f"5: the address of the {name} leads nowhere, and nothing has failed")


def check_cut(truth: FaultyTruth, cut: FaultyTruth) -> None:
    """A cut between sites never stops the plane (outside of the swap, while nothing else has failed)."""
    if not truth.deleting and truth.memory.created:
        claim(cut.elected is not None, "3: a cut between sites stops the plane")
        if in_use(truth) and truth.of(Cluster.EVENTS).elected is not None:
            events = cut.of(Cluster.EVENTS).elected
            claim(events is not None, "3: a cut between sites stops the events' cluster")


def check_done(truth: FaultyTruth, plan: Plan) -> None:
    """Done means as wanted, but for leftovers on machines that do not answer."""
    if truth.deleting:
        claim(
            not truth.memory.replicas and truth.record == (truth.front if truth.fixed else None),
            "10: done, but the plane is not gone",
        )
        claim(not truth.balancers + truth.seconds, "10: done, but a load balancer of the deleted plane is left")
        return
    claim(not (truth.full or truth.events_full), "15: done, but etcd takes no writes")
    claim(truth.memory.proven, "13: done, but it is not noted that the revision runs")
    site = truth.slots[0].site
    door = truth.door
    claim(healthy_at(truth, truth.slots), "10: done, but not every slot has a replica that serves")
    leads = _leads(truth, door) or (not felt(truth) and held_healthy(truth, door))
    claim(truth.record == door and leads, "10: done, but the name does not lead there")
    _check_twin(truth, door)
    claim(truth.quorum_site == site, f"10: done, but {site} holds no quorum by itself")
    keep = {record.name for record in _serving(truth)}
    claim(door != APISERVERS or truth.named == keep, f"10: done, but the name leads to {set(truth.named)}")
    wrong = {each.name for each in truth.memory.replicas if each.differs and each.name in truth.members}
    claim(not wrong, f"16: done, but {wrong} have other data than most")
    newer = {name for each in Cluster for name in lowered_for_nothing(truth.of(each))}
    claim(not newer, f"25: done, but etcd is taken back to a version that {newer} do not have")
    claim(len(keep) == len(truth.slots), f"10: done, but {len(keep)} replicas serve in {len(truth.slots)} slots")
    standing = _check_standing(truth)
    others = set(truth.members) - standing
    claim(others == keep, f"10: done, but {others - keep} are members still")
    slow = {name for each in Cluster for name in truth.of(each).members if truth.of(each).lags(name)}
    claim(not slow or not truth.settings.healing.budget, f"10: done, but {slow} never catch up")
    why = why_not_done(truth, keep)
    claim(not why, f"14: done, but {why}")
    left = {record.name for record in truth.memory.replicas} - keep - standing
    there = {where for where, _ in (*truth.balancers, *truth.seconds)}
    unseen = {where for where in there if not truth.edge_answers(where)} | truth.dead_edges | truth.dead_seconds
    unseen |= {where for where in there & truth.twins if not truth.second_answers(where)}
    kept = {name for name in left if truth.answers(name) and truth.site_of(name) not in unseen}
    claim(not kept, f"10: done, but {kept} are not released")
    runs = there - unseen | {door} & there & truth.twins
    claim(runs == {door} - {APISERVERS}, f"10: done, but load balancers run at {runs}")
    known = {record.site for record in truth.memory.replicas} | {where for where, _ in truth.memory.held} | {door}
    claim(there <= known, f"10: done, but nothing remembers the load balancers at {there - known}")
    for name in keep:
        place, where = truth.memory.replica(name).slot, truth.machine_of(name)
        claim((where.site, where.zone) == (place.site, place.zone), f"12: done, but {name} is not in its zone")
    used = [truth.machine_of(name).name for name in keep]
    claim(len(used) == len(set(used)), "12: done, but two replicas share a machine")
    for name in others:
        runs = truth.replica(name).units.intersection(truth.programs.controllers)
        has = {each for each in truth.programs.of(truth.memory.replica(name).revision) if each.is_controller}
        claim(runs == has, f"10: done, but {name} runs {sorted(runs)} and is to run {sorted(has)}")
        _check_shape(truth, name)
        both = (truth.replica(name).member, truth.replica(name).events)
        moved = any(each is not None and each.misplaced for each in both)
        claim(not moved, f"20: done, but {name} is looked for where it was")
    behind = {f"{each.replica} on {each.machine}" for each in truth.memory.left}
    lost = left | behind | ((there & unseen) - {door})
    claim(len(plan.leftovers) >= len(lost), f"10: done, but {lost} are left, and not all named")
    # One that went without anybody's hearing so may well be there still, for all that can be known.
    claim(len(plan.leftovers) == 0 or bool(left or behind or (known & unseen) - {door}), "10: leftovers that are none")


def _check_standing(truth: FaultyTruth) -> set[str]:
    """Done means that the standby that is asked for has all data, as far as it answers; that there is no other one that
    answers; and that it runs nothing else. The names of those that stay.
    """
    there = {each.name for each in truth.memory.standbys}
    slot = truth.standby
    stays = {name for name in there if slot is not None and truth.site_of(name) == slot.site}
    stays = stays & truth.members.keys() or {name for name in stays if not truth.memory.replica(name).listed}
    for name in there:
        claim(truth.replica(name).units <= {Component.ETCD}, f"24: done, but the standby {name} runs more than etcd")
        member = truth.members.get(name)
        claim(member is None or member.learner, f"24: done, but the standby {name} votes")
    well = {name for name in stays & set(truth.following) if not truth.members[name].behind}
    up = [each for each in truth.machines if each.power is Power.ON and each.name not in truth.unreachable]
    answer = slot is not None and any(each.site == slot.site for each in up)
    dark = bool(truth.cuts) or any(not truth.answers(name) for name in stays)
    claim(bool(well) or slot is None or dark or not answer, "24: done, but there is no standby that has the data")
    for name in well if not dark else ():
        _check_shape(truth, name)
    mine = [truth.machine_of(name).name for name in there if name in truth.members]
    others = {each.machine for each in truth.memory.replicas if each.name in truth.members.keys() - there}
    shared = set(mine) & others
    claim(not shared, f"24: done, but a standby shares {shared}")
    return stays


def _check_twin(truth: FaultyTruth, door: str) -> None:
    """Where both edges of a site answer, both send to the same, and the name has both. Addresses can come to each."""
    if door in truth.twins:
        there = {edge(door): truth.edge_answers(door), second(door): truth.second_answers(door)}
        alone = {name for name, answers in there.items() if answers and name in truth.unrouted}
        claim(not alone, f"10: done, but no address can come to {alone}")
    if not truth.fixed and door in truth.twins and truth.edge_answers(door) and truth.second_answers(door):
        backends = dict(truth.balancers).get(door), dict(truth.seconds).get(door)
        claim(backends[0] == backends[1], f"6: done, but the edges of {door} send to {backends}")
        claim(truth.record_addresses(door) == truth.addresses(door), f"10: done, but the name lacks {truth.unnamed}")


def _check_shape(truth: FaultyTruth, name: str) -> None:
    """Done means that everything runs as wanted, or, where that was given up, as before."""
    claim(name not in truth.condemned, f"10: done, but {name} is not exchanged")
    record, rejected = truth.memory.replica(name), truth.memory.rejected
    given_up = rejected is not None and rejected.revision in (truth.revision, *truth.via)
    older = [each.name for each in truth.memory.replicas if each.revision != truth.revision]
    kept = truth.keeps_one and older == [name]
    claim(given_up or kept or record.revision == truth.revision, f"10: done, but {name} is of {record.revision}")
    for component, shape in truth.replica(name).shapes:
        same = _same(truth, shape, record.revision, component)
        claim(same, f"13: done, but {component} of {name} runs as {shape or 'before'} has it")


def _same(truth: FaultyTruth, one: str, other: str, component: Component) -> bool:
    change = next((each for each in truth.changes if each[:2] == (one, other)), None)
    return one == other or (change is not None and not _is_another(change[2], component))


def _is_another(change: ReplicaChange, component: Component) -> bool:
    return change.exchange or component in change.restart | change.reload


def healthy_at(truth: FaultyTruth, slots: tuple[Slot, ...]) -> bool:
    """Whether every slot has a healthy voter with a ready apiserver."""
    serving = _serving(truth)
    return not match(_as_can_be(truth, slots, serving), serving, _any_order).empty


def _as_many(truth: FaultyTruth) -> bool:
    """The same; where what dies is exchanged, any other zone of the site may have to do for a while."""
    healing = truth.settings.healing
    anywhere = healing.budget > 0 and healing.other_zones
    slots = tuple(replace(each, zone="") for each in truth.slots) if anywhere else truth.slots
    return not match(slots, _serving(truth), _any_order).empty


def _as_can_be(truth: FaultyTruth, slots: tuple[Slot, ...], serving: tuple[Replica, ...]) -> tuple[Slot, ...]:
    """The slots; those for a zone whose replica died and that has no other machine are for any zone of the site."""
    gone, healing = truth.memory.given_up | truth.memory.leaving, truth.settings.healing
    bereft = {each.slot.zone for each in truth.memory.replicas if each.name in gone}
    if not bereft or not healing.other_zones:
        return slots
    used = {truth.machine_of(each.name).name for each in serving}
    # What died keeps its machine until nothing is left of it, and so does what never became a member.
    used |= {each.machine for each in truth.memory.replicas if each.name in gone or not each.listed}
    here = (each for each in truth.machines if each.site == slots[0].site)
    well = [each for each in here if each.power is Power.ON and not each.cordoned]
    free = {each.zone for each in well if each.name not in used}
    empty = [slot for slot in match(slots, serving, _any_order).empty if slot.zone in bereft - free]
    kept = list(slots)
    for slot in empty:
        kept[kept.index(slot)] = replace(slot, zone="")
    return tuple(kept)


def _serving(truth: FaultyTruth) -> tuple[Replica, ...]:
    return tuple(record for record in truth.memory.replicas if record.name in truth.serving)


def _any_order(_: Replica) -> tuple[int, ...]:
    return ()
