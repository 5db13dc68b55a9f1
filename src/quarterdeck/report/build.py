"""Assembling a report."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import psutil

from quarterdeck.api.differences import differences, shown
from quarterdeck.api.operation import Goal, Operation, OperationPhase
from quarterdeck.errors import NotFound
from quarterdeck.probe.result import ProbeResult
from quarterdeck.report.journal import moments_of, phases_of, steps_of, swap_window
from quarterdeck.report.locks import locks_of
from quarterdeck.report.schema import Change, MeasurementHost, Outcome, Place, Report
from quarterdeck.report.verdicts import Limits, verdicts
from quarterdeck.stores.port import JournalEntry

_OUTCOMES = {
    OperationPhase.SUCCEEDED: Outcome.SUCCEEDED,
    OperationPhase.FAILED: Outcome.FAILED,
    OperationPhase.ABORTED: Outcome.ABORTED,
}


def build(
    operation: Operation,
    entries: Sequence[JournalEntry],
    *,
    machine: MeasurementHost,
    now: datetime,
    probe: ProbeResult | None = None,
    during: str | None = None,
    locks: Sequence[JournalEntry] | None = None,
) -> Report:
    """The report of an operation from the plane's journal entries of it (by id), and from the probe's result.

    ``now`` stands for the end of an operation that is still running; ``during``: see ``ProbeResult.since``. ``locks``:
    all of the plane's entries of locks (None: those of the operation). Raises NotFound where it has not begun.
    """
    began, ended = _began(operation), operation.status.finished_at or now
    started = began.timestamp()
    steps, timeline = steps_of(entries, started), moments_of(entries, started)
    window_ms = _milliseconds(swap_window(entries, timeline))
    part = None if probe is None else probe.since(started, during)
    return Report(
        plane=operation.spec.plane,
        operation=operation.metadata.name,
        kind=operation.spec.type.value,
        outcome=_OUTCOMES.get(operation.status.phase, Outcome.RUNNING),
        message=operation.status.message,
        source=_place(operation.spec.from_),
        target=_place(operation.spec.to),
        changes=_changes(operation.spec.from_, operation.spec.to),
        started=began.astimezone(UTC),
        seconds=round((ended - began).total_seconds(), 3),
        swap_window_ms=window_ms,
        verdicts=verdicts(part, window_ms, Limits()),
        phases=phases_of(steps),
        steps=steps,
        timeline=timeline,
        locks=locks_of(entries if locks is None else locks, started, ended.timestamp()),
        probe=part,
        machine=machine,
    )


def _began(operation: Operation) -> datetime:
    """Raises NotFound for an operation that has not begun."""
    if operation.status.started_at is None:
        raise NotFound(f"reporting on {operation.metadata.name}", "it has not begun", "see 'quarterdeck history'")
    return operation.status.started_at


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1e3 * seconds, 3)


def this_machine(versions: Mapping[str, str]) -> MeasurementHost:
    """The facts of this machine, with the given versions of programs."""
    return MeasurementHost(
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        python=platform.python_version(),
        versions=dict(versions),
    )


def _place(goal: Goal | None) -> Place | None:
    return None if goal is None else Place(site=goal.placement.site, replicas=goal.replicas)


def _changes(before: Goal | None, after: Goal | None) -> tuple[Change, ...]:
    if before is None or after is None or before.spec is None or after.spec is None:
        return ()
    found = differences(before.spec, after.spec)
    return tuple(Change(path=each.path, before=shown(each.before), after=shown(each.after)) for each in found)
