"""What bringing an object back out of a backup does, for people and programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import JsonValue

from quarterdeck.api.output.backups import ObjectBroughtBack
from quarterdeck.app.backup.objects import BringBack
from quarterdeck.backup.kubernetes.bring_back import FieldChange

#: Characters of a value that are shown.
_SHOWN = 60


def bring_back_lines(plan: BringBack) -> Iterator[str]:
    """What to know before one consents."""
    if not plan.uid:
        yield f"{plan.object.called} does not exist now"
    for each in plan.changes:
        yield f"  {each.path}: {_words(each)}"
    if plan.left:
        yield f"added since, and left as it is: {', '.join(each.path for each in plan.left)}"
    if plan.dropped:
        owners = ", ".join(f"{each.kind} {each.name}" for each in plan.dropped)
        yield f"owners that no longer exist, and are left out: {owners}"
    for warning in plan.warnings:
        yield f"warning: {warning}"


def _words(change: FieldChange) -> str:
    return "changes (not shown)" if change.hidden else f"{_value(change.before)} -> {_value(change.after)}"


def _value(value: JsonValue) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def bring_back_result(plan: BringBack, action: str) -> ObjectBroughtBack:
    """What was done."""
    found = plan.object
    return ObjectBroughtBack(
        name=found.name,
        plane=found.plane,
        action=action,
        resource=found.resource.plural,
        group=found.resource.group,
        namespace=found.namespace or None,
        revision=found.moment.revision,
        changed_fields=tuple(each.path for each in plan.changes),
        left_fields=tuple(each.path for each in plan.left),
        dropped_owners=tuple(f"{each.kind}/{each.name}" for each in plan.dropped),
    )
