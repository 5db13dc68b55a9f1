"""Sites of hosts for tests, whose hosts are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from quarterdeck.api.site import AddressSpace, Site, SshSpec
from quarterdeck.errors import Unavailable
from quarterdeck.model.findings import Checked
from quarterdeck.model.units import Machine


def host(name: str, **changed: Any) -> dict[str, Any]:
    """A host of zone ``a``, whose address has the number that its name ends with."""
    return {"name": name, "address": f"192.0.2.{name[-1]}", "zone": "a", "roles": ["control"], **changed}


def host_site(*hosts: dict[str, Any], name: str = "rack", **spec: Any) -> Site:
    """A site of these hosts."""
    return Site.model_validate({"metadata": {"name": name}, "spec": {"driver": "ssh", "hosts": hosts, **spec}})


@dataclass
class RememberedSite:
    """A site that remembers what was asked of it. Those hosts that are ``silent`` do not answer."""

    resource: Site
    driver: HostSites

    async def machines(self) -> tuple[Machine, ...]:
        return tuple(
            Machine(name=machine, site=self.resource.name, zone=each.zone, address=each.address, role=role)
            for each in self._spec.hosts
            for role, machine in each.machines.items()
        )

    async def destroy(self) -> None:
        names = [each.name for each in self._spec.hosts]
        if silent := self.driver.silent & set(names):
            raise Unavailable("clearing hosts", f"host {min(silent)} does not answer")
        self.driver.cleared += names

    @property
    def _spec(self) -> SshSpec:
        assert isinstance(self.resource.spec, SshSpec)
        return self.resource.spec


@dataclass
class HostSites:
    """Opens them."""

    silent: set[str] = field(default_factory=set)
    cleared: list[str] = field(default_factory=list)

    def open(self, resource: Site) -> RememberedSite:
        return RememberedSite(resource, self)

    async def require_allowed(self, resource: Site) -> None: ...

    def hub(self, space: AddressSpace, declared: Sequence[Site]) -> RememberedSite:
        raise NotImplementedError

    def hubs(self) -> tuple[AddressSpace, ...]:
        return ()

    async def close_hub(self, space: AddressSpace, hub: object) -> None: ...

    async def check(self, resource: Site) -> Checked:
        return Checked(findings=(), summary="well")

    async def destroy(self, resource: Site) -> None:
        await self.open(resource).destroy()

    async def close(self) -> None: ...
