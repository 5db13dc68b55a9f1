"""Sites of hosts for tests, whose hosts are in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from quarterdeck.api.site import AddressSpace, Site, SshSpec
from quarterdeck.components.traffic.keepalived import KEEPALIVED, RouterSettings, Routing, router_settings
from quarterdeck.errors import Unavailable
from quarterdeck.model.findings import Checked, HostFinding
from quarterdeck.model.units import Machine, MachineRole, UnitSpec, UnitState, UnitStatus


def host(name: str, **changed: Any) -> dict[str, Any]:
    """A host of zone ``a``, whose address has the number that its name ends with."""
    return {"name": name, "address": f"192.0.2.{name[-1]}", "zone": "a", "roles": ["control"], **changed}


def host_site(*hosts: dict[str, Any], name: str = "rack", **spec: Any) -> Site:
    """A site of these hosts."""
    document = {"metadata": {"name": name}, "spec": {"driver": "ssh", "hosts": hosts, **spec}}
    return Site.model_validate_json(json.dumps(document))


@dataclass
class RememberedSite:
    """A site that remembers what was asked of it. Those hosts that are ``silent`` do not answer, nor does anybody at
    addresses that are.
    """

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
        for each in names:
            self._require("clearing hosts", each)
        self.driver.cleared += names

    # addresses that float

    cannot_route = ""

    def floating(self, machine: str) -> str | None:
        raise NotImplementedError

    def routing(self, machine: str, unit: str) -> Routing:
        return Routing(argv=("/vrrp", unit))

    def router(self, machine: str) -> RouterSettings:
        return router_settings(machine, self._edges, self._spec.edge.floating_addresses)

    def folder(self, machine: str, unit: str) -> PurePosixPath:
        return PurePosixPath("/units", machine, unit)

    async def units(self, machine: str) -> tuple[UnitStatus, ...]:
        self._require("looking at units", machine)
        return tuple(
            UnitStatus(name=KEEPALIVED, state=UnitState.RUNNING) for each in self.driver.routed if each == machine
        )

    async def reload_unit(self, machine: str, spec: UnitSpec) -> None:
        (file,) = spec.files
        known = [name for name, address in self._edges.items() if f" {address} min_ttl" in file.content.decode()]
        self.driver.known_hosts[machine] = known

    async def remove_unit(self, machine: str, unit: str) -> None:
        self._require("removing a unit", machine)
        assert unit == KEEPALIVED
        self.driver.routed.discard(machine)

    def _require(self, doing: str, machine: str) -> None:
        if self.driver.silent & {machine, self._edges.get(machine, "")}:
            raise Unavailable(doing, f"host {machine} does not answer")

    @property
    def _edges(self) -> dict[str, str]:
        return {
            machine: each.address
            for each in self._spec.hosts
            for role, machine in each.machines.items()
            if role is MachineRole.EDGE
        }

    @property
    def _spec(self) -> SshSpec:
        assert isinstance(self.resource.spec, SshSpec)
        return self.resource.spec


@dataclass
class HubOfHosts:
    """The hosts of DNS servers of all sites."""

    declared: Sequence[Site]

    async def machines(self) -> tuple[Machine, ...]:
        return tuple(
            Machine(name=name, site="hub", zone="a", address=address, role=MachineRole.DNS)
            for name, address in self._hosts()
        )

    @property
    def addresses(self) -> list[str]:
        return [address for _, address in self._hosts()]

    def _hosts(self) -> list[tuple[str, str]]:
        return [
            (f"{site.metadata.name}-{each.name}", each.address)
            for site in self.declared
            if isinstance(site.spec, SshSpec)
            for each in site.spec.hosts
            if MachineRole.DNS in each.roles
        ]


@dataclass
class HostSites:
    """Opens them. ``routed``: the hosts that run keepalived; ``known_hosts``: the others that each of them knows.
    ``findings``: what a check says of hosts as long as they are of the site that it is for;
    ``compared``: the further sites that the last one was given.
    """

    findings: list[HostFinding] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    cleared: list[str] = field(default_factory=list)
    routed: set[str] = field(default_factory=set)
    known_hosts: dict[str, list[str]] = field(default_factory=dict)
    compared: tuple[str, ...] = ()

    def open(self, resource: Site) -> RememberedSite:
        return RememberedSite(resource, self)

    async def require_allowed(self, resource: Site) -> None: ...

    def hub(self, space: AddressSpace, declared: Sequence[Site]) -> HubOfHosts:
        return HubOfHosts(declared)

    def hubs(self) -> tuple[AddressSpace, ...]:
        return ()

    async def close_hub(self, space: AddressSpace, hub: object) -> None: ...

    async def check(self, resource: Site, others: Sequence[Site] = ()) -> Checked:
        self.compared = tuple(each.name for each in others)
        hosts = {each.name for each in self.open(resource)._spec.hosts}
        return Checked(findings=tuple(each for each in self.findings if each.about <= hosts), summary="all of them")

    async def destroy(self, resource: Site) -> None:
        await self.open(resource).destroy()

    async def close(self) -> None: ...
