"""Names and address records of all DNS drivers, and queries of servers."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache

import dns.exception
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset
from typing_extensions import override

from quarterdeck.dns import ask_server
from quarterdeck.endpoint.dns.claims import claim_name, ownership_of
from quarterdeck.errors import InvalidInput, PreconditionFailed, TimedOut, Unavailable
from quarterdeck.model.endpoints import DnsRecord, Ownership, Sighting

#: The record types that lead to addresses.
ADDRESS_TYPES = (dns.rdatatype.A, dns.rdatatype.AAAA)

MAX_TTL = 2**31 - 1  # RFC 2181, section 8


@dataclass(frozen=True, slots=True)
class DnsServer:
    """Where a DNS server listens, for UDP and TCP."""

    ip: str
    port: int = 53

    @override
    def __str__(self) -> str:
        return f"{self.ip} port {self.port}"


@lru_cache(maxsize=1024)
def absolute(name: str) -> str:
    """``name`` in lower case with its last dot; raises InvalidInput for an invalid DNS name."""
    try:
        parsed = dns.name.from_text(name.lower())
    except (dns.exception.DNSException, UnicodeError) as error:
        raise InvalidInput("reading a DNS name", f"{name!r}: {error}", "use labels of letters, digits and -") from error
    if parsed == dns.name.root:
        raise InvalidInput("reading a DNS name", f"{name!r} has no label", "give a name such as api.example.org")
    return parsed.to_text()


def record_of(addresses: tuple[str, ...], ttl: int) -> DnsRecord:
    """The record of these addresses, in one order whatever theirs; raises InvalidInput for an invalid one."""
    if not addresses:
        raise InvalidInput("making a DNS record", "it has no address", "remove the record instead")
    if not 0 <= ttl <= MAX_TTL:
        raise InvalidInput("making a DNS record", f"time to live of {ttl} s", f"use 0 to {MAX_TTL}")
    try:
        parsed = {ipaddress.ip_address(address) for address in addresses}
    except ValueError as error:
        raise InvalidInput("making a DNS record", str(error), "use IPv4 or IPv6 addresses") from error
    return DnsRecord(tuple(str(each) for each in sorted(parsed, key=lambda each: (each.version, int(each)))), ttl)


def text_of(record: DnsRecord, kind: dns.rdatatype.RdataType) -> tuple[str, ...]:
    """The addresses of ``record`` that go into records of type ``kind``."""
    version = 6 if kind is dns.rdatatype.AAAA else 4
    return tuple(each for each in record.addresses if ipaddress.ip_address(each).version == version)


def record_from(rrsets: list[dns.rrset.RRset]) -> DnsRecord | None:
    """The record of one name's address sets; the time to live is the longest of them."""
    found = [rrset for rrset in rrsets if rrset.rdtype in ADDRESS_TYPES and len(rrset) > 0]
    if not found:
        return None
    addresses = tuple(rdata.to_text() for rrset in found for rdata in rrset)
    return record_of(addresses, max(rrset.ttl for rrset in found))


async def ask(server: DnsServer, name: str, *, timeout: float = 2.0, recurse: bool = False) -> DnsRecord | None:
    """The answer of ``server`` for ``name``; None when there is no such record.

    Unless ``recurse``, only an authoritative answer counts, and an alias raises PreconditionFailed. Raises Unavailable
    for every other answer, and when none comes within ``timeout`` seconds (for each of the two record types; UDP,
    repeated with growing timeouts, then TCP if truncated).
    """
    rrsets: list[dns.rrset.RRset] = []
    for kind in ADDRESS_TYPES:
        rrsets += await _ask_for(server, absolute(name), kind, timeout, recurse)
    return record_from(rrsets)


async def ask_claim(server: DnsServer, name: str, *, timeout: float = 2.0) -> Ownership | None:
    """The owner of ``name``, as ``server`` answers now (None: unclaimed). Raises as ``ask`` does."""
    found = await _ask_for(server, claim_name(absolute(name)), dns.rdatatype.TXT, timeout, recurse=False)
    return ownership_of([b"".join(rdata.strings).decode(errors="replace") for rrset in found for rdata in rrset])


async def look(server: DnsServer, name: str, others: tuple[DnsServer, ...] = ()) -> Sighting:
    """The answer of ``server`` for ``name``, and the differences of ``others``. Raises as ``ask`` does, but one of the
    others that does not answer is reported as a difference: it may serve clients an old answer.
    """
    (record, ownership), answers = await asyncio.gather(
        asyncio.gather(ask(server, name), ask_claim(server, name)),
        asyncio.gather(*(_ask_other(each, name) for each in others)),
    )
    differ: list[DnsRecord | None] = []
    torn: list[str] = []
    answering = 1
    for each, answer in zip(others, answers, strict=True):
        if isinstance(answer, Unavailable):
            torn.append(f"DNS server {each} gives no answer ({answer.seen})")
            continue
        answering += 1
        if answer != record:
            torn.append(f"DNS server {each} has another answer ({_shown(answer)})")
            differ.append(answer)
    return Sighting(record=record, ownership=ownership, others=tuple(differ), torn="; ".join(torn), servers=answering)


async def look_at_equals(servers: tuple[DnsServer, ...], name: str) -> Sighting:
    """The answers for ``name`` of servers that all get every record, and do not replicate. The first answer counts, and
    differences or silence of the others are reported. Raises Unavailable when none answers.
    """
    answers = await asyncio.gather(*(_ask_equal(each, name) for each in servers))
    each = tuple(zip(servers, answers, strict=True))
    known = [(server, answer) for server, answer in each if isinstance(answer, tuple)]
    silent = [(server, answer) for server, answer in each if isinstance(answer, Unavailable)]
    if not known:
        raise silent[0][1]
    record, ownership = known[0][1]
    differ = [(server, answer) for server, answer in known if answer != (record, ownership)]
    torn = [f"DNS server {server} gives no answer ({error.seen})" for server, error in silent]
    torn += [f"DNS server {server} has another answer ({_shown(answer)})" for server, (answer, _) in differ]
    return Sighting(
        record=record,
        ownership=ownership,
        others=tuple(answer for _, (answer, _) in differ if answer != record),
        torn="; ".join(torn),
        uneven=bool(differ),
        servers=sum(record is None or answer is not None for _, (answer, _) in known),
    )


async def _ask_equal(server: DnsServer, name: str) -> tuple[DnsRecord | None, Ownership | None] | Unavailable:
    try:
        record, ownership = await asyncio.gather(ask(server, name), ask_claim(server, name))
    except Unavailable as error:
        return error
    return record, ownership


def _shown(record: DnsRecord | None) -> str:
    return "no record" if record is None else f"{' '.join(record.addresses)} (ttl {record.ttl} s)"


async def _ask_other(server: DnsServer, name: str) -> DnsRecord | Unavailable | None:
    try:
        return await ask(server, name, timeout=1.0)
    except Unavailable as error:
        return error


async def name_servers(server: DnsServer, zone: str) -> tuple[DnsServer, ...]:
    """The other authoritative servers of ``zone``, as ``server`` names them (NS), each at one address and port 53.

    Raises Unavailable when the address of one cannot be found.
    """
    found = await _ask_for(server, absolute(zone), dns.rdatatype.NS, 2.0, recurse=False)
    names = sorted(rdata.target.to_text() for rrset in found for rdata in rrset)
    addresses = await asyncio.gather(*(_address_of(server, zone, name) for name in names))
    return tuple(sorted({DnsServer(each) for each in addresses} - {server}, key=str))


async def _address_of(server: DnsServer, zone: str, name: str) -> str:
    if dns.name.from_text(name).is_subdomain(dns.name.from_text(zone)):
        record = await ask(server, name)
        if record is not None:
            return record.addresses[0]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, 53, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise Unavailable(
            f"resolving {name}, a DNS server of zone {zone}",
            str(error.strerror),
            "make this host resolve it, or name the servers in spec.endpoint.rfc2136.secondaries",
        ) from error
    return str(found[0][4][0])


async def _ask_for(
    server: DnsServer, name: str, kind: dns.rdatatype.RdataType, timeout: float, recurse: bool
) -> list[dns.rrset.RRset]:
    doing = f"querying DNS server {server} for {name}"
    try:
        reply = await ask_server(server.ip, server.port, name, kind, timeout=timeout, recurse=recurse)
    except (dns.exception.DNSException, OSError) as error:
        raise Unavailable(doing, str(error) or type(error).__name__) from error
    if reply.rcode not in {dns.rcode.NOERROR, dns.rcode.NXDOMAIN}:
        raise Unavailable(doing, f"it answers {dns.rcode.to_text(reply.rcode)}")
    if not recurse and not reply.authoritative:
        raise Unavailable(doing, "it answers without authority", "name the server that holds the zone")
    if not recurse and any(rrset.rdtype == dns.rdatatype.CNAME for rrset in reply.answer):
        raise PreconditionFailed(doing, "the name is an alias (CNAME)", "delete the alias, or use another name")
    return [rrset for rrset in reply.answer if rrset.rdtype == kind]


# Waiting until DNS servers have the new records.

_PAUSE = 0.02  # seconds between two queries


async def until_answer(
    look: Callable[[], Awaitable[Sighting]],
    what: str,
    wanted: DnsRecord | None,
    owner: Ownership | None,
    *,
    patience: float,
    why: Callable[[], Awaitable[str]] | None = None,
) -> None:
    """Return when every server answers with ``wanted`` (None: no record), and the claim on it is that of ``owner``.

    ``what`` describes the wait; ``why`` tells which of the servers does not run, and why ("": all run). Raises TimedOut
    with the last answer after ``patience`` seconds.
    """
    seen = "no answer"
    try:
        async with asyncio.timeout(patience):
            while True:
                try:
                    sighting = await look()
                except Unavailable as error:  # it may be just starting
                    seen = error.seen
                else:
                    record = sighting.record
                    if record == wanted and sighting.ownership == owner and not sighting.torn:
                        return
                    shown = "no record" if record is None else f"{' '.join(record.addresses)} (ttl {record.ttl} s)"
                    seen = sighting.torn if record == wanted and sighting.torn else shown
                await asyncio.sleep(_PAUSE)
    except TimeoutError as error:
        seen = (await why() if why is not None else "") or seen
        raise TimedOut(f"waiting for {what}", f"{seen} after {patience:g} s", "check the server's log") from error
