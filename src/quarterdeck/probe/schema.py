"""The result of a probe, as reports have it: docs/report-schema.md is generated from it.

Times are seconds since the operation started in a report (negative: before it), and Unix seconds in a probe's result.
Durations are milliseconds.
"""

from __future__ import annotations

from pydantic import Field

from quarterdeck.probe.schema_part import Part


class Figures(Part):
    """The measurements of clients in one period."""

    requests: int
    """Requests that ended in the period."""
    failures: int
    """Those that failed: any response but 2xx."""
    resent: int
    """Those sent once more, as RFC 9112, section 9.3.1 specifies for every client."""
    stall_ms: float
    """The longest time that one client waited for a successful request (for watchers: for an event)."""
    stall_at: float
    """When that wait ended."""
    p50_ms: float
    """Half of all answers took no longer."""
    p99_ms: float
    """99 of 100 answers took no longer."""

    def since(self, zero: float) -> Figures:
        """The same with times since ``zero``."""
        return self.model_copy(update={"stall_at": round(self.stall_at - zero, 4)})


class Period(Part):
    """The time between two marks of the probe."""

    label: str
    """`quiet` before the operation; then the names that the marks were given."""
    start: float
    """When it began."""
    end: float
    """When it ended."""
    own_lag_ms: float
    """The longest delay of the probe itself (it did not get to run, or the round trip to its source host took longer
    than at its best): it cannot be distinguished from a stall."""
    overall: Figures
    """All clients together."""
    kinds: dict[str, Figures]
    """By kind of client."""

    def since(self, zero: float) -> Period:
        """The same with times since ``zero``."""
        return self.model_copy(
            update={
                "start": round(self.start - zero, 4),
                "end": round(self.end - zero, 4),
                "overall": self.overall.since(zero),
                "kinds": {kind: figures.since(zero) for kind, figures in self.kinds.items()},
            }
        )


class Writes(Part):
    """The outcome of the probe's writes, over all periods."""

    acknowledged: int
    """Writes that the server acknowledged."""
    unknown: int
    """Writes that failed: they may have taken place or not."""
    lost: int
    """Acknowledged writes that were missing when they were read back or listed at the end."""
    stale_reads: int
    """Reads that returned less than was acknowledged before they began."""
    audited: bool
    """Whether everything was listed and compared at the end."""
    examples: tuple[str, ...]
    """The first losses, described."""


class Watches(Part):
    """The events of the probe's watchers, over all periods. Every acknowledged write is due once at each, in order."""

    events: int
    """Events that were received."""
    missed: int
    """Events that never came, or that a list after 410 Gone hid."""
    duplicated: int
    """Events that came again."""
    out_of_order: int
    """Events that came after a later one."""
    relists: int
    """Lists that 410 Gone made necessary."""
    ended: int
    """Streams that the server ended properly; the watch went on from the last event."""
    cut: int
    """Streams that ended without a proper end; the watch went on from the last event."""
    examples: tuple[str, ...]
    """The first problems, described."""


class Failure(Part):
    """One failed request."""

    at: float
    """When it ended."""
    kind: str
    """The kind of client."""
    client: str
    """Which client of the kind."""
    request: str
    """Method and path."""
    reason: str
    """Why it failed."""
    address: str
    """The address that it was sent to; empty when there was no connection."""
    period: str
    """The period that counts it."""


class Samples(Part):
    """Latencies in columns of equal length: one row is a request, or an event at a watcher."""

    kinds: tuple[str, ...]
    """The values of `kind`."""
    addresses: tuple[str, ...]
    """The values of `address`."""
    at: tuple[float, ...]
    """When it ended."""
    ms: tuple[float, ...]
    """How long it took."""
    kind: tuple[int, ...]
    """Index of the kind of client."""
    address: tuple[int, ...]
    """Index of the address."""
    ok: tuple[bool, ...]
    """Whether it succeeded."""

    def since(self, zero: float) -> Samples:
        """The same with times since ``zero``."""
        return self.model_copy(update={"at": tuple(round(at - zero, 4) for at in self.at)})


class Probe(Part):
    """The measurements of real clients from outside."""

    host: str
    """The name or address that they connected to."""
    source: str | None = Field(default=None, validation_alias="from", serialization_alias="from")
    """The host of a site that made their connections, as SITE/HOST; null for the one that quarterdeck ran on."""
    rate: float
    """Requests per second and client."""
    periods: tuple[Period, ...]
    """All periods; the first is the quiet one. A count that names no period is of all of them."""
    compared: tuple[str, str]
    """The labels of the two periods to compare: before, and during. Equal when there is only one."""
    writes: Writes
    """The outcome of the writes."""
    watches: Watches
    """The events of the watchers."""
    failures: tuple[Failure, ...]
    """The first failed requests; the periods count all."""
    connections: dict[str, int]
    """Connections opened, by kind of client."""
    samples: Samples
    """Single latencies. When there were too many, similar neighbours were merged into the slower one."""

    def period(self, label: str) -> Period:
        """The first period of that label. Raises KeyError."""
        for period in self.periods:
            if period.label == label:
                return period
        raise KeyError(label)

    @property
    def quiet(self) -> Period:
        """The period before."""
        return self.period(self.compared[0])

    @property
    def during(self) -> Period:
        """The period that is compared with it."""
        return self.period(self.compared[1])

    @property
    def judged(self) -> tuple[Period, ...]:
        """All periods but the quiet one; that one if there is no other."""
        return self.periods[1:] or self.periods
