"""What leads clients to an ssh site: addresses that its hosts have by turns, or a load balancer of the user's own."""

from __future__ import annotations

from quarterdeck.components.traffic.keepalived import RouterSettings, Routing, own_address, router_settings
from quarterdeck.model.endpoints import ExternalLoadBalancer
from quarterdeck.sites.ssh.asking import SshHosts
from quarterdeck.sites.ssh.connections import INSTALLED


class SshAddresses(SshHosts):
    """The ports Floats, Leads and LedFromOutside of a site of hosts."""

    def floating(self, machine: str) -> str | None:
        """See Floats."""
        edges, addresses = self._settings.edges(), self._settings.floating_addresses
        return own_address(machine, edges, addresses) if addresses and machine in edges else None

    @property
    def external(self) -> ExternalLoadBalancer | None:
        """See LedFromOutside."""
        return self._settings.external

    def router(self, machine: str) -> RouterSettings:
        """See Floats."""
        return router_settings(machine, self._settings.edges(), self._settings.floating_addresses)

    @property
    def led_addresses(self) -> tuple[str, ...]:
        """See Leads."""
        return self._settings.promoted_addresses

    @property
    def cannot_route(self) -> str:
        """See Routes: a check of the site tells of each host."""
        return ""

    def routing(self, machine: str, unit: str) -> Routing:
        """See Routes: by the host's script, which lets the unit be no other program."""
        self.host(machine)
        return Routing(argv=(INSTALLED, "vrrp", unit))
