"""Effects of healing on simulated machines."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.steps.healing import CordonMachine
from quarterdeck.planner.simulated.effects import Effects
from quarterdeck.planner.simulated.truth import Truth


def cordoned(truth: Truth, step: CordonMachine) -> Truth:
    """Cordon the machine: it gets no new replica."""
    machines = tuple(replace(each, cordoned=True) if each.name == step.machine else each for each in truth.machines)
    return replace(truth, machines=machines)


EFFECTS: Effects = {CordonMachine: cordoned}
