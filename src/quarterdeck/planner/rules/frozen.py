"""Managers of sets of controllers that stand still: stopped before their locks pass on to others."""

from __future__ import annotations

from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.units import UnitState
from quarterdeck.planner.outcome import Outcome
from quarterdeck.planner.view import View


def stop_frozen(view: View) -> Outcome:
    """A manager of controllers that has said nothing for so long that another one is about to take its locks is killed:
    it would go on acting for a while when it wakes. Not where all say nothing: then it is the host that is slow, or we
    that do not hear, and nobody takes a lock. It starts again as all that does not run.
    """
    return Outcome(
        tuple(
            StopUnit(
                site=record.site,
                why="it stands still, and another one is about to take its locks",
                replica=record.name,
                component=component,
            )
            for record in view.world.memory.replicas
            if view.reachable(record)
            for component in sorted(view.fact(record).frozen)
            if any(_is_well(view, other, component) for other in view.world.memory.replicas if other is not record)
        )
    )


def _is_well(view: View, record: Replica, component: Component) -> bool:
    return view.unit(record, component) is UnitState.RUNNING and component not in view.fact(record).silent
