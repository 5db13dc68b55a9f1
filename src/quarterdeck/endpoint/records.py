"""Names and address records as all DNS drivers understand them, and how a server is asked for them."""

from __future__ import annotations

import asyncio
import ipaddress
from dataclasses import dataclass

import dns.asyncquery
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from quarterdeck.errors import InvalidInput, PreconditionFailed, Unavailable
from quarterdeck.model.endpoints import Record

#: The record types that lead to addresses.
ADDRESS_TYPES = (dns.rdatatype.A, dns.rdatatype.AAAA)

#: Seconds after which a question is asked again for the first time.
_FIRST_PATIENCE = 0.1

MAX_TTL = 2**31 - 1  # RFC 2181, section 8


@dataclass(frozen=True, slots=True)
class DnsServer:
    """Where a DNS server listens, for UDP and TCP."""

    ip: str
    port: int = 53

    def __str__(self) -> str:
        return f"{self.ip} port {self.port}"


def absolute(name: str) -> str:
    """``name`` in lower case with its last dot; raises InvalidInput for what is no DNS name."""
    try:
        parsed = dns.name.from_text(name.lower())
    except (dns.exception.DNSException, UnicodeError) as error:
        raise InvalidInput("reading a DNS name", f"{name!r}: {error}", "use labels of letters, digits and -") from error
    if parsed == dns.name.root:
        raise InvalidInput("reading a DNS name", f"{name!r} has no label", "give a name such as api.example.org")
    return parsed.to_text()


def record_of(addresses: tuple[str, ...], ttl: int) -> Record:
    """The record of these addresses, in one order whatever theirs; raises InvalidInput for what is none."""
    if not addresses:
        raise InvalidInput("making a DNS record", "it has no address", "remove the record instead")
    if not 0 <= ttl <= MAX_TTL:
        raise InvalidInput("making a DNS record", f"time to live of {ttl} s", f"use 0 to {MAX_TTL}")
    try:
        parsed = {ipaddress.ip_address(address) for address in addresses}
    except ValueError as error:
        raise InvalidInput("making a DNS record", str(error), "use IPv4 or IPv6 addresses") from error
    return Record(tuple(str(each) for each in sorted(parsed, key=lambda each: (each.version, int(each)))), ttl)


def text_of(record: Record, kind: dns.rdatatype.RdataType) -> tuple[str, ...]:
    """The addresses of ``record`` that go into records of type ``kind``."""
    version = 6 if kind is dns.rdatatype.AAAA else 4
    return tuple(each for each in record.addresses if ipaddress.ip_address(each).version == version)


def record_from(rrsets: list[dns.rrset.RRset]) -> Record | None:
    """The record that the address sets of one name make; the time to live is the longest of them."""
    found = [rrset for rrset in rrsets if rrset.rdtype in ADDRESS_TYPES and len(rrset) > 0]
    if not found:
        return None
    addresses = tuple(rdata.to_text() for rrset in found for rdata in rrset)
    return record_of(addresses, max(rrset.ttl for rrset in found))


async def ask(server: DnsServer, name: str, *, timeout: float = 2.0, recurse: bool = False) -> Record | None:
    """What ``server`` answers for ``name`` now; None when it says that there is no such record.

    Unless ``recurse``, only an authoritative answer counts, and an alias raises PreconditionFailed. Raises
    Unavailable for every other answer, and when none comes within ``timeout`` seconds (for each of the two
    record types; UDP, asked again ever more patiently, then TCP if cut short).
    """
    rrsets: list[dns.rrset.RRset] = []
    for kind in ADDRESS_TYPES:
        rrsets += await _ask_for(server, absolute(name), kind, timeout, recurse)
    return record_from(rrsets)


async def _exchange(server: DnsServer, query: dns.message.Message, timeout: float) -> dns.message.Message:
    """Send a question again and again: a datagram may be lost, or come before the server listens."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    patience = _FIRST_PATIENCE
    while True:
        left = deadline - loop.time()
        try:
            response, _ = await dns.asyncquery.udp_with_fallback(
                query, server.ip, port=server.port, timeout=min(patience, left)
            )
        except dns.exception.Timeout:
            if patience >= left:
                raise
            patience *= 2
        else:
            return response


async def _ask_for(
    server: DnsServer, name: str, kind: dns.rdatatype.RdataType, timeout: float, recurse: bool
) -> list[dns.rrset.RRset]:
    doing = f"asking DNS server {server} for {name}"
    query = dns.message.make_query(name, kind)
    if not recurse:
        query.flags &= ~dns.flags.RD
    try:
        response = await _exchange(server, query, timeout)
    except (dns.exception.DNSException, OSError) as error:
        raise Unavailable(doing, str(error) or type(error).__name__) from error
    if response.rcode() not in {dns.rcode.NOERROR, dns.rcode.NXDOMAIN}:
        raise Unavailable(doing, f"it answers {dns.rcode.to_text(response.rcode())}")
    if not recurse and not response.flags & dns.flags.AA:
        raise Unavailable(doing, "it answers without authority", "name the server that holds the zone")
    if not recurse and any(rrset.rdtype == dns.rdatatype.CNAME for rrset in response.answer):
        raise PreconditionFailed(doing, "the name is an alias (CNAME)", "delete the alias, or use another name")
    return [rrset for rrset in response.answer if rrset.rdtype == kind]
