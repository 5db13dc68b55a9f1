"""What the course of a drill comes to: from looks at the plane, and from what clients saw, to times and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quarterdeck.model.faults import Fail
from quarterdeck.model.world import World
from quarterdeck.planner.survival import Survivability, survivals
from quarterdeck.planner.view import view


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """A plane as one look found it, ``at`` so many seconds. ``done``: nothing is left to do; ``troubles``: what is not
    well, in sentences, and ``told`` those of them that its manager had to tell; ``survives``: the failures that it
    survives as it is.
    """

    at: float
    done: bool
    troubles: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()
    survives: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """When a client's request was sent, and when it ended, in seconds on any clock, and how."""

    sent: float
    at: float
    ok: bool


def sight(world: World, *, at: float, done: bool, troubles: Iterable[str], told: frozenset[str]) -> Sight:
    """What there is to be seen of a world, with what its manager has ``told``."""
    found = frozenset(str(each.failure) for each in survivals(view(world)) if each.answer is Survivability.YES)
    return Sight(at=at, done=done, troubles=told.union(troubles), told=told, survives=found)


def whole(before: Sight, now: Sight) -> bool:
    """Whether a plane is as it was: nothing left to do, no new trouble, and it survives all that it did."""
    return now.done and now.troubles <= before.troubles and before.survives <= now.survives


def detected(before: Sight, after: Sequence[Sight], struck: float) -> float | None:
    """Seconds until a look found the plane not to be as it was; None: none did, it was over before."""
    return next((each.at - struck for each in after if not whole(before, each)), None)


def told(before: Sight, after: Sequence[Sight], struck: float) -> float | None:
    """Seconds until a look found that the plane's manager tells of what it did not before; None: none did."""
    return next((each.at - struck for each in after if each.told - before.told), None)


def redundant(before: Sight, after: Sequence[Sight], struck: float) -> float | None:
    """Seconds until the plane was as it was, and stayed so; None: it is not yet."""
    if not after or not whole(before, after[-1]):
        return None
    since = after[-1]
    for each in reversed(after):
        if not whole(before, each):
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
    """Seconds until the last request that failed had done so; None: none did."""
    return max((each.at - struck for each in answers if not each.ok and each.at >= struck), default=None)


def last_failed_sent(answers: Sequence[Answered], struck: float) -> float | None:
    """Seconds until the last request was sent that failed, of those that were not under way already; None: none was.

    It is from then on that whoever asked was served, however long he waited for what he had asked before.
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
    """Why what was seen is not as it must be, in words; "" if it is. Requests may fail: which, and when, is for people
    to judge by what failed.
    """
    said = []
    if found.sought and detected_after is None:  # what else fails may be over before a look
        said.append(f"nobody found {found.sought}")
    if lost:
        said.append(f"{lost} acknowledged write{'s were' if lost > 1 else ' was'} lost")
    if missed:
        said.append(f"{missed} event{'s were' if missed > 1 else ' was'} missed")
    if not audited:
        said.append("what was written could not be read at the end")
    if redundant_after is None:
        said.append(f"the plane is not as it was before {fail} failed")
    return "; ".join(said)


# How long a failure lasts, and who is to find it, where looks at the plane do not show it at once.

#: Seconds for which a failure lasts at most, unless somebody wants it otherwise.
HOLD = 30.0
#: A manager reads every half a minute how long syncs took, and goes by two readings in a row.
_HOLDS: Mapping[Fail, float] = {Fail.SLOW_DISK: 120.0}
#: Seconds after which it has surely done so, and has said it.
_FOUND = 90.0
_COMPARED = "the drill asks its manager to compare the data of all members, which it does by itself every ten minutes"
_UNKEPT = "no manager keeps the plane: nobody finds its disk slow, or has another member lead"
_READ = (
    "its manager reads every 30 s how long syncs take, calls a disk slow by two readings, and has a member with a fast"
    " one lead then"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """``told``: it is found when a manager tells of it, and by nothing else that looks show meanwhile. ``sought``: what
    must be found for a drill to be passed, in words ("": nothing in particular). ``notes``: how it comes to be found,
    in sentences.
    """

    told: bool = False
    sought: str = ""
    notes: tuple[str, ...] = ()


def hold_of(fail: Fail) -> float:
    """Seconds for which it lasts at most, unless somebody wants it otherwise."""
    return _HOLDS.get(fail, HOLD)


def finding(fail: Fail, *, hold: float, manager: str, known: bool) -> Detection:
    """What is to be found of a failure that lasts for at most ``hold`` seconds. ``manager`` keeps the plane ("":
    nobody); ``known``: it was said of the plane already.
    """
    if fail is Fail.CORRUPT:
        return Detection(sought="that a member has other data", notes=(_COMPARED,))
    if fail is not Fail.SLOW_DISK:
        return Detection()
    if not manager:
        return Detection(told=True, notes=(_UNKEPT,))
    return Detection(told=True, sought="that a disk is slow" if hold >= _FOUND and not known else "", notes=(_READ,))
