"""The history of locks in a plane's journal: who took each, and who left it, once for each transition.

Two entries, noted under the operation that is under way ("" for none); times in seconds since the epoch:

- ``LockTaken``: {"lock", "holder" (what it calls itself), "component" and "replica" ("" not known), "token" (the
  Lease's leaseTransitions), "acquired" (by the holder's clock)}. Where nobody watched for a while, and others had the
  lock meanwhile, also "missed": how many.
- ``LockLeft``: {"lock", "holder", "token", "renewed" (the last renewal that was seen, by the holder's clock),
  "duration" (s), "released" (whether the holder was emptied; else another one took it, or the Lease is gone)}.

An entry's time is when the transition was seen, by the clock of who watched. One ``LockTaken`` without a ``LockLeft``
was still held when its watcher ended: how it came to an end, nobody saw.

A journal is bounded (``stores.rules.may_go``). Entries of an operation go with it as a whole. Those of none go some
hundreds at once, when the oldest of them is of 90 days ago or the journal is full: a tenure of months may so lose its
``LockTaken``, and the next watcher then tells of it anew, with the same token and the time at which it is seen again.
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
    """A tenure begins. ``missed``: so many before it were seen by nobody."""

    lease: SeenLease
    missed: int = 0

    @property
    def detail(self) -> dict[str, JsonValue]:
        """What the journal has of it, but for who it is."""
        lease = self.lease
        known: dict[str, JsonValue] = {"lock": lease.name, "holder": lease.holder, "token": lease.transitions}
        return {**known, "acquired": lease.acquired, **({"missed": self.missed} if self.missed else {})}


@dataclass(frozen=True, slots=True)
class Left:
    """A tenure is over. ``lease`` is as it was seen last in it."""

    lease: SeenLease
    released: bool

    @property
    def detail(self) -> dict[str, JsonValue]:
        """What the journal has of it."""
        lease = self.lease
        known: dict[str, JsonValue] = {"lock": lease.name, "holder": lease.holder, "token": lease.transitions}
        return {**known, "renewed": lease.renewed, "duration": lease.duration, "released": self.released}


Transition: TypeAlias = Taken | Left


@dataclass(kw_only=True)
class Tenures:
    """What is known of locks: the token of the last tenure that was told of each, the one that goes on as it was seen
    last, and where only the journal tells of it, its holder.
    """

    told: dict[str, int] = field(default_factory=dict)
    going: dict[str, SeenLease] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[JournalEntry]) -> Tenures:
        """As a plane's journal has them: its ``LockTaken`` and ``LockLeft``, in any order."""
        found = cls()
        for each in sorted(entries, key=lambda entry: entry.id):
            lock, token = str(each.detail["lock"]), each.detail["token"]
            assert isinstance(token, int)
            found.told[lock] = token
            found.written.pop(lock, None)
            # One of which nobody found out whose it is is told of once more.
            if each.kind == TAKEN and each.detail.get("replica") != "":
                found.written[lock] = str(each.detail["holder"])
        return found

    def see(self, lease: SeenLease) -> tuple[Transition, ...]:
        """A Lease as it is now: what that tells that was not known."""
        if not lease.deleted and self._goes_on(lease):
            self.going[lease.name] = lease
            return ()
        over = self._over(lease)
        if lease.deleted or not lease.holder:
            return over
        before = self.told.get(lease.name)
        self.told[lease.name], self.going[lease.name] = lease.transitions, lease
        return (*over, Taken(lease, max(0, lease.transitions - before - 1) if before is not None else 0))

    def _goes_on(self, lease: SeenLease) -> bool:
        going = self.going.get(lease.name)
        holder = going.holder if going is not None else self.written.get(lease.name)
        return lease.holder != "" and lease.holder == holder and lease.transitions == self.told.get(lease.name)

    def _over(self, lease: SeenLease) -> tuple[Left, ...]:
        """The end of the tenure that went on, if there was one, and how it ended was seen."""
        going, holder = self.going.pop(lease.name, None), self.written.pop(lease.name, None)
        same = lease.transitions == self.told.get(lease.name)
        released = same and not lease.holder
        if going is not None:
            renewed = max(going.renewed or 0.0, lease.renewed or 0.0) if released else going.renewed
            return (Left(replace(going, renewed=renewed), released),)
        if holder is not None and released:  # nobody watched then, and the Lease itself says it
            return (Left(replace(lease, holder=holder), released),)
        return ()
