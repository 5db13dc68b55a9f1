"""Addresses that go from host to host, when a site's edges change: keepalived on each edge is to know of all others.

An edge that hears nobody takes all addresses. So those that are there know of one that comes before it does, and of one
that goes for some time after it has gone, which costs nothing.
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
    """Have the edges of a site be ready for what it is to become. Do it before that is written down.

    What has the addresses of an edge that is one no more is removed, so that they go over; but for those that are
    ``gone`` for good. Where the addresses change, which is for sites that no plane uses, it is removed everywhere, and
    comes with the next plane. An edge that is somewhere else now, as only those of such sites can be, need not answer
    where it was. Raises Unavailable when another one of these edges does not answer.
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
            # it can be the same machine, which has what it had
            *(later.remove_unit(each, KEEPALIVED) for each in moved),
        )
        if new.keys() > stay:
            await asyncio.gather(*(_retold(later, each) for each in stay))
    except Unavailable as error:
        name = before.metadata.name
        next_step = f"have it answer; one that is gone for good goes with 'site machines remove {name} HOST --forget'"
        raise Unavailable(f"readying the edges of site {name}", error.seen, next_step) from error


async def _left(former: SitePort, edge: str) -> None:
    """Remove it where an edge was, if anybody answers there: a machine that is gone for good has no addresses."""
    with suppress(Unavailable, PreconditionFailed):
        await former.remove_unit(edge, KEEPALIVED)


async def _retold(site: SitePort, edge: str) -> None:
    """Have what runs on an edge know of all others: it goes on with the addresses that it has."""
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


# New DNS servers of sites of hosts: they have the names of the planes that there are before anybody asks them.


async def start_new_name_servers(
    home: Home, before: SiteResource | None, after: SiteResource, program: Callable[[], Awaitable[Path]]
) -> None:
    """Start the DNS servers that a site is to have besides those that it has (``before``: None for a new site), with
    the records of all planes. Do it before the site is written down: from then on each look at a plane asks them.
    ``program`` gets CoreDNS; it is called where there is such a server and a plane has a name.

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
