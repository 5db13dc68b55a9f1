"""New DNS servers of sites of hosts: they have the names of the planes that there are before anybody asks them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.site import AddressSpace, Site
from quarterdeck.drivers.names import Hub, name_servers
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.places import space_of
from quarterdeck.engine.workspace.site_use import dns_servers
from quarterdeck.errors import Unavailable


async def start_new_name_servers(
    home: Home, before: Site | None, after: Site, program: Callable[[], Awaitable[Path]]
) -> None:
    """Start the DNS servers that a site is to have besides those that it has (``before``: None for a new site), with
    the records of all planes. Do it before the site is written down: from then on each look at a plane asks them.
    ``program`` gets CoreDNS; it is called where there is such a server and a plane has a name.

    Raises Unavailable where one cannot be started.
    """
    new = dns_servers(after) - (dns_servers(before) if before is not None else frozenset())
    sites = await home.store.list(Site)
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


def _is_named(plane: ControlPlane, sites: Sequence[Site]) -> bool:
    return plane.spec.endpoint.mode is EndpointMode.HOSTS and space_of(plane, sites) is _SPACE
