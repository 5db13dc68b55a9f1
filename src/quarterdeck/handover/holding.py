"""Which tenures of which locks made a process one that has a set of controllers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quarterdeck.api.plane.controllers import ControllerSet, Manager
from quarterdeck.handover.acts import Act
from quarterdeck.handover.tenures import Tenure


@dataclass(frozen=True, slots=True)
class Duty:
    """From ``since`` on (seconds since the epoch) the manager (``component``) of a replica was told to run these sets,
    each under that lock; "" for one that it is not to run. ``locks`` None: what it was told is not known any more.
    """

    component: str
    replica: str
    since: float
    locks: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A set with what is known of its locks. ``before``: its owner at ``since`` (None: it had none); ``duties`` are all
    that are known, in any order.
    """

    of: ControllerSet
    before: Manager | None
    duties: tuple[Duty, ...]
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
        # A write that is answered when the time that is looked at is over is covered by who holds the lock then.
        return tenure.begins - self.slack <= act.begun and act.at <= tenure.until(math.inf) + self.slack

    def holding(self, acts: Sequence[Act]) -> tuple[Tenure, ...]:
        """The tenures by which processes had the set: all of its own lock, and of a manager's lock those under which
        it was told to run the set, or acted for it (what a process runs, it runs as long as it lives). Where it is not
        known what it was told, those of the set's owner while nobody had the set's own lock.
        """
        own = [each for each in self.tenures if each.lock == self.of.lock]
        acted = [found for each in acts if (found := self.guard(each)) is not None]
        main = [each for each in self.tenures if each.lock == each.component]
        told = [each for each in main if self._told(each) == each.lock]
        owning = [
            each
            for time, owner in self.owners
            if not any(_at(each, time, self.until) for each in own)
            for each in main
            if each.lock == owner and self._told(each) is None and _at(each, time, self.until)
        ]
        within = {each for each in (*own, *acted, *told, *owning) if self._is_within(each)}
        return tuple(sorted(within, key=lambda each: (each.begins, each.until(self.until))))

    def _told(self, tenure: Tenure) -> str | None:
        """Under which lock a process was to run the set when it took the one of its manager; None if not known."""
        mine = [each for each in self.duties if (each.component, each.replica) == tenure.process]
        given = max((each for each in mine if each.since <= tenure.begins), key=lambda each: each.since, default=None)
        return None if given is None or given.locks is None else given.locks.get(self.of.name)

    def _is_within(self, tenure: Tenure) -> bool:
        return tenure.begins < self.until and tenure.until(self.until) > self.since


def _at(tenure: Tenure, time: float, until: float) -> bool:
    return tenure.begins <= time <= tenure.until(until)
