"""Rules about members are asked once for each etcd cluster: each keeps them by itself."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.waiting import Wait
from quarterdeck.planner.events import not_read
from quarterdeck.planner.outcome import Outcome
from quarterdeck.planner.rule import Rule
from quarterdeck.planner.view import View


def ask(rule: Rule, view: View) -> Outcome:
    """What a rule says of the plane: one about members of both clusters, as steps in one touch nothing of the other."""
    main, events = rule.ask(view), view.events
    if events is None or not rule.per_cluster or not (rule.unread or events.world.membership is not None):
        return main
    if not rule.unwanted and not view.wants_events:
        return main
    other = rule.ask(events)
    told = tuple(replace(each, what=f"events' etcd: {each.what}") for each in other.waiting)
    return Outcome(main.steps + other.steps, main.waiting + told)


def waits_for_events(view: View) -> tuple[Wait, ...]:
    """What is waited for as long as the membership of a cluster is not known that somebody is to keep events in."""
    events = view.events
    if events is None or events.world.membership is not None or not view.wants_events:
        return ()
    return (not_read(view.world),)
