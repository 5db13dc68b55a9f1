"""A small world in which steps have their effects, for dry runs and for the model checker of the tests.

An observation is derived from the state of this world (``Truth``), and time passes in ticks. Membership changes obey
etcd's rules; apiservers need healthy voters of their own; supervisors restart crashed programs. The effects of each
kind of step are in the module of its family.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from quarterdeck.model.remember import remember
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.placement import AttachVolumes, PlaceReplica
from quarterdeck.planner.simulated import clusters, healing, members, placement, stored, traffic, units
from quarterdeck.planner.simulated.effects import Effects, RefusedError
from quarterdeck.planner.simulated.guess import from_world
from quarterdeck.planner.simulated.members import found
from quarterdeck.planner.simulated.observation import observe
from quarterdeck.planner.simulated.time import tick
from quarterdeck.planner.simulated.truth import AnyTruth

#: What a kind of step does to the truth; others do nothing but to the memory.
EFFECTS: Effects = {
    **placement.EFFECTS,
    **clusters.EFFECTS,
    **healing.EFFECTS,
    **members.EFFECTS,
    **stored.EFFECTS,
    **units.EFFECTS,
    **traffic.EFFECTS,
}


def apply(truth: AnyTruth, step: Step) -> AnyTruth:
    """The truth after one step. Raises RefusedError when the world refuses, as the real one would."""
    if isinstance(step, PlaceReplica):
        step = placement.seated(truth, step)
    elif isinstance(step, AttachVolumes):
        step = placement.reseated(truth, step)
    effect = EFFECTS.get(type(step))
    changed = cast("AnyTruth", effect(truth, step)) if effect is not None else truth
    memory = remember(changed.memory, step, truth.now)
    return changed if memory is changed.memory else replace(changed, memory=memory)


__all__ = ["EFFECTS", "RefusedError", "apply", "found", "from_world", "observe", "tick"]
