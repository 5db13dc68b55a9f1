"""Whether the holder of a lease renews it, from repeated readings. Pure.

The rule is client-go's (tools/leaderelection): what counts is for how long the renewal has not changed, on the reader's
own clock, and neither the holder's clock nor its claimed duration. The first reading uses the time at which the renewal
was written, on the apiserver's clock, and waits for a moment whether it changes: the clocks of two apiservers may
differ.

All times are in seconds on a steady clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from quarterdeck.kube.port import SeenLease
from quarterdeck.model.components import Component
from quarterdeck.model.leadership import UNLED_S, Leadership

#: Seconds for which a lease must be observed unchanged before it counts as not renewed: holders renew every 2 s.
SURE_S = 5.0
#: Seconds between two readings after which changes in between may have been missed.
GAP_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedLease:
    """The state of a watched lease."""

    #: The last reading; None: it does not exist.
    lease: SeenLease | None
    #: The time of the last reading.
    read: float
    #: It is unchanged at least since then.
    since: float
    #: It was read without a gap, and unchanged, since then.
    steady: float
    #: The change at ``since`` was observed.
    moved: bool = False
    #: The replica whose program reports that it holds it; "": none does.
    replica: str = ""
    #: Since when all programs of the plane report that they do not hold it, although it has a holder; None: not so.
    alone: float | None = None

    @classmethod
    def begun(cls, lease: SeenLease | None, now: float) -> WatchedLease:
        """The state after the first reading."""
        return cls(lease=lease, read=now, since=now, steady=now)

    def after(self, lease: SeenLease | None, now: float) -> WatchedLease:
        """The state after one more reading."""
        if _renewal(lease) == _renewal(self.lease):
            steady = self.steady if now - self.read <= GAP_S else now
            return replace(self, lease=lease, read=now, steady=steady)
        new = WatchedLease(lease=lease, read=now, since=now, steady=now, moved=True)
        same = _holder(lease) == _holder(self.lease)
        return replace(new, replica=self.replica, alone=self.alone) if same else new

    def claimed(self, answers: Mapping[str, bool | None]) -> WatchedLease:
        """The state with the reports of the plane's programs, by replica (None: it does not answer)."""
        claims = [name for name, holds in answers.items() if holds]
        disowned = bool(answers) and all(holds is False for holds in answers.values()) and bool(_holder(self.lease))
        alone = (self.read if self.alone is None else self.alone) if disowned else None
        return replace(self, replica=claims[0] if len(claims) == 1 else "", alone=alone)

    @property
    def foreign(self) -> bool:
        """Whether another process renews it: a renewal was observed after all programs of the plane had reported that
        they do not hold it. A program that had just died would have renewed it before.
        """
        return self.alone is not None and self.since > self.alone and self._unrenewed_s < UNLED_S

    @property
    def _unrenewed_s(self) -> float:
        """Seconds since its last renewal. Own observations count more than the apiserver's clock."""
        watched = self.read - self.since
        age = self.lease.age_s if self.lease is not None else None
        return watched if self.moved or age is None else max(watched, age)

    def judged(self, component: Component, name: str, *, once: bool = False) -> Leadership:
        """The leadership from the lease ``name`` of a component. ``once``: there is no later reading, so a lease that
        does not exist during the observation counts as missing.
        """
        lease, idle = self.lease, self._unrenewed_s
        if self.foreign and self.alone is not None:
            idle = max(self.read - self.alone, _tenure(lease))
        sure = self.foreign or self.read - self.steady >= SURE_S
        missing = once and sure and lease is None
        written = lease.written_at if lease is not None and lease.holder else None
        return Leadership(
            component=component,
            lease=name,
            exists=lease is not None,
            holder=_holder(lease),
            replica=self.replica,
            foreign=self.foreign,
            idle_s=idle if lease is not None else None,
            expires_at=written + lease.duration if lease is not None and written is not None else None,
            expired=lease is None or self._unrenewed_s >= lease.duration,
            led=self._led(idle, sure=sure, missing=missing),
        )

    def _led(self, idle: float, *, sure: bool, missing: bool) -> bool | None:
        if missing or idle >= UNLED_S:
            return False if sure else None
        return True if _holder(self.lease) else None  # else between two holders


def _holder(lease: SeenLease | None) -> str:
    return lease.holder if lease is not None else ""


def _renewal(lease: SeenLease | None) -> tuple[str, float | None, float | None] | None:
    """The fields that a renewal changes; not the resource version, which any change of labels changes."""
    return (lease.holder, lease.renewed, lease.acquired) if lease is not None else None


def _tenure(lease: SeenLease | None) -> float:
    """For how many seconds its holder has held it, by the holder's own clock."""
    if lease is None or lease.renewed is None or lease.acquired is None:
        return 0.0
    return lease.renewed - lease.acquired
