"""The door as its clients see it: real sockets on the loopback, a name server of the test's own."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import socket
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import dns.message
import dns.rcode
import dns.rrset
import pytest

from quarterdeck.endpoint.door import Door, Names, dns_names, main, split_address
from quarterdeck.endpoint.door_guests import Guest, add_guest, guests_file, read_guests, remove_guest
from quarterdeck.errors import Corrupt, InvalidInput, Unavailable

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
async def name_server(address: str, ttl: int) -> AsyncIterator[tuple[NameServer, Names]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(
        lambda: NameServer(address, ttl), local_addr=("127.0.0.1", 0)
    )
    try:
        yield server, dns_names(transport.get_extra_info("sockname"))
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


SECRET = "the secret of alpha"
HOST = "api.example"


def credential(name: str = "alpha", secret: str = SECRET) -> bytes:
    return b"Proxy-Authorization: Basic " + base64.b64encode(f"{name}:{secret}".encode()) + b"\r\n"


@asynccontextmanager
async def door(*addresses: str, to: int = 1, most: int = 100, asking: int = 8) -> AsyncIterator[int]:
    """The port of an open door with one guest, ``alpha``, who may go to ``HOST`` at port ``to``; all names have these
    addresses; nothing is left of it in the end.
    """
    before = asyncio.all_tasks()
    listener = socket.create_server(("127.0.0.1", 0))
    guests = {"alpha": Guest(uid="1", host=HOST, port=to, secret=SECRET)}
    opened = Door(FixedNames(*addresses), lambda: guests, most=most, asking=asking)
    serving = asyncio.create_task(opened.serve(listener))
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
    writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n".encode() + credential() + b"\r\n" + more)
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200"), answer
    return reader, writer


async def closed(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        writer.transport.abort()
    await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


async def answer_to(request: bytes, *addresses: str, to: int = 1) -> bytes:
    async with door(*addresses, to=to) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await reader.read()
        await closed(writer)
        return answer


async def test_bytes_go_both_ways_also_those_sent_along_with_the_request() -> None:
    async with far_end() as (port, came), door("127.0.0.1", to=port) as door_port:
        reader, writer = await through(door_port, f"api.example:{port}", b"early ")
        far_reader, far_writer = await came.get()
        writer.write(b"late")
        assert await far_reader.readexactly(10) == b"early late"
        far_writer.write(b"answer")
        assert await reader.readexactly(6) == b"answer"
        await closed(writer, far_writer)


async def test_the_end_of_one_way_leaves_the_other_open() -> None:
    async with far_end() as (port, came), door("127.0.0.1", to=port) as door_port:
        reader, writer = await through(door_port, f"api.example:{port}", b"question")
        far_reader, far_writer = await came.get()
        writer.write_eof()
        assert await far_reader.read() == b"question"
        far_writer.write(b"answer after the end")
        far_writer.close()
        assert await reader.read() == b"answer after the end"
        await closed(writer)


async def test_a_connection_that_breaks_at_one_end_ends_at_the_other() -> None:
    async with far_end() as (port, came), door("127.0.0.1", to=port) as door_port:
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
    async with far_end() as (port, came), door("127.0.0.1", to=port) as door_port:
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
    async with far_end() as (port, came), door("127.0.0.2", "127.0.0.1", to=port) as door_port:
        _reader, writer = await through(door_port, f"api.example:{port}")
        _far_reader, far_writer = await came.get()
        await closed(writer, far_writer)


def connect_to(target: str, *headers: bytes) -> bytes:
    return f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n".encode() + b"".join(headers) + b"\r\n"


async def test_what_goes_wrong_stands_in_the_status_line() -> None:
    async with far_end() as (port, _came):
        unused = port
    target = f"{HOST}:{unused}"
    request = connect_to(target, credential())
    assert (await answer_to(request, "127.0.0.1", to=unused)).startswith(
        b"HTTP/1.1 502 connecting to " + target.encode() + b": 127.0.0.1: Connect call failed"
    )
    nowhere = await answer_to(request, to=unused)
    assert nowhere.startswith(b"HTTP/1.1 502 resolving api.example: there is no such name\r\n")
    assert (await answer_to(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(
        b"HTTP/1.1 400 reading the target of the connection"
    )
    assert (await answer_to(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    assert (await answer_to(connect_to("nonsense", credential()))).startswith(b"HTTP/1.1 400 ")
    assert (await answer_to(b"\x16\x03\x01 this is TLS\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        credential(secret="wrong"),
        credential(secret=""),
        credential(name="beta"),
        credential(name="bet\u00e4"),
        b"Proxy-Authorization: Basic not base64!\r\n",
        b"Proxy-Authorization: Bearer x\r\n",
    ],
)
async def test_who_has_no_credential_gets_nowhere(header: bytes) -> None:
    async with far_end() as (port, came):
        answer = await answer_to(connect_to(f"{HOST}:{port}", header), "127.0.0.1", to=port)
        assert answer.startswith(b"HTTP/1.1 407 ")
        assert b"'quarterdeck kubeconfig'" in answer
        assert b"Proxy-Authenticate: Basic" in answer
        assert SECRET.encode() not in answer
        assert came.empty()


async def test_a_credential_leads_to_its_own_planes_name_and_port_and_nowhere_else() -> None:
    async with far_end() as (port, came):
        for elsewhere in (f"127.0.0.1:{port}", f"other.example:{port}", f"{HOST}:{port - 1}", f"[::1]:{port}"):
            answer = await answer_to(connect_to(elsewhere, credential()), "127.0.0.1", to=port)
            assert answer.startswith(b"HTTP/1.1 403 "), answer
        assert came.empty()


@pytest.mark.parametrize(
    "line",
    [
        connect_to("api.example:" + "1" * 5_000, credential()),
        connect_to("a" * 5_000 + ":1", credential()),
        b"CONNECT " + b"x" * 100_000,
        b"\xff\xfe\x00\r\n\r\n",
        b"CONNECT \xc3\xa4:1 HTTP/1.1\r\n\r\n",
        connect_to("[::1%\x7f]:1", credential()),
        connect_to("..:1", credential()),
    ],
)
async def test_a_line_that_makes_no_sense_ends_no_other_session(line: bytes) -> None:
    async with far_end() as (port, came), door("127.0.0.1", to=port) as door_port:
        near, far = await through(door_port, f"{HOST}:{port}"), await came.get()
        reader, writer = await asyncio.open_connection("127.0.0.1", door_port)
        writer.write(line)
        assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 4")
        await still_leads_through(near, far)
        await closed(writer, near[1], far[1])


async def still_leads_through(near: Streams, far: Streams) -> None:
    near[1].write(b"still here")
    assert await asyncio.wait_for(far[0].readexactly(10), 5) == b"still here"


async def test_without_descriptors_left_no_session_ends_and_new_ones_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    accept, refusals = loop.sock_accept, iter([errno.EMFILE, errno.ENFILE, errno.ECONNABORTED])
    async with far_end() as (port, came), door("127.0.0.1", to=port) as door_port:
        near, far = await through(door_port, f"{HOST}:{port}"), await came.get()

        async def refusing(listener: socket.socket) -> object:
            if (number := next(refusals, None)) is not None:
                raise OSError(number, "as if")
            return await accept(listener)

        monkeypatch.setattr(loop, "sock_accept", refusing)
        for _ in range(2):  # the first one is taken by the call that waits already
            late, late_far = await through(door_port, f"{HOST}:{port}"), await came.get()
            await closed(late[1], late_far[1])
        assert next(refusals, None) is None
        await still_leads_through(near, far)
        await closed(near[1], far[1])


async def test_an_error_that_nobody_thought_of_is_told_and_ends_one_connection(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with far_end() as (port, came), door("127.0.0.1", to=port) as door_port:
        near, far = await through(door_port, f"{HOST}:{port}"), await came.get()
        with monkeypatch.context() as patched:
            patched.setattr("quarterdeck.endpoint.door.split_address", lambda _: 1 / 0)
            reader, writer = await asyncio.open_connection("127.0.0.1", door_port)
            writer.write(connect_to(f"{HOST}:{port}", credential()))
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), 5) == b""
        assert "ZeroDivisionError" in capsys.readouterr().err
        await still_leads_through(near, far)
        await closed(writer, near[1], far[1])


async def test_there_are_only_so_many_sessions_and_one_that_ends_makes_room() -> None:
    async with far_end() as (port, came), door("127.0.0.1", to=port, most=1) as door_port:
        near, far = await through(door_port, f"{HOST}:{port}"), await came.get()
        reader, writer = await asyncio.open_connection("127.0.0.1", door_port)
        writer.write(connect_to(f"{HOST}:{port}", credential()))
        assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
        await still_leads_through(near, far)
        await closed(writer, near[1], far[1])
        async with asyncio.timeout(5):
            while True:
                reader, writer = await asyncio.open_connection("127.0.0.1", door_port)
                writer.write(connect_to(f"{HOST}:{port}", credential()))
                if (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200"):
                    break
                await closed(writer)
        far = await came.get()
        await closed(writer, far[1])


async def test_strangers_who_say_nothing_keep_no_guest_out() -> None:
    async with far_end() as (port, came), door("127.0.0.1", to=port, asking=3) as door_port:
        silent = [await asyncio.open_connection("127.0.0.1", door_port) for _ in range(10)]
        near, far = await through(door_port, f"{HOST}:{port}"), await came.get()
        assert await asyncio.wait_for(silent[0][0].read(), 5) == b"", "the one that asked for longest was cut"
        await still_leads_through(near, far)
        await closed(near[1], far[1], *(writer for _, writer in silent))


def test_a_plane_keeps_its_credential_and_another_one_of_that_name_gets_its_own(tmp_path: Path) -> None:
    file = guests_file(tmp_path, "loopback")
    first = add_guest(file, "alpha", uid="1", host="Alpha.Example.", port=6443)
    assert add_guest(file, "alpha", uid="1", host="alpha.example", port=6443) == first
    assert add_guest(file, "beta", uid="2", host="beta.example", port=6444).secret != first.secret
    assert add_guest(file, "alpha", uid="3", host="alpha.example", port=6443).secret != first.secret
    remove_guest(file, "alpha")
    remove_guest(file, "never")
    assert set(read_guests(file)) == {"beta"}
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    assert first.secret not in repr(first)


def test_a_file_of_guests_that_cannot_be_read_is_an_error_and_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "guests"
    assert read_guests(file) == {}
    for content in ("", "[]", '{"alpha": {}}'):
        file.write_text(content)
        with pytest.raises(Corrupt):
            read_guests(file)


async def test_closing_the_door_cuts_its_connections() -> None:
    async with far_end() as (port, came):
        async with door("127.0.0.1", to=port) as door_port:
            reader, writer = await through(door_port, f"api.example:{port}")
            far_reader, far_writer = await came.get()
        assert await asyncio.wait_for(asyncio.gather(reader.read(), far_reader.read(), return_exceptions=True), 5)
        await closed(writer, far_writer)


async def test_a_client_that_leaves_without_a_word_leaves_nothing_behind() -> None:
    async with door() as port:
        for sent in (b"", b"CONN", b"CONNECT api.example:1 HTTP/1.1\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(), 5) == b""
            await closed(writer)


async def test_a_name_is_asked_for_once_in_its_time_to_live() -> None:
    async with name_server("192.0.2.1", ttl=300) as (server, names):
        for _ in range(3):
            assert await names.addresses("api.example") == ("192.0.2.1",)
        assert server.asked == 1


async def test_a_name_is_asked_for_again_when_its_time_to_live_is_over() -> None:
    async with name_server("192.0.2.1", ttl=1) as (server, names):
        assert await names.addresses("api.example") == ("192.0.2.1",)
        server.address = "192.0.2.2"
        async with asyncio.timeout(5):
            found: Sequence[str] = ("192.0.2.1",)
            while found == ("192.0.2.1",):
                await asyncio.sleep(0.01)
                found = await names.addresses("api.example")
        assert found == ("192.0.2.2",)
        assert server.asked == 2


async def test_where_a_dns_server_gives_no_answer_the_next_is_asked() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        async with name_server("192.0.2.1", ttl=300) as (server, _):
            names = dns_names(silent.getsockname(), server.transport.get_extra_info("sockname"))
            assert await asyncio.wait_for(names.addresses("api.example"), 2.0) == ("192.0.2.1",)


async def test_a_name_that_appears_is_found_at_once() -> None:
    async with name_server("", ttl=0) as (server, names):
        with pytest.raises(Unavailable, match=r"resolving api\.example"):
            await names.addresses("api.example")
        server.address = "192.0.2.3"
        assert await names.addresses("api.example") == ("192.0.2.3",)


def test_the_door_opens_on_the_loopback_only() -> None:
    with pytest.raises(InvalidInput, match="loopback"):
        main(["--listen", "0.0.0.0:0", "--dns", "127.0.0.1:53", "--guests", "none"])


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:99999", "host:-1", "host:١"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        split_address(text)


def test_an_address_may_be_of_version_six() -> None:
    assert split_address("[::1]:443") == ("::1", 443)
