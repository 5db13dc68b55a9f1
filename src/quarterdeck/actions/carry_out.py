"""Carrying out one step: the handler of each kind is in the module of its family."""

from __future__ import annotations

from quarterdeck.actions import clusters, healing, members, placement, stored, traffic, units
from quarterdeck.actions.handlers import Detail, Handlers, Preparations
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import remember
from quarterdeck.model.endpoints import Must
from quarterdeck.model.steps.base import Step
from quarterdeck.model.world import World

HANDLERS: Handlers = {
    **placement.HANDLERS,
    **clusters.HANDLERS,
    **healing.HANDLERS,
    **members.HANDLERS,
    **stored.HANDLERS,
    **units.HANDLERS,
    **traffic.HANDLERS,
}
PREPARED: Preparations = {**placement.PREPARED, **units.PREPARED}


async def carry_out(plane: Plane, step: Step, world: World) -> Detail | Must:
    """Carry out one step, then record its change of the memory. Idempotent.

    Returns details for reports, or what a person must do before it can be carried out. Raises a QuarterdeckError; then
    the step may have taken effect or not, and the next observation shows it.
    """
    await plane.check()
    prepare = PREPARED.get(type(step))
    if prepare is not None:
        step = await prepare(plane, step)
    if step.recorded_first:
        await remember(plane, (step,))
    outcome: Detail | Must | None = None
    if not step.only_recorded:
        outcome = await HANDLERS[type(step)](plane, step, world)
    if not isinstance(outcome, Must):
        await remember(plane, (step,))
    return outcome or {}
