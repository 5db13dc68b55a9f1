"""The door as its clients see it: real sockets on the loopback, a name server of the test's own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import dns.message
import dns.rcode
import dns.rrset
import pytest

from quarterdeck.endpoint.door import DnsNames, Door, main, split_address
from quarterdeck.errors import InvalidInput, Unavailable

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class NameServer(asyncio.DatagramProtocol):
    """Answers every name with ``address`` and ``ttl``; counts the questions."""

    def __init__(self, address: str, ttl: int) -> None:
        self.address, self.ttl, self.asked = address, ttl, 0
        self.closed = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        response = dns.message.make_response(query)
        name = query.question[0].name
        self.asked += 1
        if self.address:
            response.answer.append(dns.rrset.from_text(name, self.ttl, "IN", "A", self.address))
        else:
            response.set_rcode(dns.rcode.NXDOMAIN)
        self.transport.sendto(response.to_wire(), addr)


@asynccontextmanager
async def name_server(address: str, ttl: int) -> AsyncIterator[tuple[NameServer, DnsNames]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(
        lambda: NameServer(address, ttl), local_addr=("127.0.0.1", 0)
    )
    try:
        yield server, DnsNames(transport.get_extra_info("sockname"))
    finally:
        transport.close()
        await server.closed.wait()


class FixedNames:
    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses

    async def addresses(self, name: str) -> Sequence[str]:
        if not self._addresses:
            raise Unavailable(f"resolving {name}", "there is no such name")
        return self._addresses


@asynccontextmanager
async def door(*addresses: str) -> AsyncIterator[int]:
    """The port of an open door, behind which all names have these addresses; nothing is left of it in the end."""
    before = asyncio.all_tasks()
    listener = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(Door(FixedNames(*addresses)).serve(listener))
    try:
        yield listener.getsockname()[1]
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        listener.close()
    assert asyncio.all_tasks() == before


@asynccontextmanager
async def far_end() -> AsyncIterator[tuple[int, asyncio.Queue[Streams]]]:
    """A server's port, and the connections that come to it."""
    came: asyncio.Queue[Streams] = asyncio.Queue()
    server = await asyncio.start_server(lambda *streams: came.put_nowait(streams), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], came
    finally:
        server.close()
        await server.wait_closed()


async def through(door_port: int, target: str, more: bytes = b"") -> Streams:
    """Ask the door for a target; returns behind its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", door_port)
    writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode() + more)
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200"), answer
    return reader, writer


async def closed(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        writer.transport.abort()
    await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


async def answer_to(request: bytes, *addresses: str) -> bytes:
    async with door(*addresses) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await reader.read()
        await closed(writer)
        return answer


async def test_bytes_go_both_ways_also_those_sent_along_with_the_request() -> None:
    async with far_end() as (port, came), door("127.0.0.1") as door_port:
        reader, writer = await through(door_port, f"api.example:{port}", b"early ")
        far_reader, far_writer = await came.get()
        writer.write(b"late")
        assert await far_reader.readexactly(10) == b"early late"
        far_writer.write(b"answer")
        assert await reader.readexactly(6) == b"answer"
        await closed(writer, far_writer)


async def test_the_end_of_one_way_leaves_the_other_open() -> None:
    async with far_end() as (port, came), door("127.0.0.1") as door_port:
        reader, writer = await through(door_port, f"api.example:{port}", b"question")
        far_reader, far_writer = await came.get()
        writer.write_eof()
        assert await far_reader.read() == b"question"
        far_writer.write(b"answer after the end")
        far_writer.close()
        assert await reader.read() == b"answer after the end"
        await closed(writer)


async def test_a_connection_that_breaks_at_one_end_ends_at_the_other() -> None:
    async with far_end() as (port, came), door("127.0.0.1") as door_port:
        for broken in ("near", "far"):
            near, far = await through(door_port, f"api.example:{port}"), await came.get()
            one, other = (near, far) if broken == "near" else (far, near)
            one[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            one[1].transport.abort()
            with pytest.raises(ConnectionResetError):
                await asyncio.wait_for(other[0].readexactly(1), 5)
            await closed(near[1], far[1])


async def test_a_slow_reader_slows_the_writer_and_gets_everything() -> None:
    size = 128 << 20
    async with far_end() as (port, came), door("127.0.0.1") as door_port:
        _reader, writer = await through(door_port, f"api.example:{port}")
        far_reader, far_writer = await came.get()

        async def send() -> None:
            for _ in range(size >> 20):
                writer.write(bytes(1 << 20))
                await writer.drain()
            writer.write_eof()

        sending = asyncio.create_task(send())
        _done, waiting = await asyncio.wait([sending], timeout=1.0)
        assert waiting, "128 MiB went into a connection that nobody reads"
        taken = 0
        while piece := await far_reader.read(1 << 20):
            taken += len(piece)
        assert taken == size
        await sending
        await closed(writer, far_writer)


async def test_an_address_that_refuses_gives_way_to_the_next() -> None:
    async with far_end() as (port, came), door("127.0.0.2", "127.0.0.1") as door_port:
        _reader, writer = await through(door_port, f"api.example:{port}")
        _far_reader, far_writer = await came.get()
        await closed(writer, far_writer)


async def test_what_goes_wrong_stands_in_the_status_line() -> None:
    async with far_end() as (port, _came):
        unused = port
    target = f"api.example:{unused}".encode()
    request = b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n"
    assert (await answer_to(request, "127.0.0.1")).startswith(
        b"HTTP/1.1 502 connecting to " + target + b": 127.0.0.1: Connect call failed"
    )
    assert (await answer_to(request)).startswith(b"HTTP/1.1 502 resolving api.example: there is no such name\r\n")
    assert (await answer_to(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 400 reading what to connect")
    assert (await answer_to(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    assert (await answer_to(b"CONNECT nonsense HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    assert (await answer_to(b"\x16\x03\x01 this is TLS\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


async def test_closing_the_door_cuts_its_connections() -> None:
    async with far_end() as (port, came):
        async with door("127.0.0.1") as door_port:
            reader, writer = await through(door_port, f"api.example:{port}")
            far_reader, far_writer = await came.get()
        assert await asyncio.wait_for(asyncio.gather(reader.read(), far_reader.read(), return_exceptions=True), 5)
        await closed(writer, far_writer)


async def test_a_client_that_leaves_without_a_word_leaves_nothing_behind() -> None:
    async with door() as port:
        for said in (b"", b"CONN", b"CONNECT api.example:1 HTTP/1.1\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(said)
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(), 5) == b""
            await closed(writer)


async def test_a_name_is_asked_for_once_in_its_time_to_live() -> None:
    async with name_server("192.0.2.1", ttl=300) as (server, names):
        for _ in range(3):
            assert await names.addresses("api.example") == ["192.0.2.1"]
        assert server.asked == 1


async def test_a_name_is_asked_for_again_when_its_time_to_live_is_over() -> None:
    async with name_server("192.0.2.1", ttl=1) as (server, names):
        assert await names.addresses("api.example") == ["192.0.2.1"]
        server.address = "192.0.2.2"
        async with asyncio.timeout(5):
            found = ["192.0.2.1"]
            while found == ["192.0.2.1"]:
                await asyncio.sleep(0.01)
                found = list(await names.addresses("api.example"))
        assert found == ["192.0.2.2"]
        assert server.asked == 2


async def test_a_name_that_appears_is_found_at_once() -> None:
    async with name_server("", ttl=0) as (server, names):
        with pytest.raises(Unavailable, match=r"resolving api\.example"):
            await names.addresses("api.example")
        server.address = "192.0.2.3"
        assert await names.addresses("api.example") == ["192.0.2.3"]


def test_the_door_opens_on_the_loopback_only() -> None:
    with pytest.raises(InvalidInput, match="loopback"):
        main(["--listen", "0.0.0.0:0", "--dns", "127.0.0.1:53"])


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:99999", "host:-1", "host:١"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        split_address(text)


def test_an_address_may_be_of_version_six() -> None:
    assert split_address("[::1]:443") == ("::1", 443)
