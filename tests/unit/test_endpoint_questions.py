"""A question to a DNS server is asked again, and only its own answer is taken for one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import dns.flags
import dns.message
import dns.rdatatype
import dns.rrset
import pytest
from support.golden import Golden

from quarterdeck.dns import ask_server
from quarterdeck.endpoint.dns.records import DnsServer, ask, look_at_equals
from quarterdeck.errors import Unavailable
from quarterdeck.model.endpoints import DnsRecord

Answers = Callable[[dns.message.Message], list[bytes]]
NAME = "demo.test."


class _Server(asyncio.DatagramProtocol):
    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.asked: list[tuple[object, ...]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[object, ...]) -> None:
        self.asked.append(addr)
        for each in self.answers(dns.message.from_wire(data)):
            self.transport.sendto(each, addr)


@asynccontextmanager
async def serving(answers: Answers, port: int = 0) -> AsyncIterator[tuple[_Server, int]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: _Server(answers), ("127.0.0.1", port))
    try:
        yield server, transport.get_extra_info("sockname")[1]
    finally:
        transport.close()


def answer(query: dns.message.Message, address: str = "192.0.2.1", *, flags: int = dns.flags.AA) -> dns.message.Message:
    made = dns.message.make_response(query)
    made.flags |= flags
    if query.question[0].rdtype is dns.rdatatype.A:
        made.answer.append(dns.rrset.from_text(NAME, 5, "IN", "A", address))
    return made


async def test_what_is_asked_again_and_again_is_answered_as_it_is_each_time() -> None:
    addresses = iter(["192.0.2.1", "192.0.2.1", "192.0.2.2"])

    def change(query: dns.message.Message) -> list[bytes]:
        of = next(addresses) if query.question[0].rdtype is dns.rdatatype.A else ""
        return [answer(query, of).to_wire()]

    async with serving(change) as (server, port):
        seen = [await ask(DnsServer("127.0.0.1", port), NAME) for _ in range(3)]
    assert seen == [DnsRecord((each,), 5) for each in ("192.0.2.1", "192.0.2.1", "192.0.2.2")]
    assert len(set(server.asked)) == len(server.asked) == 6, "each question has a port of its own"


async def test_only_the_answer_to_the_question_is_one() -> None:
    def many(query: dns.message.Message) -> list[bytes]:
        other_id, other_name = dns.message.make_query(NAME, "A"), dns.message.make_query("other.test.", "A")
        other_name.id = query.id
        strangers = [answer(other_id, "192.0.2.66"), answer(other_name, "192.0.2.67")]
        return [query.to_wire(), *(each.to_wire() for each in strangers), answer(query).to_wire()]

    async with serving(many) as (_, port):
        assert await ask(DnsServer("127.0.0.1", port), NAME) == DnsRecord(("192.0.2.1",), 5)


async def test_a_question_that_was_lost_is_asked_again() -> None:
    lost: list[dns.message.Message] = []

    def forgetful(query: dns.message.Message) -> list[bytes]:
        if not lost:
            lost.append(query)
            return []
        return [answer(query).to_wire()]

    async with serving(forgetful) as (_, port):
        assert await ask(DnsServer("127.0.0.1", port), NAME) == DnsRecord(("192.0.2.1",), 5)
    assert lost


async def test_a_server_that_comes_while_it_is_asked_is_heard_and_one_that_never_does_is_not_known(
    golden: Golden,
) -> None:
    async with serving(lambda query: [answer(query).to_wire()]) as (_, port):
        pass
    with golden.raises(Unavailable):
        await ask(DnsServer("127.0.0.1", port), NAME, timeout=0.3)
    asked = asyncio.ensure_future(ask(DnsServer("127.0.0.1", port), NAME))
    await asyncio.sleep(0.05)
    async with serving(lambda query: [answer(query).to_wire()], port):
        assert await asked == DnsRecord(("192.0.2.1",), 5)


@asynccontextmanager
async def answering(addresses: dict[str, str]) -> AsyncIterator[DnsServer]:
    """A DNS server by which these names have an address."""

    def reply(query: dns.message.Message) -> list[bytes]:
        asked = query.question[0]
        made = dns.message.make_response(query)
        made.flags |= dns.flags.AA
        if asked.rdtype is dns.rdatatype.A and (found := addresses.get(asked.name.to_text())):
            made.answer.append(dns.rrset.from_text(asked.name, 5, "IN", "A", found))
        return [made.to_wire()]

    async with serving(reply) as (_, port):
        yield DnsServer("127.0.0.1", port)


async def test_of_servers_that_pass_nothing_on_the_first_that_answers_counts_and_others_are_told_of(
    golden: Golden,
) -> None:
    async with answering({}) as gone:
        pass
    async with answering({NAME: "192.0.2.1"}) as one, answering({NAME: "192.0.2.2"}) as two, answering({}) as none:
        alike = await look_at_equals((one, one), NAME)
        assert (alike.record, alike.torn, alike.uneven, alike.servers) == (DnsRecord(("192.0.2.1",), 5), "", False, 2)
        differ = await look_at_equals((one, two, none), NAME)
        assert (differ.record, differ.others) == (DnsRecord(("192.0.2.1",), 5), (DnsRecord(("192.0.2.2",), 5), None))
        assert (differ.uneven, differ.servers) == (True, 2), "who knows no address leads nobody"
        golden(differ.torn)
        lost = await look_at_equals((gone, two), NAME)
        assert (lost.record, lost.uneven, lost.servers) == (DnsRecord(("192.0.2.2",), 5), False, 1)
        golden(lost.torn)
    with pytest.raises(Unavailable):
        await look_at_equals((gone,), NAME)


async def test_a_long_answer_is_fetched_by_tcp() -> None:
    async def by_tcp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(2), "big")
        wire = answer(dns.message.from_wire(await reader.readexactly(size)), "192.0.2.3").to_wire()
        writer.write(len(wire).to_bytes(2, "big") + wire)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    def short(query: dns.message.Message) -> list[bytes]:
        cut = dns.message.make_response(query)
        cut.flags |= dns.flags.TC
        return [cut.to_wire()]

    async with await asyncio.start_server(by_tcp, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with serving(short, port):
            reply = await ask_server("127.0.0.1", port, NAME, dns.rdatatype.A, timeout=2.0, recurse=False)
    assert [str(rrset[0]) for rrset in reply.answer] == ["192.0.2.3"]
