"""Planners with one thing wrong that only a few classes of faults bring to light (test_every_fault_counts.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from quarterdeck.model.steps import (
    Plan,
    ReleaseReplica,
    RemoveMember,
    StartUnit,
    StopBalancer,
    Swap,
    TransferLeadership,
)
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import Component, Health, MemberFact, Membership, ReplicaFact, World
from quarterdeck.planner import notes, planner, serving, traffic
from quarterdeck.planner.view import View, view

Patch = pytest.MonkeyPatch


def _seeing(patch: Patch, seen: Callable[[World], World]) -> None:
    """The planner takes another world for what is."""
    real = planner.plan
    patch.setattr(planner, "plan", lambda world: real(seen(world)))


def _members(world: World, change: Callable[[MemberFact], MemberFact]) -> World:
    if world.membership is None:
        return world
    members = tuple(map(change, world.membership.members))
    return replace(world, membership=replace(world.membership, members=members))


def _facts(world: World, change: Callable[[ReplicaFact], ReplicaFact]) -> World:
    return replace(world, replicas=tuple(map(change, world.replicas)))


def _without(patch: Patch, unwanted: Callable[[World, object], bool]) -> None:
    """Some steps are never planned."""
    real = planner.plan

    def plan(world: World) -> Plan:
        now = real(world)
        return replace(now, now=tuple(step for step in now.now if not unwanted(world, step)))

    patch.setattr(planner, "plan", plan)


def unreachable_members_are_down(patch: Patch) -> None:
    def down(member: MemberFact) -> MemberFact:
        return replace(member, health=Health.DOWN) if member.health is Health.UNREACHABLE else member

    _seeing(patch, lambda world: _members(world, down))


def unreachable_machines_are_down(patch: Patch) -> None:
    def down(fact: ReplicaFact) -> ReplicaFact:
        off = fact.machine is MachineState.UNREACHABLE
        return replace(fact, machine=MachineState.DOWN) if off else fact

    _seeing(patch, lambda world: _facts(world, down))


def suspects_are_down(patch: Patch) -> None:
    def down(member: MemberFact) -> MemberFact:
        return replace(member, health=Health.DOWN) if member.health is Health.SUSPECT else member

    _seeing(patch, lambda world: _members(world, down))


def the_dead_are_waited_for(patch: Patch) -> None:
    def unseen(member: MemberFact) -> MemberFact:
        return replace(member, health=Health.UNREACHABLE) if member.health is Health.DOWN else member

    _seeing(patch, lambda world: _members(world, unseen))


def an_unread_record_leads_where_it_did(patch: Patch) -> None:
    def known(world: World) -> World:
        return world if world.record_known else replace(world, record_known=True, record=world.memory.served_site)

    _seeing(patch, known)


def failed_controllers_stand_by(patch: Patch) -> None:
    def run(fact: ReplicaFact) -> ReplicaFact:
        units = ((each, UnitState.RUNNING if state is UnitState.FAILED else state) for each, state in fact.units)
        return replace(fact, units=tuple(units))

    _seeing(patch, lambda world: _facts(world, run))


def stopped_members_stay_stopped(patch: Patch) -> None:
    def unwanted(world: World, step: object) -> bool:
        if not isinstance(step, StartUnit) or step.component is not Component.ETCD:
            return False
        return world.memory.replica(step.replica).started

    _without(patch, unwanted)


def voters_that_lag_are_counted_on(patch: Patch) -> None:
    def close(member: MemberFact) -> MemberFact:
        return member if member.learner else replace(member, lag=0 if member.lag is not None else None)

    _seeing(patch, lambda world: _members(world, close))


def strays_stay(patch: Patch) -> None:
    def unwanted(world: World, step: object) -> bool:
        return isinstance(step, RemoveMember) and not step.replica

    _without(patch, unwanted)


def unread_memberships_are_empty(patch: Patch) -> None:
    def empty(world: World) -> World:
        unread = world.membership is None and world.memory.created
        return replace(world, membership=Membership(members=(), leader=None)) if unread else world

    _seeing(patch, empty)


def lost_data_is_not_missed(patch: Patch) -> None:
    _seeing(patch, lambda world: _facts(world, lambda fact: replace(fact, has_data=fact.has_data is not None or None)))


def balancers_that_do_not_answer_are_forgotten(patch: Patch) -> None:
    """What they send where does not hold up the drain."""

    def may_drain(seen: View) -> bool:
        world = seen.world
        servers = {record.name for record in seen.servers}
        leads = world.record == seen.door == world.memory.served_site
        held = [each for each in world.balancers if each.running and each.site in traffic._held(seen)]
        return seen.takeover and leads and all(traffic._carries(each, servers) for each in held)

    for module in (traffic, serving, notes):
        patch.setattr(module, "may_drain", may_drain)


def an_apiserver_that_does_not_answer_is_off(patch: Patch) -> None:
    def off(fact: ReplicaFact) -> ReplicaFact:
        if fact.ready is not None or fact.machine is not MachineState.UP:
            return fact
        units = ((each, UnitState.STOPPED if each is Component.APISERVER else state) for each, state in fact.units)
        return replace(fact, units=tuple(units), ready=False)

    _seeing(patch, lambda world: _facts(world, off))


def a_swap_is_not_finished(patch: Patch) -> None:
    def unwanted(world: World, step: object) -> bool:
        return isinstance(step, Swap) and world.membership is not None and view(world).home is None

    _without(patch, unwanted)


def only_the_first_member_hands_over(patch: Patch) -> None:
    def unwanted(world: World, step: object) -> bool:
        if not isinstance(step, TransferLeadership) or world.membership is None:
            return False
        first = min(world.membership.members, key=lambda member: member.id)
        return world.membership.leader != first.replica

    _without(patch, unwanted)


def only_replicas_with_data_are_released(patch: Patch) -> None:
    def unwanted(world: World, step: object) -> bool:
        return isinstance(step, ReleaseReplica) and not world.replica(step.replica).has_data

    _without(patch, unwanted)


def names_are_counted(patch: Patch) -> None:
    def counted(world: World) -> World:
        return replace(world, memory=replace(world.memory, next_ordinal=len(world.memory.replicas) + 1))

    _seeing(patch, counted)


def no_load_balancer_may_be_missing(patch: Patch) -> None:
    real = planner.plan

    def plan(world: World) -> Plan:
        missing = any(not each.reachable for each in world.balancers)
        return replace(real(world), now=(), waiting=("load balancers",)) if missing else real(world)

    patch.setattr(planner, "plan", plan)


def the_name_never_goes_back(patch: Patch) -> None:
    patch.setattr(traffic, "_refuge", lambda view: None)


def who_has_published_serves(patch: Patch) -> None:
    def well(member: MemberFact) -> MemberFact:
        return replace(member, health=Health.HEALTHY) if member.published and member.lag == 0 else member

    _seeing(patch, lambda world: _members(world, well))


def a_load_balancer_that_finds_nobody_goes(patch: Patch) -> None:
    """Though clients hold its address, and its next check may find somebody."""
    real = planner.plan

    def plan(world: World) -> Plan:
        used = world.balancer(world.record) if world.record is not None else None
        if used is None or not used.running or used.healthy:
            return real(world)
        return Plan(now=(StopBalancer(site=used.site, why="it finds no healthy backend"),))

    patch.setattr(planner, "plan", plan)
