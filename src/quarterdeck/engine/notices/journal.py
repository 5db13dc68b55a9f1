"""What is told of steps in a plane's journal."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from quarterdeck.actions.plane import Plane
from quarterdeck.model.steps.base import Step
from quarterdeck.stores.port import JournalEntry, Outcome


async def tell_step(
    plane: Plane,
    step: Step,
    outcome: Outcome,
    detail: Mapping[str, JsonValue],
    *,
    operation: str = "",
    ago: float = 0.0,
) -> None:
    """Tell of a step what came of it, so many seconds ``ago``, and why it was taken."""
    await plane.store.append(
        JournalEntry(
            plane=plane.name,
            time=plane.clock() - ago,
            kind=step.kind,
            text=step.words,
            outcome=outcome,
            operation=operation,
            site=step.site,
            replica=str(getattr(step, "replica", "")),
            detail={"why": step.why, **step.facts, **detail},
        )
    )
