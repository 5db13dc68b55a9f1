"""What one rule says: steps to take now, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.model.steps import Step


@dataclass(frozen=True, slots=True)
class Outcome:
    """Steps are taken together; ``waiting`` has a sentence for each thing waited for."""

    steps: tuple[Step, ...] = ()
    waiting: tuple[str, ...] = ()
