"""Effects on what the simulated etcd stores: none, but a check of it is refused while it may become unreadable."""

from __future__ import annotations

from quarterdeck.model.components import Component
from quarterdeck.model.steps.stored import CheckStored
from quarterdeck.planner.simulated.effects import Effects, RefusedError
from quarterdeck.planner.simulated.truth import Truth


def checked(truth: Truth, step: CheckStored) -> Truth:
    """All that is stored is read. Raises RefusedError where a program may store what that revision cannot read."""
    for record in truth.memory.replicas:
        runs = Component.APISERVER in truth.replica(record.name).units
        if runs and frozenset((record.revision, step.revision)) in truth.apart:
            raise RefusedError(f"the apiserver of {record.name} stores what revision {step.revision} cannot read")
    return truth


EFFECTS: Effects = {CheckStored: checked}
