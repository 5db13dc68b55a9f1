"""The conditions of a plane, from an observation and its plan. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quarterdeck.api.base import Condition, ConditionStatus, find_condition, with_condition
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.engine.notices.events import authentication, exchanged_after_corrupt
from quarterdeck.model.clusters import CALLED, Cluster
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.membership import Membership
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.world import World
from quarterdeck.planner.members import CORRUPT, NOSPACE, disarm_corrupt, raised, stray_voters
from quarterdeck.planner.revisions import next_revision
from quarterdeck.planner.rules.recovery import advice
from quarterdeck.planner.space import lacks_quota

#: The conditions that follow from an observation and its plan.
KINDS = (
    ConditionType.READY,
    ConditionType.AVAILABLE,
    ConditionType.RECONCILING,
    ConditionType.STALLED,
    ConditionType.CONTROLLERS_LEAD,
)
#: A message names at most so many waits.
_REASONS = 3


def unseen(now: float) -> tuple[Condition, ...]:
    """The conditions of a plane that was not observed yet."""
    found: tuple[Condition, ...] = ()
    for kind in KINDS:
        found = with_condition(
            found,
            kind,
            ConditionStatus.UNKNOWN,
            reason=ConditionReason.NOT_OBSERVED,
            now=now,
            message="not observed yet",
        )
    return found


def judged(
    before: tuple[Condition, ...],
    world: World,
    plan: Plan,
    *,
    asked: Sequence[str],
    generation: int,
    now: float,
    paused: str = "",
) -> tuple[Condition, ...]:
    """The conditions by an observation and its plan. ``asked``: manual changes that a person has not made yet;
    ``paused``: that the user paused the plane, and until when ("": it is not paused).
    """
    found = before
    for kind, (status, reason, message) in (
        (ConditionType.READY, _ready(world, plan)),
        (ConditionType.AVAILABLE, _available(world)),
        (ConditionType.RECONCILING, _reconciling(before, plan, generation, paused)),
        (ConditionType.STALLED, _stalled(world, asked)),
        (ConditionType.CONTROLLERS_LEAD, _led(world)),
    ):
        found = with_condition(
            found, kind, status, reason=reason, now=now, message=message, observed_generation=generation
        )
    return found


def stalled(before: tuple[Condition, ...], error: str, *, generation: int, now: float) -> tuple[Condition, ...]:
    """The conditions once an operation has failed: no retry helps."""
    found = before
    for kind, status in (
        (ConditionType.RECONCILING, ConditionStatus.FALSE),
        (ConditionType.STALLED, ConditionStatus.TRUE),
    ):
        found = with_condition(
            found,
            kind,
            status,
            reason=ConditionReason.OPERATION_FAILED,
            now=now,
            message=error,
            observed_generation=generation,
        )
    return found


def why_stalled(plane: ControlPlane) -> str:
    """Why the plane needs a person to continue, as its last driver reported; "" if it does not."""
    found = find_condition(plane.status.conditions, ConditionType.STALLED)
    if found is None or found.status is not ConditionStatus.TRUE:
        return ""
    return found.message if found.observed_generation == plane.metadata.generation else ""


def turned(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> bool:
    """Whether more than messages differ."""
    return _facts(before) != _facts(after)


def reworded(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> bool:
    """Whether a message changed; a change of numbers alone does not count."""
    return [_plain(each) for each in before] != [_plain(each) for each in after]


def _facts(conditions: tuple[Condition, ...]) -> list[tuple[object, ...]]:
    return [(each.type, each.status, each.reason, each.observed_generation) for each in conditions]


def _plain(condition: Condition) -> str:
    return re.sub(r"[\d.,]+", "#", condition.message)


_Answer = tuple[ConditionStatus, ConditionReason, str]


def _ready(world: World, plan: Plan) -> _Answer:
    if _rejected(world):
        return ConditionStatus.FALSE, ConditionReason.REVISION_REJECTED, _rejected(world)
    if plan.done and world.unled:
        return ConditionStatus.FALSE, ConditionReason.NO_LEADER, unled(world)
    if plan.done:
        return ConditionStatus.TRUE, ConditionReason.UP_TO_DATE, "; ".join(plan.leftovers)
    missed = _missed(world)
    return (
        (ConditionStatus.FALSE, ConditionReason.DEGRADED, missed)
        if missed
        else (ConditionStatus.FALSE, ConditionReason.NOT_UP_TO_DATE, "")
    )


def _missed(world: World) -> str:
    """The replicas that are dead, or have an unhealthy program, and are not replaced yet; the edges that can get no
    address.
    """
    down = [f"{name} is down" for name, _ in world.memory.down]
    down += [f"{name} is unhealthy" for name, _ in world.memory.unhealthy]
    unrouted = (name for balancer in world.balancers for name in balancer.unrouted)
    down += [f"edge {name} can get no address" for name in unrouted]
    return "; ".join(down + [f"{each.description} is being replaced: {each.why}" for each in world.memory.condemned])


def unled(world: World) -> str:
    """The controllers without a leader, why, and what to do about it; "" if there are none."""
    return "; ".join(each.trouble for each in world.unled)


def _led(world: World) -> _Answer:
    if world.unled:
        return ConditionStatus.FALSE, ConditionReason.NO_LEADER, unled(world)
    if world.leading and all(each.led for each in world.leading):
        return ConditionStatus.TRUE, ConditionReason.LEADER_ELECTED, ""
    return ConditionStatus.UNKNOWN, ConditionReason.UNKNOWN, ""


def _available(world: World) -> _Answer:
    site = world.front if world.fixed else (world.record if world.record_known else world.memory.served_site)
    if site is None:
        return ConditionStatus.FALSE, ConditionReason.NO_NAME, "the plane's name does not resolve"
    balancer, door = world.balancer(site), "the name" if site == APISERVERS else f"the load balancer at {site}"
    if balancer.ready:
        return ConditionStatus.TRUE, ConditionReason.SERVING, f"{door} leads to ready apiservers"
    if not balancer.reachable:
        return ConditionStatus.UNKNOWN, ConditionReason.UNREACHABLE, f"{door} does not answer this process"
    return ConditionStatus.FALSE, ConditionReason.NO_READY_BACKEND, f"{door} leads to no ready apiserver"


def _reconciling(before: tuple[Condition, ...], plan: Plan, generation: int, paused: str) -> _Answer:
    if paused:
        return ConditionStatus.FALSE, ConditionReason.PAUSED, paused
    if plan.done:
        return ConditionStatus.FALSE, ConditionReason.UP_TO_DATE, ""
    if not plan.now:
        return (
            ConditionStatus.TRUE,
            ConditionReason.PROGRESSING,
            f"waiting for {'; '.join(map(str, plan.waiting[:_REASONS]))}",
        )
    # Steps come and go: the last wait is more useful, and need not be written again.
    last = find_condition(before, ConditionType.RECONCILING)
    goes_on = last is not None and last.status is ConditionStatus.TRUE and last.observed_generation == generation
    return ConditionStatus.TRUE, ConditionReason.PROGRESSING, last.message if last is not None and goes_on else ""


def _stalled(world: World, asked: Sequence[str]) -> _Answer:
    if _rejected(world):
        return ConditionStatus.TRUE, ConditionReason.REVISION_REJECTED, _rejected(world)
    if lost := advice(world):
        return ConditionStatus.TRUE, ConditionReason.QUORUM_LOST, lost
    if asked:
        return ConditionStatus.TRUE, ConditionReason.MANUAL_ACTION_REQUIRED, "; ".join(asked[:_REASONS])
    for cluster in Cluster:
        of = world.of(cluster)
        if unknown := stray_voters(of, cluster):
            return ConditionStatus.TRUE, ConditionReason.UNKNOWN_MEMBER, f"waiting for {'; '.join(map(str, unknown))}"
        if of.membership is not None and of.membership.authenticates:
            return ConditionStatus.TRUE, ConditionReason.AUTHENTICATION_ENABLED, authentication(world, CALLED[cluster])
        if of.membership is not None and set(raised(of.membership)) - {NOSPACE}:
            return ConditionStatus.TRUE, ConditionReason.ALARM_RAISED, _alarm(of, of.membership, CALLED[cluster])
        if (lacking := lacks_quota(of, cluster)) is not None:
            return ConditionStatus.TRUE, ConditionReason.QUOTA_TOO_SMALL, f"waiting for {lacking}"
    return ConditionStatus.FALSE, ConditionReason.NOT_STALLED, ""


def _alarm(world: World, membership: Membership, etcd: str) -> str:
    """The alarm of etcd, and the replicas whose data differs, if known."""
    sentence = f"{etcd} has raised {', '.join(each.strip() for each in membership.alarms)}"
    differ = [each.name for each in world.memory.replicas if each.differs]
    if CORRUPT not in raised(membership):
        return sentence
    if not differ:
        return f"{sentence}: {disarm_corrupt(world)}"
    return f"{sentence}: {', '.join(differ)} has other data than most members; {exchanged_after_corrupt(world)}"


def _rejected(world: World) -> str:
    """Why the wanted revision was rejected; "" if it was not."""
    rejected = world.memory.rejected
    if rejected is None or rejected.revision != next_revision(world):
        return ""
    return f"revision {rejected.revision} does not run: {rejected.why}"
