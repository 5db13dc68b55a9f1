"""Whether sets of controllers are run by whom they are to be run by: asked once a hand-over has been carried out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from quarterdeck.actions.addresses import server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import refresh
from quarterdeck.api.operation import Goal, Operation
from quarterdeck.api.revision import ControllerSetTemplate, Guard
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.engine.asking import or_none
from quarterdeck.engine.servers import ready_apiserver
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
    before, after = (_sets(each) for each in (operation.spec.from_, operation.spec.to))
    return before != after


def _sets(goal: Goal) -> object:
    return goal.spec.controller_sets if goal.spec is not None else ()


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
        missing = [why for each in plane.settings.controller_sets if (why := await _not_taken_up(plane, each))]
        if not missing:
            return
        words = "; ".join(missing)
        if monotonic() >= until:
            raise NotApplied(doing, words, f"mend that, then 'wait {plane.name}', or 'abort {plane.name}'")
        if words != told and monotonic() >= until - PATIENCE + _TOLD_AFTER:
            told = words
            await tell(Unavailable(doing, f"waiting: {words}"))
        await asyncio.sleep(_AGAIN)
        await refresh(plane)


async def _not_taken_up(plane: Plane, one: ControllerSetTemplate) -> str:
    """Why nobody runs a set who is to, in words; "" if somebody does."""
    component = one.owner.component
    lock = one.lock if one.guard is Guard.SET else CATALOGUE[component].lease
    (port,) = CATALOGUE[component].ports
    asked = (plane.kube.leads(server_address(plane, each, port), lock) for each in plane.memory.replicas)
    if any(await asyncio.gather(*asked)):
        return ""
    lease = await or_none(plane.kube.leader_lease(await ready_apiserver(plane, f"looking at lock {lock}"), lock))
    if lease is None or not lease.holder:
        return f"set {one.name}: nobody holds lock {lock} yet"
    return f"set {one.name}: lock {lock} is held by {lease.holder}, which is no {component} of this plane that says so"
