"""Bringing replicas to another revision where programs take new files up while they run: nothing stops for it."""

from __future__ import annotations

from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.units import ReloadUnit
from quarterdeck.model.waiting import Wait
from quarterdeck.planner import next_steps
from quarterdeck.planner.outcome import Outcome
from quarterdeck.planner.resting import spared
from quarterdeck.planner.rules.serving import others_well
from quarterdeck.planner.view import View


def reload(view: View) -> Outcome:
    """One replica after the other gets the files of its next revision, while all others are well. When its program says
    that it has taken them up, it is of that revision (see ``rolling``). Who was given files of a revision that is no
    longer wanted gets its own back.
    """
    waiting = [each for each in view.wanted if view.loads(each) or _has_others(view, each)]
    if not waiting:
        return Outcome()
    record = waiting[0]
    if not spared(view, record):
        return Outcome(waiting=(others_well(view, record, "gets its new files"),))
    if not view.ready(record):
        return Outcome(waiting=(_apiserver(view, record, "to answer, which is to take up new files"),))
    if view.revision in view.fact(record).given:
        return Outcome(waiting=(_apiserver(view, record, "to go by its new files"),))
    why = "its program takes up what differs while it runs"
    step = ReloadUnit(
        site=record.site, why=why, replica=record.name, component=Component.APISERVER, revision=view.revision
    )
    return Outcome((step,))


def _apiserver(view: View, record: Replica, to: str) -> Wait:
    return next_steps.program(view.world, record, Component.APISERVER, to)


def _has_others(view: View, record: Replica) -> bool:
    """Whether the apiserver of a replica of the wanted revision says that it has files of another one."""
    loaded = view.fact(record).loaded
    others = loaded is not None and record.revision not in loaded
    return record.revision == view.revision and others and record.name not in view.world.cordoned
