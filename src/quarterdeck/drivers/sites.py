"""Kinds of sites: from the resource that declares one to the site port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from quarterdeck.api.site import Isolation, SiteSpec
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.drivers.local import LocalSites
from quarterdeck.sites.port import Site


class SiteDriver(Protocol):
    """Opens the sites of one kind for one home."""

    def open(self, resource: SiteResource) -> Site:
        """The site as it is declared."""
        ...

    async def require_allowed(self, resource: SiteResource) -> None:
        """Raise Unavailable where such a site cannot be: for who is about to declare it."""
        ...

    def hub(self, network: Isolation) -> Site:
        """Where what the planes on a network share runs: a site that nobody declares."""
        ...

    def hubs(self) -> tuple[Isolation, ...]:
        """The networks whose hub was ever opened in this home."""
        ...


#: By ``spec.driver``. Each is given the home's folder.
SITE_DRIVERS: Mapping[str, Callable[[Path], SiteDriver]] = {"local": LocalSites}
#: Whose networks the hubs are of.
_HUBS = "local"


class Sites:
    """The sites of one home, each opened when it is first asked for, and anew when it was declared otherwise."""

    def __init__(self, folder: Path, drivers: Mapping[str, Callable[[Path], SiteDriver]] = SITE_DRIVERS) -> None:
        self._folder = folder
        self._kinds = drivers
        self._drivers: dict[str, SiteDriver] = {}
        self._opened: dict[str, tuple[SiteSpec, Site]] = {}
        self._hubs: dict[Isolation, Site] = {}

    def open(self, resource: SiteResource) -> Site:
        """The port of a site. May block for a moment the first time."""
        name, spec = resource.metadata.name, resource.spec
        known = self._opened.get(name)
        if known is None or known[0] != spec:
            known = self._opened[name] = (spec, self._driver(spec.driver).open(resource))
        return known[1]

    async def require_allowed(self, resource: SiteResource) -> None:
        """See ``SiteDriver``."""
        await self._driver(resource.spec.driver).require_allowed(resource)

    def hub(self, network: Isolation) -> Site:
        """The hub of a network: the DNS server of all planes on it runs there."""
        if network not in self._hubs:
            self._hubs[network] = self._driver(_HUBS).hub(network)
        return self._hubs[network]

    def hubs(self) -> tuple[Isolation, ...]:
        """The networks whose hub was ever opened."""
        return self._driver(_HUBS).hubs()

    async def close_hubs(self) -> None:
        """Take down what all planes share: there are none left."""
        for network in self.hubs():
            await self.hub(network).destroy()

    def _driver(self, kind: str) -> SiteDriver:
        if kind not in self._drivers:
            self._drivers[kind] = self._kinds[kind](self._folder)
        return self._drivers[kind]
