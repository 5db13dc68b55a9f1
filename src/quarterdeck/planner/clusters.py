"""Rules about members are asked once for each etcd cluster: each keeps them by itself."""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.planner.events import wants_events
from quarterdeck.planner.outcome import Outcome
from quarterdeck.planner.view import View

Rule = Callable[[View], Outcome]


def in_each(rule: Rule, *, unread: bool = False, leaving: bool = False) -> Rule:
    """The rule for both clusters, whose steps do not touch each other. Of the events' one it is asked where its
    membership could be read (``unread``: also where not), and as long as it is wanted (``leaving``: as long as it is
    there).
    """

    def asked(view: View) -> Outcome:
        main, events = rule(view), view.events
        if events is None or not (unread or events.world.membership is not None):
            return main
        if not leaving and not wants_events(view.world, view.wanted, view.revision):
            return main
        other = rule(events)
        told = tuple(f"etcd of events: {each}" for each in other.waiting)
        return Outcome(main.steps + other.steps, main.waiting + told)

    return asked


def waits_for_events(view: View) -> tuple[str, ...]:
    """What is waited for as long as the membership of a cluster is not known that somebody is to keep events in."""
    events = view.events
    if events is None or events.world.membership is not None:
        return ()
    if not wants_events(view.world, view.wanted, view.revision):
        return ()
    return (
        "a quorum of the members of the etcd of events to answer; if it is gone for good, set"
        " spec.etcd.events.separate to false",
    )
