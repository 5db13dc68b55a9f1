"""Letting go: replicas that are no members any more, and whole planes that the user deleted."""

from __future__ import annotations

from quarterdeck.model.memory import Replica
from quarterdeck.model.steps import ReleaseReplica, RemoveRecord, Step, StopBalancer, StopUnit
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import Component, World
from quarterdeck.planner.founding import IDLE
from quarterdeck.planner.view import View


def release(view: View) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """Steps, and leftovers on machines that do not answer. Only for a plane that is otherwise as wanted: until
    then the data of removed members is kept.
    """
    steps: list[Step] = []
    leftovers: list[str] = []
    for record in view.unwanted:
        if view.member(record) is not None:
            continue
        if not view.reachable(record):
            leftovers.append(f"{record.name} on machine {record.machine}, which does not answer")
        else:
            steps.append(_release(record, "the plane is healthy without it"))
    return tuple(steps), tuple(leftovers)


def _release(record: Replica, why: str) -> ReleaseReplica:
    return ReleaseReplica(site=record.site, why=why, replica=record.name)


def take_down(world: World) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """Steps and waits that delete a whole plane: the name first (a fixed address has none), the data last."""
    why = "the plane is deleted"
    if not world.record_known:
        return (), ("the DNS server to answer",)
    if world.record is not None and world.front is None:
        return (RemoveRecord(site="", why=why),), ()
    balancers = tuple(StopBalancer(site=each.site, why=why) for each in world.balancers if each.running)
    if balancers:
        return balancers, ()
    reversed_components = tuple(reversed(Component))
    steps: list[Step] = []
    waiting: list[str] = []
    for record in world.memory.replicas:
        running = [
            component for component in reversed_components if world.replica(record.name).unit(component) not in IDLE
        ]
        if any(world.replica(record.name).unit(component) is UnitState.UNKNOWN for component in running):
            waiting.append(f"machine {record.machine} of {record.name} does not answer")
        elif running:
            steps.append(StopUnit(site=record.site, why=why, replica=record.name, component=running[0]))
        else:
            steps.append(_release(record, why))
    return tuple(steps), tuple(waiting)
