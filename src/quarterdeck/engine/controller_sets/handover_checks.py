"""Whether controller sets can migrate, and whether they have."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import refresh
from quarterdeck.api.operation import Goal, Operation
from quarterdeck.api.plane.controllers import ControllerSets
from quarterdeck.engine.controller_sets.set_holders import claims, sets_held
from quarterdeck.engine.observation.queries import ready_apiserver
from quarterdeck.errors import NotApplied, QuarterdeckError, Unavailable

#: Seconds: a lock whose holder has died expires after 15, and a candidate checks it every second.
PATIENCE = 30.0
#: Seconds after which the wait is reported, and between two checks.
_TOLD_AFTER = 5.0
_AGAIN = 0.2


def hands_over(operation: Operation | None) -> bool:
    """Whether an operation changes the owner of a controller set."""
    if operation is None or operation.spec.to is None or operation.spec.from_ is None:
        return False
    return sets_of(operation.spec.from_) != sets_of(operation.spec.to)


def sets_of(goal: Goal | None) -> ControllerSets:
    """The sets of the goal of an operation, or of the previous one."""
    return goal.spec.controller_sets if goal is not None else ()


async def taken_up(
    plane: Plane,
    *,
    changed: Callable[[Plane], bool],
    tell: Callable[[QuarterdeckError], Awaitable[None]],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Return when each set's owner holds the lock of the set, or ``changed`` reports a new spec. ``tell`` gets what is
    waited for. Raises NotApplied, which names the present holder of a lock.
    """
    doing, until, reported = f"migrating controllers of plane {plane.name}", monotonic() + PATIENCE, ""
    while not changed(plane):
        held = (each for each in await sets_held(plane) if not each.well)
        missing = [
            f"set {each.declared.name}: {'; '.join(each.why) or 'its owner does not run it yet'}" for each in held
        ]
        if not missing:
            return
        words = "; ".join(missing)
        if monotonic() >= until:
            raise NotApplied(doing, words, f"fix that, then 'wait {plane.name}', or 'abort {plane.name}'")
        if words != reported and monotonic() >= until - PATIENCE + _TOLD_AFTER:
            reported = words
            await tell(Unavailable(doing, f"waiting: {words}", f"fix that: the operation fails after {PATIENCE:g} s"))
        await asyncio.sleep(_AGAIN)
        await refresh(plane)


async def strangers(plane: Plane, locks: Collection[str]) -> tuple[str, ...]:
    """The locks among these whose holder is not a manager of this plane, each with its holder, in words. Raises
    Unavailable when no apiserver is ready.
    """
    apiserver = await ready_apiserver(plane, f"reading the locks of plane {plane.name}")
    leases = await asyncio.gather(*(plane.kube.leader_lease(apiserver, each) for each in locks))
    now = plane.clock()
    held = [each for each in leases if each is not None and each.holder and now - (each.renewed or now) < each.duration]
    found = await asyncio.gather(*(claims(plane, each.name) for each in held))
    return tuple(f"{each.name} (by {each.holder})" for each, known in zip(held, found, strict=True) if not known)
