"""Writing a plane's status, its memory above all: under the lease, and never over what a user changed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from quarterdeck.actions.plane import Plane
from quarterdeck.api.conditions import Condition, ConditionStatus, with_condition
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.addons import AddonStatus
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.errors import Conflict, Gone, LeaseLost, NotFound
from quarterdeck.model.memory import Memory
from quarterdeck.model.remember import remember as after_step
from quarterdeck.model.seats import Seat
from quarterdeck.model.steps.base import Step
from quarterdeck.model.timeline import adopted

#: Writes of the memory race only with users' changes of the spec, which are few.
_WRITE_TRIES = 10


async def refresh(plane: Plane) -> None:
    """Read the resource again: the user may have changed the spec. Raises Gone."""
    try:
        plane.resource = await plane.store.get(ControlPlane, plane.name)
    except NotFound as error:
        raise Gone(error.doing, error.seen) from None


async def adopt(plane: Plane) -> None:
    """Have the memory's times count by this host's clock of now, if they do not yet: for whoever drives."""
    async with plane.writing:
        memory = adopted(plane.memory, boot=plane.boot, steady=plane.steady(), wall=plane.clock())
        if memory != plane.memory:
            await write_status(plane, memory=memory)


async def remember_seats(plane: Plane, seats: Mapping[str, Seat]) -> None:
    """Write down the seats of these replicas, if that was not done. Raises LeaseLost."""
    async with plane.writing:
        memory = plane.memory
        seated = tuple(replace(each, seat=seats.get(each.name, each.seat)) for each in memory.replicas)
        if seated != memory.replicas:
            await write_status(plane, memory=replace(memory, replicas=seated))


async def remember(plane: Plane, steps: tuple[Step, ...]) -> None:
    """Write what the steps leave in the memory, all at once. Raises LeaseLost."""
    now = plane.now()
    async with plane.writing:
        memory = plane.memory
        for step in steps:
            memory = after_step(memory, step, now)
        if memory != plane.memory:
            await write_status(plane, memory=memory)


async def tell_condition(plane: Plane, kind: str, so: tuple[ConditionStatus, str, str] | None) -> None:
    """Write down one condition (its status, reason and message; None: there is none), if more than its time differs."""
    async with plane.writing:
        await refresh(plane)
        before = plane.resource.status.conditions
        after = tuple(each for each in before if each.type != kind)
        if so is not None:
            status, reason, message = so
            generation, now = plane.resource.metadata.generation, plane.clock()
            after = with_condition(
                before, kind, status, reason=reason, now=now, message=message, observed_generation=generation
            )
        if after != before:
            await write_status(plane, conditions=after)


async def write_status(
    plane: Plane,
    *,
    memory: Memory | None = None,
    conditions: tuple[Condition, ...] | None = None,
    observed_generation: int | None = None,
    addons: tuple[AddonStatus, ...] | None = None,
) -> None:
    """Change what is given of the status; the spec is whatever the user made of it meanwhile."""
    changes = {
        "memory": memory_to_status(memory) if memory is not None else None,
        "conditions": conditions,
        "observed_generation": observed_generation,
        "addons": addons,
    }
    changes = {key: value for key, value in changes.items() if value is not None}
    for attempt in range(_WRITE_TRIES):
        status = plane.resource.status.model_copy(update=changes)
        try:
            plane.resource = await plane.store.update(
                plane.resource.model_copy(update={"status": status}), lease=plane.lease
            )
        except LeaseLost:
            raise
        except Conflict:
            if attempt + 1 == _WRITE_TRIES:
                raise
            await refresh(plane)
        else:
            return
