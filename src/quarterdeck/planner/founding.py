"""Placing replicas on machines, and founding the cluster."""

from __future__ import annotations

from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.slots import Slot
from quarterdeck.model.steps import DecideBootstrap, PlaceReplica, StartUnit, Step
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import MachineFact, World
from quarterdeck.planner.outcome import Outcome
from quarterdeck.planner.view import View

IDLE = (UnitState.ABSENT, UnitState.STOPPED)


def _busy(world: World, record: Replica) -> bool:
    """Whether a replica still needs its machine for itself (its ports, its memory)."""
    if world.membership is None or world.membership.of(record.name) is not None or not record.listed:
        return True
    return any(world.replica(record.name).unit(component) not in IDLE for component in Component)


def _machine(world: World, slot: Slot, taken: set[str]) -> MachineFact | None:
    def fits(machine: MachineFact) -> bool:
        return (
            machine.site == slot.site
            and slot.zone in ("", machine.zone)
            and machine.state is MachineState.UP
            and machine.name not in taken
        )

    used = {record.machine for record in world.memory.replicas}
    # Machines that never had a replica come first: the others may still hold data that is kept.
    return min(filter(fits, world.machines), key=lambda each: (each.name in used, each.name), default=None)


def place(view: View) -> Outcome:
    """Every slot without a replica gets one, on a free machine of its zone."""
    world = view.world
    taken = {record.machine for record in world.memory.replicas if _busy(world, record)}
    steps: list[Step] = []
    waiting: list[str] = []
    for slot in view.missing:
        machine = _machine(world, slot, taken)
        if machine is None:
            where = f"zone {slot.zone} of site {slot.site}" if slot.zone else f"site {slot.site}"
            waiting.append(f"no free machine in {where}")
            continue
        taken.add(machine.name)
        name = f"{slot.site}-{world.memory.next_ordinal + len(steps)}"
        why = f"{slot.site} needs a replica in zone {machine.zone}"
        steps.append(PlaceReplica(site="", why=why, replica=name, slot=slot, machine=machine.name))
    return Outcome(tuple(steps), tuple(waiting))


def waits_for_a_start(view: View, record: Replica) -> bool:
    """Whether etcd of a replica that never was healthy is to be started by a step: its machine starts nothing without
    data by itself.
    """
    return view.unit(record, Component.ETCD) in IDLE or bool(view.fact(record).refused)


def found(view: View) -> Outcome:
    """The first members start together, once it is written down who they are."""
    world = view.world
    if world.memory.created:
        return Outcome()
    if not world.memory.bootstrap:
        names = tuple(record.name for record in view.wanted)
        if not names:
            return Outcome()  # no machine of the site answers yet; nobody cannot found anything
        return Outcome(
            (DecideBootstrap(site="", why="the founders must never change once one has started", replicas=names),)
        )
    founders = [world.memory.replica(name) for name in world.memory.bootstrap]
    steps: list[Step] = [
        StartUnit(site=founder.site, why="found the etcd cluster", replica=founder.name, component=Component.ETCD)
        for founder in founders
        if view.reachable(founder) and waits_for_a_start(view, founder)
    ]
    waiting = [] if world.membership else [f"the founders {', '.join(world.memory.bootstrap)} to form a quorum"]
    return Outcome(tuple(steps), tuple(waiting))
