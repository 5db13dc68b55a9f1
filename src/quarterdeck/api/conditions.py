"""Conditions: what is so of a resource, since when and why."""

from __future__ import annotations

from enum import StrEnum

from pydantic import AwareDatetime

from quarterdeck.api.base import Model, instant


class ConditionStatus(StrEnum):
    """Kubernetes' three answers."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Model):
    """One answer. ``last_transition_time`` is when ``status`` last changed, not when it was last looked at."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""
    last_transition_time: AwareDatetime
    observed_generation: int | None = None


def with_condition(
    conditions: tuple[Condition, ...],
    kind: str,
    status: ConditionStatus,
    *,
    reason: str,
    now: float,
    message: str = "",
    observed_generation: int | None = None,
) -> tuple[Condition, ...]:
    """``conditions`` with the one of type ``kind`` set; ``now`` (wall clock, seconds) counts only if it changes."""
    before = find_condition(conditions, kind)
    same = before is not None and before.status == status
    condition = Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=before.last_transition_time if before is not None and same else instant(now),
        observed_generation=observed_generation,
    )
    if before is None:
        return (*conditions, condition)
    return tuple(condition if each.type == kind else each for each in conditions)


def find_condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((each for each in conditions if each.type == kind), None)
