"""What changes of a plane's replicas at the site where it is come to, before anything is changed."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import OperationType
from quarterdeck.app.examined import Examined
from quarterdeck.app.moves import require_count, require_done
from quarterdeck.app.reach import require_in_reach
from quarterdeck.app.requests import Scale
from quarterdeck.engine import facts, operations, preconditions
from quarterdeck.engine.admission import admit
from quarterdeck.engine.drive import Engine


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
        require_done(doing, request.name, already, (await facts.look(engine, request.name)).plan)
        return Examined(kind=OperationType.SCALE, wanted=wanted, current=current, needed=False)
    return await examined_in_place(engine, OperationType.SCALE, current, wanted)


async def examined_in_place(
    engine: Engine, kind: OperationType, current: ControlPlane, wanted: ControlPlane
) -> Examined:
    """A changed plane at the same site, checked and simulated."""
    await operations.require_changeable(engine.home.store, current)
    await require_in_reach(engine.home, current)
    await admit(engine, wanted, current=current)
    findings = await preconditions.examine(engine, current, wanted, allow_distance=False)
    examined = Examined(kind=kind, wanted=wanted, current=current, findings=findings)
    if examined.refused:
        return examined
    return replace(examined, forecast=await facts.forecast(engine, wanted))
