"""The addresses of a client's connections: each client has a resolver of its own, and so a cache of its own."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from typing import Protocol

from dns.rdatatype import RdataType

from quarterdeck.dns import Addresses
from quarterdeck.errors import Unavailable
from quarterdeck.probe.network import Network
from quarterdeck.probe.target import ProbeTarget

_DEADLINE = 2.0  # seconds per query
_NEXT = 0.5  # seconds after which the next server is queried, where there is one


class ClientResolver(Protocol):
    """Returns the IP addresses for the next connection, in this order. Raises Unavailable."""

    async def resolve(self) -> tuple[str, ...]:
        """One address at least."""
        ...


class FixedResolver:
    """Always the same address."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(self) -> tuple[str, ...]:
        """The address."""
        return (self._address,)


class DnsResolver:
    """Queries DNS servers, as ``Addresses`` does, and caches their answers for their time to live."""

    def __init__(
        self, host: str, servers: Sequence[tuple[str, int]], now: Callable[[], float], network: Network
    ) -> None:
        self._host = host
        self._addresses = Addresses(
            servers, ask=network.ask, now=now, kinds=(RdataType.A, RdataType.AAAA), next_after=_NEXT, deadline=_DEADLINE
        )

    async def resolve(self) -> tuple[str, ...]:
        """The name's A records, or else its AAAA records."""
        return await self._addresses.addresses(self._host)


class SystemResolver:
    """Queries the host's own resolver for each connection: it keeps its own cache, and reports no time to live."""

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
    """Queries another resolver once, and never again."""

    def __init__(self, inner: ClientResolver) -> None:
        self._inner = inner
        self._addresses: tuple[str, ...] = ()

    async def resolve(self) -> tuple[str, ...]:
        """The addresses of the first success."""
        self._addresses = self._addresses or await self._inner.resolve()
        return self._addresses


def resolver_for(target: ProbeTarget, now: Callable[[], float], network: Network) -> ClientResolver:
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
