"""What is found of a set of controllers: who had it when, and whether two ever had it at once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.handover.acts import Act
from quarterdeck.handover.tenures import Tenure, Unwatched


class Finding(StrEnum):
    """What it comes to."""

    PROVEN = "no overlap"
    BROKEN = "overlap"
    UNKNOWN = "cannot be told"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process had the set by a tenure, within the time that was looked at: ``ends`` is None for one that goes on.
    ``acts``: how many of its writes are of the set.
    """

    tenure: Tenure
    begins: float
    ends: float | None
    acts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Nobody had the set from ``begins`` to ``ends``. ``heard``: when who had it last renewed its lock, which was never
    released: it may have done nothing since then.
    """

    begins: float
    ends: float
    heard: float | None = None

    @property
    def seconds(self) -> float:
        """How long nobody could have acted."""
        return self.ends - self.begins

    @property
    def at_most(self) -> float:
        """How long it may be that nobody did."""
        return self.ends - (self.begins if self.heard is None else self.heard)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Two processes (or their writes) had the set at once, from ``begins`` to ``ends``; ``what`` says how."""

    begins: float
    ends: float
    first: str
    second: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """A write of the set by a process that held no lock which guards it. ``after``: who had taken over by then."""

    act: Act
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One set from ``since`` to ``until`` (seconds since the epoch). ``acts`` counts writes that are of its
    controllers, ``perhaps`` those that may be. ``unknown`` says in sentences why nothing is proven. ``slack``: seconds
    by which clocks of two machines may differ before anything counts as an overlap.
    """

    name: str
    lock: str
    controllers: tuple[str, ...]
    since: float
    until: float
    slack: float
    holders: tuple[Holder, ...]
    gaps: tuple[Gap, ...]
    overlaps: tuple[Overlap, ...]
    outside: tuple[Outside, ...]
    acts: int
    perhaps: int
    unwatched: tuple[Unwatched, ...]
    unknown: tuple[str, ...]

    @property
    def finding(self) -> Finding:
        """What it comes to. What was seen to be wrong is so whatever is not known besides."""
        if self.overlaps or self.outside:
            return Finding.BROKEN
        return Finding.UNKNOWN if self.unknown else Finding.PROVEN
