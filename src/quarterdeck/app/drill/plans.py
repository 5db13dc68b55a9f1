"""The plan of a drill: its targets, and the reasons against it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quarterdeck.actions.volumes import main_volume
from quarterdeck.api.base import ConditionStatus, find_condition
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.app.drill.corruption import Corrupting
from quarterdeck.components.etcd import DATABASE
from quarterdeck.components.settings import unit_name
from quarterdeck.drills import refusals
from quarterdeck.drills.aim import Aim, Ground, Hit, Wish, aim, edges_of, loss_of
from quarterdeck.drills.judgement import Detection, finding, hold_of
from quarterdeck.drills.refusals import Standing
from quarterdeck.engine.preflight.reach import require_plane_in_reach
from quarterdeck.engine.status import Status, look
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.belongings import drills_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.recorded import manager_of, network_of
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.faults import Fail, Fault, FaultKind
from quarterdeck.model.units import Machine, MachineRole
from quarterdeck.planner.survival import Loss
from quarterdeck.planner.view import View, view
from quarterdeck.sites.port import Faults, MakesFaults, SitePort

if TYPE_CHECKING:  # few drills target the manager, and the code that inspects processes takes long to load
    from quarterdeck.app.manager_process import Keeping


#: Random bytes that nothing else in a database has.
_TEXT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillPlan:
    """The plan of a drill. ``struck``: what fails, in sentences; ``refused``: why the drill is impossible; ``dangers``:
    why it is risky. ``found``: what must be detected. ``keeping``: it targets the manager of the plane.
    """

    name: str
    wish: Wish
    hold: float
    struck: tuple[str, ...]
    refused: tuple[str, ...]
    dangers: tuple[str, ...]
    faults: tuple[tuple[MakesFaults, Fault], ...]
    found: Detection
    keeping: Keeping | None = None

    def require(self, *, dangerous: bool) -> None:
        """Raise PreconditionFailed for a drill that is impossible or too risky."""
        doing = f"drilling plane {self.name} ({self.wish.fail})"
        if self.refused:
            raise PreconditionFailed(doing, "; ".join(self.refused))
        if self.dangers and not dangerous:
            raise PreconditionFailed(doing, "; ".join(self.dangers), "add --dangerous to run it nevertheless")


async def planned(home: Home, name: str, wish: Wish, *, hold: float | None) -> DrillPlan:
    """The targets of a drill, and the reasons against it. Changes nothing. See ``Quarterdeck.plan_drill``."""
    await require_plane_in_reach(home, name)
    return await planned_on(home, wish, hold, await look(home, name))


async def planned_on(home: Home, wish: Wish, hold: float | None, status: Status) -> DrillPlan:
    """The same, for this observation of the plane."""
    lasting = hold_of(wish.fail) if hold is None else hold
    plane = status.plane
    where = plane.spec.placement.site
    site, hub = await _sites(home, plane)
    counted = await drills_of(home.store, plane.name)
    turned = replace(wish, turn=len(counted) and counted[-1].spec.number)
    machines = await _fallible(site)
    servers = await _fallible(hub) if hub is not None else ()
    ground = Ground(
        plane=plane.name,
        site=where,
        world=status.world,
        machines=machines,
        hub=[each for each in servers if each.role is not MachineRole.EDGE],
    )
    aimed = aim(ground, turned)
    target = await _target(home, site, hub, aimed, plane, wish.fail)
    standing = await _standing(home, status, target)
    views = await _views(home, plane, status, aimed, edges_of(machines))
    known = bool(reported_by_manager(wish.fail, plane))
    found = finding(wish.fail, hold=lasting, manager=standing.manager, known=known)
    return DrillPlan(
        name=plane.name,
        wish=turned,
        hold=lasting,
        struck=(*(fault.words for _, fault in target.faults), *_along(aimed), *found.notes),
        refused=refusals.reasons(wish.fail, standing),
        dangers=refusals.dangers(views, dns=aimed.dns, orphaned=target.orphaned),
        faults=target.faults,
        found=found,
        keeping=target.keeping,
    )


async def _standing(home: Home, status: Status, target: _Target) -> Standing:
    """The state of the plane, as far as it speaks against any drill."""
    plane = status.plane
    return Standing(
        paused=operations.why_paused(plane, datetime.now(UTC)),
        doing=status.operation.metadata.name if status.operation is not None else "",
        manager=await manager_of(home.store, plane.name),
        unwell="" if status.plan.done else "; ".join(map(str, status.plan.waiting)) or "steps are left to do",
        deleting=plane.metadata.deletion_timestamp is not None,
        cannot=target.cannot,
        made=target.made,
    )


async def _fallible(site: SitePort) -> tuple[Machine, ...]:
    """The failure units among the machines of a site: see ``Ground``."""
    found = await site.machines()
    whole = isinstance(site, Faults) and site.whole_hosts
    return found if whole else tuple(replace(each, host="") for each in found)


def _along(aimed: Aim) -> tuple[str, ...]:
    """What fails together with the targets, in words."""
    named = ", ".join(sorted(aimed.along))
    return (f"with it, on the same host: machine {named}",) if named else ()


def reported_by_manager(fail: Fail, plane: ControlPlane) -> frozenset[str]:
    """What a manager has recorded about such a fault, where only it can detect it; as of its last observation."""
    found = find_condition(plane.status.conditions, ConditionType.DISKS_HEALTHY) if fail is Fail.SLOW_DISK else None
    return frozenset({found.message}) if found is not None and found.status is ConditionStatus.FALSE else frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The faults of a drill. In words: why they ``cannot`` be made, and those that are ``made`` already. ``keeping``:
    they hit the manager; ``orphaned``: and no successor is known.
    """

    faults: tuple[tuple[MakesFaults, Fault], ...]
    cannot: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    keeping: Keeping | None = None
    orphaned: bool = False


async def _target(
    home: Home, site: SitePort, hub: SitePort | None, aimed: Aim, plane: ControlPlane, fail: Fail
) -> _Target:
    """The targets, wherever they are."""
    if fail is Fail.CORRUPT:
        return await _data(home, site, aimed, plane)
    if aimed.manager:
        return await _manager(home, plane)
    return await _machines(hub if aimed.hub and hub is not None else site, aimed, plane)


async def _machines(at: SitePort, aimed: Aim, plane: ControlPlane) -> _Target:
    """The targets on machines of a site."""
    if not isinstance(at, Faults):
        raise PreconditionFailed(f"drilling plane {plane.name}", f"site {at.name} has no fault injection")
    faults = tuple((at, _fault(plane.name, each)) for each in aimed.hits)
    cannot = dict.fromkeys(at.cannot_make(fault.kind) for _, fault in faults)
    return _Target(
        faults=faults,
        cannot=tuple(f"site {at.name} cannot make this fault: {each}" for each in cannot if each),
        made=tuple(each.words for each in await at.faults_made()),
    )


async def _data(home: Home, at: SitePort, aimed: Aim, plane: ControlPlane) -> _Target:
    """The data of one etcd member."""
    target = await _machines(at, aimed, plane)
    faults = tuple(
        (
            Corrupting(home=home, plane=plane.name, site=site),
            replace(fault, path=str(DATABASE), text=secrets.token_hex(_TEXT)),
        )
        for site, fault in target.faults
    )
    return replace(target, faults=faults)


async def _manager(home: Home, plane: ControlPlane) -> _Target:
    """The manager of the plane."""
    from quarterdeck.app.manager_process import Keeping, why_unkillable

    keeping = Keeping(store=home.store, network=await network_of(home.store, plane))
    lease = await keeping.manager()
    if lease is None:
        return _Target(faults=())  # reported like any other missing manager
    why = why_unkillable(lease) or await keeping.why_not(plane.name)
    return _Target(
        faults=((keeping, Fault(kind=FaultKind.KILL_MANAGER, machine="", unit=lease.holder)),),
        cannot=(why,) if why else (),
        keeping=keeping,
        orphaned=not await keeping.successor(),
    )


async def _sites(home: Home, plane: ControlPlane) -> tuple[SitePort, SitePort | None]:
    """The plane's site, and the site of the DNS server that has its name, if quarterdeck runs that server."""
    resource = await home.site(plane.spec.placement.site)
    own = plane.spec.endpoint.mode is EndpointMode.HOSTS
    return home.sites.open(resource), await home.hub(resource.spec.space) if own else None


def _fault(plane: str, hit: Hit) -> Fault:
    unit = unit_name(plane, hit.replica, hit.component) if hit.component is not None else ""
    of_data = hit.kind in (FaultKind.LOSE_DATA, FaultKind.CORRUPT)
    return Fault(
        kind=hit.kind, machine=hit.machine, unit=unit, volume=main_volume(plane, hit.replica) if of_data else ""
    )


async def _views(
    home: Home, plane: ControlPlane, status: Status, aimed: Aim, edges: frozenset[str]
) -> Mapping[str, tuple[View, Loss]]:
    """All planes that have anything where the drill strikes, as they are, with what they would lose."""
    found = {plane.name: (view(status.world), aimed.loss)}
    if aimed.manager or aimed.spares or all(each.component is not None for each in aimed.hits):
        return found  # a program belongs to one plane, and planes keep running without a manager
    network, site = await network_of(home.store, plane), plane.spec.placement.site
    for other in await home.store.list(ControlPlane):
        if other.name == plane.name or await network_of(home.store, other) is not network:
            continue
        on = {each.machine for each in memory_from_status(other.status.memory).replicas if each.site == site}
        if aimed.hub or aimed.hosts or on & aimed.machines or (edges & aimed.machines and on):
            seen = (await look(home, other.name)).world
            loss = loss_of(seen, site, aimed.machines, edges, aimed.hosts)
            if aimed.dns or loss.replicas or loss.edges:
                found[other.name] = view(seen), loss
    return found
