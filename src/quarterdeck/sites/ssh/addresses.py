"""What leads clients to an ssh site: addresses that its hosts have by turns, or a load balancer of the user's own."""

from __future__ import annotations

from typing_extensions import override

from quarterdeck.components.traffic.keepalived import RouterSettings, Routing, own_address, router_settings
from quarterdeck.model.endpoints import ExternalLoadBalancer
from quarterdeck.sites.port import Floats, Leads, LedFromOutside
from quarterdeck.sites.ssh.asking import SshHosts
from quarterdeck.sites.ssh.connections import INSTALLED


class SshAddresses(SshHosts, Floats, Leads, LedFromOutside):
    """The ports Floats, Leads and LedFromOutside of a site of hosts."""

    @override
    def floating(self, machine: str) -> str | None:
        edges, addresses = self._settings.edges(), self._settings.floating_addresses
        return own_address(machine, edges, addresses) if addresses and machine in edges else None

    @property
    @override
    def external(self) -> ExternalLoadBalancer | None:
        return self._settings.external

    @override
    def router(self, machine: str) -> RouterSettings:
        return router_settings(machine, self._settings.edges(), self._settings.floating_addresses)

    @property
    @override
    def led_addresses(self) -> tuple[str, ...]:
        return self._settings.promoted_addresses

    @property
    @override
    def cannot_route(self) -> str:
        """A check of the site tells of each host."""
        return ""

    @override
    def routing(self, machine: str, unit: str) -> Routing:
        """By the host's script, which lets the unit be no other program."""
        self.host(machine)
        return Routing(argv=(INSTALLED, "vrrp", unit))
