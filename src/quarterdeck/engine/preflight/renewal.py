"""Checks and simulation of new certificates, also where the present ones have expired."""

from __future__ import annotations

from datetime import UTC, datetime

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import OperationType
from quarterdeck.engine.background.certificates import renewed
from quarterdeck.engine.observation.observe import observer_of
from quarterdeck.engine.preflight.local_changes import compared
from quarterdeck.engine.preflight.preview import forecast
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.preflight.requests import Examined, RenewCertificates
from quarterdeck.engine.preflight.site_checks import clocks_of
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.findings import Finding, Verdict
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.pki.validity import check_authorities
from quarterdeck.planner.next_steps import expired


async def examined_renewal(engine: Engine, request: RenewCertificates) -> Examined:
    """New certificates for all programs, with the forecast.

    Raises Gone, Conflict (the plane moves), PreconditionFailed (its networks are out of reach, an authority has
    expired, or ``offline`` is no use).
    """
    home, name = engine.home, request.name
    current = await recorded.existing(home.store, name)
    await operations.require_changeable(home.store, current)
    await require_in_reach(home, current)
    check_authorities(await secrets_of(home.store, current), datetime.now(UTC))
    findings = await _offline_findings(home, current) if request.offline else ()
    wanted = renewed(current, offline=request.offline)
    return Examined(
        kind=OperationType.APPLY,
        wanted=wanted,
        current=current,
        differences=await compared(home, current, wanted),
        findings=findings,
        forecast=await forecast(home, wanted),
    )


async def _offline_findings(home: Home, current: ControlPlane) -> tuple[Finding, ...]:
    async with open_plane(home, current.name) as plane:
        world = await (await observer_of(plane)).observe()
        require_use(world)
        seen = f"{expired(world)}, and no quorum answers"
        outage = "all programs are restarted, and no client is served before a quorum is back"
        return (*(await _clocks(plane)), Finding("certificates", Verdict.WARN, f"{seen}: {outage}"))


def require_use(world: World) -> None:
    """Raises PreconditionFailed where a renewal with a quorum is possible, or certificates are not the cause."""
    doing = f"renewing the certificates of plane {world.plane_name} offline"
    if world.membership is not None:
        seen = "a quorum of its etcd answers"
        raise PreconditionFailed(doing, seen, f"{world.command('certs renew')} does it while the plane serves")
    if not world.expired:
        seen = "no quorum of its etcd answers, but no certificate of its members has expired"
        raise PreconditionFailed(doing, seen, f"{world.command('status')} names what is wrong")


async def _clocks(plane: Plane) -> tuple[Finding, ...]:
    """Whether the clocks of replicas' machines agree with this host's: by a wrong clock, certificates only seem to have
    expired, and new ones would not be valid yet.
    """
    used = {(each.site, each.machine) for each in plane.memory.replicas}
    found = []
    for site in sorted({each for each, _ in used}):
        machines = [each for each in await plane.site(site).machines() if (site, each.name) in used]
        found.append(await clocks_of(plane.site(site), [each for each in machines if each.state is MachineState.UP]))
    return tuple(found)
