"""What is written down of a lock: the fields of a coordination.k8s.io/v1 Lease, and what handing over needs besides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from quarterdeck.errors import InvalidInput

#: Microseconds of a second: a Lease's times have six digits (metav1.MicroTime).
MICROSECONDS = 1_000_000


class Term(NamedTuple):
    """What a renewal changes, and what a request to let go does not: client-go's LeaderElectionRecord."""

    holder: str
    duration: float
    acquired: int
    renewed: int
    transitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A lock as it is stored. ``duration``: seconds for which a renewal counts. ``acquired`` and ``renewed``:
    microseconds since 1970 by the holder's wall clock, for people: nobody compares them with a clock of his own.
    ``transitions`` grows by one with each change of holder, and is the fencing token.

    ``controllers``: what runs under the lock, for ever; () if that is not said. ``asked_by``: who wants the lock, or,
    once nobody holds it, who goes first. ``answers``: the holder that wrote last and can be asked, of that
    ``precedence``: client-go leaves annotations as they are, so that it may be another one than ``holder``.
    ``version`` is the store's ("": not stored yet).
    """

    holder: str
    duration: float
    acquired: int = 0
    renewed: int = 0
    transitions: int = 0
    controllers: tuple[str, ...] = ()
    asked_by: str = ""
    answers: str = ""
    precedence: int = 0
    version: str = ""

    @property
    def term(self) -> Term:
        """What others go by to see whether the holder is alive."""
        return Term(self.holder, self.duration, self.acquired, self.renewed, self.transitions)

    @property
    def can_be_asked(self) -> bool:
        """Whether the holder is one that lets go when it is asked to."""
        return bool(self.holder) and self.answers == self.holder


def dated(record: Record, before: Record | None, wall: float) -> Record:
    """A record that is about to be written in the place of ``before`` by, or instead of, its holder, with its times;
    ``wall`` is in seconds.

    The time of renewal never stays as it was, whatever the clock says: it is by this that others see the holder alive.
    """
    moment = max(round(wall * MICROSECONDS), before.renewed + 1 if before is not None else 0)
    renews = before is not None and before.holder == record.holder != ""
    return replace(record, renewed=moment, acquired=record.acquired if renews else moment)


# How long a lock is held without news, and what of that its holder may use.


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """All in seconds, but ``drift``.

    ``duration``: nobody takes a lock before it has seen it unchanged for so long; a whole number over the Lease API.
    ``renew``: how often a holder renews it. ``retry``: after so long what failed is tried again. ``stop_within``: what
    controllers get to end. ``first``: for so long whoever asked for a lock goes first, once it is free.
    ``drift``: by how much of itself a clock's rate may be wrong (NTP: at most 0.0005).
    """

    duration: float = 15.0
    renew: float = 2.0
    retry: float = 1.0
    stop_within: float = 3.0
    first: float = 2.0
    drift: float = 0.01

    def __post_init__(self) -> None:
        """Raises InvalidInput for times with which nobody could hold a lock."""
        doing = "setting the times of locks"
        if not 0 <= self.drift < 1 or min(self.duration, self.renew, self.retry) <= 0 or self.stop_within < 0:
            raise InvalidInput(doing, f"{self} has a time that is none", "use times over 0, and a drift from 0 to 1")
        if usable(self.duration, self.drift) - self.stop_within < self.renew + self.retry:
            raise InvalidInput(
                doing,
                f"one renewal that fails, of every {self.renew:g} s, would end a lock of {self.duration:g} s",
                "make duration longer, or renew, retry or stop_within shorter",
            )


def usable(duration: float, drift: float) -> float:
    """For how many seconds by its own clock a holder may act after it has sent a renewal.

    Others wait for ``duration`` by their clocks, of which one may run fast by ``drift``, while the holder's may run
    slow by it: duration / (1 + drift) seconds pass in truth at least, and (1 - drift) of those are counted here.
    """
    return duration * (1 - drift) / (1 + drift)
