"""Bringing replicas to another revision: the programs that differ are started anew, one replica at a time."""

from __future__ import annotations

from quarterdeck.model.clusters import MEMBER
from quarterdeck.model.components import CONTROLLERS, Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps import AdoptRevision, RejectRevision, Step, StopUnit
from quarterdeck.model.units import IDLE
from quarterdeck.planner.events import not_ready_for
from quarterdeck.planner.membership import hand_over
from quarterdeck.planner.outcome import Outcome
from quarterdeck.planner.revisions import costs_nothing, ends_by_itself
from quarterdeck.planner.traffic import drains
from quarterdeck.planner.view import View


def roll(view: View) -> Outcome:
    """The replica that rests stops what has to stop: its controllers, then its apiserver once it has drained, then etcd
    once it does not lead. When all of that is stopped it is of the next revision, and the other rules start it again.
    """
    rest = view.resting
    if rest is None:
        return Outcome(waiting=_not_yet(view))
    record = rest.replica
    running = [each for each in reversed(Component) if each in rest.stops and view.unit(record, each) not in IDLE]
    if not running:
        why = "none of its programs runs as another revision has it"
        return Outcome((AdoptRevision(site="", why=why, replica=record.name, revision=view.revision),))
    controllers = tuple(each for each in running if each in CONTROLLERS)
    if controllers:
        return Outcome(tuple(_stop(view, record, each) for each in controllers))
    free = costs_nothing(view.world, record, rest.stops)
    if running[0] is Component.APISERVER:
        return Outcome((_stop(view, record, Component.APISERVER),)) if free else _drained(view, record)
    return _stop_member(view, record, running[0])


def _not_yet(view: View) -> tuple[str, ...]:
    """Why no replica rests though one is behind."""
    behind = [each for each in view.behind if not view.loads(each)]
    if not behind:
        return ()
    apart = not_ready_for(view, behind[0]) if view.revision in view.world.separate else ()
    return apart or (f"all others to be well before {behind[0].name} is started anew",)


def _stop(view: View, record: Replica, component: Component) -> Step:
    why = "it is started anew, as its next revision says"
    if view.revision in view.fact(record).stuck:
        why = "it has not taken up its new files while it ran: it is started anew"
    return StopUnit(site=record.site, why=why, replica=record.name, component=component)


def _drained(view: View, record: Replica) -> Outcome:
    drain = drains(view, record)
    return Outcome(waiting=(drain,)) if drain else Outcome((_stop(view, record, Component.APISERVER),))


def _stop_member(plane: View, record: Replica, component: Component) -> Outcome:
    """Stop etcd: never while it leads others that could."""
    view = plane if component is MEMBER[plane.cluster] else plane.events
    if view is None or view.world.membership is None or view.world.membership.leader != record.name:
        return Outcome((_stop(plane, record, component),))
    others = (each for each in view.voting if each.name != record.name)
    step = hand_over(view, others, f"{record.name} leads, and its etcd is started anew")
    if step is None:
        return Outcome(waiting=(f"another voter to lead in the place of {record.name}",))
    return Outcome((step,))


def reject(view: View) -> Outcome:
    """A revision is given up when a program that it changes ends again and again on the first replica that runs it,
    while there are others that run another revision. (Across sites nothing is given up: the source serves on, and the
    user can go back.)
    """
    world = view.world
    here = {each.site for each in world.memory.replicas} == {world.slots[0].site}
    if view.revision != world.revision or not world.settings.goes_back or not here:
        return Outcome()
    former = {each.revision for each in world.memory.replicas}
    for record in world.memory.replicas:
        if record.revision != view.revision:
            continue
        for component in Component:
            if ends_by_itself(world, record, component) and any(_changes(view, each, component) for each in former):
                why = f"{component} of {record.name} ends again and again"
                return Outcome(
                    (
                        RejectRevision(
                            site=record.site,
                            why=why,
                            revision=view.revision,
                            replica=record.name,
                            component=component,
                        ),
                    )
                )
    return Outcome()


def _changes(view: View, former: str, component: Component) -> bool:
    change = view.world.change(former, view.revision)
    return change.exchange or component in change.restart | change.reload
