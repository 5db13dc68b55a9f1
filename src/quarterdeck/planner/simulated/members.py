"""The simulated members of etcd: they join, vote, lead and leave, by etcd's rules; and room in their databases."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Space
from quarterdeck.model.steps.members import (
    AddLearner,
    CancelDowngrade,
    Compact,
    Defragment,
    Disarm,
    EnableDowngrade,
    Promote,
    ReaddressMember,
    RemoveMember,
    Swap,
    TransferLeadership,
)
from quarterdeck.planner.quorum import has_quorum, quorum
from quarterdeck.planner.simulated.effects import Effects, RefusedError
from quarterdeck.planner.simulated.parts import ELSEWHERE, Fill, SimMember
from quarterdeck.planner.simulated.truth import AnyTruth, Truth

Change: TypeAlias = AddLearner | Promote | ReaddressMember | RemoveMember | TransferLeadership
#: Ticks that a learner needs to catch up.
CATCH_UP = 2


def changed(truth: Truth, step: Change) -> Truth:
    """The truth after a change of one cluster. Raises RefusedError."""
    then = _change(truth.of(step.cluster), step)
    return then if step.cluster is Cluster.MAIN else truth.with_events(then)


def swapped(truth: Truth, step: Swap) -> Truth:
    """The truth after all changes of a swap, one by one. Raises RefusedError."""
    for change in step.changes:
        truth = changed(truth, change)
    return truth


def _change(truth: Truth, step: Change) -> Truth:
    """A membership change, by the member's id, with the refusals of etcd's strict-reconfig-check (mayAddMember,
    mayRemoveMember).
    """
    if truth.elected is None:
        raise RefusedError("no quorum")
    if truth.asks_for_a_user:
        raise RefusedError("etcd asks for a user")
    if isinstance(step, AddLearner):
        return _with_learner(truth, step.replica)
    name = truth.with_id(step.member)
    if name is None:
        raise RefusedError(f"there is no member {step.member}")
    if isinstance(step, TransferLeadership):
        if name not in truth.healthy or name not in truth.electable or truth.elected not in truth.recorded:
            raise RefusedError(f"{name} cannot lead")
        return replace(truth, leader=name)
    replica, member = truth.replica(name), truth.members[name]
    if isinstance(step, ReaddressMember):
        at = ELSEWHERE if name in truth.displacing else ""
        return truth.with_replica(name, replace(replica, member=replace(member, found_at=at)))
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
    if name in truth.displacing:
        raise RefusedError(f"the peer URL of {name} is taken")
    member = SimMember(id=truth.next_member, learner=True, behind=CATCH_UP, storage=truth.works_as)
    truth = replace(truth, next_member=truth.next_member + 1)
    return truth.with_replica(name, replace(truth.replica(name), member=member))


def downgraded(truth: Truth, step: EnableDowngrade | CancelDowngrade) -> Truth:
    """The truth after etcd's downgrade of one cluster is enabled or cancelled. Raises RefusedError."""
    of = truth.of(step.cluster)
    if of.elected is None:
        raise RefusedError("no quorum")
    if isinstance(step, CancelDowngrade):
        then = replace(of, downgrade=None)
    elif of.downgrade != step.target and (of.works_as is None or of.works_as[1] != step.target[1] + 1):
        raise RefusedError(f"the cluster does not work as the version after {step.target}")
    else:
        then = replace(of, downgrade=step.target)
    return then if step.cluster is Cluster.MAIN else truth.with_events(then)


def agreed(truth: AnyTruth) -> AnyTruth:
    """The truth after the leader has compared the versions of all members: a downgrade takes effect, and is over once
    all have its version; else all work as the oldest of them, if each answers. Then one member after the other changes
    how it stores.
    """
    if truth.elected is None or not truth.etcds:
        return truth
    works_as, enabled = truth.works_as, truth.downgrade
    versions = {truth.etcds.get(name) for name in truth.members if name in truth.following}
    if enabled is not None:
        works_as = enabled
    elif truth.following.issuperset(truth.members):
        oldest = min(each for each in versions if each is not None)
        works_as = oldest if works_as is None else max(works_as, oldest)
    if truth.following.issuperset(truth.members) and versions == {enabled}:
        enabled = None
    then = replace(truth, works_as=works_as, downgrade=enabled)
    late = sorted(name for name in truth.following if truth.members[name].storage != works_as)
    if not late or truth.works_as != works_as:
        return then
    member = replace(truth.members[late[0]], storage=works_as)
    return then.with_replica(late[0], replace(then.replica(late[0]), member=member))


def found(truth: AnyTruth) -> AnyTruth:
    """Founders whose etcd runs become the first members (as etcd's bootstrap does)."""
    names = truth.memory.bootstrap
    if truth.members or truth.memory.created or not names:
        return truth
    up = [name for name in names if truth.replica(name).runs(Component.ETCD) and truth.replica(name).data]
    if len(up) < quorum(len(names)):
        return truth
    for index, name in enumerate(names):
        member = SimMember(id=truth.next_member + index, learner=False)
        truth = truth.with_replica(name, replace(truth.replica(name), member=member))
    return replace(truth, next_member=truth.next_member + len(names))


QUOTA = 100
#: The space in use is that after the last write.
_SIZES = {Fill.ROOM: (50, 40), Fill.FREE: (95, 95), Fill.HISTORY: (95, 95), Fill.DATA: (95, 95)}


def space_of(truth: Truth, name: str) -> Space:
    """The state of a member's database, as it reports it."""
    size, in_use = _SIZES[truth.members[name].fill]
    return Space(size=size, in_use=in_use, quota=2 * QUOTA if truth.is_roomy(name) else QUOTA)


def upkept(truth: Truth, step: Compact | Defragment | Disarm) -> Truth:
    """The truth after a step in one cluster. Raises RefusedError."""
    then = _upkept(truth.of(step.cluster), step)
    return then if step.cluster is Cluster.MAIN else truth.with_events(then)


def _upkept(truth: Truth, step: Compact | Defragment | Disarm) -> Truth:
    if truth.elected is None:
        raise RefusedError("no quorum")
    if truth.asks_for_a_user and not isinstance(step, Disarm):
        raise RefusedError("etcd asks for a user")
    match step:
        case Compact():
            # A member that does not follow now catches up from the log when it is back.
            for name, each in truth.members.items():
                if each.fill is Fill.HISTORY:
                    truth = _with(truth, name, Fill.FREE)
            return truth
        case Defragment():
            member = truth.members.get(step.replica)
            if member is None or member.learner or not truth.etcd_answers(step.replica):
                raise RefusedError(f"{step.replica} does not answer, or only listens")
            return _with(truth, step.replica, Fill.ROOM) if member.fill is Fill.FREE else truth
        case Disarm():
            return raised(replace(truth, full=False))


def raised(truth: AnyTruth) -> AnyTruth:
    """The truth after a write: an active member without free space raises the alarm."""
    if truth.full or not any(_lacks_room(truth, name) for name in truth.following):
        return truth
    return replace(truth, full=True)


def _lacks_room(truth: Truth, name: str) -> bool:
    return truth.members[name].fill is not Fill.ROOM and not truth.is_roomy(name)


def _with(truth: Truth, name: str, fill: Fill) -> Truth:
    return truth.with_replica(name, replace(truth.replica(name), member=replace(truth.members[name], fill=fill)))


EFFECTS: Effects = {
    AddLearner: changed,
    Promote: changed,
    RemoveMember: changed,
    TransferLeadership: changed,
    ReaddressMember: changed,
    Swap: swapped,
    EnableDowngrade: downgraded,
    CancelDowngrade: downgraded,
    Compact: upkept,
    Defragment: upkept,
    Disarm: upkept,
}
