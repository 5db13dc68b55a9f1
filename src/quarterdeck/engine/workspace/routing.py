"""Floating addresses when a site's edges change: keepalived on each edge must know all others.

An edge that hears no other takes all addresses. So the existing edges know a new one before it starts, and a removed
one for some time after it has gone, which costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.site import AddressSpace, SshSpec
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.components.traffic.keepalived import KEEPALIVED, keepalived_unit
from quarterdeck.drivers.endpoints import Hub, name_servers
from quarterdeck.drivers.sites import OpenSites
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.places import space_of
from quarterdeck.engine.workspace.site_use import dns_servers
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.model.units import MachineRole, UnitState
from quarterdeck.sites.port import Floats, SitePort


async def reroute(sites: OpenSites, before: SiteResource, after: SiteResource, *, gone: Collection[str] = ()) -> None:
    """Prepare the edges of a site for its new spec. Call it before that is stored.

    keepalived is removed from former edges, so that their addresses move; except for those that are ``gone`` for good.
    Where the addresses change, which is possible only for unused sites, it is removed everywhere, and starts with the
    next plane. An edge with a new address, which is also possible only for unused sites, need not answer at the old
    one. Raises Unavailable when another one of these edges does not answer.
    """
    old, new = _edges(before), _edges(after)
    kept = _addresses(before) == _addresses(after)
    stay = {each for each in old if kept and old[each] == new.get(each)}
    moved = {each for each in old if each in new and old[each] != new[each]}
    former, later = sites.open(before), sites.open(after)
    try:
        await asyncio.gather(
            *(former.remove_unit(each, KEEPALIVED) for each in old if each not in {*stay, *moved, *gone}),
            *(_left(former, each) for each in moved),
            # it can be the same machine, with its old unit
            *(later.remove_unit(each, KEEPALIVED) for each in moved),
        )
        if new.keys() > stay:
            await asyncio.gather(*(_retold(later, each) for each in stay))
    except Unavailable as error:
        name = before.metadata.name
        next_step = (
            f"make it answer, or remove one that is gone for good with 'site machines remove {name} HOST --forget'"
        )
        raise Unavailable(f"preparing the edges of site {name}", error.seen, next_step) from error


async def _left(former: SitePort, edge: str) -> None:
    """Remove it from a former edge, if that answers: a machine that is gone for good has no addresses."""
    with suppress(Unavailable, PreconditionFailed):
        await former.remove_unit(edge, KEEPALIVED)


async def _retold(site: SitePort, edge: str) -> None:
    """Reconfigure the running unit of an edge with all others: it keeps its addresses."""
    assert isinstance(site, Floats)
    units = await site.units(edge)
    if any(each.name == KEEPALIVED and each.state is UnitState.RUNNING for each in units):
        folder = site.folder(edge, KEEPALIVED)
        await site.reload_unit(edge, keepalived_unit(site.router(edge), folder, site.routing(edge, KEEPALIVED)))


def _addresses(site: SiteResource) -> tuple[str, ...]:
    return site.spec.edge.floating_addresses if isinstance(site.spec, SshSpec) else ()


def _edges(site: SiteResource) -> Mapping[str, str]:
    """The machines between which addresses float, each with its own address; none where none do."""
    if not isinstance(site.spec, SshSpec) or not site.spec.edge.floating_addresses:
        return {}
    return {
        machine: host.address
        for host in site.spec.hosts
        for role, machine in host.machines.items()
        if role is MachineRole.EDGE
    }


# New DNS servers of sites of hosts: they get the names of all planes before any client uses them.


async def start_new_name_servers(
    home: Home, before: SiteResource | None, after: SiteResource, program: Callable[[], Awaitable[Path]]
) -> None:
    """Start the new DNS servers of a site (``before``: None for a new site), with the records of all planes. Call it
    before the site is stored: from then on each observation of a plane queries them. ``program`` returns CoreDNS; it is
    called where there is such a server and a plane has a name.

    Raises Unavailable where one cannot be started.
    """
    new = dns_servers(after) - (dns_servers(before) if before is not None else frozenset())
    sites = await home.store.list(SiteResource)
    named = [each.host for each in await home.store.list(ControlPlane) if _is_named(each, sites)]
    if not new or not named:
        return
    asked = await name_servers(home.sites.hub(_SPACE, sites), _SPACE) if any(map(dns_servers, sites)) else ()
    others = [each for each in sites if each.metadata.name != after.metadata.name]
    hub = home.sites.hub(_SPACE, [*others, after])
    machines = [each.name for each in await hub.machines() if each.address in new]
    dns = await Hub(hub, _SPACE, await program()).dns()
    try:
        await dns.join(machines, named, asked)
    except Unavailable as error:
        doing = f"starting new DNS servers of site {after.metadata.name} (nothing else was changed)"
        raise Unavailable(doing, f"{error.doing}: {error.seen}", error.next_step) from error


_SPACE = AddressSpace.HOSTS


def _is_named(plane: ControlPlane, sites: Sequence[SiteResource]) -> bool:
    return plane.spec.endpoint.mode is EndpointMode.HOSTS and space_of(plane, sites) is _SPACE
