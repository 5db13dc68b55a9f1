"""The evaluation of a drill: from observations of the plane, and from clients' results, to times and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quarterdeck.model.faults import Fail
from quarterdeck.model.world import World
from quarterdeck.planner.survival import Survivability, survivals
from quarterdeck.planner.view import view


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One observation of a plane, ``at`` a time in seconds."""

    at: float
    #: Whether nothing is left to do.
    done: bool
    #: All problems, in sentences.
    troubles: frozenset[str] = frozenset()
    #: The problems that its manager reported.
    reported: frozenset[str] = frozenset()
    #: The failures that the plane survives as it is.
    survives: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The times at which a client's request was sent and ended, in seconds on any clock, and its outcome."""

    sent: float
    at: float
    ok: bool


def sight(world: World, *, at: float, done: bool, troubles: Iterable[str], reported: frozenset[str]) -> Sight:
    """The facts of a world that count, with what its manager has ``reported``."""
    found = frozenset(str(each.failure) for each in survivals(view(world)) if each.answer is Survivability.YES)
    return Sight(at=at, done=done, troubles=reported.union(troubles), reported=reported, survives=found)


def has_recovered(before: Sight, now: Sight) -> bool:
    """Whether a plane has recovered: nothing left to do, no new trouble, and it survives all that it did before."""
    return now.done and now.troubles <= before.troubles and before.survives <= now.survives


def detected(before: Sight, after: Sequence[Sight], struck: float) -> float | None:
    """Seconds until an observation found the plane impaired; None: none did, it was over before."""
    return next((each.at - struck for each in after if not has_recovered(before, each)), None)


def reported(before: Sight, after: Sequence[Sight], struck: float) -> float | None:
    """Seconds until an observation found a new report of the plane's manager; None: none did."""
    return next((each.at - struck for each in after if each.reported - before.reported), None)


def redundant(before: Sight, after: Sequence[Sight], struck: float) -> float | None:
    """Seconds until the plane had recovered, and stayed so; None: not yet."""
    if not after or not has_recovered(before, after[-1]):
        return None
    since = after[-1]
    for each in reversed(after):
        if not has_recovered(before, each):
            break
        since = each
    return 0.0 if since is after[0] else since.at - struck


def served_again(answers: Sequence[Answered], struck: float) -> float | None:
    """Seconds until clients were served again for good: the first answer after the last failure. 0: none failed; None:
    none was served since.
    """
    failures = [each.at for each in answers if not each.ok and each.at >= struck]
    if not failures:
        return 0.0
    last = max(failures)
    return min((each.at - struck for each in answers if each.ok and each.at > last), default=None)


def last_failure(answers: Sequence[Answered], struck: float) -> float | None:
    """Seconds until the last failing request ended; None: none failed."""
    return max((each.at - struck for each in answers if not each.ok and each.at >= struck), default=None)


def last_failed_sent(answers: Sequence[Answered], struck: float) -> float | None:
    """Seconds until the last failing request was sent, of those that were not in flight already; None: none was.

    Every request sent later was served, however long earlier ones took.
    """
    return max((each.sent - struck for each in answers if not each.ok and each.sent >= struck), default=None)


def verdict(
    fail: Fail,
    found: Detection,
    *,
    detected_after: float | None,
    redundant_after: float | None,
    lost: int,
    missed: int,
    audited: bool,
) -> str:
    """Why the outcome is not acceptable, as text; "" if it is. Requests may fail: people judge which, and when, by the
    list of failures.
    """
    faults = []
    if found.sought and detected_after is None:  # other failures may be over before an observation
        faults.append(f"{found.sought} was not detected")
    if lost:
        faults.append(f"{lost} acknowledged write{'s were' if lost > 1 else ' was'} lost")
    if missed:
        faults.append(f"{missed} event{'s were' if missed > 1 else ' was'} missed")
    if not audited:
        faults.append("what was written could not be read at the end")
    if redundant_after is None:
        faults.append(f"the plane has not recovered to its state before {fail} failed")
    return "; ".join(faults)


# The duration of a failure, and its detector, where observations of the plane do not show it at once.

#: Seconds for which a failure lasts at most by default.
HOLD = 30.0
#: A manager reads every 30 s how long syncs took, and uses two readings in a row.
_HOLDS: Mapping[Fail, float] = {Fail.SLOW_DISK: 120.0}
#: Seconds after which it has certainly done so, and reported it.
_FOUND = 90.0
_COMPARED = "the drill asks its manager to compare the data of all members, which it does by itself every ten minutes"
_UNKEPT = "it has no manager: its slow disk is not detected, and the leadership is not moved to another member"
_READ = (
    "its manager reads every 30 s how long syncs take, calls a disk slow after two readings, and moves the "
    "leadership to a member with a fast disk"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """How a failure is detected."""

    #: Whether only a report of the manager counts as detection.
    by_report: bool = False
    #: What must be detected for the drill to pass, as text; "" for nothing in particular.
    sought: str = ""
    #: How the detection works, in sentences.
    notes: tuple[str, ...] = ()


def hold_of(fail: Fail) -> float:
    """Seconds for which it lasts at most by default."""
    return _HOLDS.get(fail, HOLD)


def finding(fail: Fail, *, hold: float, manager: str, known: bool) -> Detection:
    """What must be detected of a failure that lasts for at most ``hold`` seconds. ``manager``: the plane's manager ("":
    none); ``known``: it was reported before the drill.
    """
    if fail is Fail.CORRUPT:
        return Detection(sought="a member with other data", notes=(_COMPARED,))
    if fail is not Fail.SLOW_DISK:
        return Detection()
    if not manager:
        return Detection(by_report=True, notes=(_UNKEPT,))
    return Detection(by_report=True, sought="a slow disk" if hold >= _FOUND and not known else "", notes=(_READ,))
