"""Checks and simulations of migrations and aborts."""

from __future__ import annotations

from quarterdeck.api.controlplane import REPLICA_COUNTS, ControlPlane, replica_count
from quarterdeck.api.operation import OperationType
from quarterdeck.engine import status
from quarterdeck.engine.preflight.admission import findings_of_issuers
from quarterdeck.engine.preflight.preview import forecast, preview
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.preflight.requests import Abort, Examined, Migrate
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.errors import Conflict, InvalidInput
from quarterdeck.model.steps.plan import Plan
from quarterdeck.planner.simulated.dry_run import DryRun
from quarterdeck.stores.port import Store


def at_site(plane: ControlPlane, site: str, replicas: int | None = None) -> ControlPlane:
    """The plane at another site, with that site's zones and default storage class, unless etcd names one."""
    placement = plane.spec.placement.model_copy(update={"site": site, "zones": None, "storage_class": None})
    return operations.moved(plane, placement, replicas)


def require_count(doing: str, replicas: int | None) -> None:
    """Raise InvalidInput for an invalid number of replicas."""
    if replicas is not None:
        try:
            replica_count(replicas)
        except ValueError:
            raise InvalidInput(doing, f"{replicas} replicas", f"use {REPLICA_COUNTS}") from None


def destination(current: ControlPlane, request: Migrate) -> ControlPlane:
    """The plane after a migration; unchanged if it is there already. Raises InvalidInput."""
    name, to, replicas = current.metadata.name, request.to, request.replicas
    doing = f"migrating plane {name}"
    require_count(doing, replicas)
    if to == current.spec.placement.site:
        if replicas not in (None, current.spec.replicas):
            raise InvalidInput(
                doing, f"it is at {to} already", f"name another site, or use 'scale {name} --replicas {replicas}'"
            )
        return current
    return at_site(current, to, replicas)


async def examined_move(engine: Engine, request: Migrate) -> Examined:
    """A migration with all findings and the forecast.

    Raises Gone, NotFound (the site), InvalidInput, Conflict (an operation is in progress, or the plane migrates there
    already), PreconditionFailed (its networks are out of reach).
    """
    store = engine.home.store
    current = await recorded.existing(store, request.name)
    wanted = destination(current, request)
    running = await recorded.current(store, request.name)
    if running is not None:
        raise operations.busy(f"migrating plane {request.name}", running, "then migrate")
    await require_in_reach(engine.home, current)
    if wanted.spec == current.spec:
        plan = (await status.look(engine.home, request.name)).plan
        require_done(f"migrating plane {request.name}", request.name, f"it migrates to {request.to} already", plan)
        return Examined(kind=OperationType.MIGRATE, wanted=wanted, current=current, needed=False)
    findings, steps = await preview(engine.home, current, wanted, allow_distance=request.allow_distance)
    return Examined(kind=OperationType.MIGRATE, wanted=wanted, current=current, findings=findings, forecast=steps)


def require_done(doing: str, name: str, already: str, plan: Plan) -> None:
    """Raise Conflict with the remaining steps of a plane that has this goal ``already``."""
    if not plan.done:
        left = "; ".join((*(step.words for step in plan.now), *map(str, plan.waiting)))
        raise Conflict(doing, f"{already}, and these steps are left: {left}", f"use 'wait {name}'")


async def examined_abort(store: Store, request: Abort) -> Examined:
    """The plane after an abort: as it was before the operation. Not ``needed`` when an abort is running already.

    Raises Gone, and Conflict when no operation that can be undone is in progress. A failover cannot be: the site that
    the plane left is lost. One that turned out not to be needed is an ordinary move.
    """
    name = request.name
    plane = await recorded.existing(store, name)
    running = await recorded.current(store, name)
    if running is None or running.spec.from_ is None:
        raise Conflict(
            f"aborting on plane {name}", "no operation that can be undone is in progress", f"see 'history {name}'"
        )
    former, word = running.spec.from_.placement.site, plane.spec.new_epoch
    if running.spec.type is OperationType.FAILOVER and word is not None and word.standby:
        seen = f"it fails over from site {former}, which is lost, and that cannot be undone"
        later = f"once {former} is back, 'migrate {name} --to {former}' moves the plane there"
        raise Conflict(f"aborting on plane {name}", seen, f"finish it with 'wait {name}'; {later}")
    wanted = operations.back(plane, running.spec.from_)
    needed = running.spec.type is not OperationType.ABORT
    return Examined(
        kind=OperationType.ABORT,
        wanted=wanted,
        current=plane,
        findings=findings_of_issuers(plane, wanted),
        under_way=running,
        needed=needed,
    )


async def foreseen(engine: Engine, name: str, to: str | None, replicas: int | None) -> DryRun:
    """The forecast of a plane with its spec, at another site, or with another number of replicas, without checks.
    Raises Gone, NotFound (the site), InvalidInput, PreconditionFailed (its networks are out of reach).
    """
    current = await recorded.existing(engine.home.store, name)
    wanted = current
    if to is not None or replicas is not None:
        require_count(f"planning for plane {name}", replicas)
        here = current.spec.placement
        wanted = operations.moved(current, here, replicas) if to is None else at_site(current, to, replicas)
    await engine.home.site(wanted.spec.placement.site)
    await require_in_reach(engine.home, current)
    return await forecast(engine.home, wanted)
