"""Checks of the site of a standby, before a plane gets one there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from quarterdeck.actions.addresses import seat_of
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.api.site import Site
from quarterdeck.components.etcd import MORE_LEARNERS, most_learners
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.preflight.room import database_room, disks, statuses
from quarterdeck.engine.preflight.site_checks import answer, clocks_of, incapable, unconnected
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Unavailable
from quarterdeck.model.capabilities import RoundTrip
from quarterdeck.model.findings import Finding, ok, refuse
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import Machine, MachineRole, MachineState
from quarterdeck.sites.port import SitePort


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The site of a standby. ``open``: its machines that can have one. ``current``: the plane as it is, None if it is
    new; ``database_bytes``: the size of its database, None where no member reports it.
    """

    site: Site
    driver: SitePort
    open: tuple[Machine, ...]
    storage_class: str
    current: ControlPlane | None
    database_bytes: int | None


async def examine_standby(home: Home, wanted: ControlPlane, current: ControlPlane | None) -> tuple[Finding, ...]:
    """All findings about the site of the standby of a new or changed plane; () where the plane has none, or the change
    does not concern it. Changes nothing.

    Raises NotFound (the site), PreconditionFailed (the networks of the plane are out of reach).
    """
    standby = wanted.spec.standby
    if standby is None or (current is not None and _place_of(wanted) == _place_of(current)):
        return ()
    if most_learners(wanted.spec.etcd.version) == 1:
        seen = f"etcd {wanted.spec.etcd.version} allows one learner: beside a standby no other member could join"
        return _named(refuse("learners", seen, MORE_LEARNERS))
    site, near = await home.site(standby.site), await home.site(wanted.spec.placement.site)
    if site.spec.space is not near.spec.space:
        return _named(unconnected(near.name, site))
    driver = home.sites.open(site)
    if (refusal := incapable(driver)) is not None:
        return _named(refusal)
    if current is not None:
        await require_in_reach(home, current)
    place = _Place(
        site=site,
        driver=driver,
        open=tuple(each for each in await driver.machines() if _can_have_one(each, site)),
        storage_class=wanted.spec.etcd_storage_class or near.spec.storage_classes[0].name,
        current=current,
        database_bytes=await _database_bytes(home, current),
    )
    return _named(*await asyncio.gather(*(answer(check, place) for check in _CHECKS)))


def _place_of(plane: ControlPlane) -> object:
    """What of a plane decides where its standby is: without its own class etcd has the default one of its site."""
    spec = plane.spec
    return spec.standby, spec.etcd_storage_class or spec.placement.site


def _named(*findings: Finding) -> tuple[Finding, ...]:
    return tuple(replace(each, check=f"standby {each.check}") for each in findings)


def _can_have_one(machine: Machine, site: Site) -> bool:
    there = machine.role is MachineRole.CONTROL and machine.declared and machine.state is MachineState.UP
    return there and site.spec.cordon_of(machine.name) is None


async def _database_bytes(home: Home, current: ControlPlane | None) -> int | None:
    if current is None or not current.status.memory.created:
        return 0
    async with AsyncExitStack() as stack:
        found = await statuses(await home.plane(current, stack))
    return max((each.db_size for each in found), default=None)


async def machines(place: _Place) -> Finding:
    """A machine is up and not cordoned."""
    if not place.open:
        name = place.site.name
        seen = f"no machine of site {name} is up and not cordoned"
        return refuse("machines", seen, f"see 'site machines {name}'")
    return ok("machines", f"{len(place.open)} up, 1 needed")


async def storage_class(place: _Place) -> Finding:
    """The site has the storage class of etcd."""
    known = [each.name for each in place.site.spec.storage_classes]
    if place.storage_class not in known:
        seen = f"no storage class {place.storage_class!r} at {place.site.name}, which etcd of the plane uses"
        return refuse("storage class", seen, "give that site one of this name, or set spec.etcd.storageClass")
    return ok("storage class", place.storage_class)


async def free_disk(place: _Place) -> Finding:
    """There is room for the database on every machine that can have the standby."""
    if place.database_bytes is None:
        return refuse("free disk", "the size of the database is unknown", "make a member answer first")
    return await disks(place.driver, place.open, {place.storage_class: database_room(place.database_bytes)})


async def host_limits(place: _Place) -> Finding:
    """The shared limits of the site's hosts are enough for one more etcd."""
    return ok("host limits", await place.driver.require_room("checking the host's limits", 1))


async def reach(place: _Place) -> Finding:
    """A member of the plane answers at its address for peers. A standby may be far away: no write waits for it."""
    members = () if place.current is None else memory_from_status(place.current.status.memory).replicas
    asked = next((each for each in members if each.listed and not each.standby), None)
    if asked is None:
        return ok("reach", "the plane has no member yet")
    if not place.open:
        raise Unavailable(f"reaching {asked.name}", f"no machine of {place.site.name} can try it")
    peer, machine = seat_of(asked).advertised(PortName.ETCD_PEER), place.open[0].name
    seconds = await place.driver.measure(machine, RoundTrip(peer.host, peer.port))
    return ok("reach", f"{1000 * seconds:.1f} ms from {machine} to {asked.name}")


async def clocks(place: _Place) -> Finding:
    """Clocks agree."""
    return await clocks_of(place.driver, place.open)


_CHECKS: tuple[Callable[[_Place], Awaitable[Finding]], ...] = (
    machines,
    storage_class,
    free_disk,
    host_limits,
    reach,
    clocks,
)
