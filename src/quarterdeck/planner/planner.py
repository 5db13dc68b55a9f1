"""The planner: one observation in, the next safe steps out.

The rules are asked in order, and the first that has steps wins (steps that only start something go beside it): its
steps are quick, and everything is observed again before the next. What the rules before it wait for does not hold it
up, since each rule checks for itself what it needs; nor does a step of theirs that fails again and again, unless both
claim the same thing (``claims.py``).
"""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.steps.base import Note, Step
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.world import World
from quarterdeck.planner import members, next_steps
from quarterdeck.planner.claims import BlockedClaims
from quarterdeck.planner.events import not_read
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rule import Despite, Members, Rule
from quarterdeck.planner.rule_table import RULES
from quarterdeck.planner.rules import release
from quarterdeck.planner.space import needs_quota
from quarterdeck.planner.view import View, view


def plan(world: World) -> Plan:
    """What to do now, why nothing can be done now, or that all is as wanted. Pure."""
    aside = BlockedClaims(world.failing)
    if world.deleting:
        down, _ = aside.sort(RuleOutcome(*release.take_down(world)))
        return Plan(now=down.steps, waiting=down.waiting)
    seen = view(world)
    alarms = members.all_raised(world)
    outcome = _first(seen, _rules(world, alarms), aside)
    if world.membership is None:
        # Unknown is not zero: nothing is taken away, and nothing is done, until a quorum has answered.
        unread = () if outcome.waiting else (_unread(world),)
        return Plan(now=outcome.steps, waiting=(*outcome.waiting, *unread))
    waiting = (*(members.awaited(world, kind) for kind in alarms), *outcome.waiting, *waits_for_events(seen))
    if outcome.steps or waiting:
        return Plan(now=outcome.steps, waiting=waiting)
    steps, leftovers = release.release(seen)
    last, _ = aside.sort(RuleOutcome(steps))
    return Plan(now=last.steps, waiting=last.waiting, leftovers=leftovers)


def _unread(world: World) -> Wait:
    """Why nothing is known of the members."""
    recorded = world.memory.replicas
    names = ", ".join(each.name for each in recorded if each.listed) or ", ".join(each.name for each in recorded)
    if not names:
        return Wait("etcd of the plane to answer", next_steps.status(world))
    return Wait(f"a quorum of the members {names} to answer", next_steps.quorum(world))


def _rules(world: World, alarms: tuple[str, ...]) -> tuple[Rule, ...]:
    if world.membership is None:
        return tuple(rule for rule in RULES if rule.members is not Members.KNOWN)
    small = alarms == (members.NOSPACE,) and needs_quota(world)
    return tuple(rule for rule in RULES if rule.members is not Members.UNKNOWN and _goes_on(rule, alarms, small))


def _goes_on(rule: Rule, alarms: tuple[str, ...], small: bool) -> bool:
    """Whether a rule is asked in spite of these alarms. ``small``: nothing but a larger quota ends them."""
    return not alarms or rule.despite is Despite.ALARMS or (small and rule.despite is Despite.A_SMALL_QUOTA)


def _first(seen: View, rules: tuple[Rule, ...], aside: BlockedClaims) -> RuleOutcome:
    beside: tuple[Step, ...] = ()
    waiting: dict[Wait, None] = {}
    for rule in rules:
        outcome, aside = aside.sort(ask(rule, seen))
        waiting.update(dict.fromkeys(outcome.waiting))
        if rule.beside:
            beside += outcome.steps
        elif outcome.steps:
            # What is only written down takes no time, and then all is asked again of the same look.
            stops = all(isinstance(step, StopUnit) for step in beside)
            alone = stops and all(isinstance(step, Note) for step in outcome.steps)
            return RuleOutcome(outcome.steps if alone else beside + outcome.steps, tuple(waiting))
    return RuleOutcome(beside, tuple(waiting))


# Rules about members are asked once for each etcd cluster: each keeps them by itself.


def ask(rule: Rule, view: View) -> RuleOutcome:
    """What a rule says of the plane: one about members of both clusters, as steps in one touch nothing of the other."""
    main, events = rule.ask(view), view.events
    if events is None or not rule.per_cluster or not (rule.unread or events.world.membership is not None):
        return main
    if not rule.unwanted and not view.wants_events:
        return main
    other = rule.ask(events)
    told = tuple(replace(each, what=f"events' etcd: {each.what}") for each in other.waiting)
    return RuleOutcome(main.steps + other.steps, main.waiting + told)


def waits_for_events(view: View) -> tuple[Wait, ...]:
    """What is waited for as long as the membership of a cluster is not known that somebody is to keep events in."""
    events = view.events
    if events is None or events.world.membership is not None or not view.wants_events:
        return ()
    return (not_read(view.world),)
