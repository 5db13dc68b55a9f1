"""DNS queries: one query to one server, and addresses of names, cached for their time to live.

A query goes over UDP, is repeated with growing timeouts, and then goes over TCP if the answer was truncated.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset
from dns.rdatatype import RdataType

from quarterdeck.errors import Unavailable

Server = tuple[str, int]


class Ask(Protocol):
    """Queries a server (IP address and port)."""

    async def __call__(self, server: Server, name: str, kind: RdataType, deadline: float) -> Reply:
        """The answer. Raises TimeoutError after ``deadline`` seconds, OSError, DNSException."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    addresses: tuple[str, ...]
    until: float


class Addresses:
    """Queries ``servers`` for records of ``kinds``, and takes the first kind with any records. Where a server does not
    answer within ``next_after`` seconds, the next one is queried, and is first from then on; the last one has
    ``deadline`` seconds. Negative answers are not cached. ``now``: seconds.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        ask: Ask,
        now: Callable[[], float],
        kinds: Sequence[RdataType],
        next_after: float,
        deadline: float,
    ) -> None:
        self._servers = deque(servers)
        self._ask = ask
        self._now = now
        self._kinds = kinds
        self._next_after = next_after
        self._deadline = deadline
        self._kept: dict[str, _Kept] = {}

    async def addresses(self, name: str) -> tuple[str, ...]:
        """The current addresses of a name, at least one. Raises Unavailable."""
        kept = self._kept.get(name)
        if kept is not None and self._now() < kept.until:
            return kept.addresses
        for kind in self._kinds:
            asked = self._now()
            found = _of_kind(await self._answer(name, kind), kind)
            if found is not None:
                addresses, ttl = found
                self._keep(name, _Kept(addresses, asked + ttl))
                return addresses
        raise Unavailable(f"resolving {name}", "the name has no address")

    def _keep(self, name: str, found: _Kept) -> None:
        now = self._now()
        self._kept = {each: kept for each, kept in self._kept.items() if now < kept.until}
        self._kept[name] = found

    async def _answer(self, name: str, kind: RdataType) -> Reply:
        for _ in range(len(self._servers) - 1):
            try:
                return await self._answer_of_first(name, kind, self._next_after)
            except Unavailable:
                self._servers.rotate(-1)
        return await self._answer_of_first(name, kind, self._deadline)

    async def _answer_of_first(self, name: str, kind: RdataType, deadline: float) -> Reply:
        doing = f"resolving {name}"
        try:
            reply = await self._ask(self._servers[0], name, kind, deadline)
        except TimeoutError as error:
            raise Unavailable(doing, f"no answer within {deadline:g} s") from error
        except (dns.exception.DNSException, OSError) as error:
            raise Unavailable(doing, str(error) or type(error).__name__) from error
        if reply.rcode != dns.rcode.NOERROR:
            raise Unavailable(doing, dns.rcode.to_text(reply.rcode))
        return reply


def _of_kind(reply: Reply, kind: RdataType) -> tuple[tuple[str, ...], int] | None:
    """The addresses of an answer and their time to live, in seconds; None if it has none of that kind."""
    rrset = next((each for each in reply.answer if each.rdtype == kind), None)
    return (tuple(each.to_text() for each in rrset), rrset.ttl) if rrset is not None else None


#: Seconds after which a query is repeated for the first time.
_FIRST_PATIENCE = 0.1
_LARGEST = 65_535


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a server. ``answer`` may be shared: do not change it."""

    rcode: dns.rcode.Rcode
    authoritative: bool
    truncated: bool
    asked: tuple[tuple[dns.name.Name, dns.rdatatype.RdataType], ...]
    answer: tuple[dns.rrset.RRset, ...]


async def ask_server(
    ip: str,
    port: int,
    name: str,
    kind: dns.rdatatype.RdataType,
    *,
    timeout: float,
    recurse: bool = True,
    again: bool = True,
) -> Reply:
    """The answer for an absolute name; ``again``: the query is repeated until there is an answer. Raises DNSException,
    and OSError, of which TimeoutError is a subclass.
    """
    query = new_query(name, kind, recurse=recurse)
    asked = ((dns.name.from_text(name), kind),)
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout
    with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.connect((ip, port))
        patience = _FIRST_PATIENCE if again else timeout
        while True:
            left = until - loop.time()
            try:
                async with asyncio.timeout(min(patience, left)):
                    reply = await _answer(sock, query, asked)
                break
            except TimeoutError:
                if patience >= left:
                    raise TimeoutError(f"no answer within {timeout:g} s") from None
                patience *= 2
    if reply.truncated:
        return await _by_tcp(ip, port, query, max(0.1, until - loop.time()))
    return reply


def new_query(name: str, kind: dns.rdatatype.RdataType, *, recurse: bool = True) -> bytes:
    """A query for an absolute name in wire format, with a random id."""
    return secrets.token_bytes(2) + _question(name, kind, recurse)


def read_reply(wire: bytes) -> Reply:
    """Parse an answer in wire format. Raises DNSException."""
    return _read(wire[2:])


async def _answer(
    sock: socket.socket, query: bytes, asked: tuple[tuple[dns.name.Name, dns.rdatatype.RdataType], ...]
) -> Reply:
    """Send a query and wait for its answer. Other datagrams are ignored."""
    loop = asyncio.get_running_loop()
    try:
        sock.send(query)
        while True:
            data = await loop.sock_recv(sock, _LARGEST)
            if data[:2] == query[:2] and (reply := read_reply(data)).asked == asked:
                return reply
    except ConnectionRefusedError:
        # The server does not listen now: as with a silent one, wait for the deadline.
        await loop.create_future()
        raise AssertionError("only the deadline ends this wait") from None


async def _by_tcp(ip: str, port: int, query: bytes, timeout: float) -> Reply:
    from dns import asyncquery  # it imports a client for DNS over HTTPS, which takes long to load

    response = await asyncquery.tcp(dns.message.from_wire(query), ip, port=port, timeout=timeout)
    return read_reply(response.to_wire())


@lru_cache(maxsize=1024)
def _question(name: str, kind: dns.rdatatype.RdataType, recurse: bool) -> bytes:
    """A query without its id."""
    query = dns.message.make_query(name, kind)
    if not recurse:
        query.flags &= ~dns.flags.RD
    return query.to_wire()[2:]


@lru_cache(maxsize=1024)
def _read(reply: bytes) -> Reply:
    """Parse an answer without its id. Raises DNSException."""
    message = dns.message.from_wire(b"\0\0" + reply, ignore_trailing=True, raise_on_truncation=False)
    return Reply(
        rcode=message.rcode(),
        authoritative=bool(message.flags & dns.flags.AA),
        truncated=bool(message.flags & dns.flags.TC),
        asked=tuple((each.name, each.rdtype) for each in message.question) if message.flags & dns.flags.QR else (),
        answer=tuple(message.answer),
    )
