"""Drivers of sites: from the resource that declares a site to the site port."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from quarterdeck.api.site import AddressSpace, SiteSpec
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.drivers.local import LocalSites
from quarterdeck.drivers.site_driver import SiteDriver
from quarterdeck.drivers.ssh import SshSites
from quarterdeck.model.findings import Checked
from quarterdeck.progress import TransferListener
from quarterdeck.sites.port import SitePort

#: Opens a driver, given the home's folder, and the receiver of progress.
OpenDriver = Callable[[Path, TransferListener], SiteDriver]
#: By ``spec.driver``.
SITE_DRIVERS: Mapping[str, OpenDriver] = {"local": lambda folder, _: LocalSites(folder), "ssh": SshSites}
#: The driver of the hub of each address space.
_HUBS: Mapping[AddressSpace, str] = {
    AddressSpace.LOOPBACK: "local",
    AddressSpace.NETNS: "local",
    AddressSpace.HOSTS: "ssh",
}


class OpenSites:
    """The sites of one home, each opened at first use, and reopened when its declaration changes."""

    def __init__(
        self, folder: Path, drivers: Mapping[str, OpenDriver] = SITE_DRIVERS, listener: TransferListener | None = None
    ) -> None:
        self._folder = folder
        self._listener = listener or TransferListener()
        self._kinds = drivers
        self._drivers: dict[str, SiteDriver] = {}
        self._opened: dict[str, tuple[SiteSpec, SitePort]] = {}
        self._hubs: dict[AddressSpace, tuple[tuple[SiteResource, ...], SitePort]] = {}

    def open(self, resource: SiteResource) -> SitePort:
        """The port of a site. May block for a moment the first time."""
        name, spec = resource.metadata.name, resource.spec
        known = self._opened.get(name)
        if known is None or known[0] != spec:
            known = self._opened[name] = (spec, self._driver(spec.driver).open(resource))
        return known[1]

    async def require_allowed(self, resource: SiteResource) -> None:
        """See ``SiteDriver``."""
        await self._driver(resource.spec.driver).require_allowed(resource)

    def hub(self, space: AddressSpace, declared: Sequence[SiteResource] = ()) -> SitePort:
        """The hub of an address space: the DNS servers of all its planes run there. ``declared``: the declared sites;
        only the hub of hosts consists of them.
        """
        within = tuple(each for each in declared if each.spec.space is space)
        known = self._hubs.get(space)
        if known is None or known[0] != within:
            known = self._hubs[space] = (within, self._driver(_HUBS[space]).hub(space, within))
        return known[1]

    def hubs(self) -> tuple[AddressSpace, ...]:
        """The address spaces whose hub was opened, and not closed since."""
        drivers = dict.fromkeys(kind for kind in _HUBS.values() if kind in self._kinds)
        return tuple(space for kind in drivers for space in self._driver(kind).hubs())

    async def close_hubs(self, declared: Sequence[SiteResource] = ()) -> None:
        """Remove all that planes share: no plane is left."""
        for space in self.hubs():
            await self._driver(_HUBS[space]).close_hub(space, self.hub(space, declared))

    async def check(self, resource: SiteResource, declared: Sequence[SiteResource] = ()) -> Checked:
        """See ``SiteDriver``. ``declared``: the declared sites, which may include an earlier version of this one."""
        others = [each for each in declared if each.metadata.name != resource.metadata.name]
        return await self._driver(resource.spec.driver).check(resource, others)

    async def destroy(self, resource: SiteResource) -> None:
        """Stop all programs at a site and delete all its data: no plane uses it any longer."""
        await self._driver(resource.spec.driver).destroy(resource)

    async def close(self) -> None:
        """Close connections; programs keep running."""
        for each in self._drivers.values():
            await each.close()

    def _driver(self, kind: str) -> SiteDriver:
        if kind not in self._drivers:
            self._drivers[kind] = self._kinds[kind](self._folder, self._listener)
        return self._drivers[kind]
