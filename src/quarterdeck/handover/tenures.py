"""Tenures of locks: which process held which lock when, from the lock history in the journal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from pydantic import JsonValue

from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.handover.acts import Act

TAKEN, LEFT = "LockTaken", "LockLeft"


class TenureEntry(Protocol):
    """An entry of a journal: its kind, the time of the observation (seconds since the epoch), and its detail."""

    @property
    def kind(self) -> str: ...  # noqa: D102

    @property
    def time(self) -> float: ...  # noqa: D102

    @property
    def detail(self) -> Mapping[str, JsonValue]: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenure:
    """A lock (a Lease in kube-system) was held by ``holder`` (its identity), which is the ``component`` of ``replica``
    ("": not known), from ``begins`` to ``ends`` (None: it was when it was last looked at), in seconds since the epoch
    by the holder's clock. ``token`` counts the holders of a lock (leaseTransitions). It ends when it was ``released``,
    or else when it ran out: ``renewed`` (None: unknown) is when it was last renewed. ``unseen``: it must have ended
    before the next one took the lock, and its end was not observed.
    """

    lock: str
    component: str
    replica: str
    holder: str
    token: int
    begins: float
    ends: float | None = None
    released: bool = False
    renewed: float | None = None
    unseen: bool = False

    @property
    def process(self) -> tuple[str, str]:
        """The process: one per replica runs at a time."""
        return (self.component, self.replica) if self.known else ("", self.holder)

    def is_another(self, other: Tenure) -> bool:
        """Whether it was held by another process."""
        return self.holder != other.holder and self.process != other.process

    @property
    def known(self) -> bool:
        """Whether its replica is known."""
        return bool(self.component and self.replica)

    @property
    def description(self) -> str:
        """The process, in words."""
        return f"{self.component} of {self.replica}" if self.known else self.holder

    def until(self, end: float) -> float:
        """When it ended, at ``end`` at the latest."""
        return end if self.ends is None else min(self.ends, end)


@dataclass(frozen=True, slots=True)
class UnwatchedSpan:
    """The holder of ``lock`` was not observed from ``begins`` to ``ends``."""

    lock: str
    begins: float
    ends: float


def tenures_of(entries: Iterable[TenureEntry]) -> tuple[Tenure, ...]:
    """All tenures by lock, in their order. Repeated entries of one tenure agree."""
    found: dict[tuple[str, int, str], Tenure] = {}
    for entry in sorted(entries, key=lambda each: each.time):
        if entry.kind in (TAKEN, LEFT):
            tenure = _tenure(entry)
            key = tenure.lock, tenure.token, tenure.holder
            found[key] = _joined(found[key], tenure) if key in found else tenure
    ordered = sorted(found.values(), key=lambda each: (each.lock, each.begins, each.token))
    return tuple(_cut(each, ordered[number + 1 :]) for number, each in enumerate(ordered))


def unwatched(tenures: Sequence[Tenure], lock: str, since: float, until: float) -> tuple[UnwatchedSpan, ...]:
    """When between these times the holder of the lock was not observed. The token of each holder is one more than the
    one before, and the first is 0.
    """
    mine = sorted((each for each in tenures if each.lock == lock), key=lambda each: each.begins)
    if not mine:
        return (UnwatchedSpan(lock, since, until),)
    first = [] if mine[0].token == 0 else [UnwatchedSpan(lock, since, mine[0].begins)]
    between = [
        UnwatchedSpan(lock, before.until(after.begins), after.begins)
        for before, after in pairwise(mine)
        if after.token != before.token + 1
    ]
    return tuple(
        UnwatchedSpan(lock, max(each.begins, since), min(each.ends, until))
        for each in (*first, *between)
        if each.begins < until and each.ends > since and each.begins < each.ends
    )


def _tenure(entry: TenureEntry) -> Tenure:
    detail = entry.detail
    renewed = _number(detail.get("renewed"))
    made = Tenure(
        lock=str(detail.get("lock", "")),
        component=str(detail.get("component", "")),
        replica=str(detail.get("replica", "")),
        holder=str(detail.get("holder", "")),
        token=int(_number(detail.get("token")) or 0),
        begins=_number(detail.get("acquired")) or renewed or entry.time,
        renewed=renewed,
    )
    if entry.kind == TAKEN:
        return made
    released = detail.get("released") is True
    ran_out = (entry.time if renewed is None else renewed) + (_number(detail.get("duration")) or 0.0)
    return replace(made, released=released, ends=entry.time if released else ran_out)


def _joined(before: Tenure, later: Tenure) -> Tenure:
    """A tenure joined with a later entry about it."""
    component, replica = before.component or later.component, before.replica or later.replica
    if later.ends is None:
        return replace(before, component=component, replica=replica)
    return replace(
        before, component=component, replica=replica, ends=later.ends, released=later.released, renewed=later.renewed
    )


def _cut(tenure: Tenure, later: Sequence[Tenure]) -> Tenure:
    """A lock has one holder: it was free when the next one took it, whenever it was seen to be released. One that was
    taken before it ran out, or while nobody looked, was released unseen, or its Lease was deleted.
    """
    after = next((each for each in later if each.lock == tenure.lock), None)
    if after is None or (tenure.ends is not None and tenure.ends <= after.begins):
        return tenure
    ends = max(after.begins, tenure.begins, tenure.renewed or tenure.begins)
    return replace(tenure, ends=ends, unseen=not tenure.released)


def _number(value: JsonValue | None) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


# Which tenures of which locks made a process one that has a set of controllers.


@dataclass(frozen=True, slots=True)
class Assignment:
    """From ``since`` on (seconds since the epoch) the manager (``component``) of a replica was configured to run these
    sets, each under that lock; "" for one that it must not run. ``locks`` None: its configuration is unknown.
    """

    component: str
    replica: str
    since: float
    locks: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A set with what is known of its locks. ``before``: its owner at ``since`` (None: it had none); ``assignments``
    are all that are known, in any order.
    """

    of: ControllerSetSpec
    before: ControllerProgram | None
    assignments: tuple[Assignment, ...]
    tenures: tuple[Tenure, ...]
    since: float
    until: float
    slack: float

    @property
    def owners(self) -> tuple[tuple[float, ControllerProgram], ...]:
        """The owners of the set at the beginning and at the end."""
        first = () if self.before is None else ((self.since, self.before),)
        return (*first, (self.until, self.of.owner))

    def guard(self, act: Act) -> Tenure | None:
        """The tenure by which a process acted: of the set's own lock, or else of its manager's."""
        mine = [each for each in self.tenures if each.process == act.process and self._covers(each, act)]
        own = (each for each in mine if each.lock == self.of.lock)
        return next(own, None) or next((each for each in mine if each.lock == act.component), None)

    def nameless(self, act: Act) -> bool:
        """Whether an unknown process then held a lock under which the process of the act may have acted."""
        locks = (self.of.lock, act.component.value)
        return any(not each.known and each.lock in locks and self._covers(each, act) for each in self.tenures)

    def _covers(self, tenure: Tenure, act: Act) -> bool:
        # A write that is answered after the examined time is covered by the holder of the lock at that moment.
        return tenure.begins - self.slack <= act.begun and act.at <= tenure.until(math.inf) + self.slack

    def holding(self, acts: Sequence[Act]) -> tuple[Tenure, ...]:
        """The tenures by which processes had the set: all of its own lock, and of a manager's lock those under which
        it was configured to run the set, or acted for it (a process runs its controllers as long as it lives). Where
        the configuration is unknown, those of the set's owner while the set's own lock was free.
        """
        own = [each for each in self.tenures if each.lock == self.of.lock]
        acted = [found for each in acts if (found := self.guard(each)) is not None]
        main = [each for each in self.tenures if each.lock == each.component]
        assigned = [each for each in main if self._assigned_lock(each) == each.lock]
        owning = [
            each
            for time, owner in self.owners
            if not any(_at(each, time, self.until) for each in own)
            for each in main
            if each.lock == owner and self._assigned_lock(each) is None and _at(each, time, self.until)
        ]
        within = {each for each in (*own, *acted, *assigned, *owning) if self._is_within(each)}
        return tuple(sorted(within, key=lambda each: (each.begins, each.until(self.until))))

    def _assigned_lock(self, tenure: Tenure) -> str | None:
        """The lock under which a process was configured to run the set when it took its main lock; None if unknown."""
        mine = [each for each in self.assignments if (each.component, each.replica) == tenure.process]
        given = max((each for each in mine if each.since <= tenure.begins), key=lambda each: each.since, default=None)
        return None if given is None or given.locks is None else given.locks.get(self.of.name)

    def _is_within(self, tenure: Tenure) -> bool:
        return tenure.begins < self.until and tenure.until(self.until) > self.since


def _at(tenure: Tenure, time: float, until: float) -> bool:
    return tenure.begins <= time <= tenure.until(until)
