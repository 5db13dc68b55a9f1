"""How a home opens its sites: each by the driver that its resource names, once, and again when it was changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fakes.site import FakeSite

from quarterdeck.api.base import Metadata
from quarterdeck.api.site import AddressSpace, Isolation, LocalSpec
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.drivers.local import LocalSites
from quarterdeck.drivers.sites import OpenSites
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.findings import Checked
from quarterdeck.sites.local.settings import LocalSiteSettings
from quarterdeck.sites.port import SitePort


@dataclass
class Driver:
    """Of a kind whose sites are in memory."""

    opened: list[str] = field(default_factory=list)
    made_of: list[list[str]] = field(default_factory=list)

    def open(self, resource: SiteResource) -> SitePort:
        return self.hub_named(resource.metadata.name)

    async def require_allowed(self, resource: SiteResource) -> None:
        self.opened.append(f"may {resource.metadata.name}")

    def hub(self, space: AddressSpace, declared: Sequence[SiteResource]) -> SitePort:
        self.made_of.append([each.name for each in declared])
        return self.hub_named(f"hub-{space}")

    def hubs(self) -> tuple[AddressSpace, ...]:
        return (AddressSpace.LOOPBACK,)

    async def close_hub(self, space: AddressSpace, hub: SitePort) -> None:
        await hub.destroy()

    async def check(self, resource: SiteResource, others: Sequence[SiteResource] = ()) -> Checked:
        return Checked(findings=(), summary="well")

    async def destroy(self, resource: SiteResource) -> None:
        await self.open(resource).destroy()

    async def close(self) -> None:
        self.opened.append("closed")

    def hub_named(self, name: str) -> SitePort:
        self.opened.append(name)
        return FakeSite(LocalSiteSettings(name=name))


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def sites(driver: Driver) -> OpenSites:
    return OpenSites(Path("/proc/nowhere"), {"local": lambda _, __: driver})


def east(**spec: object) -> SiteResource:
    return SiteResource(metadata=Metadata(name="east"), spec=LocalSpec.model_validate(spec))


async def test_a_site_is_opened_once_by_the_driver_that_it_names_and_again_when_it_was_changed(
    driver: Driver, sites: OpenSites
) -> None:
    first = sites.open(east())
    assert sites.open(east()) is first
    assert sites.open(east(zones=("a",))) is not first
    await sites.require_allowed(east())
    assert driver.opened == ["east", "east", "may east"]


async def test_what_planes_share_goes_with_the_hubs_that_were_ever_opened(driver: Driver, sites: OpenSites) -> None:
    hub = sites.hub(AddressSpace.LOOPBACK)
    await hub.create_volume("hub-loopback-a1", "any", "standard")
    await sites.close_hubs()
    assert sites.hub(AddressSpace.LOOPBACK) is hub
    assert await hub.volumes("hub-loopback-a1") == ()
    assert driver.opened == ["hub-loopback"]


async def test_addresses_that_float_between_machines_of_this_host_need_what_the_distribution_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.sites.vrrp._KEEPALIVED", tmp_path / "keepalived")
    spec = LocalSpec(isolation=Isolation.NETNS, edges=2, floating_addresses=True)
    resource = SiteResource(metadata=Metadata(name="n1"), spec=spec)
    with pytest.raises(PreconditionFailed, match=r"keepalived must be installed on this host.*install keepalived and"):
        await LocalSites(tmp_path).require_allowed(resource)
