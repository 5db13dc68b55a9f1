"""Placement of replicas on machines, and the founding of the cluster."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import DecideBootstrap
from quarterdeck.model.steps.placement import PlaceReplica
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.units import IDLE
from quarterdeck.planner import next_steps
from quarterdeck.planner.machines import busy, machine_for, no_machine
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.view import View


def place(view: View) -> RuleOutcome:
    """Every slot without a replica gets one, on a free machine of its zone. A replica that replaces another inside a
    site may share its machine.
    """
    world = view.world
    taken = {record.machine for record in world.memory.replicas if busy(world, record)}
    leaving = [each for each in view.unwanted if each.name not in view.lost] if view.quorum_site == view.heading else []
    steps: list[Step] = []
    waiting: list[Wait] = []
    for slot in view.missing:
        machine = machine_for(world, slot, taken, leaving)
        if machine is None:
            waiting.append(no_machine(world, slot))
            continue
        taken.add(machine.name)
        steps.append(
            PlaceReplica(
                site="",
                why=f"{slot.site} needs a replica in zone {machine.zone}",
                replica=f"{slot.site}-{world.memory.next_ordinal + len(steps)}",
                slot=replace(slot, zone=machine.zone),
                machine=machine.name,
                storage_class=world.storage_class,
                revision=view.revision,
            )
        )
    return RuleOutcome(tuple(steps), (*view.held_up, *waiting))


def waits_for_a_start(view: View, record: Replica) -> bool:
    """Whether etcd of a replica that was never healthy needs a step to start: its machine does not start it without
    data by itself.
    """
    return view.unit(record, view.etcd) in IDLE or bool(view.fact(record).refused)


def found(view: View) -> RuleOutcome:
    """The first members start together, once their list is recorded."""
    world = view.world
    if world.memory.created:
        return RuleOutcome()
    if not world.memory.bootstrap:
        return _decide(view)
    if world.memory.seeding is not None:
        return RuleOutcome()
    founders = [record for record in world.memory.replicas if record.name in world.memory.bootstrap]
    steps: list[Step] = [
        StartUnit(site=founder.site, why="found the etcd cluster", replica=founder.name, component=view.etcd)
        for founder in founders
        if view.reachable(founder) and waits_for_a_start(view, founder)
    ]
    return RuleOutcome(tuple(steps), () if world.membership else (_quorum(view, founders),))


def _quorum(view: View, founders: list[Replica]) -> Wait:
    """The first quorum, and the first of the founders that cannot be a part of it."""
    forming = f"the founders {', '.join(each.name for each in founders)} to form a quorum"
    silent = [each for each in founders if not view.reachable(each)]
    # Of several, the one that reports an error is shown.
    stuck = next((each for each in founders if view.fact(each).complaint(view.etcd)), founders[0])
    first = silent[0] if silent else stuck
    return next_steps.member(view.world, first, view.etcd, forming)


def _decide(view: View) -> RuleOutcome:
    """The founders of the cluster. The events' one is founded with the main one, or later where that one is healthy."""
    names = tuple(record.name for record in view.wanted)
    later = view.plane is not view and view.plane.world.memory.created
    if not names or (later and view.plane.world.membership is None):
        return RuleOutcome()  # no machine of the site answers yet: there are no founders
    if later:
        names = tuple(record.name for record in view.wanted if view.reachable(record))
    seed = view.world.memory.seeding
    if seed is not None:
        names = tuple(each.name for each in view.world.memory.replicas if each.name == seed.founder)
    why = "the founders must never change once one has started"
    storage_class = view.world.storage_class if view.plane is not view else ""
    decide = DecideBootstrap(site="", why=why, replicas=names, storage_class=storage_class, cluster=view.cluster)
    return RuleOutcome((decide,) if names else ())
