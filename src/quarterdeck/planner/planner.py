"""The planner: one observation in, the next safe steps out.

The rules are asked in order, and the first that has steps wins (steps that only start something go beside it): its
steps are quick, and everything is observed again before the next. What the rules before it wait for does not hold it
up, since each rule checks for itself what it needs; nor does a step of theirs that fails again and again, unless both
claim the same thing (``claims.py``).
"""

from __future__ import annotations

from quarterdeck.model.steps.base import Note, Step
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.waiting import Wait
from quarterdeck.model.world import World
from quarterdeck.planner import events, members, next_steps
from quarterdeck.planner.claims import Aside
from quarterdeck.planner.clusters import Rule, ask, waits_for_events
from quarterdeck.planner.outcome import Outcome
from quarterdeck.planner.rules import (
    attaching,
    data,
    founding,
    frozen,
    healing,
    membership,
    notes,
    recovery,
    release,
    reloading,
    rolling,
    serving,
    traffic,
    upkeep,
)
from quarterdeck.planner.space import needs_quota
from quarterdeck.planner.view import View, view

#: Rules that hold whether or not the membership could be read: none of them takes away what could serve, but what is of
#: an epoch that is over.
ALWAYS: tuple[Rule, ...] = (
    recovery.fence,
    attaching.go_on,
    attaching.rescue,
    recovery.begin,
    recovery.seed,
    data.withhold,
    founding.place,
    rolling.watch,
    rolling.reject,
    rolling.roll,
    founding.found,
    membership.keep_running,
)

#: Rules that need to know who is a member.
WITH_MEMBERSHIP: tuple[Rule, ...] = (
    recovery.fence,
    attaching.go_on,
    recovery.begin,
    recovery.withdraw,
    data.withhold,
    notes.note,
    traffic.relight,
    frozen.stop_frozen,
    healing.heal,
    attaching.readdress,
    founding.place,
    founding.found,
    membership.keep_running,
    membership.remove_strays,
    membership.remove_dead,
    rolling.watch,
    rolling.reject,
    rolling.roll,
    reloading.reload,
    membership.join,
    membership.rejoin,
    membership.promote,
    serving.serve,
    serving.rescue,
    traffic.backends,
    traffic.record,
    serving.control,
    upkeep.make_room,
    serving.retire,
    membership.lead,
    membership.swap,
    membership.remove,
    membership.stop_removed,
    traffic.let_go,
    events.dissolve,
    events.renew,
    serving.dismiss,
    serving.settled,
    rolling.prove,
)


#: Rules that go on while etcd has raised an alarm: what serves goes on and room is made, but no exchange goes on.
DESPITE_ALARMS: frozenset[Rule] = frozenset(
    (
        recovery.fence,
        attaching.go_on,
        attaching.readdress,
        recovery.begin,
        recovery.withdraw,
        data.withhold,
        notes.note,
        traffic.relight,
        frozen.stop_frozen,
        membership.keep_running,
        rolling.watch,
        rolling.roll,
        reloading.reload,
        serving.serve,
        serving.rescue,
        traffic.backends,
        traffic.record,
        serving.control,
        upkeep.make_room,
    )
)

#: Rules that go on besides while nothing but a larger quota makes room. A member that is not wanted gets none: it goes.
#: And one that is wanted gets it once the others are a quorum without it: learners are promoted for that.
DESPITE_A_SMALL_QUOTA: frozenset[Rule] = DESPITE_ALARMS | {
    membership.remove_dead,
    membership.promote,
    serving.retire,
    membership.lead,
    membership.remove,
    membership.stop_removed,
}

#: Rules that only start what is wanted, or stop what nobody may use: the rules after them need not wait for the next
#: observation.
BESIDE: tuple[Rule, ...] = (recovery.fence, serving.serve, serving.control)


def plan(world: World) -> Plan:
    """What to do now, why nothing can be done now, or that all is as wanted. Pure."""
    aside = Aside(world.failing)
    if world.deleting:
        down, _ = aside.sort(Outcome(*release.take_down(world)))
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
    last, _ = aside.sort(Outcome(steps))
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
        return ALWAYS
    if alarms:
        despite = DESPITE_A_SMALL_QUOTA if alarms == (members.NOSPACE,) and needs_quota(world) else DESPITE_ALARMS
        return tuple(rule for rule in WITH_MEMBERSHIP if rule in despite)
    return WITH_MEMBERSHIP


def _first(seen: View, rules: tuple[Rule, ...], aside: Aside) -> Outcome:
    beside: tuple[Step, ...] = ()
    waiting: dict[Wait, None] = {}
    for rule in rules:
        outcome, aside = aside.sort(ask(rule, seen))
        waiting.update(dict.fromkeys(outcome.waiting))
        if rule in BESIDE:
            beside += outcome.steps
        elif outcome.steps:
            # What is only written down takes no time, and then all is asked again of the same look.
            stops = all(isinstance(step, StopUnit) for step in beside)
            alone = stops and all(isinstance(step, Note) for step in outcome.steps)
            return Outcome(outcome.steps if alone else beside + outcome.steps, tuple(waiting))
    return Outcome(beside, tuple(waiting))
