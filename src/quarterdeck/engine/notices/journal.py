"""What is told of steps in a plane's journal."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from quarterdeck.actions.plane import Plane
from quarterdeck.model.steps import AdoptRevision, PlaceReplica, Step
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
            kind=type(step).__name__,
            text=step.words,
            outcome=outcome,
            operation=operation,
            site=step.site,
            replica=str(getattr(step, "replica", "")),
            detail={"why": step.why, **_given(step), **detail},
        )
    )


def _given(step: Step) -> Mapping[str, JsonValue]:
    """Where a replica was placed, and what it was to run from when on: of what is gone it is known from here alone."""
    match step:
        case PlaceReplica():
            return {"site": step.slot.site, "machine": step.machine, "revision": step.revision}
        case AdoptRevision():
            return {"revision": step.revision}
        case _:
            return {}
