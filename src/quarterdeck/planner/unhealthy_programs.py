"""Programs that do not get well on machines that answer: they hang, cannot be started, or lag: members of etcd that are
heard, are far behind, and come no nearer.

Whether a program ails is only asked where all that it depends on is well, and nobody rests for its next revision: then
it is nothing but this program, or its machine. What the first replica of a new revision does not run is the roll's.
"""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import CLUSTER
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.units import IDLE, UnitState
from quarterdeck.planner.members import all_raised, has_the_data
from quarterdeck.planner.quorum import has_quorum
from quarterdeck.planner.revisions import ends_by_itself
from quarterdeck.planner.rules.rollout import on_trial, unit
from quarterdeck.planner.view import View


def ailing(view: View) -> tuple[tuple[Replica, Component], ...]:
    """The programs that ail. One that did before does so until it is well, whatever state it goes through meanwhile."""
    world = view.world
    if not world.memory.created or view.quorum_site is None or view.resting is not None or all_raised(world):
        return ()
    noted = dict(view.world.memory.ailing)
    trial = {(record, component) for record, changed in on_trial(view) for component in changed}
    memory = view.world.memory
    given_up = memory.given_up.union(memory.leaving, memory.renewed, view.world.cordoned)
    return tuple(
        (record, each)
        for record in view.wanted
        if record.name not in given_up and view.reachable(record)
        for each in world.programs.every
        if is_due(view, record, each) and not is_well(view, record, each)
        if unit(each, record) in noted or _begins(view, record, each)
        if (record, each) not in trial or _is_no_trial(view, record, each) or runs_well_elsewhere(view, record, each)
    )


def _is_no_trial(view: View, record: Replica, component: Component) -> bool:
    """Whether the roll says nothing of what does not get well, though it is of the first replica of a new revision."""
    return component == Component.EVENTS_ETCD or lags(view, record, component)


def lags(view: View, record: Replica, component: Component) -> bool:
    """Whether a program is a member that is known to lag now. (A learner on trial is the roll's all the same.)"""
    member = view.world.member(record.name, CLUSTER[component]) if component in CLUSTER else None
    return member is not None and member.lagging is True


def is_surely_ill(view: View, record: Replica, component: Component) -> bool:
    """Whether it is known now that a program which is not well is none that only was not seen: a member is down, or
    lags.
    """
    if component not in CLUSTER or lags(view, record, component):
        return True
    member = view.world.member(record.name, CLUSTER[component])
    return member is not None and member.health is Health.DOWN


def time_for(view: View, record: Replica, component: Component) -> float:
    """For how many seconds a program that is not well may get well by itself. One that joins may have much to copy."""
    healing = view.world.settings.healing
    if not lags(view, record, component):
        return healing.hung
    return max(healing.lagging, view.world.settings.start) if joins(view, record, component) else healing.lagging


def joins(view: View, record: Replica, component: Component) -> bool:
    """Whether a program is a member that has no vote, so that nobody counts on it."""
    member = view.world.member(record.name, CLUSTER[component]) if component in CLUSTER else None
    return member is not None and member.learner


def not_alone(view: View, record: Replica, component: Component) -> str:
    """Why it is not for a member that lags by itself that something is to be done, or not now; "" if it is."""
    if not lags(view, record, component):
        return ""
    cluster = CLUSTER[component]
    membership = view.world.membership_of(cluster)
    assert membership is not None, "one of its members lags"
    others = [each for each in membership.members if each.replica != record.name]
    slow = [each.replica for each in others if each.lagging or not (each.learner or has_the_data(view.world, each))]
    if slow:
        return f"{min(slow)} is far behind as well, so that it is not this member"
    of = view if cluster is view.cluster else view.events
    assert of is not None, "its cluster is known"
    rest = (replace(voter, healthy=voter.healthy and voter.replica != record.name) for voter in of.up_to_date)
    return "" if has_quorum(rest) else "the others are not a healthy quorum without it"


def is_calm(view: View, record: Replica) -> bool:
    """Whether the plane is where it is to be, and nobody but ``record`` is still to come, or to be exchanged for
    something else than what ails. Who is to go waits for those that stay to be well, and would do so for ever.
    """
    if view.heading != view.world.slots[0].site or view.missing:
        return False
    changed = view.outdated - view.world.memory.leaving
    if any(each.name in changed for each in view.wanted):
        return False
    others = [view.member(each) for each in view.wanted if each.name != record.name]
    return view.quorum_site == view.heading and all(each is not None and not each.learner for each in others)


def is_due(view: View, record: Replica, component: Component) -> bool:
    """Whether a program is to run, and all that it depends on is known to be well."""
    if component in CLUSTER:
        return _is_due_as_a_member(view, record, component)
    if component == Component.APISERVER:
        return view.can_serve(record) and view.has_the_data(record)
    if component not in view.world.controllers(record) or view.world.is_kept_from_leading(component):
        return False
    return view.ready(record) and view.can_serve(record)


def _is_due_as_a_member(view: View, record: Replica, component: Component) -> bool:
    """Whether it has what a member needs, and all other members of its cluster are well."""
    world = view.world.of(CLUSTER[component])
    if world.membership is None or world.membership.of(record.name) is None:
        return False
    fact, known = world.replica(record.name), world.memory.replica(record.name)
    # One that hung before it was ever heard of is not known to have been started.
    begun = fact.has_data if known.started else fact.unit(component) is UnitState.RUNNING
    others = (each for each in world.membership.members if each.replica != record.name)
    return bool(begun) and all(each.health is Health.HEALTHY for each in others)


def is_well(view: View, record: Replica, component: Component) -> bool:
    """Whether a program does its work, as far as it says; a load balancer's word on an apiserver counts as well."""
    fact = view.fact(record)
    if component in CLUSTER:
        return _is_well_as_a_member(view, record, component)
    if component == Component.APISERVER:
        return view.ready(record) or any(record.name in each.healthy for each in view.world.balancers)
    running = fact.unit(component) is UnitState.RUNNING
    return running and component not in fact.silent and component not in fact.restless


def _is_well_as_a_member(view: View, record: Replica, component: Component) -> bool:
    """Whether a member does what it is to, or is on its way there. That one did not answer in a look or two says
    nothing, and neither does one that is far behind, as long as it is not known whether it comes nearer: that begins
    nothing, and ends nothing. (A joiner answers nobody before it has copied, and is unreachable until then.)
    """
    member = view.world.member(record.name, CLUSTER[component])
    if member is None or member.lagging:
        return member is None
    if member.lagging is False or (member.health is Health.UNREACHABLE and not member.learner):
        return member.health is not Health.DOWN
    return member.health is Health.HEALTHY and has_the_data(view.world, member)


def _begins(view: View, record: Replica, component: Component) -> bool:
    """Whether there is something that is no mere start: it was well as the process that it is, it lags, it ends again
    and again, or it cannot be started.
    """
    fact = view.fact(record)
    state = fact.unit(component)
    if not is_surely_ill(view, record, component):
        return False
    if state in IDLE:
        return cannot_start(view, record, component)
    hangs = state is UnitState.RUNNING and component in fact.hung
    return hangs or lags(view, record, component) or ends_by_itself(view.world, record, component)


def cannot_start(view: View, record: Replica, component: Component) -> bool:
    """Whether the program was to be started just now, and could not be."""
    return any(_starts(each.step, record, component) for each in view.world.failing)


def _starts(step: object, record: Replica, component: Component) -> bool:
    return isinstance(step, StartUnit) and (step.replica, step.component) == (record.name, component)


def may_be_starting(view: View, record: Replica, component: Component) -> bool:
    """Whether a program that is not well may only need its time."""
    fact = view.fact(record)
    running = fact.unit(component) is UnitState.RUNNING
    return running and component not in fact.hung | fact.restless and not lags(view, record, component)


def is_idle(view: View, record: Replica, component: Component) -> bool:
    """Whether a program does not even run: then starting it was tried again and again."""
    return view.unit(record, component) in IDLE


def runs_well_elsewhere(view: View, record: Replica, component: Component) -> bool:
    """Whether the same program of the same revision is well on another replica: so it is the machine."""
    others = (each for each in view.wanted if each.name != record.name and each.revision == record.revision)
    return any(_surely_well(view, each, component) for each in others)


def _surely_well(view: View, record: Replica, component: Component) -> bool:
    member = view.world.member(record.name, CLUSTER[component]) if component in CLUSTER else None
    if component in CLUSTER:
        return member is not None and not member.learner and member.health is Health.HEALTHY
    return is_due(view, record, component) and is_well(view, record, component)
