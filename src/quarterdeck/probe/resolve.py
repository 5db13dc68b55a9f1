"""Where a client connects to: each client has a resolver, and so a cache, of its own."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import Protocol

import dns.asyncquery
import dns.exception
import dns.message
import dns.rcode
import dns.rdatatype

from quarterdeck.errors import Unavailable
from quarterdeck.probe.target import ProbeTarget

_DEADLINE = 2.0  # seconds per query


class Resolver(Protocol):
    """Says which IP address the next connection goes to. Raises Unavailable."""

    async def resolve(self) -> str:
        """An IP address."""
        ...


class FixedResolver:
    """Always the same address."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(self) -> str:
        """The address."""
        return self._address


class DnsResolver:
    """Asks one server over UDP, once (no retry), and keeps the answer for its time to live."""

    def __init__(self, host: str, server: tuple[str, int], now: Callable[[], float]) -> None:
        self._host = host
        self._server = server
        self._now = now
        self._address = ""
        self._until = float("-inf")

    async def resolve(self) -> str:
        """The first address of the name's A records, or else of its AAAA records."""
        if self._now() >= self._until:
            for kind in (dns.rdatatype.A, dns.rdatatype.AAAA):
                if await self._ask(kind):
                    break
            else:
                raise Unavailable(f"resolving {self._host}", "the name has no address")
        return self._address

    async def _ask(self, kind: dns.rdatatype.RdataType) -> bool:
        doing = f"resolving {self._host}"
        asked = self._now()
        query = dns.message.make_query(self._host, kind)
        try:
            reply = await dns.asyncquery.udp(query, self._server[0], _DEADLINE, self._server[1])
        except dns.exception.Timeout as error:
            raise Unavailable(doing, f"no answer within {_DEADLINE:g} s") from error
        except (dns.exception.DNSException, OSError) as error:
            raise Unavailable(doing, str(error) or type(error).__name__) from error
        if reply.rcode() != dns.rcode.NOERROR:
            raise Unavailable(doing, dns.rcode.to_text(reply.rcode()))
        for rrset in reply.answer:
            if rrset.rdtype == kind:
                self._address = next(iter(rrset)).to_text()
                self._until = asked + rrset.ttl
                return True
        return False


class SystemResolver:
    """Asks this host's resolver for each connection: it keeps its own cache, and tells no time to live."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port

    async def resolve(self) -> str:
        """The first address."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Unavailable(f"resolving {self._host}", error.strerror or str(error)) from error
        return str(found[0][4][0])


class PinnedResolver:
    """Asks another resolver once, and never again."""

    def __init__(self, inner: Resolver) -> None:
        self._inner = inner
        self._address = ""

    async def resolve(self) -> str:
        """The address of the first success."""
        self._address = self._address or await self._inner.resolve()
        return self._address


def resolver_for(target: ProbeTarget, now: Callable[[], float]) -> Resolver:
    """A new resolver with an empty cache. ``now`` is in seconds."""
    if target.address is not None:
        return FixedResolver(target.address)
    try:
        return FixedResolver(str(ipaddress.ip_address(target.host)))
    except ValueError:
        pass
    if target.dns_server is not None:
        return DnsResolver(target.host, target.dns_server, now)
    return SystemResolver(target.host, target.port)
