"""What a probe found, as data. Times are Unix seconds, durations milliseconds, unless a name says otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.probe.target import Kind

#: The name of the period before the first mark.
QUIET = "quiet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the clients of one kind (``kind`` None: all clients) saw in one period.

    ``stall_ms`` is the longest time for which one client had to wait for a request to succeed, from its start to
    the end of the response, with connecting and re-sending; while requests fail, the wait goes on. ``stall_at`` is
    when that wait ended. For watchers a wait is that for news: from the start of a write to its event.
    ``resent`` are the requests sent once more as RFC 9112, section 9.3.1 has it.
    """

    kind: Kind | None
    requests: int
    failures: int
    resent: int
    stall_ms: float
    stall_at: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The time from one mark to the next.

    ``own_lag_ms`` is the longest time for which the probe itself did not get to run, or the way to the host that it
    probes from took longer than at its best: no stall can be measured more finely than that.
    """

    label: str
    started: float
    ended: float
    own_lag_ms: float
    overall: Figures
    kinds: tuple[Figures, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """What became of the writes. ``lost`` were acknowledged and were not there later; ``unknown`` were not
    acknowledged, whether or not they took place; ``stale_reads`` returned less than was acknowledged before they
    began. ``audited``: at the end everything was listed and compared.
    """

    acknowledged: int
    unknown: int
    lost: int
    stale_reads: int
    audited: bool
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Watches:
    """What the watchers saw, all together. Every acknowledged write is due once at each, in order.

    ``ended`` streams were ended by the server with a proper end, ``cut`` ones without (neither is a failure: a
    watch goes on from the last event seen). ``relists`` were forced by 410 Gone; what a list hides is ``missed``.
    """

    events: int
    missed: int
    duplicated: int
    out_of_order: int
    relists: int
    ended: int
    cut: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failed request. ``address`` is "" when no connection was there; ``at`` is when it ended."""

    at: float
    sent: float
    kind: Kind
    client: str
    request: str
    reason: str
    address: str
    period: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Latencies in columns: one row is a request, or an event at a watcher.

    ``at`` is when it ended, in seconds since the probe's start; ``kind`` and ``address`` are indexes into
    ``kinds`` and ``addresses``. When there are too many, neighbours of one kind and outcome are merged into the
    slower.
    """

    kinds: tuple[Kind, ...] = tuple(Kind)
    addresses: tuple[str, ...] = ()
    at: tuple[float, ...] = ()
    ms: tuple[float, ...] = ()
    kind: tuple[int, ...] = ()
    address: tuple[int, ...] = ()
    ok: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """All that a probe found. ``failures`` has the first ones; the periods count all.

    ``connections`` are those opened by each kind; ``left_behind`` names the namespace if it could not be deleted;
    ``source`` is the host (SITE/HOST) that they were made from, "" for this one.
    """

    id: str
    host: str
    started: float
    ended: float
    rate: float
    periods: tuple[Period, ...]
    writes: Writes
    watches: Watches
    failures: tuple[Failure, ...]
    connections: tuple[tuple[Kind, int], ...]
    samples: Samples
    left_behind: str = ""
    source: str = ""

    def period(self, label: str) -> Period | None:
        """The first period of that name."""
        return next((period for period in self.periods if period.label == label), None)

    @property
    def requests(self) -> int:
        """All requests of all periods."""
        return sum(period.overall.requests for period in self.periods)

    @property
    def failed(self) -> int:
        """All failed requests of all periods."""
        return sum(period.overall.failures for period in self.periods)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Where the probe stands, each second: totals since its start, and the stall of the current period."""

    at: float
    period: str
    requests: int
    failures: int
    resent: int
    acknowledged: int
    lost: int
    events: int
    missed: int
    stall_ms: float
    per_second: float
