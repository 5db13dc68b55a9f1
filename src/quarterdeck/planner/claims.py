"""Claims of steps: while a failing step is in backoff, no later rule touches the thing that it claims.

No rule assumes that an earlier one has done its work, so safety does not depend on this. It keeps the order: the change
of an earlier rule to a thing comes before the change of a later rule to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from quarterdeck.model.steps.base import Claim, Step
from quarterdeck.model.steps.members import Swap
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.world import Failing
from quarterdeck.planner.outcome import RuleOutcome

#: The next step of a person after a failed step.
_AGAIN = "quarterdeck retries it within seconds; if it keeps failing, fix what the error names"


def bare(step: Step) -> Step:
    """A step without its reason, for comparison: the reason does not make it another step."""
    if isinstance(step, Swap):
        return replace(step, why="", changes=tuple(replace(change, why="") for change in step.changes))
    return replace(step, why="")


@dataclass(frozen=True, slots=True)
class BlockedClaims:
    """The steps in backoff, and the claims ``held`` for those of the rules evaluated so far."""

    failing: tuple[Failing, ...] = ()
    held: frozenset[Claim] = frozenset()

    def error_of(self, step: Step) -> str | None:
        """The error for which a step is in backoff; None if it is not."""
        same = bare(step)
        return next((each.error for each in self.failing if each.step == same), None)

    def sort(self, outcome: RuleOutcome) -> tuple[RuleOutcome, BlockedClaims]:
        """The outcome of a rule without steps in backoff, and without those that would touch a held claim; and the
        claims held from then on. Steps of one rule do not wait for one another.
        """
        if not self.failing:
            return outcome, self
        errors = {step: why for step in outcome.steps if (why := self.error_of(step)) is not None}
        now = tuple(step for step in outcome.steps if step not in errors and step.claim not in self.held)
        mine = {what for step in errors if (what := step.claim) is not None}
        failed = (Wait(each, _AGAIN) for each in errors.values())
        return RuleOutcome(now, (*outcome.waiting, *failed)), replace(self, held=self.held | mine)
