"""Short stories for the unit tests: a truth is driven by the planner until something is about to happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from model.faulty_truth import FaultyTruth
from model.worlds import empty, settled
from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.membership import MemberFact
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.healing import Condemn, CordonMachine, NoteAiling, NoteDown, Pardon
from quarterdeck.model.steps.members import Swap, TransferLeadership
from quarterdeck.model.steps.placement import AttachVolumes
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.units import AdoptRevision, RestartUnit, ReviveUnit, StopUnit
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.healing import held_back
from quarterdeck.planner.simulated import apply, observe, tick
from quarterdeck.planner.view import view

W = TypeVar("W", World, FaultyTruth)
Stop = Callable[[FaultyTruth, Plan], bool]
#: The kinds of steps by which a replica is healed.
HEALING_STEPS = (
    *(NoteDown, NoteAiling, Condemn, Pardon, CordonMachine),
    *(AttachVolumes, ReviveUnit, RestartUnit, TransferLeadership, StopUnit),
)
#: The kinds of steps by which a revision rolls through a plane.
ROLLING_STEPS = (StopUnit, RestartUnit, TransferLeadership, AdoptRevision)


def kind(step: Step) -> str:
    return type(step).__name__


def step_words(step: Step) -> str:
    """A step in a few words: its kind, and what it is about."""
    if isinstance(step, Swap):
        return f"Swap({', '.join(map(step_words, step.changes))})"
    component = getattr(step, "component", "")
    unit = f"{component} of " if component else ""
    about = getattr(step, "replica", "") or getattr(step, "to", "") or step.site
    return f"{kind(step)} {unit}{about}".strip()


def whats(of: RuleOutcome | Plan) -> tuple[str, ...]:
    """What is waited for, without what to do about it."""
    return tuple(each.what for each in of.waiting)


def all_steps(outcome: RuleOutcome) -> list[str]:
    """What a rule wants done."""
    return [step_words(step) for step in outcome.steps]


def doing(truth: FaultyTruth) -> list[str]:
    """What is to be done now."""
    return [step_words(step) for step in plan(observe(truth)).now]


def planned(world: World, *kinds: type[Step]) -> RuleOutcome:
    """The steps of these kinds that are taken now (without a kind: all), and all that is waited for."""
    now = plan(world)
    return RuleOutcome(tuple(step for step in now.now if not kinds or isinstance(step, kinds)), now.waiting)


def about_to(*kinds: type[Step]) -> Stop:
    """When a step of one of these kinds is planned."""
    return lambda _, now: any(isinstance(step, kinds) for step in now.now)


def until(truth: FaultyTruth, stop: Stop, *, rounds: int = 300) -> FaultyTruth:
    """The truth at the first moment at which ``stop`` holds."""
    for _ in range(rounds):
        now = plan(observe(truth))
        if stop(truth, now):
            return truth
        assert not now.done, "it never came to that"
        truth = after_round(truth, now)
    raise AssertionError(f"not within {rounds} rounds: {plan(observe(truth))}")


def after_round(truth: FaultyTruth, now: Plan) -> FaultyTruth:
    for step in now.now:
        truth = apply(truth, step)
    return truth if now.now else tick(truth)


def later(truth: FaultyTruth, ticks: int) -> FaultyTruth:
    """What is planned is done, or time passes, until so many ticks are over."""
    end = truth.now + ticks
    while (now := plan(observe(truth))).now or truth.now < end:
        truth = after_round(truth, now)
    return truth


def why_not(truth: FaultyTruth) -> dict[str, str]:
    """Why what is not well is left as it is, by its name."""
    return dict(held_back(view(observe(truth))))


def steps_until(truth: FaultyTruth, stop: Stop, *, rounds: int = 300) -> list[str]:
    """All that is done until ``stop`` holds."""
    done: list[str] = []
    for _ in range(rounds):
        now = plan(observe(truth))
        if stop(truth, now):
            return done
        done.extend(step_words(step) for step in now.now)
        truth = after_round(truth, now)
    raise AssertionError(f"not within {rounds} rounds; last: {done[-10:]}")


def is_done(_: FaultyTruth, now: Plan) -> bool:
    return now.done


@cache
def serving(replicas: int = 3) -> World:
    """A plane at east, seen when all is as wanted."""
    return observe(settled(empty("east", replicas)))


def with_memory(world: W, **facts: Any) -> W:
    """The world, or the truth, with these facts remembered otherwise."""
    return replace(world, memory=replace(world.memory, **facts))


def with_membership(world: World, cluster: Cluster = Cluster.MAIN, **facts: Any) -> World:
    """The world with these facts of the members of a cluster seen otherwise."""
    known = world.membership_of(cluster)
    assert known is not None
    seen = replace(known, **facts)
    return replace(world, membership=seen) if cluster is Cluster.MAIN else replace(world, events_membership=seen)


def with_member(
    world: World, name: str, change: Callable[[MemberFact], MemberFact], cluster: Cluster = Cluster.MAIN
) -> World:
    """The world with one member of a cluster seen otherwise."""
    known = world.membership_of(cluster)
    assert known is not None
    members = tuple(change(each) if each.replica == name else each for each in known.members)
    return with_membership(world, cluster, members=members)


def without_member(world: World, name: str) -> World:
    """The world in which a replica is no member of the main cluster."""
    assert world.membership is not None
    return with_membership(world, members=tuple(each for each in world.membership.members if each.replica != name))


def joined_by(world: World, *members: MemberFact, cluster: Cluster = Cluster.MAIN) -> World:
    """The world with more members of a cluster."""
    known = world.membership_of(cluster)
    assert known is not None
    return with_membership(world, cluster, members=(*known.members, *members))


def with_fact(world: World, name: str, change: Callable[[ReplicaFact], ReplicaFact]) -> World:
    """The world with one replica seen otherwise."""
    return replace(world, replicas=tuple(change(each) if each.name == name else each for each in world.replicas))


def with_unit(world: World, name: str, component: Component, state: UnitState) -> World:
    """The world with one unit of a replica seen in another state."""

    def changed(fact: ReplicaFact) -> ReplicaFact:
        return replace(fact, units=tuple((dict(fact.units) | {component: state}).items()))

    return with_fact(world, name, changed)


def with_balancers(world: World, *balancers: BalancerFact) -> World:
    """The world with these load balancers in place of those of the same sites."""
    sites = {each.site for each in balancers}
    return replace(world, balancers=(*(each for each in world.balancers if each.site not in sites), *balancers))


def led_by(world: World, name: str | None) -> World:
    """The world with another leader, or with none that is known."""
    return with_membership(world, leader=name)


def steps_until_done(truth: FaultyTruth) -> list[tuple[float, Step]]:
    """What is done, each with when; the times are those of the truth."""
    found: list[tuple[float, Step]] = []
    for _ in range(100):
        now = plan(observe(truth))
        if now.done:
            return found
        for step in now.now:
            truth = apply(truth, step)
            found.append((truth.now, step))
        truth = truth if now.now else tick(truth)
    raise AssertionError(f"not done: {plan(observe(truth))}")
