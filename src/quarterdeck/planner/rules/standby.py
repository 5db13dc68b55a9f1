"""The standby: it joins as a learner once nothing else is to be done, and leaves before anything else needs its place.

No other rule waits for it, and it waits for the others: its removal costs nothing, and its data is a copy.
"""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.components import Component
from quarterdeck.model.epochs import MemberWord, StandbyOrigin
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import BeginEpoch
from quarterdeck.model.steps.healing import Condemn
from quarterdeck.model.steps.members import AddLearner, RemoveMember
from quarterdeck.model.steps.placement import PlaceReplica, ReleaseReplica
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.units import AdoptRevision, RestartUnit, StartUnit, StopUnit
from quarterdeck.model.units import IDLE, MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner import next_steps
from quarterdeck.planner.machines import machine_for, no_machine, why_silent
from quarterdeck.planner.members import NOSPACE, has_the_data, raised
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.quorum import quorum
from quarterdeck.planner.standbys import ailing, follows, is_sick, kept, standbys, taken, without_standbys
from quarterdeck.planner.survivors import VoterFate, cut_off_majority, fates, loss
from quarterdeck.planner.view import View

_ETCD = Component.ETCD


def keep_running(view: View) -> RuleOutcome:
    """The standby's etcd runs as long as it is a member: a failover needs it most while no quorum answers."""
    world = view.whole
    steps: list[Step] = []
    for record in standbys(world):
        fact, member = world.replica(record.name), world.member(record.name)
        belongs = world.membership is None or member is not None
        if not (belongs and record.started and fact.has_data) or _rests(view, record):
            continue
        if fact.machine is MachineState.UP and fact.unit(_ETCD) in IDLE:
            steps.append(_start(record, "it is a member and its etcd does not run"))
    return RuleOutcome(tuple(steps))


def _start(record: Replica, why: str) -> StartUnit:
    return StartUnit(site=record.site, why=why, replica=record.name, component=_ETCD)


def leave(view: View) -> RuleOutcome:
    """A standby that is not wanted, or must be replaced, is removed at once: nothing counts on it."""
    world = view.whole
    if set(raised(view.membership)) - {NOSPACE}:
        return RuleOutcome()
    stays = kept(world)
    for record in standbys(world):
        if record is stays:
            continue
        member, fact = world.member(record.name), world.replica(record.name)
        if member is not None:
            why = "it is not wanted there, or must be replaced, and does not vote"
            return RuleOutcome((RemoveMember(site=record.site, why=why, replica=record.name, member=member.id),))
        if fact.machine is not MachineState.UP or fact.unit(_ETCD) is UnitState.UNKNOWN:
            continue
        if fact.unit(_ETCD) not in IDLE:
            return RuleOutcome(
                (StopUnit(site=record.site, why="it is no longer a member", replica=record.name, component=_ETCD),)
            )
        why = "the plane no longer has a standby there"
        return RuleOutcome((ReleaseReplica(site=record.site, why=why, replica=record.name),))
    return RuleOutcome()


def heal(view: View) -> RuleOutcome:
    """A standby that has been dead for long enough is replaced where another machine can have one; one whose etcd hangs
    or lags is restarted first, once. After a cut that hides its whole site it catches up by itself.
    """
    world, healing = view.whole, view.whole.settings.healing
    since = dict(world.memory.down)
    for record in standbys(world):
        if record.name not in since or record.name not in ailing(world):
            continue
        passed, wants = world.now - since[record.name], healing.after
        if is_sick(world, record):
            member = world.member(record.name)
            late = member is not None and member.health is not Health.DOWN
            wants = max(healing.lagging, world.settings.start) if late else healing.hung
            if not record.restarted and passed >= wants:
                why = "it hangs, or has been far behind the others for too long"
                return RuleOutcome((RestartUnit(site=record.site, why=why, replica=record.name, component=_ETCD),))
            wants *= 2
        if passed >= wants and _may_be_replaced(world):
            why = f"the standby on machine {record.machine} is dead, or does not catch up after a restart"
            step = Condemn(site="", why=why, replica=record.name, machine=record.machine, window=healing.window)
            return RuleOutcome((step,))
    return RuleOutcome()


def _may_be_replaced(world: World) -> bool:
    """Whether the budget has room, and another machine can have the standby."""
    healing = world.settings.healing
    spent = len(world.memory.healed_within(healing.window, world.now)) >= healing.budget
    return not spent and world.standby is not None and machine_for(world, world.standby, taken(world)) is not None


def left_behind(view: View) -> tuple[str, ...]:
    """What must still be removed when its machine is back. (It is no member any more: ``leave`` has removed it.)"""
    world = view.whole
    stays = kept(world)
    gone = (each for each in standbys(world) if each is not stays)
    silent = (each for each in gone if world.replica(each.name).machine is not MachineState.UP)
    return tuple(
        f"the standby {each.name} on machine {each.machine}, which does not answer"
        f"{why_silent(world, each.site, each.machine)}"
        for each in silent
    )


def join(view: View) -> RuleOutcome:
    """The standby is placed, joins and changes its revision while no other member comes or goes."""
    world = view.whole
    if world.standby is None or not _is_quiet(view):
        return RuleOutcome()
    record = kept(world)
    if record is None:
        return _place(view)
    if world.replica(record.name).machine is not MachineState.UP:
        return RuleOutcome()
    member = world.member(record.name)
    if member is None:
        return RuleOutcome((_added(record),)) if _can_be_copied(view) else RuleOutcome()
    if not record.started and _waits_for_a_start(world, record):
        return RuleOutcome((_start(record, "the standby joins and copies the data"),))
    if _missed_its_publication(world, record):
        why = "its own publication was part of the snapshot that it received, and etcd retries only seconds later"
        return RuleOutcome((RestartUnit(site=record.site, why=why, replica=record.name, component=_ETCD),))
    return RuleOutcome(_rolled(view, record))


def _is_quiet(view: View) -> bool:
    """Whether all replicas are in place, so that no other learner joins beside the standby. Not where the members are
    unknown: then no site is known to have the quorum.
    """
    if view.quorum_site != view.heading or view.missing or view.resting is not None:
        return False
    leaving = any(view.member(each) is not None for each in view.unwanted)
    return not leaving and all(map(view.is_healthy_voter, view.wanted))


def _can_be_copied(view: View) -> bool:
    """Whether etcd adds a learner now, and the leader has the data of most."""
    well = all(each.health is Health.HEALTHY for each in view.membership.voters)
    suspect = {each.name for each in view.world.memory.replicas if each.differs}.union(view.world.condemned)
    return well and view.membership.leader not in suspect


def _place(view: View) -> RuleOutcome:
    world = view.whole
    assert world.standby is not None, "one is wanted"
    machine = machine_for(world, world.standby, taken(world))
    if machine is None:
        return RuleOutcome()
    step = PlaceReplica(
        site="",
        why=f"the plane has a standby at {world.standby.site}",
        replica=f"{world.standby.site}-{world.memory.next_ordinal}",
        slot=replace(world.standby, zone=machine.zone),
        machine=machine.name,
        storage_class=world.storage_class,
        revision=view.revision,
        standby=True,
    )
    return RuleOutcome((step,))


def _added(record: Replica) -> AddLearner:
    return AddLearner(site=record.site, why=f"{record.name} is the standby, and never votes", replica=record.name)


def _waits_for_a_start(world: World, record: Replica) -> bool:
    fact = world.replica(record.name)
    return fact.unit(_ETCD) in IDLE or bool(fact.refused)


def _missed_its_publication(world: World, record: Replica) -> bool:
    """As ``membership.rejoin`` has it."""
    member = world.member(record.name)
    assert member is not None, "it is a member"
    runs = world.replica(record.name).unit(_ETCD) is UnitState.RUNNING
    if record.started or record.restarted or not runs:
        return False
    return member.published and member.health is not Health.HEALTHY and has_the_data(world, member)


def _behind(view: View, record: Replica) -> bool:
    """Whether a standby needs the revision that all replicas have already, or the files that it was started with."""
    if record.name in view.world.cordoned or view.behind:
        return False
    return record.revision != view.revision or _ETCD in view.whole.replica(record.name).altered


def _stops(view: View, record: Replica) -> bool:
    """Whether its etcd is restarted to reach the wanted revision."""
    world = view.whole
    change = world.change(record.revision, view.revision)
    again = world.stops(change) | change.reload | world.replica(record.name).altered
    return _ETCD in again


def _rests(view: View, record: Replica) -> bool:
    """Whether its etcd stays stopped until it has its next revision."""
    revised = record.revision != view.revision and _behind(view, record)
    return revised and _is_quiet(view) and _stops(view, record)


def _rolled(view: View, record: Replica) -> tuple[Step, ...]:
    """The steps of a standby to the revision that all replicas have: its etcd stops if the revision changes it."""
    if not record.started or not _behind(view, record):
        return ()
    unit = view.whole.replica(record.name).unit(_ETCD)
    if _stops(view, record) and unit not in IDLE:
        if unit is UnitState.UNKNOWN:
            return ()
        why = f"it changes to revision {view.revision}"
        return (StopUnit(site=record.site, why=why, replica=record.name, component=_ETCD),)
    if record.revision == view.revision:
        return ()
    why = "all replicas have that revision"
    return (AdoptRevision(site="", why=why, replica=record.name, revision=view.revision),)


def waits(view: View) -> tuple[Wait, ...]:
    """What the standby waits for once nothing else is to be done. A site that does not answer is not waited for."""
    world = view.whole
    if world.standby is None:
        return ()
    record, site = kept(world), world.standby.site
    if record is None:
        there = any(each.site == site and each.state is MachineState.UP for each in world.machines)
        return (no_machine(world, world.standby, " for the standby"),) if there else ()
    if world.replica(record.name).machine is not MachineState.UP or record.name in world.cordoned:
        return ()
    if not follows(world, record):
        return (next_steps.member(world, record, _ETCD, f"the standby {record.name} to catch up"),)
    if _behind(view, record):
        return (next_steps.member(world, record, _ETCD, f"the standby {record.name} to be restarted"),)
    return ()


def begin(view: View) -> RuleOutcome:
    """A new epoch begins from the standby where the user consents, and no quorum can still be there."""
    world = view.whole
    if world.membership is not None or world.memory.seeding is not None:
        return RuleOutcome()  # that is a migration (``recovery.withdraw``), or the epoch has begun
    why_not = _refuses(view)
    if why_not is not None:
        return RuleOutcome(waiting=(why_not,))
    word = report(world)
    assert word is not None, "it has reported"
    record = world.memory.replica(word.replica)
    step = BeginEpoch(
        site="",
        why=f"the user fails over to site {record.site}: {record.name} has applied {word.applied:,} entries",
        epoch=world.memory.epoch + 1,
        origin=StandbyOrigin(standby=record.name),
        founder=f"{record.site}-{world.memory.next_ordinal}",
        revision=word.revision,
        seen=world.memory.revision,
    )
    return RuleOutcome((step,))


def report(world: World) -> MemberWord | None:
    """The most complete report of a standby about itself, while no quorum answers; None: none has reported."""
    names = {each.name for each in standbys(world)}
    words = [each for each in world.words if each.replica in names]
    return max(words, key=lambda each: (each.applied, each.replica), default=None)


def offer(world: World) -> str:
    """What a failover would continue with, in a sentence; "" where the plane cannot fail over."""
    word = report(world)
    if word is None or world.membership is not None or can_return(world):
        return ""
    site = world.memory.replica(word.replica).site
    return (
        f"{world.command('failover', '--to', site)} continues from the standby, and would lose"
        f" {loss(world.memory, word)}"
    )


def can_return(world: World) -> tuple[str, ...]:
    """The voters on machines that answer, with their data, where they are a quorum; () where they are none."""
    left = fates(without_standbys(world))
    alive = tuple(name for name, fate in left if fate is VoterFate.ALIVE)
    return alive if len(alive) >= quorum(len(left)) else ()


def _refuses(view: View) -> Wait | None:
    """Why no epoch begins from the standby now; None if one may."""
    world, word = view.whole, report(view.whole)
    command = world.command("failover", "--even-if-others-live")
    if word is None:
        others = f"{world.command('recover')} and {world.command('restore')}"
        return Wait("the standby to report its last entry", f"bring its machine back, or see {others}")
    # (A learner never campaigns: the leader that it reports may be gone, and is no sign of a quorum.)
    if alive := can_return(world):
        what = f"the members {', '.join(alive)} to form a quorum: their machines answer, and have the data"
        return Wait(what, next_steps.status(world))
    cut_off = cut_off_majority(view.world)
    if cut_off and not world.consent.even_if_others_live:
        what = f"{', '.join(cut_off)} to answer: they may still serve, and two epochs must never serve at once"
        return Wait(what, f"bring their machines back; if they are surely gone, see {command}")
    return None
