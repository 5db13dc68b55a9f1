"""How a home opens its sites: each by the driver that its resource names, once, and anew when it was changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from quarterdeck.api.base import Metadata
from quarterdeck.api.site import Isolation, SiteSpec
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.drivers.sites import Sites
from quarterdeck.sites.fake import FakeSite
from quarterdeck.sites.local.settings import LocalSiteSettings
from quarterdeck.sites.port import Site


@dataclass
class Driver:
    """Of a kind whose sites are in memory."""

    opened: list[str] = field(default_factory=list)

    def open(self, resource: SiteResource) -> Site:
        return self.hub_named(resource.metadata.name)

    async def require_allowed(self, resource: SiteResource) -> None:
        self.opened.append(f"may {resource.metadata.name}")

    def hub(self, network: Isolation) -> Site:
        return self.hub_named(f"hub-{network}")

    def hubs(self) -> tuple[Isolation, ...]:
        return (Isolation.LOOPBACK,)

    def hub_named(self, name: str) -> Site:
        self.opened.append(name)
        return FakeSite(LocalSiteSettings(name=name))


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def sites(driver: Driver) -> Sites:
    return Sites(Path("/nowhere"), {"local": lambda _: driver})


def east(**spec: object) -> SiteResource:
    return SiteResource(metadata=Metadata(name="east"), spec=SiteSpec.model_validate(spec))


async def test_a_site_is_opened_once_by_the_driver_that_it_names_and_anew_when_it_was_changed(
    driver: Driver, sites: Sites
) -> None:
    first = sites.open(east())
    assert sites.open(east()) is first
    assert sites.open(east(zones=("a",))) is not first
    await sites.require_allowed(east())
    assert driver.opened == ["east", "east", "may east"]


async def test_what_planes_share_goes_with_the_hubs_that_were_ever_opened(driver: Driver, sites: Sites) -> None:
    hub = sites.hub(Isolation.LOOPBACK)
    await hub.create_volume("hub-loopback-a1", "any", "standard")
    await sites.close_hubs()
    assert sites.hub(Isolation.LOOPBACK) is hub
    assert await hub.volumes("hub-loopback-a1") == ()
    assert driver.opened == ["hub-loopback"]
