"""What replicas run: a revision that does not run is given up, with the reason that its program gave."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.actions.handlers import Preparations
from quarterdeck.actions.plane import Plane
from quarterdeck.model.steps.revisions import RejectRevision
from quarterdeck.sites.endings import complaint, why_unit_ended


async def with_reason(plane: Plane, step: RejectRevision) -> RejectRevision:
    """The step with the reason that the program gave, if its machine tells, and it is not known yet."""
    if step.said:
        return step
    record = plane.memory.replica(step.replica)
    told = complaint if step.runs else why_unit_ended
    said = await told(plane.site(record.site), record.machine, plane.unit(record, step.component))
    return replace(step, said=said)


PREPARED: Preparations = {RejectRevision: with_reason}
