"""The outcome of one rule: steps to take now, and waits."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.plan import Wait


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """Steps are taken together; ``waiting`` has every thing that the rule waits for."""

    steps: tuple[Step, ...] = ()
    waiting: tuple[Wait, ...] = ()
