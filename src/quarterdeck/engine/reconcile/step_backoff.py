"""The backoff of failed steps: a step that keeps failing does not block others."""

from __future__ import annotations

from dataclasses import dataclass, field

from quarterdeck.model.steps.base import Note, Step
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.world import Failing
from quarterdeck.planner.claims import bare

#: Seconds of backoff after the first failure, doubled with each further one, and the maximum.
SHORTEST = 0.2
LONGEST = 2.0
#: The backoff is at least so many times as long as the attempt took: the others get most of the time.
_TIMES_AS_LONG = 3
#: Seconds for which a step that is no longer planned is remembered.
_REMEMBERED = 10.0
_MOST_WORDS = 300


@dataclass(slots=True)
class _Failed:
    error: str
    message: str
    times: int
    until: float


@dataclass(slots=True)
class StepBackoff:
    """The failed steps of a driver. All times are of one monotonic clock, in seconds."""

    _failed: dict[Step, _Failed] = field(default_factory=dict)

    def now(self, at: float) -> tuple[Failing, ...]:
        """The steps that are in backoff."""
        return tuple(Failing(step=step, error=each.message) for step, each in self._failed.items() if each.until > at)

    def knows(self, step: Step) -> bool:
        """Whether its last attempt failed."""
        return bare(step) in self._failed

    def put(self, step: Step, error: str, *, began: float, at: float) -> bool:
        """Record a failed step. Returns whether that is news: its last attempt did not fail with this error."""
        known = self._failed.get(bare(step))
        times = known.times if known is not None else 0
        pause = max(min(SHORTEST * 2**times, LONGEST), _TIMES_AS_LONG * (at - began))
        # Where a note cannot be written no step that depends on it may be taken.
        pause = 0.0 if isinstance(step, Note) else pause
        line = " ".join(error.split())
        line = line if len(line) <= _MOST_WORDS else f"{line[:_MOST_WORDS]}..."
        self._failed[bare(step)] = _Failed(error, f"'{step.words}' to succeed: {line}", times + 1, at + pause)
        return known is None or known.error != error

    def went(self, step: Step) -> bool:
        """Record a successful step. Returns whether it had failed before."""
        return self._failed.pop(bare(step), None) is not None

    def looked(self, plan: Plan, at: float) -> None:
        """Forget failed steps some time after they are no longer planned."""
        planned = set(map(bare, plan.now))
        self._failed = {
            step: each for step, each in self._failed.items() if step in planned or at - each.until < _REMEMBERED
        }
