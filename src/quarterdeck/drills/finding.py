"""How long a failure lasts, and who is to find it, where looks at the plane do not show it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quarterdeck.model.faults import Fail

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
class Finding:
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


def finding(fail: Fail, *, hold: float, manager: str, known: bool) -> Finding:
    """What is to be found of a failure that lasts for at most ``hold`` seconds. ``manager`` keeps the plane ("":
    nobody); ``known``: it was said of the plane already.
    """
    if fail is Fail.CORRUPT:
        return Finding(sought="that a member has other data", notes=(_COMPARED,))
    if fail is not Fail.SLOW_DISK:
        return Finding()
    if not manager:
        return Finding(told=True, notes=(_UNKEPT,))
    return Finding(told=True, sought="that a disk is slow" if hold >= _FOUND and not known else "", notes=(_READ,))
