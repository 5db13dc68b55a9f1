"""What changes of a plane's replicas at the site where it is come to, before anything is changed."""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import OperationType
from quarterdeck.engine.background.renewal import renewed
from quarterdeck.engine.preflight.admission import admit
from quarterdeck.engine.preflight.comparing import compared
from quarterdeck.engine.preflight.examined import Examined
from quarterdeck.engine.preflight.moves import require_count, require_done
from quarterdeck.engine.preflight.preview import Supposing, as_seen, forecast, preview
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.preflight.requests import Replace, Scale
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.status import facts
from quarterdeck.engine.workspace import operations
from quarterdeck.errors import Conflict


async def examined_scale(engine: Engine, request: Scale) -> Examined:
    """Another number of replicas, with every check's finding and its forecast.

    Raises Gone, InvalidInput (the number; the site is too small), Conflict (the plane moves, or is not yet as wanted),
    PreconditionFailed (its networks are out of reach).
    """
    doing = f"scaling plane {request.name}"
    current = await operations.existing(engine.home.store, request.name)
    require_count(doing, request.replicas)
    wanted = operations.moved(current, current.spec.placement, request.replicas)
    if wanted.spec == current.spec:
        await require_in_reach(engine.home, current)
        already = f"{request.replicas} replicas are wanted already"
        require_done(doing, request.name, already, (await facts.look(engine.home, request.name)).plan)
        return Examined(kind=OperationType.SCALE, wanted=wanted, current=current, needed=False)
    return await examined_in_place(engine, OperationType.SCALE, current, wanted)


async def examined_replacement(engine: Engine, request: Replace) -> Examined:
    """One replica exchanged, or all, with every check's finding and its forecast.

    Raises Gone, NotFound (the replica), and what ``examined_exchange`` does.
    """
    current = await operations.existing(engine.home.store, request.name)
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
    """These replicas of a plane exchanged; ``supposing`` as in ``preview``.

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


async def examined_renewal(engine: Engine, name: str) -> Examined:
    """New certificates for all programs, with its forecast.

    Raises Gone, Conflict (the plane moves), PreconditionFailed (its networks are out of reach).
    """
    current = await operations.existing(engine.home.store, name)
    wanted = renewed(current)
    await operations.require_changeable(engine.home.store, current)
    await require_in_reach(engine.home, current)
    differences = await compared(engine.home, current, wanted)
    steps = await forecast(engine.home, wanted)
    return Examined(kind=OperationType.APPLY, wanted=wanted, current=current, differences=differences, forecast=steps)


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
