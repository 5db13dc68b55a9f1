"""The simulated members of etcd: they join, vote, lead and leave, by etcd's rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.steps.members import AddLearner, Promote, ReaddressMember, RemoveMember, Swap, TransferLeadership
from quarterdeck.planner.quorum import has_quorum, quorum
from quarterdeck.planner.simulated.effects import Effects, RefusedError
from quarterdeck.planner.simulated.parts import ELSEWHERE, SimMember
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
    member = SimMember(id=truth.next_member, learner=True, behind=CATCH_UP)
    truth = replace(truth, next_member=truth.next_member + 1)
    return truth.with_replica(name, replace(truth.replica(name), member=member))


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


EFFECTS: Effects = {
    AddLearner: changed,
    Promote: changed,
    RemoveMember: changed,
    TransferLeadership: changed,
    ReaddressMember: changed,
    Swap: swapped,
}
