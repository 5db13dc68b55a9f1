"""The result of a probe: the report's part of it (``schema``), with all times in Unix seconds, and a few more
fields.
"""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.errors import NotFound
from quarterdeck.probe.schema import Failure, Probe, Samples

#: The name of the period before the first mark.
QUIET = "quiet"


class FailedRequest(Failure):
    """One failed request, with the time when it was ``sent``."""

    sent: float

    def since(self, zero: float) -> Failure:
        """The same as a report has it."""
        return Failure(**self.model_dump(exclude={"sent", "at"}), at=round(self.at - zero, 4))


class ProbeResult(Probe):
    """The result of a probe. ``failures`` has the first ones; the periods count all.

    ``left_behind`` names the namespace if it could not be deleted.
    """

    id: str
    failures: tuple[FailedRequest, ...]  # pyright: ignore[reportIncompatibleVariableOverride] - it is frozen
    left_behind: str = ""

    @property
    def started(self) -> float:
        """When its clients began."""
        return self.periods[0].start

    @property
    def requests(self) -> int:
        """All requests of all periods."""
        return sum(period.overall.requests for period in self.periods)

    @property
    def failed(self) -> int:
        """All failed requests of all periods."""
        return sum(period.overall.failures for period in self.periods)

    def since(self, zero: float, during: str | None = None) -> Probe:
        """The report's part, with times since ``zero`` (Unix seconds). ``during`` names the period that is compared
        with the quiet one: by default the second. Raises NotFound when no period has that name.
        """
        labels = [period.label for period in self.periods]
        chosen = during or self.compared[1]
        if chosen not in labels:
            raise NotFound(f"comparing period {chosen!r} of the probe", f"its periods are {', '.join(labels)}")
        return Probe(
            host=self.host,
            source=self.source,
            rate=self.rate,
            periods=tuple(each.since(zero) for each in self.periods),
            compared=(self.compared[0], chosen),
            writes=self.writes,
            watches=self.watches,
            failures=tuple(each.since(zero) for each in self.failures),
            connections=self.connections,
            samples=self.samples.since(zero),
        )

    def without_samples(self) -> Probe:
        """The report's part with times in Unix seconds, and without single latencies."""
        none = Samples(kinds=(), addresses=(), at=(), ms=(), kind=(), address=(), ok=())
        return self.since(0.0).model_copy(update={"samples": none})


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The progress of the probe, each second: totals since its start, and the stall of the current period.

    ``at`` is in Unix seconds, durations are milliseconds.
    """

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
