"""The history of locks in a plane's journal: one entry for each transition.

Two kinds of entries, under the operation in progress ("" for none); times in seconds since the epoch:

- ``LockTaken``: {"lock", "holder" (its identity), "component" and "replica" ("" unknown), "token" (the Lease's
  leaseTransitions), "acquired" (by the holder's clock)}. If there were unwatched holders in between, also "missed":
  how many.
- ``LockLeft``: {"lock", "holder", "token", "renewed" (the last observed renewal, by the holder's clock), "duration"
  (s), "released" (whether the holder was emptied; else another one took it, or the Lease is gone)}.

An entry's time is when the transition was observed, by the watcher's clock. A ``LockTaken`` without a ``LockLeft`` was
still held when its watcher ended: its end was not observed.

A journal is bounded (``stores.rules.may_go``). Entries of an operation are deleted with it. Other entries are deleted
some hundreds at once, when the oldest of them is 90 days old or the journal is full: so a tenure of months may lose its
``LockTaken``, and the next watcher then writes it again, with the same token and the time of the new observation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pydantic import JsonValue

from quarterdeck.handover.tenures import TAKEN
from quarterdeck.kube.port import SeenLease
from quarterdeck.stores.port import JournalEntry


@dataclass(frozen=True, slots=True)
class Taken:
    """A tenure begins. ``missed``: the number of unobserved tenures before it."""

    lease: SeenLease
    missed: int = 0

    @property
    def detail(self) -> dict[str, JsonValue]:
        """The detail of the journal entry, without the holder's program and replica."""
        lease = self.lease
        known: dict[str, JsonValue] = {"lock": lease.name, "holder": lease.holder, "token": lease.transitions}
        return {**known, "acquired": lease.acquired, **({"missed": self.missed} if self.missed else {})}


@dataclass(frozen=True, slots=True)
class Left:
    """A tenure is over. ``lease``: its last observation during the tenure."""

    lease: SeenLease
    released: bool

    @property
    def detail(self) -> dict[str, JsonValue]:
        """The detail of the journal entry."""
        lease = self.lease
        known: dict[str, JsonValue] = {"lock": lease.name, "holder": lease.holder, "token": lease.transitions}
        return {**known, "renewed": lease.renewed, "duration": lease.duration, "released": self.released}


Transition: TypeAlias = Taken | Left


@dataclass(kw_only=True)
class Tenures:
    """The known tenures of locks: the token of the last recorded tenure of each, the last observation of the present
    one, and its holder where only the journal has it.
    """

    tokens: dict[str, int] = field(default_factory=dict)
    going: dict[str, SeenLease] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[JournalEntry]) -> Tenures:
        """From a plane's journal: its ``LockTaken`` and ``LockLeft``, in any order."""
        found = cls()
        for each in sorted(entries, key=lambda entry: entry.id):
            lock, token = str(each.detail["lock"]), each.detail["token"]
            assert isinstance(token, int)
            found.tokens[lock] = token
            found.written.pop(lock, None)
            # A tenure with an unknown replica is recorded again.
            if each.kind == TAKEN and each.detail.get("replica") != "":
                found.written[lock] = str(each.detail["holder"])
        return found

    def see(self, lease: SeenLease) -> tuple[Transition, ...]:
        """Compare a Lease with what is known; returns the new transitions."""
        if not lease.deleted and self._goes_on(lease):
            self.going[lease.name] = lease
            return ()
        over = self._over(lease)
        if lease.deleted or not lease.holder:
            return over
        before = self.tokens.get(lease.name)
        self.tokens[lease.name], self.going[lease.name] = lease.transitions, lease
        return (*over, Taken(lease, max(0, lease.transitions - before - 1) if before is not None else 0))

    def _goes_on(self, lease: SeenLease) -> bool:
        going = self.going.get(lease.name)
        holder = going.holder if going is not None else self.written.get(lease.name)
        return lease.holder != "" and lease.holder == holder and lease.transitions == self.tokens.get(lease.name)

    def _over(self, lease: SeenLease) -> tuple[Left, ...]:
        """The end of the present tenure, if there was one and its end was observed."""
        going, holder = self.going.pop(lease.name, None), self.written.pop(lease.name, None)
        same = lease.transitions == self.tokens.get(lease.name)
        released = same and not lease.holder
        if going is not None:
            renewed = max(going.renewed or 0.0, lease.renewed or 0.0) if released else going.renewed
            return (Left(replace(going, renewed=renewed), released),)
        if holder is not None and released:  # it was not watched, but the Lease itself shows it
            return (Left(replace(lease, holder=holder), released),)
        return ()
