"""Operations and plans as models, for commands that change planes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.api.operation import Operation
from quarterdeck.api.output.base import messages
from quarterdeck.api.output.operations import (
    AddonDifference,
    ChangedField,
    ChangePlan,
    ChangeResult,
    CheckFinding,
    OperationResult,
    OperationRow,
    OperationStep,
    PlannedStep,
    StepsPlan,
)

if TYPE_CHECKING:  # a command that lists operations loads no planner, and no reports
    from quarterdeck.app import DryRun, Examined, Finding
    from quarterdeck.report.schema import Report, StepSpan


def operation_row(operation: Operation) -> OperationRow:
    """An operation in a list."""
    status, spec = operation.status, operation.spec
    took = None
    if status.started_at is not None and status.finished_at is not None:
        took = (status.finished_at - status.started_at).total_seconds()
    return OperationRow(
        name=operation.name,
        plane=spec.plane,
        type=spec.type.value,
        from_site=spec.from_.placement.site if spec.from_ else None,
        from_replicas=spec.from_.replicas if spec.from_ else None,
        to_site=spec.to.placement.site if spec.to else None,
        to_replicas=spec.to.replicas if spec.to else None,
        phase=status.phase.value,
        started_at=status.started_at,
        finished_at=status.finished_at,
        duration_seconds=took,
        requested_by=spec.requested_by,
        message=status.message,
    )


def operation_result(operation: Operation, report: Report | None = None) -> OperationResult:
    """An operation with the steps of its report."""
    path = operation.status.report
    return OperationResult(
        **dict(operation_row(operation)),
        steps=tuple(map(_step, report.steps)) if report is not None else (),
        report=str(path) if path is not None else None,
    )


def changed(plane: str, action: str, operation: OperationResult | None = None, *, news: bool = True) -> ChangeResult:
    """A change of a plane. ``news``: whether anything was changed."""
    return ChangeResult(resource="plane", name=plane, action=action, changed=news, operation=operation)


def _step(span: StepSpan) -> OperationStep:
    return OperationStep(
        kind=span.kind,
        message=span.text,
        reason=span.why,
        site=span.site or None,
        replica=span.replica or None,
        outcome=span.outcome.value,
        start_seconds=span.start,
        duration_seconds=span.end - span.start if span.end is not None else None,
    )


def steps_plan(plane: str, forecast: DryRun | None) -> StepsPlan:
    """A dry run."""
    return StepsPlan(
        plane=plane,
        steps=planned_steps(forecast) if forecast is not None else None,
        waits_for=messages([str(each) for each in forecast.stuck_on]) if forecast is not None else None,
    )


def planned_steps(forecast: DryRun, *, all_steps: bool = True) -> tuple[PlannedStep, ...]:
    """Its steps: all, or those that people are shown."""
    return tuple(
        PlannedStep(
            kind=each.step.kind,
            message=each.step.words,
            reason=each.step.why,
            site=each.step.site or None,
            voters=each.voters,
            learners=each.learners,
            may_fail=each.margin,
            quorum_site=each.quorum_site,
            undoable=each.step.undoable,
        )
        for each in forecast.steps
        if all_steps or each.step.shown
    )


def change_plan(examined: Examined) -> ChangePlan:
    """What a request comes to."""
    return ChangePlan(
        **dict(steps_plan(examined.name, examined.forecast)),
        type=examined.kind.value,
        needed=examined.needed,
        differences=tuple(
            ChangedField(
                path=each.path,
                before=each.before,
                after=each.after,
                needs=each.needs.value,
                restart=tuple(map(str, each.restart)),
                reload=tuple(map(str, each.reload)),
                message=each.note or None,
            )
            for each in examined.differences
        ),
        addons=tuple(
            AddonDifference(
                name=each.addon,
                added=tuple(map(str, each.added)),
                changed=tuple(map(str, each.changed)),
                removed=tuple(map(str, each.removed)),
            )
            for each in examined.addons
        ),
        findings=tuple(map(check_finding, examined.findings)),
    )


def check_finding(found: Finding) -> CheckFinding:
    """The answer of a check."""
    return CheckFinding(
        check=found.check, verdict=found.verdict.value, message=found.seen, next_step=found.next_step or None
    )
