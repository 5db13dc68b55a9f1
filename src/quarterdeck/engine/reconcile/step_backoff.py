"""Steps that failed, and for how long each is put aside, so that one that fails again and again holds up no others."""

from __future__ import annotations

from dataclasses import dataclass, field

from quarterdeck.model.steps.base import Note, Step
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.world import Failing
from quarterdeck.planner.claims import bare

#: Seconds for which a step is put aside when it has failed once, doubled with each time that it fails again, and the
#: longest.
SHORTEST = 0.2
LONGEST = 2.0
#: One that takes its time to fail is put aside for as many times as long: the others get most of the time.
_TIMES_AS_LONG = 3
#: Seconds for which a step that is planned no more is remembered.
_REMEMBERED = 10.0
_MOST_WORDS = 300


@dataclass(slots=True)
class _Failed:
    error: str
    told: str
    times: int
    until: float


@dataclass(slots=True)
class StepBackoff:
    """What a driver remembers of steps that failed. All times are of one clock that only grows, in seconds."""

    _failed: dict[Step, _Failed] = field(default_factory=dict)

    def now(self, at: float) -> tuple[Failing, ...]:
        """The steps whose time to be tried again has not come."""
        return tuple(Failing(step=step, told=each.told) for step, each in self._failed.items() if each.until > at)

    def knows(self, step: Step) -> bool:
        """Whether it failed when it was last tried."""
        return bare(step) in self._failed

    def put(self, step: Step, error: str, *, began: float, at: float) -> bool:
        """A step failed. Whether that is news: it did not fail so the last time."""
        known = self._failed.get(bare(step))
        times = known.times if known is not None else 0
        pause = max(min(SHORTEST * 2**times, LONGEST), _TIMES_AS_LONG * (at - began))
        # Where a note cannot be written nothing that depends on it may be done.
        pause = 0.0 if isinstance(step, Note) else pause
        line = " ".join(error.split())
        line = line if len(line) <= _MOST_WORDS else f"{line[:_MOST_WORDS]}..."
        self._failed[bare(step)] = _Failed(error, f"'{step.words}' to succeed: {line}", times + 1, at + pause)
        return known is None or known.error != error

    def went(self, step: Step) -> bool:
        """A step was taken and went well. Whether it had failed before."""
        return self._failed.pop(bare(step), None) is not None

    def looked(self, plan: Plan, at: float) -> None:
        """A step that was to be tried again and is not planned any more is forgotten after a while."""
        planned = set(map(bare, plan.now))
        self._failed = {
            step: each for step, each in self._failed.items() if step in planned or at - each.until < _REMEMBERED
        }
