"""The stored form of a lock: the fields of a coordination.k8s.io/v1 Lease, and those that a handover needs besides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from quarterdeck.errors import InvalidInput

#: Microseconds of a second: a Lease's times have six digits (metav1.MicroTime).
MICROSECONDS = 1_000_000


class Term(NamedTuple):
    """The fields that a renewal changes, and a request to release does not: client-go's LeaderElectionRecord."""

    holder: str
    duration: float
    acquired: int
    renewed: int
    transitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A lock as it is stored."""

    holder: str
    #: Seconds for which a renewal counts.
    duration: float
    #: Microseconds since 1970 by the holder's wall clock, for people: no process compares them with its own clock.
    acquired: int = 0
    #: As ``acquired``.
    renewed: int = 0
    #: Grows by one with each change of holder; the fencing token.
    transitions: int = 0
    #: What runs under the lock; it never changes. () if unknown.
    controllers: tuple[str, ...] = ()
    #: The process that asks for the lock or, once the lock is free, the one that goes first.
    asked_by: str = ""
    #: The holder that wrote last and can be asked, of that ``precedence``: client-go leaves annotations unchanged, so
    #: it may be another one than ``holder``.
    answers: str = ""
    precedence: int = 0
    #: The store's version; "": not stored yet.
    version: str = ""

    @property
    def term(self) -> Term:
        """The fields by which others see whether the holder is alive."""
        return Term(self.holder, self.duration, self.acquired, self.renewed, self.transitions)

    @property
    def can_be_asked(self) -> bool:
        """Whether the holder releases when it is asked to."""
        return bool(self.holder) and self.answers == self.holder


def dated(record: Record, before: Record | None, wall: float) -> Record:
    """A record that is about to replace ``before``, written by its holder or on its behalf, with its times; ``wall`` is
    in seconds.

    The time of renewal always changes, whatever the clock says: by this others see that the holder is alive.
    """
    moment = max(round(wall * MICROSECONDS), before.renewed + 1 if before is not None else 0)
    renews = before is not None and before.holder == record.holder != ""
    return replace(record, renewed=moment, acquired=record.acquired if renews else moment)


# How long a lock is held without renewal, and how much of that its holder may use.


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """All in seconds, except ``drift``."""

    #: A lock must be unchanged for that long before another process takes it; a whole number over the Lease API.
    duration: float = 15.0
    #: The interval of renewals.
    renew: float = 2.0
    #: The delay before a retry.
    retry: float = 1.0
    #: The time that controllers have to stop.
    stop_within: float = 3.0
    #: For how long the process that asked for a lock goes first, once it is free.
    first: float = 2.0
    #: The largest relative error of a clock's rate (NTP: at most 0.0005).
    drift: float = 0.01

    def __post_init__(self) -> None:
        """Raises InvalidInput for times with which a lock could not be held."""
        doing = "setting the times of locks"
        if not 0 <= self.drift < 1 or min(self.duration, self.renew, self.retry) <= 0 or self.stop_within < 0:
            raise InvalidInput(doing, f"{self} has an invalid time", "use times over 0, and a drift from 0 to 1")
        if usable(self.duration, self.drift) - self.stop_within < self.renew + self.retry:
            raise InvalidInput(
                doing,
                f"one renewal that fails, of every {self.renew:g} s, would end a lock of {self.duration:g} s",
                "make duration longer, or renew, retry or stop_within shorter",
            )


def usable(duration: float, drift: float) -> float:
    """Seconds by its own clock for which a holder may act after it has sent a renewal.

    Others wait for ``duration`` by their clocks, of which one may run fast by ``drift``, while the holder's may run
    slow by it: at least duration / (1 + drift) seconds of real time pass, and (1 - drift) of those are counted here.
    """
    return duration * (1 - drift) / (1 + drift)
