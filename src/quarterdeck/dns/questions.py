"""One question to one DNS server: by UDP, asked again ever more patiently, then by TCP if the answer was cut short.

A plane's name is looked at several times a second, with the same questions and nearly always the same answers. So what
bytes mean is worked out once, and a question costs a socket and nothing else. Each has a socket of its own, since
whoever wants to answer in a server's place has to guess its port.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from dataclasses import dataclass
from functools import lru_cache

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

#: Seconds after which a question is asked again for the first time.
_FIRST_PATIENCE = 0.1
_LARGEST = 65_535


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered. ``answer`` may be shared: it is not to be changed."""

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
    """The answer for an absolute name; ``again``: the question is sent again while there is none. Raises DNSException,
    and OSError, of which TimeoutError is one.
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
    """A question for an absolute name as it is sent, with an id of its own."""
    return secrets.token_bytes(2) + _question(name, kind, recurse)


def read_reply(wire: bytes) -> Reply:
    """What an answer says, as it was sent. Raises DNSException."""
    return _read(wire[2:])


async def _answer(
    sock: socket.socket, query: bytes, asked: tuple[tuple[dns.name.Name, dns.rdatatype.RdataType], ...]
) -> Reply:
    """Send a question and wait for its answer. Datagrams that are none are passed over."""
    loop = asyncio.get_running_loop()
    try:
        sock.send(query)
        while True:
            data = await loop.sock_recv(sock, _LARGEST)
            if data[:2] == query[:2] and (reply := read_reply(data)).asked == asked:
                return reply
    except ConnectionRefusedError:
        # It does not listen yet, or not now: as with one that is silent, only its time is waited for.
        await loop.create_future()
        raise AssertionError("nobody ends this wait but its deadline") from None


async def _by_tcp(ip: str, port: int, query: bytes, timeout: float) -> Reply:
    from dns import asyncquery  # it brings a client for DNS over HTTPS along, which takes long to load

    response = await asyncquery.tcp(dns.message.from_wire(query), ip, port=port, timeout=timeout)
    return read_reply(response.to_wire())


@lru_cache(maxsize=1024)
def _question(name: str, kind: dns.rdatatype.RdataType, recurse: bool) -> bytes:
    """All of a question after its id."""
    query = dns.message.make_query(name, kind)
    if not recurse:
        query.flags &= ~dns.flags.RD
    return query.to_wire()[2:]


@lru_cache(maxsize=1024)
def _read(reply: bytes) -> Reply:
    """What an answer says, from all of it after its id. Raises DNSException."""
    message = dns.message.from_wire(b"\0\0" + reply, ignore_trailing=True, raise_on_truncation=False)
    return Reply(
        rcode=message.rcode(),
        authoritative=bool(message.flags & dns.flags.AA),
        truncated=bool(message.flags & dns.flags.TC),
        asked=tuple((each.name, each.rdtype) for each in message.question) if message.flags & dns.flags.QR else (),
        answer=tuple(message.answer),
    )
