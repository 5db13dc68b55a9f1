"""The port of site drivers: from the resource that declares a site to the site port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from quarterdeck.api.site import AddressSpace
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.model.findings import Checked
from quarterdeck.sites.port import SitePort


class SiteDriver(Protocol):
    """Opens the sites of one kind for one home."""

    def open(self, resource: SiteResource) -> SitePort:
        """The site as it is declared."""
        ...

    async def require_allowed(self, resource: SiteResource) -> None:
        """Raise Unavailable where such a site is impossible: before it is declared."""
        ...

    def hub(self, space: AddressSpace, declared: Sequence[SiteResource]) -> SitePort:
        """The site of programs that the planes of an address space share. Nobody declares it: it consists of machines
        of the ``declared`` sites.
        """
        ...

    def hubs(self) -> tuple[AddressSpace, ...]:
        """The address spaces whose hub was opened in this home, and not closed since."""
        ...

    async def close_hub(self, space: AddressSpace, hub: SitePort) -> None:
        """Remove all programs from a hub."""
        ...

    async def check(self, resource: SiteResource, others: Sequence[SiteResource] = ()) -> Checked:
        """The obstacles to planes at a site, whether it is declared already or not. Changes nothing. ``others``:
        further sites, whose machines must be different.
        """
        ...

    async def destroy(self, resource: SiteResource) -> None:
        """Stop all programs at a site and delete all its data."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
