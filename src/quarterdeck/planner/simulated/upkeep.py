"""Room in the databases of simulated members."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.membership import Space
from quarterdeck.model.steps.upkeep import Compact, Defragment, Disarm
from quarterdeck.planner.simulated.effects import Effects, RefusedError
from quarterdeck.planner.simulated.parts import Fill
from quarterdeck.planner.simulated.truth import AnyTruth, Truth

QUOTA = 100
#: What is in use is told as of the last write.
_SIZES = {Fill.ROOM: (50, 40), Fill.FREE: (95, 95), Fill.HISTORY: (95, 95), Fill.DATA: (95, 95)}


def space_of(truth: Truth, name: str) -> Space:
    """What a member says of its database."""
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
            # Who does not follow now does so by the log when it is back.
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
    """The truth once something was written: a member without room that takes part raises the alarm."""
    if truth.full or not any(_lacks_room(truth, name) for name in truth.following):
        return truth
    return replace(truth, full=True)


def _lacks_room(truth: Truth, name: str) -> bool:
    return truth.members[name].fill is not Fill.ROOM and not truth.is_roomy(name)


def _with(truth: Truth, name: str, fill: Fill) -> Truth:
    return truth.with_replica(name, replace(truth.replica(name), member=replace(truth.members[name], fill=fill)))


EFFECTS: Effects = {Compact: upkept, Defragment: upkept, Disarm: upkept}
