"""Members of dead machines come back on others with their data, where their volumes can be attached there.

That is quicker than to copy all data to a new member, and no vote is lost meanwhile; where the quorum is lost it is the
only way to have it back with all that it had. A volume stays in its zone, as disks of clouds do. What cannot be
attached, as it is not sure that nothing writes there, is no reason to wait: another member comes by way of a learner,
as for volumes that are local.
"""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.model.membership import MemberFact
from quarterdeck.model.memory import LeftBehind, Replica
from quarterdeck.model.steps.members import ReaddressMember
from quarterdeck.model.steps.placement import AttachVolumes, LeaveMachine
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner.claims import BlockedClaims
from quarterdeck.planner.machines import busy, machine_for
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.quorum import quorum
from quarterdeck.planner.survivors import Survivors, VoterFate, away, survivors
from quarterdeck.planner.view import View


def go_on(view: View) -> RuleOutcome:
    """A replica is where its volume is: what was begun is brought to an end, whatever became of its machine."""
    return RuleOutcome(
        tuple(
            _attach(view.world, record, at, f"its volume was taken from machine {record.machine}")
            for record in view.world.memory.replicas
            if (at := view.fact(record).volume_at)
        )
    )


def _attach(world: World, record: Replica, machine: str, why: str) -> AttachVolumes:
    return AttachVolumes(
        site=record.site,
        why=why,
        replica=record.name,
        machine=machine,
        source=record.machine,
        window=world.settings.healing.window,
    )


def leave(world: World) -> tuple[tuple[LeaveMachine, ...], tuple[LeftBehind, ...]]:
    """What replicas have left on machines that answer again is removed; and what they have left on others."""
    up = {(each.site, each.name) for each in world.machines if each.state is MachineState.UP}
    steps = tuple(
        LeaveMachine(
            site=each.site, why="it is on another machine with its data", replica=each.replica, machine=each.machine
        )
        for each in world.memory.left
        if (each.site, each.machine) in up
    )
    return steps, tuple(each for each in world.memory.left if (each.site, each.machine) not in up)


def readdress(view: View) -> RuleOutcome:
    """The others look for a member where its replica is, and nowhere else.

    etcd lets no two members have one peer URL. A member that is displaced by another one of ours waits for that one to
    be moved; where they displace each other in a circle, one of them gives up its URL for the time. A learner that
    belongs to no replica is removed, a voter is named for a person.
    """
    records = ((record, view.member(record)) for record in view.world.memory.replicas)
    moved = [(record, member) for record, member in records if member is not None and member.misplaced]
    free = [(record, member) for record, member in moved if member.displaced_by is None]
    if free:
        return RuleOutcome(tuple(_readdress(view, *each, f"it is on machine {each[0].machine} now") for each in free))
    displaced = {member.id: member.displaced_by for _, member in moved}
    for record, member in moved:
        if _in_circle(member.id, displaced):
            why = "members have each other's peer URLs, and it gives up the one that it has"
            return RuleOutcome((_readdress(view, record, member, why),))
    return RuleOutcome(
        waiting=tuple(
            Wait(
                f"the peer URL of {record.name}, which member {other.told} has",
                f"remove that member with {view.world.command('etcd remove-member', f'{other.id:x}')}",
            )
            for record, member in moved
            for other in view.membership.members
            if other.id == member.displaced_by and not other.replica
        )
    )


def _readdress(view: View, record: Replica, member: MemberFact, why: str) -> ReaddressMember:
    return ReaddressMember(site=record.site, why=why, replica=record.name, member=member.id, cluster=view.cluster)


def _in_circle(member: int, displaced: Mapping[int, int | None]) -> bool:
    """Whether a member is displaced by one that is displaced by another, and so on, by the member itself."""
    passed, at = set[int](), displaced[member]
    while at is not None and at not in {member, *passed}:
        passed.add(at)
        at = displaced.get(at)
    return at == member


def attached(view: View, record: Replica, why: str, taken: frozenset[str] = frozenset()) -> AttachVolumes | None:
    """What has a replica of a dead machine on another one, which is none of ``taken``; None where that cannot be, or
    has just failed.
    """
    world, fact = view.world, view.fact(record)
    if not (fact.reattachable and record.started and not fact.volume_at) or fact.machine is MachineState.UP:
        return None
    used = {each.machine for each in world.memory.replicas if each is not record and busy(world, each)}
    machine = machine_for(world, record.slot, used | taken | {record.machine})
    if machine is None:
        return None
    step = _attach(world, record, machine.name, why)
    return step if BlockedClaims(world.failing).told(step) is None else None


def reattach_quorum(view: View) -> RuleOutcome:
    """A quorum that is lost comes back with members of dead machines, as many as it takes, before anything is given up.

    Nobody can be serving without the members whose machines do not answer us, unless these are a quorum: then none is
    taken from them without a person's word that they are gone.
    """
    left = survivors(view.world)
    if left is None or not left.lost or left.began or left.awaited:
        return RuleOutcome()
    steps = may_return(view, left)
    if not steps:
        return RuleOutcome()
    why_not = _waits(view.world, left)
    return RuleOutcome(waiting=(why_not,)) if why_not is not None else RuleOutcome(steps)


def may_return(view: View, left: Survivors, *, said: bool = False) -> tuple[AttachVolumes, ...]:
    """What brings a lost quorum back with members of dead machines; none where they are not enough. ``said``: as if a
    person had said that those that do not answer are gone.
    """
    lacking = quorum(len(left.fates)) - len(left.of(VoterFate.ALIVE))
    gone, found = left.of(VoterFate.DEAD), list[AttachVolumes]()
    if said or not left.others_may_live or _asked(view.world, even_if_others_live=True):
        gone += left.of(VoterFate.CUT_OFF)
    for name in gone:
        record = next((each for each in view.world.memory.replicas if each.name == name), None)
        why = "the quorum is lost, and this member comes back with all its data"
        taken = frozenset(each.machine for each in found)
        step = attached(view, record, why, taken) if record is not None else None
        found += [step] if step is not None else []
    return tuple(found[:lacking]) if len(found) >= lacking else ()


def _waits(world: World, left: Survivors) -> Wait | None:
    """Why no volume is taken from a dead machine yet; None if it is time."""
    healing, since = world.settings.healing, world.memory.quorum_lost
    if _asked(world):
        return None
    if not healing.budget:
        what = f"machines of {', '.join(left.of(VoterFate.DEAD))} to come back, or a person's word"
        return Wait(what, f"bring them back, or see {world.command('recover')}")
    patience = healing.later if left.of(VoterFate.CUT_OFF) else healing.after
    if since is not None and world.now - since >= patience:
        return None
    what = f"the quorum to come back: {away(world, left)} do not answer"
    return Wait(what, f"volumes of dead machines are attached to others by itself after {patience:g} s")


def _asked(world: World, *, even_if_others_live: bool = False) -> bool:
    """Whether a person has said that it is to go on, and that even if others may live."""
    consent = world.consent
    there = consent.even_if_others_live or not even_if_others_live
    return consent.epoch == world.memory.epoch + 1 and there
