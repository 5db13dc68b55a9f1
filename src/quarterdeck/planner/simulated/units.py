"""Effects on the simulated programs of replicas: they start, reload files, and stop."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import CLUSTER
from quarterdeck.model.components import Component
from quarterdeck.model.steps.units import ReloadUnit, RestartUnit, ReviveUnit, StartUnit, StopUnit
from quarterdeck.planner.simulated.effects import Effects, RefusedError, must_answer
from quarterdeck.planner.simulated.parts import SimReplica
from quarterdeck.planner.simulated.truth import Truth


def unit(truth: Truth, step: StartUnit | StopUnit | RestartUnit | ReviveUnit) -> Truth:
    """Start or stop a program. Raises RefusedError."""
    must_answer(truth, step.replica)
    replica = truth.replica(step.replica)
    if isinstance(step, RestartUnit | ReviveUnit):
        replica = _served(replica, step.component)
    data, events_data = replica.data, replica.events_data
    hung, slow = replica.hung - {step.component}, replica.slow - {step.component}
    if isinstance(step, StartUnit | RestartUnit | ReviveUnit):
        _must_fit(truth, step)
        where = truth.machine_of(step.replica).name
        hung |= truth.hanging_on(where) & {step.component}
        slow |= truth.lagging_on(where) & {step.component}
        units = replica.units | {step.component}
        data |= step.component == Component.ETCD
        events_data |= step.component == Component.EVENTS_ETCD
        shapes = dict(replica.shapes) | {step.component: truth.memory.replica(step.replica).revision}
    else:
        units = replica.units - {step.component}
        shapes = {component: shape for component, shape in replica.shapes if component in units}
    replica = replace(
        replica,
        units=units,
        shapes=tuple(sorted(shapes.items())) if any(shapes.values()) else (),
        data=data,
        events_data=events_data,
        warm=replica.warm and Component.APISERVER in units - _killed(step),
        hung=hung,
        slow=slow,
        altered=replica.altered - {step.component},
    )
    crashed = (replica.crashed - {step.component}) & units | truth.ended(replica)
    after = truth.with_replica(step.replica, replace(replica, crashed=crashed))
    return _heard(truth, step, after)


def _killed(step: object) -> frozenset[Component]:
    return frozenset({step.component}) if isinstance(step, ReviveUnit) else frozenset()


def _heard(before: Truth, step: StartUnit | StopUnit | RestartUnit | ReviveUnit, truth: Truth) -> Truth:
    """A member that has just started and follows the leader is no longer silent, nor is any other one that follows
    where that made a quorum.
    """
    if isinstance(step, StopUnit) or step.component != Component.ETCD:
        return truth
    heard = truth.following if before.elected is None else truth.following & {step.replica}
    for name in sorted(heard):
        replica = truth.replica(name)
        if replica.member is not None and replica.member.silent:
            truth = truth.with_replica(name, replace(replica, member=replace(replica.member, silent=0)))
    return truth


def reloaded(truth: Truth, step: ReloadUnit) -> Truth:
    """A program that runs has its files as a revision has them, or goes on with what it had if it cannot have these.
    Raises RefusedError.
    """
    must_answer(truth, step.replica)
    replica = truth.replica(step.replica)
    if not replica.runs(step.component):
        raise RefusedError(f"{step.component} of {step.replica} does not run")
    if truth.breaks(step.revision, step.component):
        return truth.with_replica(step.replica, replace(replica, stuck=replica.stuck | {step.revision}))
    shapes = dict(replica.shapes) | {step.component: step.revision}
    return truth.with_replica(step.replica, replace(replica, shapes=tuple(sorted(shapes.items()))))


def _served(replica: SimReplica, component: Component) -> SimReplica:
    """A member that is restarted has its own publication."""
    if component == Component.EVENTS_ETCD and replica.events is not None:
        return replace(replica, events=replace(replica.events, unserved=0))
    if component == Component.ETCD and replica.member is not None:
        return replace(replica, member=replace(replica.member, unserved=0))
    return replica


def _must_fit(truth: Truth, step: StartUnit | RestartUnit | ReviveUnit) -> None:
    """A seat has one set of ports; and etcd that had its data starts on nothing else."""
    if step.component in CLUSTER and _lacks_its_data(truth.of(CLUSTER[step.component]), step.replica):
        raise RefusedError(f"the data of {step.replica} is gone")
    seat = truth.memory.replica(step.replica).seat
    for record in truth.memory.replicas:
        other = truth.replica(record.name)
        if record.name != step.replica and record.seat == seat is not None and step.component in other.units:
            raise RefusedError(f"{step.component} of {record.name} has the ports of {record.machine}")


def _lacks_its_data(truth: Truth, name: str) -> bool:
    return truth.memory.replica(name).started and not truth.replica(name).data


EFFECTS: Effects = {StartUnit: unit, StopUnit: unit, RestartUnit: unit, ReviveUnit: unit, ReloadUnit: reloaded}
