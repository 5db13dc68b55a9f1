"""What a planner answers."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.model.steps.base import Step
from quarterdeck.model.waiting import Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now (all at once), what is waited for, and what will be cleaned up when its machine is back."""

    now: tuple[Step, ...] = ()
    waiting: tuple[Wait, ...] = ()
    leftovers: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Nothing to do and nothing to wait for. ``leftovers`` may remain on machines that do not answer."""
        return not self.now and not self.waiting
