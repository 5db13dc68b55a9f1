"""An open QUARTERDECK_HOME: the store, the sites, and planes with their ports."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from quarterdeck import clocks
from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.events import EventReason
from quarterdeck.api.site import AddressSpace, Isolation
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.components.template import Revisions
from quarterdeck.drivers.clients import open_etcd, open_http, open_kube
from quarterdeck.drivers.endpoints import BalancerPlacement, Hub, open_balancer, open_dns, open_external, open_promoted
from quarterdeck.drivers.sites import OpenSites
from quarterdeck.endpoint.door_guests import guests_file, remove_guest
from quarterdeck.endpoint.port import Dns, LoadBalancer, UnusableDns
from quarterdeck.engine.workspace.belongings import drop
from quarterdeck.engine.workspace.home_store import open_home_store
from quarterdeck.engine.workspace.places import machines_of, space_of, with_former
from quarterdeck.engine.workspace.revisions import known
from quarterdeck.engine.workspace.secrets_in_use import secrets_in_use
from quarterdeck.engine.workspace.settings import balancer_status_port, endpoint_port, front_site
from quarterdeck.errors import NotFound, QuarterdeckError
from quarterdeck.files import file_errors
from quarterdeck.http import Http
from quarterdeck.model.capabilities import Capability
from quarterdeck.model.components import Component
from quarterdeck.model.units import Fence, Machine, MachineRole
from quarterdeck.progress import Progress, SilentProgress, TransferListener
from quarterdeck.sites.port import Floats, LedFromOutside, SitePort
from quarterdeck.stores.key_seal import Key
from quarterdeck.stores.lease import LeaseGuard
from quarterdeck.stores.port import Event, EventType, Lease, Store


@dataclass(kw_only=True)
class Home:
    """An open home. Close it to end its connections and the store's thread."""

    folder: Path
    store: Store
    progress: Progress = field(default_factory=SilentProgress)
    sites: OpenSites = field(init=False)

    def __post_init__(self) -> None:
        self.sites = OpenSites(self.folder, listener=TransferListener(progress=self.progress, event=self._sends))

    @classmethod
    async def open(cls, folder: Path, *, key: Key | None = None, progress: Progress | None = None) -> Home:
        """The home in ``folder``, created with its two default sites if it is new. ``key``: the key that seals its
        keys; ``progress`` is notified of programs that are sent to hosts.

        Raises Corrupt for a damaged store or one of a newer version, Unavailable when it cannot be written,
        PreconditionFailed when another user may write to it, or it is sealed by another key.
        """
        store = await open_home_store(folder, key)
        return cls(folder=folder, store=store, progress=progress or SilentProgress())

    async def close(self) -> None:
        """Close all connections; units keep running."""
        try:
            await self.sites.close()
        finally:
            await self.store.close()

    async def _sends(self, plane: str, words: str) -> None:
        """See ``TransferListener``: for observers in other processes."""
        now, reason = time.time(), EventReason.SENDS_PROGRAM.value
        await self.store.record(
            Event(plane=plane, type=EventType.NORMAL, reason=reason, message=words, first=now, last=now)
        )

    async def site(self, name: str) -> SiteResource:
        """A site's resource; raises NotFound that names the existing sites."""
        try:
            return await self.store.get(SiteResource, name)
        except NotFound:
            known = ", ".join(each.metadata.name for each in await self.store.list(SiteResource))
            raise NotFound("", f'site "{name}" not found (sites: {known})') from None

    async def hub(self, space: AddressSpace) -> SitePort:
        """The hub of an address space, where the shared programs of its planes run."""
        return self.sites.hub(space, await self.store.list(SiteResource))

    async def close_hubs(self) -> None:
        """Stop the shared programs when no planes are left. Raises Unavailable where a hub does not answer."""
        await self.sites.close_hubs(await self.store.list(SiteResource))

    async def wake(self, network: Isolation) -> None:
        """Restart the shared programs of a network after this host has booted: no other process may do it. (Other hosts
        restart their programs by themselves.)
        """
        space = AddressSpace(network)
        if space in self.sites.hubs():
            hub = await self.hub(space)
            await asyncio.gather(*(hub.units(each.name) for each in await hub.machines()))

    async def forget(self, plane: ControlPlane, *, lease: Lease | None = None) -> None:
        """Delete a plane without leftovers, with its keys and its revisions: all or nothing."""
        name = plane.metadata.name
        with file_errors(f"closing the door to plane {name}"):
            for kind in AddressSpace:
                await asyncio.to_thread(remove_guest, guests_file(self.folder, kind), name)
        await drop(self.store, plane, lease=lease)

    async def plane(
        self,
        resource: ControlPlane,
        stack: AsyncExitStack,
        *,
        guard: LeaseGuard | None = None,
        programs: Mapping[tuple[Component, str], PurePosixPath] | None = None,
        dns_program: Path | None = None,
        revisions: Revisions | None = None,
    ) -> Plane:
        """A plane with all its ports, which ``stack`` closes. ``programs`` are needed only to start units,
        ``revisions`` for a plane as it might be.

        Raises NotFound when a site is gone, Corrupt when a revision is.
        """
        guess = guard is None or resource.metadata.deletion_timestamp is not None
        found = revisions or await known(self.store, resource, guess=guess)
        secrets = await secrets_in_use(self.store, resource, found)
        fence = Fence(resource.metadata.name, guard.lease.token) if guard is not None else None
        space, near = await self._sites_near(resource, fence)
        sites = with_former(resource, near)
        machines = await machines_of(resource, sites)
        others, client = await self._beside(resource, sites), open_http(secrets, stack)
        return Plane(
            resource=resource,
            store=self.store,
            guard=guard,
            sites=sites,
            machines=machines,
            etcd=open_etcd(secrets, stack),
            kube=open_kube(secrets, stack),
            balancers=_balancers(resource, others, secrets, sites, machines, client),
            dns=_promoted(resource, sites, machines) or await self.dns(resource, space, dns_program, fence),
            revisions=found,
            secrets=secrets,
            programs=programs or {},
            clock=time.time,
            steady=clocks.steady,
            boot=clocks.boot(),
        )

    async def _beside(self, plane: ControlPlane, sites: Mapping[str, SitePort]) -> list[ControlPlane]:
        """The other planes, where planes share addresses."""
        floats = (each for each in sites.values() if isinstance(each, Floats))
        if not any(Capability.FLOATS in each.capabilities for each in floats):
            return []
        return [each for each in await self.store.list(ControlPlane) if each.metadata.name != plane.metadata.name]

    async def _sites_near(self, plane: ControlPlane, fence: Fence | None) -> tuple[AddressSpace, dict[str, SitePort]]:
        """The address space of a plane, and all sites in it."""
        resources = await self.store.list(SiteResource)
        space = space_of(plane, resources)
        found = (self.sites.open(each) for each in resources if each.spec.space is space)
        return space, {site.name: site.fenced(fence) if fence is not None else site for site in found}

    async def dns(
        self, resource: ControlPlane, space: AddressSpace, program: Path | None, fence: Fence | None = None
    ) -> Dns:
        """The DNS port of a plane's endpoint. If it cannot be opened, only the name becomes unknown."""
        hub = await self.hub(space)
        try:
            return await open_dns(resource.spec.endpoint, Hub(hub.fenced(fence) if fence else hub, space, program))
        except QuarterdeckError as error:
            return UnusableDns(error)


def _balancers(
    resource: ControlPlane,
    others: Sequence[ControlPlane],
    secrets: SharedSecrets,
    sites: Mapping[str, SitePort],
    machines: Mapping[tuple[str, str], Machine],
    client: Http,
) -> dict[str, dict[str, LoadBalancer]]:
    """The load balancers by site and machine. An address of the user is on one machine only, unless it floats."""
    front, promoted = front_site(resource, sites), resource.spec.endpoint.promoted
    found: dict[str, dict[str, LoadBalancer]] = {}
    for (name, machine), seen in machines.items():
        address = resource.spec.endpoint.address if name == front else None
        floating = _floating(sites[name], machines)
        if address:  # of the user's own: one of those that float there, or it is where it is
            floating = dict.fromkeys(floating, address) if address in floating.values() else {}
        fixed = None if promoted or floating else address
        if seen.role is not MachineRole.EDGE or (fixed and name in found):
            continue
        wanted = BalancerPlacement(
            plane=resource.metadata.name,
            site=sites[name],
            machine=machine,
            address=fixed or seen.address,
            port=endpoint_port(resource),
            status_port=balancer_status_port(resource),
            secrets=secrets,
            client=client,
            floating=floating,
            beside=_served(name, floating.values(), others),
            promoted=address if promoted else None,
        )
        found.setdefault(name, {})[machine] = open_balancer(wanted)
    for name, site in sites.items():
        if isinstance(site, LedFromOutside) and site.external is not None:
            found[name] = {**open_external(resource.host, endpoint_port(resource), site.external, secrets)}
    return found


def _served(site: str, floating: Collection[str], planes: Sequence[ControlPlane]) -> dict[str, tuple[int, int]]:
    """The planes that clients may come to by addresses that float at a site, each with the ports of its load
    balancers there.
    """
    return {
        each.metadata.name: (balancer_status_port(each), endpoint_port(each))
        for each in planes
        if floating and site in _may_be_used(each) and (each.spec.endpoint.address or min(floating)) in floating
    }


def _may_be_used(plane: ControlPlane) -> frozenset[str | None]:
    memory = plane.status.memory
    return frozenset({memory.served_site, *memory.unsettled, *(each.name for each in memory.held)})


def _promoted(
    resource: ControlPlane, sites: Mapping[str, SitePort], machines: Mapping[tuple[str, str], Machine]
) -> Dns | None:
    """Where the address of a plane is, if it is one that is promoted."""
    site = sites.get(front_site(resource, sites) or "")
    if site is None or not resource.spec.endpoint.promoted:
        return None
    return open_promoted(
        resource.metadata.name,
        resource.spec.endpoint,
        site,
        # a host can be a DNS server as well, which is another machine at the same address
        [each for (at, _), each in machines.items() if at == site.name and each.role is not MachineRole.DNS],
        port=endpoint_port(resource),
        status_port=balancer_status_port(resource),
    )


def _floating(site: SitePort, machines: Mapping[tuple[str, str], Machine]) -> dict[str, str]:
    """The edges of a site, each with its floating address, where there are such. They do not change while a plane uses
    the site.
    """
    if not isinstance(site, Floats) or Capability.FLOATS not in site.capabilities:
        return {}
    edges = [name for (at, name), each in machines.items() if at == site.name and each.role is MachineRole.EDGE]
    found = {name: site.floating(name) for name in edges}
    return {name: address for name, address in found.items() if address is not None}
