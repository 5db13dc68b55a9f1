"""The DNS ports without a server of ours: a person makes the records, or the endpoint is an address."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import dns.exception

from quarterdeck.endpoint.dns.records import DnsServer, absolute, ask, record_of
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.model.endpoints import DnsRecord, PersonMust, RecordClaim, Sighting


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmanagedDns:
    """Asks ``servers`` (the first that answers counts; see ``system_servers``) and never changes a thing.

    ``timeout`` is how long (seconds) each may take. The hosts file of this machine does not count: it says
    nothing of what other clients see.
    """

    servers: tuple[DnsServer, ...]
    timeout: float = 2.0

    async def check(self, name: str) -> None:
        """See ``Dns.check``: a server must answer, with whatever."""
        await self.observe(name)

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: RecordClaim | None = None
    ) -> PersonMust | None:
        """What the person must do, until the name resolves as wanted.

        A resolver's answers count down their time to live, so a shorter one than wanted is fine; a longer one
        is not: clients would hold the address for longer than it is kept alive for them.
        """
        wanted, seen = record_of(addresses, ttl), await self.observe(name)
        if seen is not None and seen.addresses == wanted.addresses and seen.ttl <= wanted.ttl:
            return None
        return PersonMust(name=absolute(name), wanted=wanted, seen=seen)

    async def observe(self, name: str) -> DnsRecord | None:
        """What clients are told now; the time to live is what was left of it."""
        full = absolute(name)
        failures: list[str] = []
        for server in self.servers:
            try:
                return await ask(server, full, timeout=self.timeout, recurse=True)
            except Unavailable as error:
                failures.append(f"{server}: {error.seen}")
        raise Unavailable(f"resolving {full}", ", ".join(failures) or "no server to ask", "check the DNS servers")

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``: whose the record is, the person knows who makes it."""
        return Sighting(record=await self.observe(name), by_hand=True)

    async def remove(self, name: str, claim: RecordClaim | None = None) -> PersonMust | None:
        """What the person must do, until the name resolves to nothing."""
        seen = await self.observe(name)
        return None if seen is None else PersonMust(name=absolute(name), wanted=None, seen=seen)


def system_servers(configuration: Path = Path("/etc/resolv.conf")) -> tuple[DnsServer, ...]:
    """The servers that this machine's resolver is set to ask; raises PreconditionFailed if there are none."""
    from dns import resolver as resolving  # see questions._by_tcp

    try:
        resolver = resolving.Resolver(str(configuration))
    except (dns.exception.DNSException, OSError) as error:
        seen = str(error) or type(error).__name__
        raise PreconditionFailed(
            f"reading {configuration}", seen, "name a DNS server to ask in spec.endpoint.resolvers"
        ) from error
    return tuple(DnsServer(str(each), resolver.port) for each in resolver.nameservers)


@dataclass(frozen=True, slots=True)
class FixedAddress:
    """Clients hold ``address`` for good, so the load balancer there (the plane's front) stays for good.

    A migration moves the backends behind the front, never the address: the front's backends are the replicas
    that serve, at whichever site, and it is not taken down before the plane is. Who wants to be rid of the
    front's site needs a name, or must carry the address elsewhere by means of their own network.
    """

    address: str

    async def check(self, name: str) -> None:
        """See ``Dns.check``: the address must be one."""
        record_of((self.address,), 0)

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: RecordClaim | None = None
    ) -> PersonMust | None:
        """Nothing, if clients are to be led to the address itself; raises PreconditionFailed for any other."""
        if record_of(addresses, 0) != await self.observe(name):
            raise PreconditionFailed(
                f"leading clients of {self.address} to {' '.join(addresses)}",
                "the endpoint is a fixed address, which cannot lead elsewhere",
                "keep the load balancer at that address in front, or give the endpoint a name",
            )
        return None

    async def observe(self, name: str) -> DnsRecord | None:
        """The address; clients never ask again, and never need to (time to live 0)."""
        return record_of((self.address,), 0)

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``: it is the plane's whatever a driver does, and clients ask nobody."""
        return Sighting(record=await self.observe(name), by_hand=True, servers=0)

    async def remove(self, name: str, claim: RecordClaim | None = None) -> PersonMust | None:
        """Nothing: there is no record."""
        return None
