"""Where the probe's clients are: what makes their connections, and asks DNS servers for them."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

from dns.rdatatype import RdataType
from typing_extensions import override

from quarterdeck import happy_eyeballs
from quarterdeck.dns import Reply, ask_server


class Network(Protocol):
    """A place in the network. All of it raises SourceLost when that place is lost."""

    async def connect(self, address: str, port: int) -> socket.socket:
        """A connection to an IP address; it does not block. Raises OSError, PreconditionFailed where it may not."""
        ...

    async def ask(self, server: tuple[str, int], name: str, kind: RdataType, deadline: float) -> Reply:
        """See ``dns.Ask``."""
        ...

    async def lookup(self, host: str) -> tuple[str, ...]:
        """The IP addresses of a name as the resolver there has them. Raises OSError."""
        ...

    async def confirm(self, since: float) -> None:
        """Returns if this place has been there all the time since then (by the loop's clock), and is there now: what
        has failed meanwhile has failed for every client there. Raises SourceLost otherwise.
        """
        ...

    def lag(self) -> float:
        """Seconds for which this place kept its clients waiting, at worst since this was last asked."""
        ...


class Direct(Network):
    """This host."""

    @override
    async def connect(self, address: str, port: int) -> socket.socket:
        return await happy_eyeballs.connect(address, port)

    @override
    async def ask(self, server: tuple[str, int], name: str, kind: RdataType, deadline: float) -> Reply:
        """See ``Network``: once, since a client of the plane may not ask again either."""
        return await ask_server(*server, name, kind, timeout=deadline, again=False)

    @override
    async def lookup(self, host: str) -> tuple[str, ...]:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return tuple(str(each[4][0]) for each in found)

    @override
    async def confirm(self, since: float) -> None:
        """See ``Network``: it is where the probe itself is."""

    @override
    def lag(self) -> float:
        return 0.0
