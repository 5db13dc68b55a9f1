"""What was measured of promises and aims, and whether they hold.

No failed request and no lost write are promises. How long a client waits depends on the available processor time, so it
is an aim: on a machine with two cores an apiserver that starts slows down the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quarterdeck.probe.schema import Probe
from quarterdeck.report.schema import PromiseVerdict
from quarterdeck.report.words import count, milliseconds, times, totals

#: What the swap costs.
WITHOUT_QUORUM = "time without a quorum inside one site"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a stall and of the swap. Over a long distance other limits make sense."""

    stall_ratio: float = 4.0  # times the longest stall of the quiet period
    stall_ms: float = 400.0
    window_ms: float = 50.0


def verdicts(probe: Probe | None, window_ms: float | None, limits: Limits) -> tuple[PromiseVerdict, ...]:
    """All verdicts for which there are data."""
    found = list(_of_probe(probe, limits)) if probe is not None else []
    if window_ms is not None:
        claim, measured = WITHOUT_QUORUM, f"{milliseconds(window_ms)} (limit {limits.window_ms:g} ms)"
        holds = window_ms <= limits.window_ms
        found.append(PromiseVerdict(claim=claim, measured=measured, holds=holds, promised=False))
    return tuple(found)


def _of_probe(probe: Probe, limits: Limits) -> Iterator[PromiseVerdict]:
    requests, failed = totals(probe)
    yield PromiseVerdict(
        claim="failed requests",
        measured=f"{count(failed)} of {count(requests)}",
        holds=failed == 0 < requests,
    )
    writes = probe.writes
    audit = "" if writes.audited else ", but the final list could not be read"
    yield PromiseVerdict(
        claim="lost writes",
        measured=f"{count(writes.lost)} of {count(writes.acknowledged)} acknowledged{audit}",
        holds=writes.lost == 0 < writes.acknowledged and writes.audited,
    )
    yield PromiseVerdict(
        claim="stale reads",
        measured=count(writes.stale_reads),
        holds=writes.stale_reads == 0,
    )
    watches = probe.watches
    yield PromiseVerdict(
        claim="watch events",
        measured=f"{count(watches.missed)} missed, {count(watches.duplicated)} twice, "
        f"{count(watches.out_of_order)} out of order, of {count(watches.events)}",
        holds=watches.missed == watches.duplicated == watches.out_of_order == 0 < watches.events,
    )
    yield _stall(probe, limits)


def _stall(probe: Probe, limits: Limits) -> PromiseVerdict:
    quiet = probe.quiet.overall.stall_ms
    longest = max(period.overall.stall_ms for period in probe.judged)
    lag = max(period.own_lag_ms for period in probe.judged)
    # A machine that stops as a whole (its hypervisor is busy) is no stall of the plane.
    own = f"; the probe itself was delayed by {milliseconds(lag)}" if lag > longest / 2 else ""
    return PromiseVerdict(
        claim="longest stall",
        measured=f"{milliseconds(longest)}, {times(longest, quiet)} of {milliseconds(quiet)} before"
        f" (limit {limits.stall_ms:g} ms and {limits.stall_ratio:g} x){own}",
        holds=longest <= min(limits.stall_ratio * quiet, limits.stall_ms),
        promised=False,
    )
