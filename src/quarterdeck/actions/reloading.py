"""Giving a unit that runs new files, which its program takes up by itself."""

from __future__ import annotations

import math

from quarterdeck.actions.handlers import Handlers
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.units import rendered
from quarterdeck.errors import Conflict, Unavailable
from quarterdeck.model.steps.units import ReloadUnit
from quarterdeck.model.world import World


async def reload_unit(plane: Plane, step: ReloadUnit, world: World) -> None:
    """Give a unit that runs its files as a revision has them; the observer sees whether its program goes by them.

    Raises Unavailable for one that was started with other arguments, and remembers that: only a start makes it.
    """
    record, template = plane.memory.replica(step.replica), plane.revisions.template(step.revision)
    spec = await rendered(plane, record, step.component, template, world)
    await plane.check()
    given = step.replica, step.revision
    try:
        await plane.site(record.site).reload_unit(record.machine, spec)
    except Conflict as error:
        plane.given[given] = -math.inf
        doing = f"giving {step.component} of {step.replica} new files while it runs"
        raise Unavailable(doing, error.seen, "it is started anew instead") from error
    plane.given[given] = plane.steady()


HANDLERS: Handlers = {ReloadUnit: reload_unit}
