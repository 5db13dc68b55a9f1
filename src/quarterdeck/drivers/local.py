"""Sites on this host: their settings from their resource, and the network of each kind of isolation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from quarterdeck.api.site import AddressSpace, Isolation, LocalSpec
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.drivers.site_driver import SiteDriver
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.findings import Checked
from quarterdeck.sites.isolation import MachineIsolation
from quarterdeck.sites.local.loopback import open_loopback
from quarterdeck.sites.local.settings import LocalSiteSettings, LocalStorageClass
from quarterdeck.sites.local.site import LocalSite, open_local_site
from quarterdeck.sites.netns.lab import Lab, NetnsIsolation
from quarterdeck.sites.port import SitePort
from quarterdeck.sites.vrrp import INSTALL_BOTH, why_not_here


class LocalSites(SiteDriver):
    """Opens the local sites of one home. Sites of one isolation share its network."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._networks: dict[Isolation, MachineIsolation] = {}

    @override
    def open(self, resource: SiteResource) -> LocalSite:
        spec = _local(resource)
        classes = {
            each.name: LocalStorageClass(
                folder=Path(each.path) if each.path else None,
                limit_bytes=each.limit_bytes,
                reattachable=each.reattachable,
            )
            for each in spec.storage_classes
        }
        settings = LocalSiteSettings(
            name=resource.metadata.name,
            zones=spec.zones,
            machines_per_zone=spec.machines_per_zone,
            edges=spec.edges,
            floating=spec.floating_addresses,
            storage_classes=classes,
        )
        return open_local_site(self._folder, settings, self._network(spec.isolation))

    @override
    async def require_allowed(self, resource: SiteResource) -> None:
        """See ``SiteDriver``: not every host lets users create networks."""
        spec = _local(resource)
        if spec.floating_addresses and (missing := why_not_here()):
            raise PreconditionFailed(f"enabling floating addresses at site {resource.name}", missing, INSTALL_BOTH)
        if spec.isolation is Isolation.NETNS:
            await Lab.open(self._folder)

    @override
    def hub(self, space: AddressSpace, declared: Sequence[SiteResource] = ()) -> LocalSite:
        """See ``SiteDriver``: a site with two machines, so that both DNS servers can be tested like others."""
        settings = LocalSiteSettings(name=_hub(space), zones=("a", "b"), machines_per_zone=1)
        return open_local_site(self._folder, settings, self._network(Isolation(space)))

    @override
    def hubs(self) -> tuple[AddressSpace, ...]:
        spaces = (AddressSpace(each) for each in Isolation)
        return tuple(each for each in spaces if (self._folder / "sites" / _hub(each)).exists())

    @override
    async def close_hub(self, space: AddressSpace, hub: SitePort) -> None:
        """See ``SiteDriver``: no other site has its machines."""
        await hub.destroy()

    @override
    async def check(self, resource: SiteResource, others: Sequence[SiteResource] = ()) -> Checked:
        """See ``SiteDriver``: this host creates its machines when needed, if it allows that."""
        del others
        await self.require_allowed(resource)
        return Checked(findings=(), summary="its machines are parts of this host, which allows them")

    @override
    async def destroy(self, resource: SiteResource) -> None:
        await self.open(resource).destroy()

    @override
    async def close(self) -> None:
        """See ``SiteDriver``: there are no connections."""

    def _network(self, kind: Isolation) -> MachineIsolation:
        if kind not in self._networks:
            loopback = kind is Isolation.LOOPBACK
            self._networks[kind] = open_loopback(self._folder) if loopback else NetnsIsolation(self._folder)
        return self._networks[kind]


def _local(resource: SiteResource) -> LocalSpec:
    assert isinstance(resource.spec, LocalSpec), "the table of drivers goes by it"
    return resource.spec


def _hub(space: AddressSpace) -> str:
    return f"hub-{space}"
