"""What replicas run: a revision that does not run is given up, with the last words of its program."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.actions.handlers import Preparations
from quarterdeck.actions.plane import Plane
from quarterdeck.errors import NotFound, Unavailable
from quarterdeck.model.steps import RejectRevision

#: Characters of a program's last words that are kept.
_MOST_WORDS = 400


async def with_last_words(plane: Plane, step: RejectRevision) -> RejectRevision:
    """The step with what the program said last."""
    return replace(step, said=await last_words(plane, step))


async def last_words(plane: Plane, step: RejectRevision) -> str:
    """What a program said last, as far as its machine tells: the last line of its log that speaks of an error, or else
    that says anything.
    """
    record = plane.memory.replica(step.replica)
    try:
        log = await plane.site(record.site).logs(record.machine, plane.unit(record, step.component), lines=20)
    except (NotFound, Unavailable):
        return ""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    said = [line for line in lines if "error" in line.lower()] or lines
    return f"it said: {said[-1][:_MOST_WORDS]}" if said else ""


PREPARED: Preparations = {RejectRevision: with_last_words}
