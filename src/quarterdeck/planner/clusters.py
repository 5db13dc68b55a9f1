"""Rules about members are asked once for each etcd cluster: each keeps them by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quarterdeck.model.waiting import Wait
from quarterdeck.planner.events import not_read
from quarterdeck.planner.outcome import Outcome
from quarterdeck.planner.rules import attaching, founding, membership, upkeep
from quarterdeck.planner.view import View

Rule = Callable[[View], Outcome]

#: Rules about the members of a cluster, by what must be so of the events' one for them to be asked of it: it is wanted,
#: and its membership could be read, but for those that only start members. What runs of it goes on as long as it is
#: there, and has room.
IN_EACH: frozenset[Rule] = frozenset(
    (
        attaching.readdress,
        founding.found,
        membership.keep_running,
        membership.remove_strays,
        membership.remove_dead,
        membership.join,
        membership.rejoin,
        membership.promote,
        membership.lead,
        membership.swap,
        membership.remove,
        membership.stop_removed,
        upkeep.make_room,
    )
)
UNREAD: frozenset[Rule] = frozenset((founding.found, membership.keep_running))
LEAVING: frozenset[Rule] = frozenset((membership.keep_running, upkeep.make_room))


def ask(rule: Rule, view: View) -> Outcome:
    """What a rule says of the plane: one about members of both clusters, as steps in one touch nothing of the other."""
    main, events = rule(view), view.events
    if events is None or rule not in IN_EACH or not (rule in UNREAD or events.world.membership is not None):
        return main
    if rule not in LEAVING and not view.wants_events:
        return main
    other = rule(events)
    told = tuple(replace(each, what=f"events' etcd: {each.what}") for each in other.waiting)
    return Outcome(main.steps + other.steps, main.waiting + told)


def waits_for_events(view: View) -> tuple[Wait, ...]:
    """What is waited for as long as the membership of a cluster is not known that somebody is to keep events in."""
    events = view.events
    if events is None or events.world.membership is not None or not view.wants_events:
        return ()
    return (not_read(view.world),)
