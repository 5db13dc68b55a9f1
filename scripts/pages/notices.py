"""docs/reference/conditions-and-events.md, made from the enums of conditions and events."""

from __future__ import annotations

from enum import Enum

from pages.declared import comments, table
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.events import EventReason
from quarterdeck.api.operation import OperationPhase, OperationType, operation_reason

_OPENING = """# Conditions and events

The state of a plane is in its conditions, in the Kubernetes form: each has a type, a status (`True`, `False` or
`Unknown`), a reason for programs and a message for people. `quarterdeck status NAME` shows them.

Events tell what happened. An event is stored once for each plane, reason and message, with the number of times that it
was seen. `quarterdeck events NAME` lists them.

## Condition types
"""
_REASONS = """
## Condition reasons
"""
_EVENTS = """
## Event reasons
"""
_OPERATIONS = """
## Events of operations
Each change of the phase of an operation is an event. Its reason is the type of the operation, followed by its phase:
`{example}`.

- Types: {types}.
- Phases: {phases}.
"""


def page() -> str:
    """The whole page."""
    operations = _OPERATIONS.format(
        example=operation_reason(OperationType.MIGRATE, OperationPhase.SUCCEEDED),
        types=_values(OperationType),
        phases=_values(OperationPhase),
    )
    return "".join(
        (
            _OPENING,
            _meanings("type", ConditionType),
            _REASONS,
            _meanings("reason", ConditionReason),
            _EVENTS,
            _meanings("reason", EventReason),
            operations,
        )
    )


def _meanings(name: str, of: type[Enum]) -> str:
    meanings = comments(of)
    return table((name, "meaning"), [(f"`{each.value}`", meanings[each.name]) for each in of])


def _values(of: type[Enum]) -> str:
    return ", ".join(f"`{each.value}`" for each in of)
