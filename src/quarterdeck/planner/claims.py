"""What steps claim: where a step is put aside since it fails again and again, no later rule touches what it claims.

No rule assumes that an earlier one has done its work, so that this makes nothing safe that was not. It keeps order:
what an earlier rule wants done to a thing is done before what a later one wants done to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from quarterdeck.model.steps.base import Claim, Step
from quarterdeck.model.steps.members import Swap
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.world import Failing
from quarterdeck.planner.outcome import RuleOutcome

#: What follows on a step that failed.
_AGAIN = "quarterdeck tries it again by itself within seconds; if it goes on failing, mend what the error names"


def bare(step: Step) -> Step:
    """A step without its reason: the same one is the same, whatever it is planned for."""
    if isinstance(step, Swap):
        return replace(step, why="", changes=tuple(replace(change, why="") for change in step.changes))
    return replace(step, why="")


@dataclass(frozen=True, slots=True)
class BlockedClaims:
    """The steps that are put aside, and what is ``held`` back for those of the rules that were asked so far."""

    failing: tuple[Failing, ...] = ()
    held: frozenset[Claim] = frozenset()

    def told(self, step: Step) -> str | None:
        """Why a step is put aside; None if it is not."""
        same = bare(step)
        return next((each.told for each in self.failing if each.step == same), None)

    def sort(self, outcome: RuleOutcome) -> tuple[RuleOutcome, BlockedClaims]:
        """What a rule says without the steps that are put aside, and without those that would touch what is held back;
        and what is held back from then on. Steps of one rule do not wait for one another.
        """
        if not self.failing:
            return outcome, self
        told = {step: why for step in outcome.steps if (why := self.told(step)) is not None}
        now = tuple(step for step in outcome.steps if step not in told and step.claim not in self.held)
        mine = {what for step in told if (what := step.claim) is not None}
        failed = (Wait(each, _AGAIN) for each in told.values())
        return RuleOutcome(now, (*outcome.waiting, *failed)), replace(self, held=self.held | mine)
