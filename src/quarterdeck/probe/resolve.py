"""Where a client connects to: each client has a resolver, and so a cache, of its own."""

from __future__ import annotations

import ipaddress
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import dns.exception
import dns.message
import dns.rcode
import dns.rdatatype

from quarterdeck.errors import Unavailable
from quarterdeck.probe.network import Network
from quarterdeck.probe.target import ProbeTarget

_DEADLINE = 2.0  # seconds per query
_NEXT = 0.5  # seconds after which the next server is asked, where there is one


class Resolver(Protocol):
    """Says which IP addresses the next connection may go to, in this order. Raises Unavailable."""

    async def resolve(self) -> tuple[str, ...]:
        """One at least."""
        ...


class FixedResolver:
    """Always the same address."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(self) -> tuple[str, ...]:
        """The address."""
        return (self._address,)


class DnsResolver:
    """Asks one server once (no retry); the next one where it gives no answer, and that one first from then on. Keeps
    the answer for its time to live.
    """

    def __init__(
        self, host: str, servers: Sequence[tuple[str, int]], now: Callable[[], float], network: Network
    ) -> None:
        self._host = host
        self._servers = deque(servers)
        self._now = now
        self._network = network
        self._addresses: tuple[str, ...] = ()
        self._until = float("-inf")

    async def resolve(self) -> tuple[str, ...]:
        """The name's A records, or else its AAAA records."""
        if self._now() >= self._until:
            for kind in (dns.rdatatype.A, dns.rdatatype.AAAA):
                if await self._ask(kind):
                    break
            else:
                raise Unavailable(f"resolving {self._host}", "the name has no address")
        return self._addresses

    async def _ask(self, kind: dns.rdatatype.RdataType) -> bool:
        for _ in range(len(self._servers) - 1):
            try:
                return await self._ask_first(kind, _NEXT)
            except Unavailable:
                self._servers.rotate(-1)
        return await self._ask_first(kind, _DEADLINE)

    async def _ask_first(self, kind: dns.rdatatype.RdataType, deadline: float) -> bool:
        doing = f"resolving {self._host}"
        asked = self._now()
        query = dns.message.make_query(self._host, kind)
        try:
            reply = await self._network.ask(query, self._servers[0], deadline)
        except TimeoutError as error:
            raise Unavailable(doing, f"no answer within {deadline:g} s") from error
        except (dns.exception.DNSException, OSError) as error:
            raise Unavailable(doing, str(error) or type(error).__name__) from error
        if reply.rcode() != dns.rcode.NOERROR:
            raise Unavailable(doing, dns.rcode.to_text(reply.rcode()))
        for rrset in reply.answer:
            if rrset.rdtype == kind:
                self._addresses = tuple(each.to_text() for each in rrset)
                self._until = asked + rrset.ttl
                return True
        return False


class SystemResolver:
    """Asks the host's own resolver for each connection: it keeps its own cache, and tells no time to live."""

    def __init__(self, host: str, network: Network) -> None:
        self._host = host
        self._network = network

    async def resolve(self) -> tuple[str, ...]:
        """All addresses."""
        try:
            return await self._network.lookup(self._host)
        except OSError as error:
            raise Unavailable(f"resolving {self._host}", error.strerror or str(error)) from error


class PinnedResolver:
    """Asks another resolver once, and never again."""

    def __init__(self, inner: Resolver) -> None:
        self._inner = inner
        self._addresses: tuple[str, ...] = ()

    async def resolve(self) -> tuple[str, ...]:
        """The addresses of the first success."""
        self._addresses = self._addresses or await self._inner.resolve()
        return self._addresses


def resolver_for(target: ProbeTarget, now: Callable[[], float], network: Network) -> Resolver:
    """A new resolver with an empty cache. ``now`` is in seconds."""
    if target.address is not None:
        return FixedResolver(target.address)
    try:
        return FixedResolver(str(ipaddress.ip_address(target.host)))
    except ValueError:
        pass
    if target.dns_servers:
        return DnsResolver(target.host, target.dns_servers, now, network)
    return SystemResolver(target.host, network)
