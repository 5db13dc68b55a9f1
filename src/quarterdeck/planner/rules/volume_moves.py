"""Members of dead machines come back on others with their data, where their volumes can be attached there.

That is faster than copying all data to a new member, and no vote is lost during it; where the quorum is lost it is the
only way to recover it with all data. A volume stays in its zone, as cloud disks do. A volume that cannot be attached,
because something may still write there, is no reason to wait: a new member joins as a learner, as for local volumes.
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
from quarterdeck.planner import next_steps
from quarterdeck.planner.claims import BlockedClaims
from quarterdeck.planner.machines import busy, machine_for
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.quorum import quorum
from quarterdeck.planner.survivors import Survivors, VoterFate, away, survivors
from quarterdeck.planner.view import View


def go_on(view: View) -> RuleOutcome:
    """A replica is where its volume is: a move that has begun is finished, whatever happened to its machine."""
    return RuleOutcome(
        tuple(
            _attach(view.world, record, at, f"its volume was detached from machine {record.machine}")
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
    """Steps that remove leftovers on machines that answer again, and the leftovers on other machines."""
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
    """The peer URL of a member is where its replica is.

    etcd allows no two members with one peer URL. A member whose URL another member of the plane has waits until that
    one is moved; where they block each other in a circle, one of them releases its URL for a while. A learner that
    belongs to no replica is removed, a voter is reported to a person.
    """
    records = ((record, view.member(record)) for record in view.world.memory.replicas)
    moved = [(record, member) for record, member in records if member is not None and member.misplaced]
    free = [(record, member) for record, member in moved if member.displaced_by is None]
    if free:
        return RuleOutcome(tuple(_readdress(view, *each, f"it is on machine {each[0].machine} now") for each in free))
    displaced = {member.id: member.displaced_by for _, member in moved}
    for record, member in moved:
        if _in_circle(member.id, displaced):
            why = "members have each other's peer URLs, and this one releases its URL first"
            return RuleOutcome((_readdress(view, record, member, why),))
    return RuleOutcome(
        waiting=tuple(
            Wait(
                f"the peer URL of {record.name}, which member {other.description} has",
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
    """Whether the chain of members that have each other's URL leads back to the member itself."""
    passed, at = set[int](), displaced[member]
    while at is not None and at not in {member, *passed}:
        passed.add(at)
        at = displaced.get(at)
    return at == member


def attached(view: View, record: Replica, why: str, taken: frozenset[str] = frozenset()) -> AttachVolumes | None:
    """The step that moves a replica of a dead machine to another one, outside ``taken``; None where that is not
    possible, or has just failed.
    """
    world, fact = view.world, view.fact(record)
    if not (fact.reattachable and record.started and not fact.volume_at) or fact.machine is MachineState.UP:
        return None
    used = {each.machine for each in world.memory.replicas if each is not record and busy(world, each)}
    machine = machine_for(world, record.slot, used | taken | {record.machine})
    if machine is None:
        return None
    step = _attach(world, record, machine.name, why)
    return step if BlockedClaims(world.failing).error_of(step) is None else None


def reattach_quorum(view: View) -> RuleOutcome:
    """A lost quorum comes back with members of dead machines, as many as it takes, before any data is given up.

    The cluster cannot serve without the members whose machines do not answer this process, unless these are a quorum:
    then no volume is detached from them without a person's consent.
    """
    left = survivors(view.world)
    if left is None or not left.lost or left.began or left.awaited:
        return RuleOutcome()
    steps = may_return(view, left)
    if not steps:
        return RuleOutcome()
    why_not = _waits(view.world, left)
    return RuleOutcome(waiting=(why_not,)) if why_not is not None else RuleOutcome(steps)


def may_return(view: View, left: Survivors, *, confirmed: bool = False) -> tuple[AttachVolumes, ...]:
    """The steps that bring a lost quorum back with members of dead machines; empty where they are not enough.
    ``confirmed``: as if a person had confirmed that those that do not answer are gone.
    """
    lacking = quorum(len(left.fates)) - len(left.of(VoterFate.ALIVE))
    gone, found = left.of(VoterFate.DEAD), list[AttachVolumes]()
    if confirmed or not left.others_may_live or _asked(view.world, even_if_others_live=True):
        gone += left.of(VoterFate.CUT_OFF)
    for name in gone:
        record = next((each for each in view.world.memory.replicas if each.name == name), None)
        why = "the quorum is lost, and this member comes back with all its data"
        taken = frozenset(each.machine for each in found)
        step = attached(view, record, why, taken) if record is not None else None
        found += [step] if step is not None else []
    return tuple(found[:lacking]) if len(found) >= lacking else ()


def _waits(world: World, left: Survivors) -> Wait | None:
    """Why no volume is detached from a dead machine yet; None if it is time."""
    healing, since = world.settings.healing, world.memory.quorum_lost
    if _asked(world):
        return None
    if not healing.budget:
        what = f"machines of {', '.join(left.of(VoterFate.DEAD))} to come back, or a person's consent"
        return Wait(what, f"bring them back, or see {next_steps.new_epoch(world)}")
    patience = healing.later if left.of(VoterFate.CUT_OFF) else healing.after
    if since is not None and world.now - since >= patience:
        return None
    what = f"the quorum to come back: {away(world, left)} do not answer"
    return Wait(what, f"volumes of dead machines are attached to other machines after {patience:g} s")


def _asked(world: World, *, even_if_others_live: bool = False) -> bool:
    """Whether a person has consented to continue, and that even if the others may still serve."""
    consent = world.consent
    there = consent.even_if_others_live or not even_if_others_live
    return consent.epoch == world.memory.epoch + 1 and there
