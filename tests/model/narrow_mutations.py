"""Planners with one thing wrong that only a few classes of faults bring to light (test_fault_kinds.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.components import CONTROLLERS

from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.members import ReaddressMember, RemoveMember, Swap, TransferLeadership
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.model.steps.traffic import NoteDraining, StopBalancer
from quarterdeck.model.steps.units import RestartUnit, StartUnit, StopUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner import planner, reading
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules import notes, replica_programs, traffic, upkeep, volume_moves
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


def _members_taken_for(patch: Patch, health: Health, where: Callable[[World, MemberFact], bool]) -> None:
    """The planner takes some members for what they are not."""

    def seen(world: World) -> World:
        return _members(world, lambda member: replace(member, health=health) if where(world, member) else member)

    _seeing(patch, seen)


def _fact(world: World, member: MemberFact) -> ReplicaFact | None:
    """What is seen of a member's replica; None where no record names it."""
    return next((fact for fact in world.replicas if fact.name == member.replica), None)


def _machine(world: World, member: MemberFact) -> MachineState | None:
    fact = _fact(world, member)
    return fact.machine if fact is not None else None


def _edge_answers(world: World, member: MemberFact) -> bool:
    """Whether the load balancer of a member's site answers."""
    return world.balancer(world.memory.replica(member.replica).site).reachable


def _facts(world: World, change: Callable[[ReplicaFact], ReplicaFact]) -> World:
    return replace(world, replicas=tuple(map(change, world.replicas)))


def _without(patch: Patch, unwanted: Callable[[World, object], bool]) -> None:
    """Some steps are never planned."""
    real = planner.plan

    def plan(world: World) -> Plan:
        now = real(world)
        return replace(now, now=tuple(step for step in now.now if not unwanted(world, step)))

    patch.setattr(planner, "plan", plan)


def _members_that_are(
    health: Health, machine: MachineState, *, edge: bool | None = None
) -> Callable[[World, MemberFact], bool]:
    """Members of that health on machines in that state, at sites whose load balancer answers or not (None: either)."""

    def described(world: World, member: MemberFact) -> bool:
        seen = member.health is health and _machine(world, member) is machine
        return seen and edge in (None, _edge_answers(world, member))

    return described


def members_that_do_not_answer_are_down(patch: Patch) -> None:
    """Though their machine answers, and the leader hears them."""
    _members_taken_for(patch, Health.DOWN, _members_that_are(Health.UNREACHABLE, MachineState.UP))


def machines_of_which_nothing_answers_are_down(patch: Patch) -> None:
    """Though their site answers, and the leader hears the member."""
    _members_taken_for(patch, Health.DOWN, _members_that_are(Health.UNREACHABLE, MachineState.UNREACHABLE, edge=True))


def sites_of_which_nothing_answers_are_down(patch: Patch) -> None:
    """Though the leader hears the members that are there."""
    _members_taken_for(patch, Health.DOWN, _members_that_are(Health.UNREACHABLE, MachineState.UNREACHABLE, edge=False))


def machines_that_do_not_answer_are_down(patch: Patch) -> None:
    """Though the member that is there does."""

    def seen(world: World) -> World:
        members = world.membership.members if world.membership is not None else ()
        well = {member.replica for member in members if member.health is Health.HEALTHY}

        def down(fact: ReplicaFact) -> ReplicaFact:
            off = fact.machine is MachineState.UNREACHABLE and fact.name in well
            return replace(fact, machine=MachineState.DOWN) if off else fact

        return _facts(world, down)

    _seeing(patch, seen)


def members_of_dead_machines_are_waited_for(patch: Patch) -> None:
    _members_taken_for(patch, Health.UNREACHABLE, _members_that_are(Health.DOWN, MachineState.DOWN, edge=True))


def members_of_dead_sites_are_waited_for(patch: Patch) -> None:
    _members_taken_for(patch, Health.UNREACHABLE, _members_that_are(Health.DOWN, MachineState.DOWN, edge=False))


def members_of_machines_that_say_nothing_are_waited_for(patch: Patch) -> None:
    """Though the leader has not heard them for long either."""
    _members_taken_for(patch, Health.UNREACHABLE, _members_that_are(Health.DOWN, MachineState.UNREACHABLE))


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
        if not isinstance(step, StartUnit) or step.component != Component.ETCD:
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


def voters_of_no_replica_are_overlooked(patch: Patch) -> None:
    def seen(world: World) -> World:
        if world.membership is None:
            return world
        members = tuple(each for each in world.membership.members if each.replica or each.learner)
        return replace(world, membership=replace(world.membership, members=members))

    _seeing(patch, seen)


def strangers_that_are_heard_of_are_counted_on(patch: Patch) -> None:
    """As if they were replicas that are well."""
    heard = Health.UNREACHABLE
    _members_taken_for(patch, Health.HEALTHY, lambda _, each: not each.replica and each.health is heard)


def who_displaces_each_other_waits(patch: Patch) -> None:
    patch.setattr(volume_moves, "_in_circle", lambda member, displaced: False)


def who_is_displaced_gives_its_peer_url_up(patch: Patch) -> None:
    """Whoever has that."""
    patch.setattr(volume_moves, "_in_circle", lambda member, displaced: True)


def authentication_is_no_matter(patch: Patch) -> None:
    _seeing(patch, lambda world: _membership_as(world, authenticates=False))


def corrupt_is_no_matter(patch: Patch) -> None:
    _seeing(patch, lambda world: _membership_as(world, without="CORRUPT"))


def _membership_as(world: World, *, authenticates: bool | None = None, without: str = "") -> World:
    """The world with the state of the main cluster taken for another one, and without an alarm of it."""
    seen = world.membership
    if seen is None:
        return world
    alarms = tuple(each for each in seen.alarms if not without or without not in each)
    asks = seen.authenticates if authenticates is None else authenticates
    return replace(world, membership=replace(seen, alarms=alarms, authenticates=asks))


def what_does_not_run_is_not_there(patch: Patch) -> None:
    _seeing(patch, lambda world: replace(world, balancers=tuple(replace(each, left=False) for each in world.balancers)))


def members_stay_where_others_look_for_them(patch: Patch) -> None:
    _without(patch, lambda _, step: isinstance(step, ReaddressMember))


def who_was_removed_may_join_again(patch: Patch) -> None:
    def seen(world: World) -> World:
        memory = world.memory
        replicas = tuple(replace(each, listed=False) if _is_wanted(world, each) else each for each in memory.replicas)
        return replace(world, memory=replace(memory, replicas=replicas))

    _seeing(patch, seen)


def _is_wanted(world: World, record: Replica) -> bool:
    gone = world.membership is not None and world.membership.of(record.name) is None
    return gone and record.listed and record.site == world.slots[0].site


def _used(world: World) -> list[ReplicaFact]:
    """The replicas whose apiserver is not stopped."""
    return [fact for fact in world.replicas if fact.unit(Component.APISERVER) is not UnitState.STOPPED]


def unread_memberships_are_empty(patch: Patch) -> None:
    """Where all apiservers are well: nothing speaks for a quorum that is lost."""

    def empty(world: World) -> World:
        well = all(fact.machine is MachineState.UP and fact.ready in (None, True) for fact in _used(world))
        unread = world.membership is None and world.memory.created and well
        return replace(world, membership=Membership(members=(), leader=None)) if unread else world

    _seeing(patch, empty)


def _data_taken_to_be_there(patch: Patch, where: Callable[[World, ReplicaFact], bool]) -> None:
    def seen(world: World) -> World:
        return _facts(world, lambda fact: replace(fact, has_data=True) if where(world, fact) else fact)

    _seeing(patch, seen)


def lost_data_is_not_missed_where_etcd_has_failed(patch: Patch) -> None:
    def where(_: World, fact: ReplicaFact) -> bool:
        return fact.has_data is False and fact.unit(Component.ETCD) is UnitState.FAILED

    _data_taken_to_be_there(patch, where)


def lost_data_is_not_missed_where_nothing_runs(patch: Patch) -> None:
    """And nobody has heard of the member."""

    def where(world: World, fact: ReplicaFact) -> bool:
        member = world.membership.of(fact.name) if world.membership is not None else None
        silent = member is None or member.lag is None
        return silent and fact.has_data is False and fact.unit(Component.ETCD) is UnitState.STOPPED

    _data_taken_to_be_there(patch, where)


def balancers_that_do_not_answer_are_forgotten(patch: Patch) -> None:
    """What they send where does not hold up the drain."""

    def may_drain(seen: View) -> bool:
        world = seen.world
        servers = {record.name for record in seen.servers}
        leads = world.record == seen.door == world.memory.served_site
        known = [world.balancer(site) for site in seen.held]
        held = [each for each in known if each.reachable or not _site_is_up(world, each.site)]
        return seen.takeover and leads and all(reading._carries(each, servers) for each in held)

    for module in (traffic, replica_programs):
        patch.setattr(module, "may_drain", may_drain)


def an_apiserver_that_does_not_answer_is_off(patch: Patch) -> None:
    def off(fact: ReplicaFact) -> ReplicaFact:
        if fact.ready is not None or fact.machine is not MachineState.UP:
            return fact
        units = ((each, UnitState.STOPPED if each == Component.APISERVER else state) for each, state in fact.units)
        return replace(fact, units=tuple(units), ready=False)

    _seeing(patch, lambda world: _facts(world, off))


def a_swap_is_not_finished(patch: Patch) -> None:
    """Though all members are well."""

    def unwanted(world: World, step: object) -> bool:
        if not isinstance(step, Swap) or world.membership is None or view(world).quorum_site is not None:
            return False
        return all(member.health is Health.HEALTHY for member in world.membership.voters)

    _without(patch, unwanted)


def only_the_first_member_hands_over(patch: Patch) -> None:
    def unwanted(world: World, step: object) -> bool:
        if not isinstance(step, TransferLeadership) or world.membership is None:
            return False
        first = min(world.membership.members, key=lambda member: member.id)
        return world.membership.leader != first.replica

    _without(patch, unwanted)


def no_address_may_be_remembered(patch: Patch) -> None:
    """Not even one whose load balancer is gone."""
    real = planner.plan

    def plan(world: World) -> Plan:
        now = real(world)
        held = [site for site, _ in world.memory.held if world.balancer(site).reachable]
        return replace(now, waiting=(Wait("addresses", ""),)) if held and not now.now and not now.waiting else now

    patch.setattr(planner, "plan", plan)


def names_are_counted(patch: Patch) -> None:
    def counted(world: World) -> World:
        return replace(world, memory=replace(world.memory, next_ordinal=len(world.memory.replicas) + 1))

    _seeing(patch, counted)


def no_load_balancer_may_be_missing(patch: Patch) -> None:
    """Not as long as the machines of its site are there."""
    real = planner.plan

    def plan(world: World) -> Plan:
        missing = any(not each.reachable and _site_is_up(world, each.site) for each in world.balancers)
        return replace(real(world), now=(), waiting=(Wait("load balancers", ""),)) if missing else real(world)

    patch.setattr(planner, "plan", plan)


def _site_is_up(world: World, site: str) -> bool:
    return all(machine.state is MachineState.UP for machine in world.machines if machine.site == site)


def the_name_never_goes_back(patch: Patch) -> None:
    patch.setattr(traffic, "_refuge", lambda view: None)


def who_has_published_serves(patch: Patch) -> None:
    def well(member: MemberFact) -> MemberFact:
        waits = member.learner and member.health is Health.SUSPECT
        return replace(member, health=Health.HEALTHY) if waits and member.published and member.lag == 0 else member

    _seeing(patch, lambda world: _members(world, well))


def a_load_balancer_that_finds_nobody_goes(patch: Patch) -> None:
    """Though clients hold its address, its backends say that they are ready, and its next check may find them."""
    real = planner.plan

    def plan(world: World) -> Plan:
        used = world.balancer(world.record) if world.record is not None else None
        if used is None or not used.running or used.healthy:
            return real(world)
        near = {each.name for each in world.memory.replicas if each.site == used.site}
        if not near & used.backends or not all(_serves(world.replica(name)) for name in used.backends):
            return real(world)
        return Plan(now=(StopBalancer(site=used.site, why="it finds no healthy backend"),))

    patch.setattr(planner, "plan", plan)


def draining_counts_from_the_decision(patch: Patch) -> None:
    """Not from when the load balancers have left: their step comes right after the note."""
    real = notes._draining

    def draining(seen: View) -> list[Step]:
        if not traffic.may_drain(seen):
            return real(seen)
        off = {each.name for each in seen.unwanted if seen.unit(each, Component.APISERVER) is UnitState.STOPPED}
        leaving = tuple(sorted({each.name for each in seen.unwanted} - off))
        known = tuple(sorted(name for name, _ in seen.world.memory.draining))
        return [] if leaving == known else [NoteDraining(site="", why="", draining=leaving)]

    patch.setattr(notes, "_draining", draining)


def a_record_is_stamped_beside_other_steps(patch: Patch) -> None:
    """Where nothing else is to be done, the new driver's token does not get there."""
    real = planner.plan

    def plan(world: World) -> Plan:
        if world.stamped:
            return real(world)
        otherwise = real(replace(world, stamped=True))
        return real(world) if otherwise.now else replace(otherwise, waiting=(*otherwise.waiting, Wait("its stamp", "")))

    patch.setattr(planner, "plan", plan)


def who_is_heard_of_and_called_stopped_is_stopped(patch: Patch) -> None:
    """Where the members and the machines contradict each other, they are made to agree."""
    real = planner.plan

    def plan(world: World) -> Plan:
        members = world.membership.members if world.membership is not None else ()
        for member in members:
            fact = _fact(world, member)
            if member.lag is not None and fact is not None and fact.unit(Component.ETCD) is UnitState.STOPPED:
                where = world.memory.replica(member.replica).site
                return Plan(now=(StopUnit(site=where, why="", replica=member.replica, component=Component.ETCD),))
        return real(world)

    patch.setattr(planner, "plan", plan)


def joiners_are_started_by_a_restart(patch: Patch) -> None:
    """As long as they have no data and nobody has heard of them: it is for once."""
    real = planner.plan

    def plan(world: World) -> Plan:
        now = real(world)
        return replace(now, now=tuple(_restarting(world, step) for step in now.now))

    patch.setattr(planner, "plan", plan)


def _restarting(world: World, step: Step) -> Step:
    if not isinstance(step, StartUnit) or step.component != Component.ETCD or world.membership is None:
        return step
    member = world.membership.of(step.replica)
    if member is None or not member.learner or member.lag is not None or world.replica(step.replica).has_data:
        return step
    return RestartUnit(site=step.site, why=step.why, replica=step.replica, component=step.component)


def steps_that_fail_hold_up_all_others(patch: Patch) -> None:
    """They are tried again at once, and nothing else is."""
    _seeing(patch, lambda world: replace(world, failing=()))


def room_is_never_made(patch: Patch) -> None:
    """Writes are refused for ever."""
    patch.setattr(
        upkeep, "_defragment", lambda view, counted: RuleOutcome(waiting=(Wait("somebody to make room", ""),))
    )


def other_data_is_kept(patch: Patch) -> None:
    """What is written down of it is passed over."""
    _seeing(patch, lambda world: replace(world, memory=_trusting(world.memory)))


def _trusting(memory: Memory) -> Memory:
    return replace(memory, replicas=tuple(replace(each, differs=False) for each in memory.replicas))


def _serves(fact: ReplicaFact) -> bool:
    controls = all(fact.unit(component) is UnitState.RUNNING for component in CONTROLLERS)
    return fact.ready is True and controls
