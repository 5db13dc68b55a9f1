"""Counting: latencies, failures and stalls by kind and period, in bounded memory."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field

from quarterdeck.probe.result import QUIET, FailedRequest
from quarterdeck.probe.schema import Figures, Period, Samples
from quarterdeck.probe.target import ClientKind

_STEP = math.log(1.02)  # a histogram's bucket is 2 % wide
_KEPT_FAILURES = 1_000
_KEPT_SAMPLES = 60_000


@dataclass(slots=True)
class Histogram:
    """Milliseconds in buckets of 2 %: quantiles are that exact, and the memory is bounded."""

    buckets: Counter[int] = field(default_factory=Counter)
    largest: float = 0.0

    def add(self, ms: float) -> None:
        """Count one latency."""
        self.buckets[math.ceil(math.log(max(ms, 0.001)) / _STEP)] += 1
        self.largest = max(self.largest, ms)

    def merge(self, other: Histogram) -> None:
        """Add all counts of another histogram."""
        self.buckets.update(other.buckets)
        self.largest = max(self.largest, other.largest)

    def quantile(self, share: float) -> float:
        """The latency that ``share`` of all do not exceed; 0 when there are none."""
        rank = math.ceil(share * self.buckets.total())
        for bucket in sorted(self.buckets):
            rank -= self.buckets[bucket]
            if rank <= 0:
                return min(math.exp(bucket * _STEP), self.largest)
        return 0.0


@dataclass(slots=True)
class _Count:
    requests: int = 0
    failures: int = 0
    resent: int = 0
    stall_ms: float = 0.0
    stall_at: float = 0.0
    latencies: Histogram = field(default_factory=Histogram)

    def wait(self, ms: float, at: float) -> None:
        if ms > self.stall_ms:
            self.stall_ms, self.stall_at = ms, at

    def merge(self, other: _Count) -> None:
        self.requests += other.requests
        self.failures += other.failures
        self.resent += other.resent
        self.wait(other.stall_ms, other.stall_at)
        self.latencies.merge(other.latencies)

    def figures(self) -> Figures:
        return Figures(
            requests=self.requests,
            failures=self.failures,
            resent=self.resent,
            stall_ms=round(self.stall_ms, 3),
            stall_at=self.stall_at,
            p50_ms=round(self.latencies.quantile(0.5), 3),
            p99_ms=round(self.latencies.quantile(0.99), 3),
        )


class SampleStore:
    """Columns of samples; when ``limit`` is reached, similar neighbours are merged into the slower one."""

    def __init__(self, limit: int = _KEPT_SAMPLES) -> None:
        self._limit = limit
        self._kinds = tuple(ClientKind)
        self._addresses: dict[str, int] = {}
        self._at = array("d")
        self._ms = array("f")
        self._kind = array("B")
        self._address = array("H")
        self._ok = array("B")

    def add(self, at: float, kind: ClientKind, ms: float, address: str, ok: bool) -> None:
        """Keep one; ``at`` is in Unix seconds."""
        self._at.append(at)
        self._ms.append(ms)
        self._kind.append(self._kinds.index(kind))
        self._address.append(self._addresses.setdefault(address, len(self._addresses)))
        self._ok.append(ok)
        if len(self._at) >= self._limit:
            self._thin()

    def _thin(self) -> None:
        waiting: dict[tuple[int, int], int] = {}
        kept: list[int] = []
        for index, group in enumerate(zip(self._kind, self._ok, strict=True)):
            other = waiting.pop(group, None)
            if other is None:
                waiting[group] = index
            else:
                kept.append(max(other, index, key=self._ms.__getitem__))
        kept = sorted([*kept, *waiting.values()])
        self._at = array("d", (self._at[index] for index in kept))
        self._ms = array("f", (self._ms[index] for index in kept))
        self._kind = array("B", (self._kind[index] for index in kept))
        self._address = array("H", (self._address[index] for index in kept))
        self._ok = array("B", (self._ok[index] for index in kept))

    def samples(self) -> Samples:
        """All samples."""
        return Samples(
            kinds=tuple(map(str, self._kinds)),
            addresses=tuple(self._addresses),
            at=tuple(round(value, 4) for value in self._at),
            ms=tuple(round(value, 3) for value in self._ms),
            kind=tuple(self._kind),
            address=tuple(self._address),
            ok=tuple(bool(value) for value in self._ok),
        )


class Tally:
    """Counts the clients' reports, in periods. A request belongs to the period in which it ends."""

    def __init__(self, started: float, *, limit: int = _KEPT_SAMPLES) -> None:
        self.started = started
        self.failures: list[FailedRequest] = []
        self.samples = SampleStore(limit)
        self._periods: list[Period] = []
        self._label = QUIET
        self._since = started
        self._counts: dict[ClientKind, _Count] = {}
        self._lag_ms = 0.0
        self._waiting: dict[str, tuple[ClientKind, float]] = {}  # client: since when it had no success

    @property
    def label(self) -> str:
        """The current period."""
        return self._label

    def success(
        self, client: str, kind: ClientKind, started: float, ended: float, *, address: str, resent: bool = False
    ) -> None:
        """A request that succeeded."""
        count = self._count(kind)
        count.requests += 1
        count.resent += resent
        self._latency(client, kind, started, ended, address)

    def news(self, client: str, kind: ClientKind, started: float, ended: float, *, address: str) -> None:
        """An event that a watcher waited for since ``started``. It is not a request."""
        self._latency(client, kind, started, ended, address)

    def failure(
        self, client: str, kind: ClientKind, started: float, ended: float, *, request: str, reason: str, address: str,
        resent: bool = False,
    ) -> FailedRequest:  # fmt: skip
        """A request that failed."""
        count = self._count(kind)
        count.requests += 1
        count.failures += 1
        count.resent += resent
        self._waiting.setdefault(client, (kind, started))
        self.samples.add(ended, kind, 1e3 * (ended - started), address, ok=False)
        failure = FailedRequest(
            at=ended,
            sent=started,
            kind=str(kind),
            client=client,
            request=request,
            reason=reason,
            address=address,
            period=self._label,
        )
        if len(self.failures) < _KEPT_FAILURES:
            self.failures.append(failure)
        return failure

    def lag(self, ms: float) -> None:
        """The probe itself woke up ``ms`` too late."""
        self._lag_ms = max(self._lag_ms, ms)

    def mark(self, label: str, now: float) -> Period:
        """End the current period and begin the next."""
        for kind, since in self._waiting.values():
            self._count(kind).wait(1e3 * (now - since), now)
        period = Period(
            label=self._label,
            start=self._since,
            end=now,
            own_lag_ms=round(self._lag_ms, 3),
            overall=self.overall(),
            kinds={str(kind): self._counts[kind].figures() for kind in ClientKind if kind in self._counts},
        )
        self._periods.append(period)
        self._label, self._since, self._counts, self._lag_ms = label, now, {}, 0.0
        return period

    def overall(self) -> Figures:
        """The current period so far, over all kinds."""
        total = _Count()
        for count in self._counts.values():
            total.merge(count)
        return total.figures()

    def finish(self, now: float) -> tuple[Period, ...]:
        """End the last period; returns all of them."""
        self.mark("", now)
        return tuple(self._periods)

    def totals(self) -> tuple[int, int, int]:
        """Requests, failures and re-sent requests since the start."""
        now = self.overall()
        every = [period.overall for period in self._periods] + [now]
        return (
            sum(each.requests for each in every),
            sum(each.failures for each in every),
            sum(each.resent for each in every),
        )

    def _latency(self, client: str, kind: ClientKind, started: float, ended: float, address: str) -> None:
        count = self._count(kind)
        ms = 1e3 * (ended - started)
        count.latencies.add(ms)
        since = self._waiting.pop(client, (kind, started))[1]
        count.wait(1e3 * (ended - min(since, started)), ended)
        self.samples.add(ended, kind, ms, address, ok=True)

    def _count(self, kind: ClientKind) -> _Count:
        return self._counts.setdefault(kind, _Count())
