"""The sites and machines that a plane uses or used; removed ones count as unreachable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quarterdeck.api.base import Metadata
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.memory import ReplicaStatus, memory_from_status
from quarterdeck.api.site import AddressSpace, LocalSpec
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.api.storage import StorageClass
from quarterdeck.engine.workspace.site_use import sites_of
from quarterdeck.errors import NotFound
from quarterdeck.model.units import Machine, MachineRole, MachineState
from quarterdeck.sites.former_site import former_site
from quarterdeck.sites.port import SitePort
from quarterdeck.stores.port import Store

#: The address of a machine whose own is unknown: one of this host where connections are refused at once.
_NOWHERE = "127.255.255.254"


async def site_as_known(store: Store, plane: ControlPlane) -> SiteResource:
    """The site of a plane's spec; if it is gone, one with the zones that the plane uses, so that the plane can still be
    observed.
    """
    name = plane.spec.placement.site
    try:
        return await store.get(SiteResource, name)
    except NotFound:
        there = [each for each in memory_from_status(plane.status.memory).replicas if each.site == name]
        zones = {each.slot.zone for each in there if each.slot.zone} | set(plane.spec.placement.zones or ())
        classes = sorted({each.storage_class for each in there}) or ["standard"]
        spec = LocalSpec(
            zones=tuple(sorted(zones)) or ("a",),
            storage_classes=tuple(StorageClass(name=each) for each in classes),
        )
        return SiteResource(metadata=Metadata(name=name), spec=spec)


def space_of(plane: ControlPlane, sites: Iterable[SiteResource]) -> AddressSpace:
    """The address space of a plane; where its site is gone, that of another site that it uses."""
    known = {each.metadata.name: each.spec.space for each in sites}
    named = (plane.spec.placement.site, *sorted(sites_of(plane)))
    return next((known[each] for each in named if each in known), AddressSpace.LOOPBACK)


def with_former(plane: ControlPlane, sites: Mapping[str, SitePort]) -> dict[str, SitePort]:
    """The sites by name, with the removed ones that a plane still uses."""
    former: dict[str, SitePort] = {name: _former(name, plane) for name in sites_of(plane) if name not in sites}
    return {**sites, **former}


async def machines_of(plane: ControlPlane, sites: Mapping[str, SitePort]) -> dict[tuple[str, str], Machine]:
    """The machines of the sites by (site, name), with removed machines of the plane's replicas."""
    machines = {(machine.site, machine.name): machine for site in sites.values() for machine in await site.machines()}
    for each in plane.status.memory.replicas:
        machines.setdefault((each.slot.site, each.machine), _unknown_machine(each))
    return machines


def _former(site: str, plane: ControlPlane) -> SitePort:
    there = [_unknown_machine(each) for each in plane.status.memory.replicas if each.slot.site == site]
    edge = Machine(
        name=f"{site}-edge",
        site=site,
        zone="",
        address=_NOWHERE,
        role=MachineRole.EDGE,
        state=MachineState.UNREACHABLE,
        declared=False,
    )
    return former_site(site, (*there, edge))


def _unknown_machine(record: ReplicaStatus) -> Machine:
    """A machine that no longer belongs to a site."""
    return Machine(
        name=record.machine,
        site=record.slot.site,
        zone=record.slot.zone,
        address=_NOWHERE,
        state=MachineState.UNREACHABLE,
        declared=False,
    )
