"""What one rule says: steps to take now, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.plan import Wait


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """Steps are taken together; ``waiting`` has each thing that is waited for."""

    steps: tuple[Step, ...] = ()
    waiting: tuple[Wait, ...] = ()
