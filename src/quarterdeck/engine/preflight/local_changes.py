"""Checks and simulations of changes of a plane at its site, also of controller migrations."""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.addons.content import AddonChange, Content, changes
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Goal, Operation, OperationType
from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.components.difference import Difference, differences, spec_differences
from quarterdeck.engine import status
from quarterdeck.engine.controller_sets.handover_checks import sets_of
from quarterdeck.engine.preflight.admission import admit
from quarterdeck.engine.preflight.moves import examined_abort, require_count, require_done
from quarterdeck.engine.preflight.preview import Supposing, as_seen, preview
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.preflight.requests import Abort, Examined, HandBack, HandOver, Replace, Scale
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import addons, operations, recorded, revisions
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Conflict, InvalidInput, NotFound
from quarterdeck.stores.port import Store


async def examined_scale(engine: Engine, request: Scale) -> Examined:
    """Another number of replicas, with all findings and the forecast.

    Raises Gone, InvalidInput (the number; the site is too small), Conflict (the plane moves, or is not up to date yet),
    PreconditionFailed (its networks are out of reach).
    """
    doing = f"scaling plane {request.name}"
    current = await recorded.existing(engine.home.store, request.name)
    require_count(doing, request.replicas)
    wanted = operations.moved(current, current.spec.placement, request.replicas)
    if wanted.spec == current.spec:
        await require_in_reach(engine.home, current)
        already = f"the spec has {request.replicas} replicas already"
        require_done(doing, request.name, already, (await status.look(engine.home, request.name)).plan)
        return Examined(kind=OperationType.SCALE, wanted=wanted, current=current, needed=False)
    return await examined_in_place(engine, OperationType.SCALE, current, wanted)


async def examined_replacement(engine: Engine, request: Replace) -> Examined:
    """The replacement of one replica, or of all, with all findings and the forecast.

    Raises Gone, NotFound (the replica), and what ``examined_exchange`` does.
    """
    current = await recorded.existing(engine.home.store, request.name)
    if request.replica is not None:
        operations.require_replica(current, "replacing", request.replica)
        return await examined_exchange(engine, current, (request.replica,))
    return await examined_exchange(engine, current, tuple(each.name for each in current.status.memory.replicas))


async def examined_exchange(
    engine: Engine,
    current: ControlPlane,
    asked: tuple[str, ...],
    supposing: Supposing = as_seen,
) -> Examined:
    """The replacement of these replicas of a plane; ``supposing`` as in ``preview``.

    Raises Conflict (the plane moves, one of them is cordoned), PreconditionFailed (its networks are out of reach).
    """
    kept = [each for each in asked if each in current.spec.cordoned]
    if kept:
        doing = f"replacing replicas of plane {current.name}"
        raise Conflict(doing, f"cordoned: {', '.join(kept)}", f"'replica uncordon {current.name} {kept[0]}' first")
    there = tuple(each.name for each in current.status.memory.replicas)
    named = tuple(each for each in there if each in asked or each in current.spec.replace_replicas)
    wanted = current.with_spec(replace_replicas=named)
    if wanted.spec == current.spec:
        await operations.require_changeable(engine.home.store, current)
        return Examined(kind=OperationType.REPLACE, wanted=wanted, current=current, needed=False)
    return await examined_in_place(engine, OperationType.REPLACE, current, wanted, supposing)


async def examined_in_place(
    engine: Engine,
    kind: OperationType,
    current: ControlPlane,
    wanted: ControlPlane,
    supposing: Supposing = as_seen,
) -> Examined:
    """A changed plane at the same site, checked and simulated; ``supposing`` as in ``preview``."""
    await operations.require_changeable(engine.home.store, current)
    await require_in_reach(engine.home, current)
    await admit(engine, wanted, current=current)
    differences = await compared(engine.home, current, wanted)
    findings, steps = await preview(engine.home, current, wanted, supposing=supposing)
    return Examined(
        kind=kind, wanted=wanted, current=current, differences=differences, findings=findings, forecast=steps
    )


async def compared(home: Home, current: ControlPlane, wanted: ControlPlane) -> tuple[Difference, ...]:
    """Every difference, by path; the content of files that the spec names is compared as well.

    Raises InvalidInput for a file that cannot be used.
    """
    now = await revisions.known(home.store, current, guess=True)
    after = await revisions.wanted(home.store, wanted)
    found = (*differences(now.template(now.goal), after.spec), *spec_differences(current.spec, wanted.spec))
    return tuple(sorted(found, key=lambda each: each.path))


async def compared_addons(
    home: Home, current: ControlPlane | None, wanted: ControlPlane
) -> tuple[tuple[Content, ...], tuple[AddonChange, ...]]:
    """The wanted add-ons, and their changes, object by object; their sources are read now, unless ``wanted`` names
    stored manifests.

    Raises errors of reading them, and InvalidInput for a change that would delete wanted objects with a namespace.
    """
    if current is None:
        after = await addons.read(wanted)
        return after, changes((), after)
    before = await addons.before(home.store, current)
    after = addons.contents_of(await addons.wanted(home.store, wanted))
    addons.require_possible(wanted, before, after)
    return after, changes(before, after)


async def examined_hand_over(engine: Engine, request: HandOver) -> Examined:
    """A set with another owner, with all findings and the forecast. Not ``needed`` when it has that owner.

    Raises Gone, NotFound (the set), InvalidInput (source and target are the same), Conflict (the set has another owner,
    the plane moves, or is not up to date yet), and what ``admit`` does.
    """
    current = await recorded.existing(engine.home.store, request.name)
    doing = f"migrating set {request.controller_set} of plane {request.name} to the {request.target}"
    if request.source is request.target:
        raise InvalidInput(doing, "source and target are the same", "name two managers")
    found = _set_of(current, request.controller_set, doing)
    if found.owner is request.target:
        await require_in_reach(engine.home, current)
        already = f"the {request.target} owns it already"
        require_done(doing, request.name, already, (await status.look(engine.home, request.name)).plan)
        return Examined(kind=OperationType.APPLY, wanted=current, current=current, needed=False)
    return await _handed(engine, current, found, request.target, downtime_allowed=request.downtime_allowed)


async def examined_hand_back(engine: Callable[[], Engine], store: Store, request: HandBack) -> Examined:
    """A set with its previous owner: by an abort of the running migration, or by another migration.

    Raises Gone, NotFound (the set), Conflict (it was not migrated), and what ``examined_hand_over`` does.
    """
    current = await recorded.existing(store, request.name)
    doing = f"migrating set {request.controller_set} of plane {request.name} back"
    found = _set_of(current, request.controller_set, doing)
    under_way = await recorded.current(store, request.name)
    if under_way is not None and _owner_before(under_way, found.name) not in (None, found.owner):
        return await examined_abort(store, Abort(request.name))
    for each in reversed(await recorded.operations_of(store, request.name)):
        before = _owner_before(each, found.name)
        if before not in (None, found.owner):
            return await _handed(engine(), current, found, found.owner.other, downtime_allowed=request.downtime_allowed)
    hint = f"'controllers move {request.name} --set {found.name}' migrates it"
    raise Conflict(doing, f"no recorded operation has migrated it to the {found.owner}", hint)


async def _handed(
    engine: Engine,
    current: ControlPlane,
    found: ControllerSetSpec,
    target: ControllerProgram,
    *,
    downtime_allowed: bool,
) -> Examined:
    given = found.model_copy(update={"owner": target})
    sets = tuple(given if each.name == found.name else each for each in current.spec.controller_sets)
    rollout = current.spec.rollout.model_copy(update={"downtime_allowed": downtime_allowed})
    wanted = current.with_spec(controller_sets=sets, rollout=rollout)
    return await examined_in_place(engine, OperationType.APPLY, current, wanted)


def _set_of(plane: ControlPlane, name: str, doing: str) -> ControllerSetSpec:
    sets = plane.spec.controller_sets
    found = next((each for each in sets if each.name == name), None)
    if found is None:
        there = ", ".join(each.name for each in sets) or "none; declare them in spec.controllerSets"
        raise NotFound(doing, f"there is no set {name!r}", f"sets: {there}")
    return found


def _owner_before(operation: Operation, name: str) -> ControllerProgram | None:
    """The owner of a set before an operation that changed it; None for any other operation."""
    before, after = (_owner(each, name) for each in (operation.spec.from_, operation.spec.to))
    return before if None not in (before, after) and before is not after else None


def _owner(goal: Goal | None, name: str) -> ControllerProgram | None:
    return next((each.owner for each in sets_of(goal) if each.name == name), None)
