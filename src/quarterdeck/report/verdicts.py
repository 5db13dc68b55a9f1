"""Promises and aims, and whether they hold.

No failed request and no lost write are promises. How long a client waits depends on the available processor time, so it
is an aim: on a machine with two cores an apiserver that starts slows down the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quarterdeck.probe.schema import Probe
from quarterdeck.report.schema import PromiseVerdict
from quarterdeck.report.words import count, milliseconds, times, totals


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
        claim = f"one site holds a quorum by itself, but for at most {limits.window_ms:g} ms"
        measured = f"but for {milliseconds(window_ms)}" if window_ms else "always"
        holds = window_ms <= limits.window_ms
        found.append(PromiseVerdict(claim=claim, measured=measured, holds=holds, promised=False))
    return tuple(found)


def _of_probe(probe: Probe, limits: Limits) -> Iterator[PromiseVerdict]:
    requests, failed = totals(probe)
    yield PromiseVerdict(
        claim="no request fails",
        measured=f"{count(failed)} of {count(requests)} failed",
        holds=failed == 0 < requests,
    )
    writes = probe.writes
    audit = "" if writes.audited else ", but the final list could not be read"
    yield PromiseVerdict(
        claim="no acknowledged write is lost",
        measured=f"{count(writes.lost)} of {count(writes.acknowledged)} lost{audit}",
        holds=writes.lost == 0 < writes.acknowledged and writes.audited,
    )
    yield PromiseVerdict(
        claim="no read is older than what was acknowledged before it",
        measured=f"{count(writes.stale_reads)} stale reads",
        holds=writes.stale_reads == 0,
    )
    watches = probe.watches
    yield PromiseVerdict(
        claim="every watcher sees every write once and in order",
        measured=f"{count(watches.missed)} missed, {count(watches.duplicated)} twice, "
        f"{count(watches.out_of_order)} out of order of {count(watches.events)}",
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
        claim=f"the longest stall is at most {limits.stall_ratio:g} x the quiet one and {limits.stall_ms:g} ms",
        measured=f"{milliseconds(longest)}, {times(longest, quiet)} of {milliseconds(quiet)}{own}",
        holds=longest <= min(limits.stall_ratio * quiet, limits.stall_ms),
        promised=False,
    )
