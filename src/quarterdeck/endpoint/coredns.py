"""The DNS port by a CoreDNS of one's own, run as a unit of a machine of the hub site."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from quarterdeck.components.coredns import DnsSettings, base_file, dns_unit, record_file, zone_path
from quarterdeck.endpoint.claims import claim_name, claim_text, require_own
from quarterdeck.endpoint.records import DnsServer, absolute, ask, look, record_of
from quarterdeck.endpoint.waiting import until_answer
from quarterdeck.errors import InvalidInput, Unavailable
from quarterdeck.model.endpoints import Claim, Ownership, PersonMust, Record, Sighting
from quarterdeck.sites.port import Site

_PAUSE = 0.02  # seconds between two questions to a server that starts


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

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: Claim | None = None
    ) -> PersonMust | None:
        """See ``Dns.set``."""
        full, wanted = self._below_zone(name), record_of(addresses, ttl)
        await self._require_own(full, claim)
        texts = ((claim_name(full), claim_text(claim.ownership)),) if claim is not None else ()
        await self.site.write_files(self.machine, (record_file(self.settings, full, wanted, texts),))
        await self._until(full, wanted, claim.ownership if claim is not None else None)
        return None

    async def observe(self, name: str) -> Record | None:
        """See ``Dns.observe``."""
        return await ask(self.server, self._below_zone(name))

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``: there is one server."""
        return await look(self.server, self._below_zone(name))

    async def remove(self, name: str, claim: Claim | None = None) -> PersonMust | None:
        """See ``Dns.remove``."""
        full = self._below_zone(name)
        await self._require_own(full, claim)
        await self.site.remove_files(self.machine, (zone_path(self.settings, full),))
        await self._until(full, None, None)
        return None

    async def _require_own(self, full: str, claim: Claim | None) -> None:
        """As the server answers, which may have to start first. One that never ran knows nobody's names."""
        units = await self.site.units(self.machine)
        await self.start()
        if all(each.name != self.settings.unit for each in units):
            return
        deadline = asyncio.get_running_loop().time() + self.patience
        while True:
            try:
                seen = await look(self.server, full)
            except Unavailable:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(_PAUSE)
            else:
                require_own(f"changing the record {full}", seen, claim)
                return

    async def _until(self, full: str, wanted: Record | None, owner: Ownership | None) -> None:
        what = f"DNS server {self.server} to answer for {full}"
        await until_answer(lambda: look(self.server, full), what, wanted, owner, patience=self.patience)

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
