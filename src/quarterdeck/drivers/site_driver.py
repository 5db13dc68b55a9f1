"""What each kind of site brings: from the resource that declares one to the site port."""

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
        """Raise Unavailable where such a site cannot be: for who is about to declare it."""
        ...

    def hub(self, space: AddressSpace, declared: Sequence[SiteResource]) -> SitePort:
        """Where what the planes of an address space share runs: a site that nobody declares, made of what the
        ``declared`` sites have for it.
        """
        ...

    def hubs(self) -> tuple[AddressSpace, ...]:
        """Those whose hub was ever opened in this home, and not closed since."""
        ...

    async def close_hub(self, space: AddressSpace, hub: SitePort) -> None:
        """Take down what runs at a hub."""
        ...

    async def check(self, resource: SiteResource, others: Sequence[SiteResource] = ()) -> Checked:
        """What stands in the way of planes at a site, whether it is declared already or not. Changes nothing.
        ``others``: further sites, whose machines have to be other ones.
        """
        ...

    async def destroy(self, resource: SiteResource) -> None:
        """End all that runs at a site and remove all that it has."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
