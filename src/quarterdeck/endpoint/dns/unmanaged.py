"""The DNS ports without a server of ours: a person edits the records, or the endpoint is an address."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import dns.exception

from quarterdeck.endpoint.dns.records import DnsServer, absolute, ask, record_of
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.model.endpoints import DnsRecord, PersonMust, RecordClaim, Sighting


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmanagedDns:
    """Queries ``servers`` (the first answer counts; see ``system_servers``) and never changes anything.

    ``timeout`` is how long (seconds) each may take. The hosts file of this machine does not count: other clients do not
    see it.
    """

    servers: tuple[DnsServer, ...]
    timeout: float = 2.0

    async def check(self, name: str) -> None:
        """See ``Dns.check``: a server must answer, with any answer."""
        await self.observe(name)

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: RecordClaim | None = None
    ) -> PersonMust | None:
        """The action that the person must take, until the name resolves to the desired addresses.

        A resolver's answers count down their time to live, so a shorter one than desired is fine; a longer one is not:
        clients would keep the address for longer than it serves them.
        """
        wanted, seen = record_of(addresses, ttl), await self.observe(name)
        if seen is not None and seen.addresses == wanted.addresses and seen.ttl <= wanted.ttl:
            return None
        return PersonMust(name=absolute(name), wanted=wanted, seen=seen)

    async def observe(self, name: str) -> DnsRecord | None:
        """The current answer for clients; its time to live is the remaining one."""
        full = absolute(name)
        failures: list[str] = []
        for server in self.servers:
            try:
                return await ask(server, full, timeout=self.timeout, recurse=True)
            except Unavailable as error:
                failures.append(f"{server}: {error.seen}")
        raise Unavailable(
            f"resolving {full}", ", ".join(failures) or "no server is configured", "check the DNS servers"
        )

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``: the person who edits the record knows its owner."""
        return Sighting(record=await self.observe(name), by_hand=True)

    async def remove(self, name: str, claim: RecordClaim | None = None) -> PersonMust | None:
        """The action that the person must take, until the name resolves to nothing."""
        seen = await self.observe(name)
        return None if seen is None else PersonMust(name=absolute(name), wanted=None, seen=seen)


def system_servers(configuration: Path = Path("/etc/resolv.conf")) -> tuple[DnsServer, ...]:
    """The configured servers of this machine's resolver; raises PreconditionFailed if there are none."""
    from dns import resolver as resolving  # see questions._by_tcp

    try:
        resolver = resolving.Resolver(str(configuration))
    except (dns.exception.DNSException, OSError) as error:
        seen = str(error) or type(error).__name__
        raise PreconditionFailed(
            f"reading {configuration}", seen, "name a DNS server in spec.endpoint.resolvers"
        ) from error
    return tuple(DnsServer(str(each), resolver.port) for each in resolver.nameservers)


@dataclass(frozen=True, slots=True)
class FixedAddress:
    """Clients keep ``address`` for good, so the load balancer there (the plane's front) stays for good.

    A migration moves the backends behind the front, never the address: the front's backends are the replicas that
    serve, at whichever site, and it is not taken down before the plane is. To give up the front's site, use a name, or
    move the address with your own network.
    """

    address: str

    async def check(self, name: str) -> None:
        """See ``Dns.check``: the address must be one."""
        record_of((self.address,), 0)

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: RecordClaim | None = None
    ) -> PersonMust | None:
        """Nothing, if the address itself is the target; raises PreconditionFailed for any other."""
        if record_of(addresses, 0) != await self.observe(name):
            raise PreconditionFailed(
                f"leading clients of {self.address} to {' '.join(addresses)}",
                "the endpoint is a fixed address, which cannot lead elsewhere",
                "keep the load balancer at that address in front, or give the endpoint a name",
            )
        return None

    async def observe(self, name: str) -> DnsRecord | None:
        """The address; clients never resolve it again, and never need to (time to live 0)."""
        return record_of((self.address,), 0)

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``: it is the plane's whatever a driver does, and clients resolve nothing."""
        return Sighting(record=await self.observe(name), by_hand=True, servers=0)

    async def remove(self, name: str, claim: RecordClaim | None = None) -> PersonMust | None:
        """Nothing: there is no record."""
        return None
