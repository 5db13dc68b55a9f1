"""Which tenures of which locks made a process one that has a set of controllers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quarterdeck.api.controllers import ControllerSet, Manager
from quarterdeck.handover.acts import Act
from quarterdeck.handover.tenures import Tenure


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A set with what is known of its locks. ``before``: its owner at ``since`` (None: it had none)."""

    of: ControllerSet
    before: Manager | None
    tenures: tuple[Tenure, ...]
    since: float
    until: float
    slack: float

    @property
    def owners(self) -> tuple[tuple[float, Manager], ...]:
        """Whose the set was when this began, and is when it ends."""
        first = () if self.before is None else ((self.since, self.before),)
        return (*first, (self.until, self.of.owner))

    def guard(self, act: Act) -> Tenure | None:
        """The tenure by which a process acted: of the set's own lock, or else of its manager's."""
        mine = [each for each in self.tenures if each.process == act.process and self._covers(each, act)]
        own = (each for each in mine if each.lock == self.of.lock)
        return next(own, None) or next((each for each in mine if each.lock == act.component), None)

    def nameless(self, act: Act) -> bool:
        """Whether somebody of whom it is not known who it is held a lock then by which the process may have acted."""
        locks = (self.of.lock, act.component.value)
        return any(not each.known and each.lock in locks and self._covers(each, act) for each in self.tenures)

    def _covers(self, tenure: Tenure, act: Act) -> bool:
        return tenure.begins - self.slack <= act.begun and act.at <= tenure.until(self.until) + self.slack

    def holding(self, acts: Sequence[Act]) -> tuple[Tenure, ...]:
        """The tenures by which processes had the set: all of its own lock; of a manager's lock those under which it
        acted for the set (what a process runs, it runs as long as it lives), and those of its owner while nobody had
        the set's own.
        """
        own = [each for each in self.tenures if each.lock == self.of.lock]
        acted = [found for each in acts if (found := self.guard(each)) is not None]
        owning = [
            each
            for time, owner in self.owners
            if not any(_at(each, time, self.until) for each in own)
            for each in self.tenures
            if each.lock == owner and _at(each, time, self.until)
        ]
        within = {each for each in (*own, *acted, *owning) if self._is_within(each)}
        return tuple(sorted(within, key=lambda each: (each.begins, each.until(self.until))))

    def _is_within(self, tenure: Tenure) -> bool:
        return tenure.begins < self.until and tenure.until(self.until) > self.since


def _at(tenure: Tenure, time: float, until: float) -> bool:
    return tenure.begins <= time <= tenure.until(until)
