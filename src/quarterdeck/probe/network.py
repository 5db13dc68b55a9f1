"""The network of the probe's clients: it makes their connections, and queries DNS servers for them."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

from dns.rdatatype import RdataType
from typing_extensions import override

from quarterdeck import happy_eyeballs
from quarterdeck.dns import Reply, ask_server


class Network(Protocol):
    """A place in the network. All calls raise SourceLost when that place is lost."""

    async def connect(self, address: str, port: int) -> socket.socket:
        """A connection to an IP address; it does not block. Raises OSError, PreconditionFailed where it is
        not allowed.
        """
        ...

    async def ask(self, server: tuple[str, int], name: str, kind: RdataType, deadline: float) -> Reply:
        """See ``dns.Ask``."""
        ...

    async def lookup(self, host: str) -> tuple[str, ...]:
        """The IP addresses of a name from the resolver of that place. Raises OSError."""
        ...

    async def confirm(self, since: float) -> None:
        """Returns if this place has been reachable all the time since then (by the loop's clock), and is so now:
        failures since then are failures for every client there. Raises SourceLost otherwise.
        """
        ...

    def lag(self) -> float:
        """Longest delay in seconds that this place caused to its clients, since the last call."""
        ...


class Direct(Network):
    """This host."""

    @override
    async def connect(self, address: str, port: int) -> socket.socket:
        return await happy_eyeballs.connect(address, port)

    @override
    async def ask(self, server: tuple[str, int], name: str, kind: RdataType, deadline: float) -> Reply:
        """See ``Network``: once, since a client of the plane may not repeat a query either."""
        return await ask_server(*server, name, kind, timeout=deadline, again=False)

    @override
    async def lookup(self, host: str) -> tuple[str, ...]:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return tuple(str(each[4][0]) for each in found)

    @override
    async def confirm(self, since: float) -> None:
        """See ``Network``: the probe itself runs here."""

    @override
    def lag(self) -> float:
        return 0.0
