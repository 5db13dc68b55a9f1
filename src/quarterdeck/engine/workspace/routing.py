"""Addresses that go from host to host, when a site's edges change: keepalived on each edge is to know of all others.

An edge that hears nobody takes all addresses. So those that are there know of one that comes before it does, and of one
that goes for some time after it has gone, which costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress

from quarterdeck.api.site import Site as SiteResource
from quarterdeck.api.site import SshSpec
from quarterdeck.components.traffic.keepalived import KEEPALIVED, keepalived_unit
from quarterdeck.drivers.sites import Sites
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.model.units import MachineRole, UnitState
from quarterdeck.sites.port import Floats, Site


async def reroute(sites: Sites, before: SiteResource, after: SiteResource, *, gone: Collection[str] = ()) -> None:
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


async def _left(former: Site, edge: str) -> None:
    """Remove it where an edge was, if anybody answers there: a machine that is gone for good has no addresses."""
    with suppress(Unavailable, PreconditionFailed):
        await former.remove_unit(edge, KEEPALIVED)


async def _retold(site: Site, edge: str) -> None:
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
