"""The DNS port with our own CoreDNS servers, run as units of machines of the hub site."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from quarterdeck.components.traffic.coredns import DnsSettings, base_file, dns_unit, record_file, zone_path
from quarterdeck.endpoint.dns.claims import claim_name, claim_text, require_own
from quarterdeck.endpoint.dns.records import DnsServer, absolute, look_at_equals, record_of, until_answer
from quarterdeck.errors import InvalidInput, Unavailable
from quarterdeck.model.endpoints import DnsRecord, Ownership, PersonMust, RecordClaim, Sighting
from quarterdeck.model.units import Program, UnitFile
from quarterdeck.sites.endings import why_idle
from quarterdeck.sites.port import SitePort

_PAUSE = 0.02  # seconds between two queries of a starting server


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreDns:
    """CoreDNS on machines of ``site`` (``hosts``, by machine), all with the same zone, shared by all planes.
    ``patience``: seconds that ``set`` waits. Their program is one of this host, which is installed on them.

    Each name has its own file, so that several managers may write at once, each for its planes. Each server gets every
    record: one that is unreachable gets it when it is back, and until then its answers are unknown.
    """

    site: SitePort
    hosts: Mapping[str, DnsSettings]
    patience: float = 20.0

    @property
    def servers(self) -> tuple[DnsServer, ...]:
        """The servers, in the order in which clients query them."""
        return tuple(map(_server, self.hosts.values()))

    async def check(self, name: str) -> None:
        """See ``Dns.check``: the name must lie below the zone."""
        self._below_zone(name)

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: RecordClaim | None = None
    ) -> PersonMust | None:
        """See ``Dns.set``; but a server whose machine does not answer is not waited for: clients query the others."""
        full, wanted = self._below_zone(name), record_of(addresses, ttl)
        await self._require_own(full, claim)
        owner = claim.ownership if claim is not None else None

        async def write(machine: str) -> None:
            await self.site.write_files(machine, (_record_file(self.hosts[machine], full, wanted, owner),))

        answers = await self._on_each(write)
        await self._until(answers, full, wanted, owner)
        return None

    async def observe(self, name: str) -> DnsRecord | None:
        """See ``Dns.observe``."""
        return (await self.look(name)).record

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``."""
        return await look_at_equals(self.servers, self._below_zone(name))

    async def remove(self, name: str, claim: RecordClaim | None = None) -> PersonMust | None:
        """See ``Dns.remove``. A server could not be updated later, once the name is deleted, so all of their machines
        must answer before the first deletes it.
        """
        full = self._below_zone(name)
        await self._require_own(full, claim)
        await asyncio.gather(*map(self.site.units, self.hosts))
        for machine, settings in self.hosts.items():
            await self.site.remove_files(machine, (zone_path(settings, full),))
        await self._until(tuple(self.hosts), full, None, None)
        return None

    async def start(self) -> None:
        """See ``OwnServer.start``. Names are there once it has read its files."""
        await self._on_each(self._begin)

    async def join(self, machines: Collection[str], names: Collection[str], others: Sequence[DnsServer]) -> None:
        """Start new servers, on ``machines``, which from their first answer on have the records of the ``others`` for
        these names. A name without a record on any other server is left to the driver of its plane.

        Raises Unavailable for a machine that does not answer, TimedOut where a server does not answer so in time.
        """
        fulls = [self._below_zone(each) for each in names]
        seen = await asyncio.gather(*(_record_at(others, each) for each in fulls))
        known = [(full, *record) for full, record in zip(fulls, seen, strict=True) if record is not None]

        async def begin(machine: str) -> None:
            settings = self.hosts[machine]
            await self._begin(machine, tuple(_record_file(settings, *each) for each in known))

        await asyncio.gather(*map(begin, machines))
        await asyncio.gather(*(self._until(tuple(machines), *each) for each in known))

    async def _begin(self, machine: str, records: tuple[UnitFile, ...] = ()) -> None:
        settings = self.hosts[machine]
        program = Program(settings.unit, settings.binary)
        there = replace(settings, binary=await self.site.install(machine, program))
        await self.site.write_files(machine, (base_file(there), *records))
        await self.site.start_unit(machine, dns_unit(there))

    async def stop(self) -> None:
        """Stop the servers and delete every name."""
        for machine, settings in self.hosts.items():
            await self.site.remove_unit(machine, settings.unit)

    async def _require_own(self, full: str, claim: RecordClaim | None) -> None:
        """As the existing servers answer, which may have to start first: new ones have no names."""
        ran: list[str] = []

        async def see(machine: str) -> None:
            units = {each.name: each for each in await self.site.units(machine)}
            unit = units.get(self.hosts[machine].unit)
            if unit is not None and not unit.files_only:
                ran.append(machine)

        await self._on_each(see)
        await self.start()
        deadline = asyncio.get_running_loop().time() + self.patience
        while ran:
            try:
                seen = await look_at_equals(self._servers_on(ran), full)
            except Unavailable:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(_PAUSE)
            else:
                require_own(f"changing the record {full}", seen, claim)
                return

    async def _on_each(self, call: Callable[[str], Awaitable[None]]) -> tuple[str, ...]:
        """Do it on every machine; returns those that answered. Raises Unavailable when none did, and worse errors."""
        ended = await asyncio.gather(*map(call, self.hosts), return_exceptions=True)
        failed = [each for each in ended if each is not None]
        worst = next((each for each in failed if not isinstance(each, Unavailable)), None)
        if worst is not None or len(failed) == len(ended):
            raise worst or failed[0]
        return tuple(machine for machine, each in zip(self.hosts, ended, strict=True) if each is None)

    async def _until(
        self, machines: Sequence[str], full: str, wanted: DnsRecord | None, owner: Ownership | None
    ) -> None:
        asked = self._servers_on(machines)
        what = f"DNS server {' and '.join(map(str, asked))} to answer for {full}"
        await until_answer(
            lambda: look_at_equals(asked, full),
            what,
            wanted,
            owner,
            patience=self.patience,
            why=lambda: self._why_idle(machines),
        )

    async def _why_idle(self, machines: Sequence[str]) -> str:
        found = await asyncio.gather(*(why_idle(self.site, each, self.hosts[each].unit) for each in machines))
        return "; ".join(filter(None, found))

    def _servers_on(self, machines: Sequence[str]) -> tuple[DnsServer, ...]:
        return tuple(_server(self.hosts[each]) for each in self.hosts if each in machines)

    def _below_zone(self, name: str) -> str:
        full, zone = absolute(name), next(iter(self.hosts.values())).zone
        if not full.endswith(f".{zone}"):
            short = zone.rstrip(".")
            raise InvalidInput(f"checking the name {full}", f"it is not below {short}", f"use NAME.{short}")
        return full


def _record_file(settings: DnsSettings, full: str, record: DnsRecord, owner: Ownership | None) -> UnitFile:
    texts = ((claim_name(full), claim_text(owner)),) if owner is not None else ()
    return record_file(settings, full, record, texts)


async def _record_at(servers: Sequence[DnsServer], full: str) -> tuple[DnsRecord, Ownership | None] | None:
    """The record of a name, and its owner; None where no server answers, or has it."""
    try:
        seen = await look_at_equals(tuple(servers), full)
    except Unavailable:
        return None
    return None if seen.record is None else (seen.record, seen.ownership)


def _server(settings: DnsSettings) -> DnsServer:
    return DnsServer(settings.address, settings.port)
