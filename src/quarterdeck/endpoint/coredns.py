"""The DNS port by a CoreDNS of one's own, run as a unit of a machine of the hub site."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.components.coredns import DnsSettings, base_file, dns_unit, record_file, zone_path
from quarterdeck.endpoint.records import DnsServer, absolute, ask, record_of
from quarterdeck.endpoint.waiting import until_answer
from quarterdeck.errors import InvalidInput
from quarterdeck.model.endpoints import PersonMust, Record
from quarterdeck.sites.port import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreDns:
    """One CoreDNS on ``machine`` of ``site``, shared by all planes. ``patience``: seconds that ``set`` waits.

    Each name has a file of its own, so that several managers may write at once, each for its planes.
    """

    site: Site
    machine: str
    settings: DnsSettings
    patience: float = 20.0

    @property
    def server(self) -> DnsServer:
        """Where clients ask."""
        return DnsServer(self.settings.address, self.settings.port)

    async def check(self, name: str) -> None:
        """See ``Dns.check``: the name must lie below the zone."""
        self._below_zone(name)

    async def set(self, name: str, addresses: tuple[str, ...], ttl: int) -> PersonMust | None:
        """See ``Dns.set``."""
        full, wanted = self._below_zone(name), record_of(addresses, ttl)
        await self.start()
        await self.site.write_files(self.machine, (record_file(self.settings, full, wanted),))
        await until_answer(self.server, full, wanted, patience=self.patience)
        return None

    async def observe(self, name: str) -> Record | None:
        """See ``Dns.observe``."""
        return await ask(self.server, self._below_zone(name))

    async def remove(self, name: str) -> PersonMust | None:
        """See ``Dns.remove``."""
        full = self._below_zone(name)
        await self.start()
        await self.site.remove_files(self.machine, (zone_path(self.settings, full),))
        await until_answer(self.server, full, None, patience=self.patience)
        return None

    async def start(self) -> None:
        """Have the server run; nothing happens to one that does. Names are there once it has read its files."""
        await self.site.write_files(self.machine, (base_file(self.settings),))
        await self.site.start_unit(self.machine, dns_unit(self.settings))

    async def stop(self) -> None:
        """Stop the server and forget every name."""
        await self.site.remove_unit(self.machine, self.settings.unit)

    def _below_zone(self, name: str) -> str:
        full = absolute(name)
        if not full.endswith(f".{self.settings.zone}"):
            zone = self.settings.zone.rstrip(".")
            raise InvalidInput(f"looking at the name {full}", f"it is not below {zone}", f"use NAME.{zone}")
        return full
