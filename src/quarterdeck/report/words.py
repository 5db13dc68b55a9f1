"""The report as text: headline, summary, and number formats."""

from __future__ import annotations

from quarterdeck.probe.schema import Probe
from quarterdeck.report.schema import Outcome, Place, PromiseVerdict, Report

#: The verb of each type of operation.
VERBS = {
    "Create": "created",
    "Migrate": "moved",
    "Failover": "failed over",
    "Scale": "scaled",
    "Upgrade": "upgraded",
    "Apply": "changed",
    "Replace": "replaced",
    "Rotate": "given other authorities or keys",
    "Abort": "brought back",
    "Delete": "deleted",
}


def milliseconds(value: float) -> str:
    """Such as ``0.8 ms``, ``92 ms``, ``1.31 s``."""
    if value >= 1000:
        return f"{value / 1000:.2f} s"
    return f"{value:.1f} ms" if value < 10 else f"{value:.0f} ms"


def seconds(value: float) -> str:
    """Such as ``9 ms``, ``14.2 s``, ``2 min 05 s``."""
    if value < 1:
        return milliseconds(1000 * value)
    if value < 120:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {int(value % 60):02d} s"


def mark(verdict: PromiseVerdict) -> str:
    """``✓`` kept, ``✗`` a broken promise, ``!`` a missed aim."""
    return "✓" if verdict.holds else "✗" if verdict.promised else "!"


def count(value: int) -> str:
    """Such as ``2,310``."""
    return f"{value:,}"


def times(value: float, base: float) -> str:
    """Such as ``1.5 x``; a dash when there is nothing to compare with."""
    return f"{value / base:.1f} x" if base > 0 else "–"


def headline(report: Report) -> str:
    """Such as ``demo moved east → west in 14.2 s``."""
    verb = VERBS.get(report.kind, report.kind.lower())
    some = report.kind == "Replace"
    subject, is_, was = (f"replicas of {report.plane}", "are", "were") if some else (report.plane, "is", "was")
    took = f"in {seconds(report.seconds)}"
    place = _where(report.source, report.target, verb)
    match report.outcome:
        case Outcome.SUCCEEDED:
            return f"{subject} {verb} {place} {took}".replace("  ", " ")
        case Outcome.RUNNING:
            return f"{subject} {is_} being {verb} {place}, {seconds(report.seconds)} so far".replace(" ,", ",")
        case Outcome.FAILED | Outcome.ABORTED:
            return f"{subject} {was} not {verb} {place}: {report.outcome.value} after {seconds(report.seconds)}"


def _where(source: Place | None, target: Place | None, verb: str) -> str:
    if source is None or target is None:
        place = target or source
        return f"at {place.site}" if place is not None else ""
    if source.site != target.site:
        return f"{source.site} → {target.site}"
    if source.replicas != target.replicas:
        return f"{source.replicas} → {target.replicas}"
    return f"at {target.site}"


def summary(report: Report) -> str:
    """Such as ``2,310 requests from host rack/cp-1, 0 failed, 0 lost writes, longest stall 92 ms (quiet 61 ms)``."""
    if report.probe is None:
        return f"{count(len(report.steps))} steps; no probe was running"
    probe = report.probe
    quiet, during = probe.quiet.overall, probe.during.overall
    requests, failed = totals(probe)
    where = f" from host {probe.source}" if probe.source is not None else ""
    return (
        f"{count(requests)} requests{where}, {count(failed)} failed, {count(probe.writes.lost)} lost writes, "
        f"longest stall {milliseconds(during.stall_ms)} (quiet {milliseconds(quiet.stall_ms)})"
    )


def totals(probe: Probe) -> tuple[int, int]:
    """Requests and failures of all periods, including the quiet one: every count without a period's name."""
    counted = [period.overall for period in probe.periods]
    return sum(each.requests for each in counted), sum(each.failures for each in counted)


def by_period(probe: Probe) -> str:
    """Such as ``2,310 requests in all: 900 in 'quiet', 1,310 in 'change', 100 in 'after'``."""
    parts = ", ".join(f"{count(period.overall.requests)} in '{period.label}'" for period in probe.periods)
    return f"{count(totals(probe)[0])} requests in all: {parts}"


def changes(report: Report) -> list[str]:
    """Such as ``spec.audit.maxAgeDays: 30 → 7``: the changes that the headline does not name."""
    named = ("spec.placement.site", "spec.replicas")
    return [f"{each.path}: {each.before} → {each.after}" for each in report.changes if each.path not in named]
