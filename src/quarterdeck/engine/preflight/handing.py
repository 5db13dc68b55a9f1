"""What handing a set of controllers from one manager to another comes to, before anything is changed."""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Goal, Operation, OperationType
from quarterdeck.api.plane.controllers import ControllerSet, Manager
from quarterdeck.engine.controller_sets.handing import sets_of
from quarterdeck.engine.preflight.examined import Examined
from quarterdeck.engine.preflight.inplace import examined_in_place
from quarterdeck.engine.preflight.moves import examined_abort, require_done
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.preflight.requests import Abort, HandBack, HandOver
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.status import facts
from quarterdeck.engine.workspace import operations
from quarterdeck.errors import Conflict, InvalidInput, NotFound
from quarterdeck.stores.port import Store


async def examined_hand_over(engine: Engine, request: HandOver) -> Examined:
    """A set with another owner, with every check's finding and its forecast. Not ``needed`` when it has that owner.

    Raises Gone, NotFound (the set), InvalidInput (from one to the same), Conflict (the set is another manager's, the
    plane moves, or is not yet as wanted), and what ``admit`` does.
    """
    current = await operations.existing(engine.home.store, request.name)
    doing = f"handing set {request.controller_set} of plane {request.name} to the {request.target}"
    if request.source is request.target:
        raise InvalidInput(doing, "it is to come from there, too", "name two managers")
    found = _set_of(current, request.controller_set, doing)
    if found.owner is request.target:
        await require_in_reach(engine.home, current)
        already = f"the {request.target} is to run it already"
        require_done(doing, request.name, already, (await facts.look(engine.home, request.name)).plan)
        return Examined(kind=OperationType.APPLY, wanted=current, current=current, needed=False)
    return await _handed(engine, current, found, request.target, downtime_allowed=request.downtime_allowed)


async def examined_hand_back(engine: Callable[[], Engine], store: Store, request: HandBack) -> Examined:
    """A set with the owner of before: by an abort of what hands it over now, or by another hand-over.

    Raises Gone, NotFound (the set), Conflict (nobody has handed it over), and what ``examined_hand_over`` does.
    """
    current = await operations.existing(store, request.name)
    doing = f"handing set {request.controller_set} of plane {request.name} back"
    found = _set_of(current, request.controller_set, doing)
    under_way = await operations.current(store, request.name)
    if under_way is not None and _owner_before(under_way, found.name) not in (None, found.owner):
        return await examined_abort(store, Abort(request.name))
    for each in reversed(await operations.operations_of(store, request.name)):
        before = _owner_before(each, found.name)
        if before not in (None, found.owner):
            return await _handed(engine(), current, found, found.owner.other, downtime_allowed=request.downtime_allowed)
    hint = f"'controllers move {request.name} --set {found.name}' hands it over"
    raise Conflict(doing, f"no operation that is remembered has handed it to the {found.owner}", hint)


async def _handed(
    engine: Engine, current: ControlPlane, found: ControllerSet, target: Manager, *, downtime_allowed: bool
) -> Examined:
    given = found.model_copy(update={"owner": target})
    sets = tuple(given if each.name == found.name else each for each in current.spec.controller_sets)
    rollout = current.spec.rollout.model_copy(update={"downtime_allowed": downtime_allowed})
    wanted = current.with_spec(controller_sets=sets, rollout=rollout)
    return await examined_in_place(engine, OperationType.APPLY, current, wanted)


def _set_of(plane: ControlPlane, name: str, doing: str) -> ControllerSet:
    sets = plane.spec.controller_sets
    found = next((each for each in sets if each.name == name), None)
    if found is None:
        there = ", ".join(each.name for each in sets) or "none; declare them in spec.controllerSets"
        raise NotFound(doing, f"there is no set {name!r}", f"sets there are: {there}")
    return found


def _owner_before(operation: Operation, name: str) -> Manager | None:
    """Who owned a set before an operation that has given it to another one; None for any other operation."""
    before, after = (_owner(each, name) for each in (operation.spec.from_, operation.spec.to))
    return before if None not in (before, after) and before is not after else None


def _owner(goal: Goal | None, name: str) -> Manager | None:
    return next((each.owner for each in sets_of(goal) if each.name == name), None)
