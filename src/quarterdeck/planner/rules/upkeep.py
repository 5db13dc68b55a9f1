"""Room in etcd. While a cluster has raised NOSPACE it takes no writes: history is compacted, members are defragmented
one by one, and then the alarm is disarmed.
"""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import CALLED, Full
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.steps.members import Compact, Defragment, Disarm, NoteFull, RemoveMember, TransferLeadership
from quarterdeck.model.steps.plan import Wait
from quarterdeck.planner import next_steps
from quarterdeck.planner.members import NOSPACE, can_spare, has_the_data, raised, stray_voters
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules.membership import hand_over, remove_strays
from quarterdeck.planner.space import has_no_room, is_cramped, lacks_quota
from quarterdeck.planner.view import View

#: Seconds until history is compacted again, where that has not helped.
AGAIN = 60.0


def make_room(view: View) -> RuleOutcome:
    """A cluster without room leaves the alarm NOSPACE step by step. No writes are lost: etcd takes none under the
    alarm. While members also disagree about the data, nothing is done.
    """
    alarms, full = raised(view.membership), view.world.memory.full
    if NOSPACE not in alarms:
        gone = NoteFull(site="", why="the alarm NOSPACE is off", revision=0, cluster=view.cluster)
        return RuleOutcome((gone,)) if full is not None else RuleOutcome()
    if len(alarms) > 1:
        return RuleOutcome()
    unknown = remove_strays(view)
    if unknown.steps:
        return unknown
    counted = [each for each in view.membership.voters if each.replica and each.health is not Health.DOWN]
    silent = tuple(_of(view, each, "to report its database size") for each in counted if each.space is None)
    if silent:
        return RuleOutcome(waiting=silent)
    known = min((each.revision or 0 for each in counted), default=0)
    if full is None:
        return _note(view, known)
    return _learners(view) or _compact(view, counted, full, known) or _defragment(view, counted) or _disarm(view)


def _note(view: View, revision: int) -> RuleOutcome:
    why = "older history is compacted a moment later, when no client needs it"
    return RuleOutcome((NoteFull(site="", why=why, revision=revision, cluster=view.cluster),))


def _learners(view: View) -> RuleOutcome | None:
    """A learner that copies is waited for, because the copy slows its sender. A learner that has copied a full database
    would raise the alarm again, and cannot be defragmented (etcd refuses that): another one joins instead.
    """
    for each in view.membership.learners:
        if each.space is not None and has_no_room(each.space):
            why = "it has copied a full database, and learners cannot be defragmented: another one joins"
            return RuleOutcome(
                (RemoveMember(site="", why=why, replica=each.replica, member=each.id, cluster=view.cluster),)
            )
    copying = (each for each in view.membership.learners if each.lag is not None)
    late = tuple(each for each in copying if not has_the_data(view.world, each))
    if not late:
        return None
    what = f"learner {', '.join(each.replica for each in late)} to catch up"
    return RuleOutcome(waiting=(replace(_of(view, late[0], "to catch up"), what=what),))


def _compact(view: View, counted: list[MemberFact], full: Full, known: int) -> RuleOutcome | None:
    """History is compacted where that alone can make room: up to a revision that all members had some seconds ago.
    Again only after a while, and if keys were deleted since.
    """
    settings, passed = view.world.settings, view.world.now - full.since
    if full.compacted:
        lacking = lacks_quota(view.world, view.cluster)
        if lacking is not None and passed >= AGAIN and known > full.revision:
            return _note(view, known)
        return RuleOutcome(waiting=(lacking,)) if lacking is not None else None
    if not any(each.space is not None and has_no_room(each.space) and is_cramped(each.space) for each in counted):
        return None
    if passed < settings.history or known < full.revision:
        moment = Wait(
            f"a moment, before history of {CALLED[view.cluster]} is compacted", next_steps.within(settings.history)
        )
        return RuleOutcome(waiting=(moment,))
    why = "the database is full of old revisions of keys"
    return RuleOutcome((Compact(site="", why=why, revision=full.revision, cluster=view.cluster),))


def _defragment(view: View, counted: list[MemberFact]) -> RuleOutcome | None:
    """One member at a time is defragmented, the leader last, after it has transferred leadership: a member does not
    serve during defragmentation. All others must be healthy; a member that is down is not waited for, because nothing
    is written anyway. With voters that belong to no replica, rule 1 holds: the others are a quorum without the member.
    """
    leader = view.membership.leader
    turn = sorted(
        (each for each in counted if each.space is not None and has_no_room(each.space)),
        key=lambda each: each.replica == leader,
    )
    if not turn:
        return None
    if view.resting is not None:
        what = f"{view.resting.words} to be restarted"
        return RuleOutcome(waiting=(Wait(what, next_steps.once(view.world, "it runs")),))
    first = turn[0]
    ill = [each for each in counted if each is not first and not _is_well(view, each)]
    if ill:
        what = f"{', '.join(each.replica for each in ill)} to be healthy before {first.replica} is defragmented"
        return RuleOutcome(waiting=(replace(_of(view, ill[0], "to be healthy"), what=what),))
    unknown = stray_voters(view.world, view.cluster)
    if unknown and not can_spare(view.world, view.world.memory.replica(first.replica)):
        return RuleOutcome(waiting=unknown)
    step = relieved(view) if first.replica == leader else None
    return RuleOutcome((step or defragmented(view, first, "it has free room, and no other member is blocked by it"),))


def relieved(view: View) -> TransferLeadership | None:
    """A transfer of leadership before the leader is defragmented; None where no other member can lead."""
    leader = view.membership.leader
    others = [each for each in view.world.memory.replicas if each.name != leader and view.is_healthy_voter(each)]
    return hand_over(view, others, f"{leader} leads, and must be defragmented")


def defragmented(view: View, member: MemberFact, why: str) -> Defragment:
    """The step that defragments a member."""
    site = next((each.site for each in view.world.memory.replicas if each.name == member.replica), "")
    return Defragment(site=site, why=why, replica=member.replica, cluster=view.cluster)


def _of(view: View, member: MemberFact, to: str) -> Wait:
    """A wait for a member of the cluster."""
    record = next(each for each in view.world.memory.replicas if each.name == member.replica)
    return next_steps.member(view.world, record, view.etcd, f"member {member.description} {to}")


def _is_well(view: View, member: MemberFact) -> bool:
    return member.health is Health.HEALTHY and has_the_data(view.world, member)


def _disarm(view: View) -> RuleOutcome:
    return RuleOutcome((Disarm(site="", why="every member has room again", cluster=view.cluster),))
