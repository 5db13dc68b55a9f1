"""Steps that a duty takes for a plane at rest, told in its journal as those of its driver are."""

from __future__ import annotations

import asyncio

from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.plane import Plane
from quarterdeck.engine.notices.journal import tell_step
from quarterdeck.model.endpoints import Must
from quarterdeck.model.steps.base import Step
from quarterdeck.model.world import World
from quarterdeck.stores.port import Outcome


async def tend(plane: Plane, step: Step, world: World) -> None:
    """Take it, and tell of it."""
    began = asyncio.get_running_loop().time()
    detail = await carry_out(plane, step, world)
    assert not isinstance(detail, Must)
    seconds = asyncio.get_running_loop().time() - began
    await tell_step(plane, step, Outcome.DONE, {"seconds": seconds, **detail})
