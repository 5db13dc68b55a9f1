"""From a probe's result to the report's part of it."""

from __future__ import annotations

from dataclasses import asdict

from quarterdeck.errors import NotFound
from quarterdeck.probe import result as probed
from quarterdeck.report.schema_probe import Failure, Figures, Period, Probe, Samples, Watches, Writes


def probe_part(result: probed.ProbeResult, started: float, during: str | None = None) -> Probe:
    """The result with times since ``started`` (Unix seconds). ``during`` names the period to hold against the quiet
    one: by default the second. Raises NotFound when there is none of that name.
    """
    periods = tuple(_period(period, started) for period in result.periods)
    labels = [period.label for period in periods]
    chosen = during or next(iter(labels[1:]), labels[0])
    if chosen not in labels:
        raise NotFound(f"comparing period {chosen!r} of the probe", f"its periods are {', '.join(labels)}")
    shift = result.started - started
    samples = result.samples
    return Probe(
        host=result.host,
        source=result.source or None,
        rate=result.rate,
        periods=periods,
        compared=(labels[0], chosen),
        writes=Writes(**asdict(result.writes)),
        watches=Watches(**asdict(result.watches)),
        failures=tuple(_failure(failure, started) for failure in result.failures),
        connections={str(kind): count for kind, count in result.connections},
        samples=Samples(
            kinds=tuple(str(kind) for kind in samples.kinds),
            addresses=samples.addresses,
            at=tuple(round(at + shift, 4) for at in samples.at),
            ms=samples.ms,
            kind=samples.kind,
            address=samples.address,
            ok=samples.ok,
        ),
    )


def _period(period: probed.Period, started: float) -> Period:
    return Period(
        label=period.label,
        start=round(period.started - started, 4),
        end=round(period.ended - started, 4),
        own_lag_ms=period.own_lag_ms,
        overall=_figures(period.overall, started),
        kinds={str(figures.kind): _figures(figures, started) for figures in period.kinds},
    )


def _figures(figures: probed.Figures, started: float) -> Figures:
    return Figures(
        requests=figures.requests,
        failures=figures.failures,
        resent=figures.resent,
        stall_ms=figures.stall_ms,
        stall_at=round(figures.stall_at - started, 4),
        p50_ms=figures.p50_ms,
        p99_ms=figures.p99_ms,
    )


def _failure(failure: probed.Failure, started: float) -> Failure:
    return Failure(
        at=round(failure.at - started, 4),
        kind=str(failure.kind),
        client=failure.client,
        request=failure.request,
        reason=failure.reason,
        address=failure.address,
        period=failure.period,
    )
