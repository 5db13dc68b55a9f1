"""Programs that stay unhealthy on machines that answer: they hang, cannot be started, or lag (members of etcd that
answer, are far behind, and do not catch up).

A program is judged only where all its dependencies are healthy, and no replica is in a rolling restart: then the cause
is this program, or its machine. A program that fails on the first replica of a new revision belongs to the rollout.
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


def unhealthy(view: View) -> tuple[tuple[Replica, Component], ...]:
    """The unhealthy programs. One that was noted stays one until it is healthy, whatever its state is until then."""
    world = view.world
    if not world.memory.created or view.quorum_site is None or view.resting is not None or all_raised(world):
        return ()
    noted = dict(view.world.memory.unhealthy)
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
    """Whether the rollout does not judge a program, although it is on the first replica of a new revision."""
    return component == Component.EVENTS_ETCD or lags(view, record, component)


def lags(view: View, record: Replica, component: Component) -> bool:
    """Whether a program is a member that is known to lag now. (A learner on trial still belongs to the rollout.)"""
    member = view.world.member(record.name, CLUSTER[component]) if component in CLUSTER else None
    return member is not None and member.lagging is True


def is_surely_ill(view: View, record: Replica, component: Component) -> bool:
    """Whether an unhealthy program is known to be so, and did not merely fail to answer: a member is down, or lags."""
    if component not in CLUSTER or lags(view, record, component):
        return True
    member = view.world.member(record.name, CLUSTER[component])
    return member is not None and member.health is Health.DOWN


def time_for(view: View, record: Replica, component: Component) -> float:
    """For how many seconds an unhealthy program may recover by itself. One that joins may have much to copy."""
    healing = view.world.settings.healing
    if not lags(view, record, component):
        return healing.hung
    return max(healing.lagging, view.world.settings.start) if joins(view, record, component) else healing.lagging


def joins(view: View, record: Replica, component: Component) -> bool:
    """Whether a program is a member without a vote, which no quorum needs."""
    member = view.world.member(record.name, CLUSTER[component]) if component in CLUSTER else None
    return member is not None and member.learner


def not_alone(view: View, record: Replica, component: Component) -> str:
    """Why a lagging member is not healed, or not now: it is not the only one, or is needed; "" if it is healed."""
    if not lags(view, record, component):
        return ""
    cluster = CLUSTER[component]
    membership = view.world.membership_of(cluster)
    assert membership is not None, "one of its members lags"
    others = [each for each in membership.members if each.replica != record.name]
    slow = [each.replica for each in others if each.lagging or not (each.learner or has_the_data(view.world, each))]
    if slow:
        return f"{min(slow)} is far behind as well, so the cause is not this member"
    of = view if cluster is view.cluster else view.events
    assert of is not None, "its cluster is known"
    rest = (replace(voter, healthy=voter.healthy and voter.replica != record.name) for voter in of.up_to_date)
    return "" if has_quorum(rest) else "the others are not a healthy quorum without it"


def is_calm(view: View, record: Replica) -> bool:
    """Whether the plane is at its goal, and no replica but ``record`` must still join, or be replaced for another
    reason than its health. An outdated replica waits for the others to be healthy, and would wait for ever.
    """
    if view.heading != view.world.goal or view.missing:
        return False
    changed = view.outdated - view.world.memory.leaving
    if any(each.name in changed for each in view.wanted):
        return False
    others = [view.member(each) for each in view.wanted if each.name != record.name]
    return view.quorum_site == view.heading and all(each is not None and not each.learner for each in others)


def is_due(view: View, record: Replica, component: Component) -> bool:
    """Whether a program must run, and all its dependencies are known to be healthy."""
    if component in CLUSTER:
        return _is_due_as_a_member(view, record, component)
    if component == Component.APISERVER:
        return view.can_serve(record) and view.has_the_data(record)
    if component not in view.world.controllers(record) or view.world.is_kept_from_leading(component):
        return False
    return view.ready(record) and view.can_serve(record)


def _is_due_as_a_member(view: View, record: Replica, component: Component) -> bool:
    """Whether it has what a member needs, and all other members of its cluster are healthy."""
    world = view.world.of(CLUSTER[component])
    if world.membership is None or world.membership.of(record.name) is None:
        return False
    fact, known = world.replica(record.name), world.memory.replica(record.name)
    # One that hung before it ever answered is not known to have been started.
    begun = fact.has_data if known.started else fact.unit(component) is UnitState.RUNNING
    others = (each for each in world.membership.members if each.replica != record.name)
    return bool(begun) and all(each.health is Health.HEALTHY for each in others)


def is_well(view: View, record: Replica, component: Component) -> bool:
    """Whether a program reports that it works; for an apiserver a load balancer's check counts as well."""
    fact = view.fact(record)
    if component in CLUSTER:
        return _is_well_as_a_member(view, record, component)
    if component == Component.APISERVER:
        return view.ready(record) or any(record.name in each.healthy for each in view.world.balancers)
    running = fact.unit(component) is UnitState.RUNNING
    return running and component not in fact.silent and component not in fact.crash_looping


def _is_well_as_a_member(view: View, record: Replica, component: Component) -> bool:
    """Whether a member works, or is about to. A member that did not answer once or twice is not unhealthy for that, nor
    is one that is far behind, as long as it is unknown whether it catches up: neither begins nor ends an unhealthy
    state. (A joining member does not answer before it has copied, and is unreachable until then.)
    """
    member = view.world.member(record.name, CLUSTER[component])
    if member is None or member.lagging:
        return member is None
    if member.lagging is False or (member.health is Health.UNREACHABLE and not member.learner):
        return member.health is not Health.DOWN
    return member.health is Health.HEALTHY and has_the_data(view.world, member)


def _begins(view: View, record: Replica, component: Component) -> bool:
    """Whether its state is more than a slow start: it was healthy as the same process, it lags, it exits repeatedly, or
    it cannot be started.
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
    """Whether the last attempt to start the program failed."""
    return any(_starts(each.step, record, component) for each in view.world.failing)


def _starts(step: object, record: Replica, component: Component) -> bool:
    return isinstance(step, StartUnit) and (step.replica, step.component) == (record.name, component)


def may_be_starting(view: View, record: Replica, component: Component) -> bool:
    """Whether an unhealthy program may only need more time."""
    fact = view.fact(record)
    running = fact.unit(component) is UnitState.RUNNING
    return running and component not in fact.hung | fact.crash_looping and not lags(view, record, component)


def is_idle(view: View, record: Replica, component: Component) -> bool:
    """Whether a program does not even run: then starting it was tried repeatedly."""
    return view.unit(record, component) in IDLE


def runs_well_elsewhere(view: View, record: Replica, component: Component) -> bool:
    """Whether the same program of the same revision is healthy on another replica: then the cause is the machine."""
    others = (each for each in view.wanted if each.name != record.name and each.revision == record.revision)
    return any(_surely_well(view, each, component) for each in others)


def _surely_well(view: View, record: Replica, component: Component) -> bool:
    member = view.world.member(record.name, CLUSTER[component]) if component in CLUSTER else None
    if component in CLUSTER:
        return member is not None and not member.learner and member.health is Health.HEALTHY
    return is_due(view, record, component) and is_well(view, record, component)
