"""The planner: one observation in, the next safe steps out.

The rules are evaluated in order, and the first one with steps wins (steps that only start something go along with it):
its steps are quick, and everything is observed again before the next. A wait of an earlier rule does not block it,
since each rule checks its own preconditions; nor does a failing step of an earlier rule, unless both claim the same
thing (``claims.py``).
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
from quarterdeck.planner.rules import release, standby
from quarterdeck.planner.space import needs_quota
from quarterdeck.planner.view import View, view


def plan(world: World) -> Plan:
    """The steps to take now, or the waits; neither if the plane is up to date. Pure."""
    aside = BlockedClaims(world.failing)
    if world.deleting:
        down, _ = aside.sort(RuleOutcome(*release.take_down(world)))
        return Plan(now=down.steps, waiting=down.waiting)
    seen = view(world)
    alarms = members.all_raised(world)
    outcome = _first(seen, _rules(world, alarms), aside)
    if world.membership is None:
        # Unknown is not zero: nothing is removed, and the plane is not up to date, until a quorum has answered.
        unread = () if outcome.waiting else (_unread(seen.world),)
        return Plan(now=outcome.steps, waiting=(*outcome.waiting, *unread))
    waiting = (*(members.awaited(world, kind) for kind in alarms), *outcome.waiting, *waits_for_events(seen))
    if outcome.steps or waiting:
        return Plan(now=outcome.steps, waiting=waiting)
    steps, leftovers = release.release(seen)
    last, _ = aside.sort(RuleOutcome(steps, () if steps else standby.waits(seen)))
    return Plan(now=last.steps, waiting=last.waiting, leftovers=(*leftovers, *standby.left_behind(seen)))


def _unread(world: World) -> Wait:
    """The wait while the members are unknown."""
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
            # A note takes no time, and then the rules are evaluated again with the same observation.
            stops = all(isinstance(step, StopUnit) for step in beside)
            alone = stops and all(isinstance(step, Note) for step in outcome.steps)
            return RuleOutcome(outcome.steps if alone else beside + outcome.steps, tuple(waiting))
    return RuleOutcome(beside, tuple(waiting))


# Rules about members are evaluated once for each etcd cluster: each cluster obeys them by itself.


def ask(rule: Rule, view: View) -> RuleOutcome:
    """The outcome of a rule for the plane: for both clusters if it is about members, as steps in one cluster do not
    touch the other.
    """
    main, events = rule.ask(view), view.events
    if events is None or not rule.per_cluster or not (rule.unread or events.world.membership is not None):
        return main
    if not rule.unwanted and not view.wants_events:
        return main
    other = rule.ask(events)
    waiting = tuple(replace(each, what=f"events' etcd: {each.what}") for each in other.waiting)
    return RuleOutcome(main.steps + other.steps, main.waiting + waiting)


def waits_for_events(view: View) -> tuple[Wait, ...]:
    """The wait as long as the membership of a wanted events' cluster is unknown."""
    events = view.events
    if events is None or events.world.membership is not None or not view.wants_events:
        return ()
    return (not_read(view.world),)
