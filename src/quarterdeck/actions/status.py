"""Writing a plane's status, most of all its memory: under the lease, and never over a concurrent change by a user."""

from __future__ import annotations

from typing import Unpack

from quarterdeck.actions.plane import Plane
from quarterdeck.api.base import ConditionStatus, with_condition
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.controlplane import ControlPlane, StatusChanges
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.errors import Gone, NotFound
from quarterdeck.model.memory import Memory
from quarterdeck.model.remember import adopted
from quarterdeck.model.remember import remember as after_step
from quarterdeck.model.steps.base import Step
from quarterdeck.stores.port import amend


async def refresh(plane: Plane) -> None:
    """Read the resource again: the user may have changed the spec. Raises Gone."""
    try:
        plane.resource = await plane.store.get(ControlPlane, plane.name)
    except NotFound as error:
        raise Gone(error.doing, error.seen) from None


async def adopt(plane: Plane) -> None:
    """Convert the memory's times to this host's clock, if needed: called by the driver."""
    async with plane.writing:
        memory = adopted(plane.memory, boot=plane.boot, steady=plane.steady(), wall=plane.clock())
        if memory != plane.memory:
            await write_memory(plane, memory)


async def remember(plane: Plane, steps: tuple[Step, ...]) -> None:
    """Write the steps' changes of the memory, all at once. Raises LeaseLost."""
    now = plane.now()
    async with plane.writing:
        memory = plane.memory
        for step in steps:
            memory = after_step(memory, step, now)
        if memory != plane.memory:
            await write_memory(plane, memory)


async def tell_condition(
    plane: Plane, kind: ConditionType, state: tuple[ConditionStatus, ConditionReason, str] | None
) -> None:
    """Write one condition (status, reason, message; None: remove it), if more than its time differs."""
    async with plane.writing:
        await refresh(plane)
        before = plane.resource.status.conditions
        after = tuple(each for each in before if each.type != kind)
        if state is not None:
            status, reason, message = state
            generation, now = plane.resource.metadata.generation, plane.clock()
            after = with_condition(
                before, kind, status, reason=reason, now=now, message=message, observed_generation=generation
            )
        if after != before:
            await write_status(plane, conditions=after)


async def write_status(plane: Plane, **changes: Unpack[StatusChanges]) -> None:
    """Change the given fields of the status; the spec stays as the user last wrote it.

    Raises Gone, LeaseLost.
    """
    try:
        plane.resource = await amend(
            plane.store, ControlPlane, plane.name, lambda seen: seen.with_status(**changes), lease=plane.lease
        )
    except NotFound as error:
        raise Gone(error.doing, error.seen) from None


async def write_memory(plane: Plane, memory: Memory) -> None:
    """Change the memory in the status. Raises what ``write_status`` does."""
    await write_status(plane, memory=memory_to_status(memory))
