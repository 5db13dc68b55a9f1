"""What is written down of a lock: the fields of a coordination.k8s.io/v1 Lease, and what handing over needs besides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

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
