"""Whether sets of controllers can be handed over, and whether they have been."""

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

#: Seconds: a lock whose holder has died runs out after 15, and who waits for it looks every second.
PATIENCE = 30.0
#: After so many it is told that somebody is waited for, and so often it is asked.
_TOLD_AFTER = 5.0
_AGAIN = 0.2


def hands_over(operation: Operation | None) -> bool:
    """Whether an operation changes which manager runs what."""
    if operation is None or operation.spec.to is None or operation.spec.from_ is None:
        return False
    return sets_of(operation.spec.from_) != sets_of(operation.spec.to)


def sets_of(goal: Goal | None) -> ControllerSets:
    """The sets of what an operation came from, or goes to."""
    return goal.spec.controller_sets if goal is not None else ()


async def taken_up(
    plane: Plane,
    *,
    changed: Callable[[Plane], bool],
    tell: Callable[[QuarterdeckError], Awaitable[None]],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Return when each set's owner holds the lock that it runs the set under, or ``changed`` says that something else
    is wanted. ``tell`` hears what is waited for. Raises NotApplied, which names who holds a lock instead.
    """
    doing, until, told = f"handing controllers of plane {plane.name} over", monotonic() + PATIENCE, ""
    while not changed(plane):
        held = (each for each in await sets_held(plane) if not each.well)
        missing = [
            f"set {each.declared.name}: {'; '.join(each.why) or 'its owner does not run it yet'}" for each in held
        ]
        if not missing:
            return
        words = "; ".join(missing)
        if monotonic() >= until:
            raise NotApplied(doing, words, f"mend that, then 'wait {plane.name}', or 'abort {plane.name}'")
        if words != told and monotonic() >= until - PATIENCE + _TOLD_AFTER:
            told = words
            await tell(Unavailable(doing, f"waiting: {words}", f"mend that: it fails after {PATIENCE:g} s"))
        await asyncio.sleep(_AGAIN)
        await refresh(plane)


async def strangers(plane: Plane, locks: Collection[str]) -> tuple[str, ...]:
    """Those of these locks that somebody holds who is no manager of this plane, each with who it is, in words. Raises
    Unavailable when no apiserver is ready.
    """
    apiserver = await ready_apiserver(plane, f"looking at the locks of plane {plane.name}")
    leases = await asyncio.gather(*(plane.kube.leader_lease(apiserver, each) for each in locks))
    now = plane.clock()
    held = [each for each in leases if each is not None and each.holder and now - (each.renewed or now) < each.duration]
    found = await asyncio.gather(*(claims(plane, each.name) for each in held))
    return tuple(f"{each.name} (by {each.holder})" for each, known in zip(held, found, strict=True) if not known)
