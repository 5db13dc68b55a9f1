"""Which machines a person wants to be given no new replica, as the sites say now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.cordons import told
from quarterdeck.api.site import Site, SiteSpec
from quarterdeck.engine.workspace.site_use import sites_of
from quarterdeck.model.world import MachineFact
from quarterdeck.stores.port import Store


async def declared(store: Store) -> Mapping[str, SiteSpec]:
    """The sites as they are declared now, by name. They are read in each look: a person's word counts at once."""
    return {each.metadata.name: each.spec for each in await store.list(Site)}


def marked(machines: Iterable[MachineFact], sites: Mapping[str, SiteSpec]) -> tuple[MachineFact, ...]:
    """The machines, with which of them are cordoned."""
    return tuple(
        replace(each, cordoned=each.site in sites and sites[each.site].cordon_of(each.name) is not None)
        for each in machines
    )


async def of_plane(store: Store, plane: ControlPlane) -> tuple[str, ...]:
    """What of a plane, and of the sites that it uses, is cordoned, in words: by whom, and since when."""
    sites = await declared(store)
    machines = (
        f"{f'machine {each.machine}' if each.machine else f'all machines of site {name}'}: {told(each)}"
        for name in sorted(sites_of(plane) & sites.keys())
        for each in sites[name].cordons
    )
    return (*(f"replica {each.replica}: {told(each)}" for each in plane.spec.cordoned_replicas), *machines)
