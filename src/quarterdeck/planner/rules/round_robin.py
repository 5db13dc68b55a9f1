"""Round robin: the plane's name leads to its apiservers themselves, with no load balancer between."""

from __future__ import annotations

from collections.abc import Collection

from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.traffic import LeadTo
from quarterdeck.model.waiting import Wait
from quarterdeck.planner import next_steps
from quarterdeck.planner.outcome import Outcome
from quarterdeck.planner.view import View


def follow(view: View, leaving: Collection[str]) -> Outcome:
    """The name has the addresses of those apiservers that are ready and stay. It comes to lead to them once they can
    carry the traffic, or where it leads nowhere; and follows them from then on, also while it is to lead elsewhere.
    """
    world = view.world
    if APISERVERS not in (world.record, view.door) or not world.record_known or world.foreign:
        return Outcome()
    named = chosen(view, leaving)
    if not named:
        return Outcome(waiting=(Wait("a ready apiserver for the name to lead to", next_steps.status(world)),))
    if world.record == APISERVERS:
        if set(named) == world.apiservers.backends:
            return Outcome()
        why = "clients are led to the apiservers that are ready and stay"
    elif world.record is None or view.takeover or not world.balancer(world.record).ready:
        why = "the apiservers carry the traffic by themselves"
    else:
        return Outcome(waiting=(Wait("the apiservers to carry the traffic", next_steps.status(world)),))
    return Outcome((LeadTo(site="", why=why, backends=named),))


def chosen(view: View, leaving: Collection[str]) -> tuple[str, ...]:
    """The replicas whose addresses the name is to have; none where nobody is ready: then it stays as it is."""
    stay = [each for each in view.world.memory.replicas if each.name not in {*leaving, *view.world.elsewhere}]
    if view.world.promoted:
        stay = _of_one(view, stay)
    if not any(map(view.ready, stay)):
        return ()
    return tuple(each.name for each in stay if view.ready(each) or _may_be_ready(view, each))


def _of_one(view: View, stay: list[Replica]) -> list[Replica]:
    """An address that only one of them can have is for those that are wanted; on its way to a load balancer it stays
    where it is as long as that one serves.
    """
    has, straight = view.world.apiservers.backends, view.door == APISERVERS
    chosen = [each for each in stay if (each in view.wanted if straight else each.name in has)]
    return chosen if any(map(view.ready, chosen)) else stay


def _may_be_ready(view: View, record: Replica) -> bool:
    """Whether the name goes on leading to an apiserver that does not answer us: clients may see more than we do, until
    the cluster does not hear its member either.
    """
    there = record.name in view.world.apiservers.backends
    return there and view.fact(record).ready is None and not view.apiserver_off(record)
