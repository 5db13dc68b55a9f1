"""Requests with a deadline over kept connections: nothing looks other than it is because a connection was kept."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import sys
import tracemalloc
from asyncio import sslproto
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.golden import Golden

from quarterdeck import http
from quarterdeck.components.credentials import KeyPair
from quarterdeck.http import Answer, Http, NoAnswer
from quarterdeck.pki.authority import create_authority, issue
from quarterdeck.pki.certificate import CertificateRequest, Usage
from quarterdeck.pki.tls import client_context
from quarterdeck.tls_buffers import keep_small_tls_buffers

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """Answers all requests with ``answer``, and counts connections. ``close`` cuts those that there are."""

    answer: bytes = OK
    tls: ssl.SSLContext | None = None
    port: int = 0
    connections: int = 0
    answers_before_it_cuts: int = 1_000
    asked: list[str] = field(default_factory=list)
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)
    _serving: set[asyncio.Task[None]] = field(default_factory=set)
    _listening: asyncio.Server | None = None

    @property
    def origin(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    async def open(self) -> None:
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.tls)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.close()
        self.cut()
        await asyncio.gather(*self._serving)

    def cut(self) -> None:
        for each in self._writers:
            each.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self.connections += 1
        self._writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            for _ in range(self.answers_before_it_cuts):
                self.asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
                self.was_asked.set()
                writer.write(self.answer)
                await writer.drain()
            await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def client() -> AsyncIterator[Http]:
    made = Http()
    yield made
    await made.close()


async def ask(client: Http, server: Server, *, method: str = "GET", deadline: float = 1.0) -> Answer:
    return await client.ask(method, server.origin, "/path", deadline=deadline)


async def test_requests_share_a_connection(client: Http, server: Server, golden: Golden) -> None:
    for _ in range(3):
        assert await ask(client, server) == Answer(200, b"ok")
    assert server.connections == 1
    golden(server.asked[0])


async def test_two_at_once_have_one_each(client: Http, server: Server) -> None:
    await asyncio.gather(ask(client, server), ask(client, server))
    await asyncio.gather(ask(client, server), ask(client, server))
    assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "body", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", b"abcde", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nT: x\r\n\r\n", b"a", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na", b"a", False),
        (b"HTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\na", b"a", False),
        (b"HTTP/1.1 204 Nothing\r\n\r\n", b"", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc", b"a", False),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", b"a", True),
    ],
    ids=["chunks", "trailers", "empty", "close", "not well", "no content", "more than it was asked", "informational"],
)
async def test_an_answer_ends_where_it_says(
    client: Http, server: Server, answer: bytes, body: bytes, kept: bool
) -> None:
    server.answer = answer
    for _ in range(2):
        assert (await ask(client, server)).body == body
    assert server.connections == (1 if kept else 2)


async def test_an_answer_without_a_length_ends_with_its_connection(client: Http, server: Server) -> None:
    server.answer, server.answers_before_it_cuts = b"HTTP/1.1 200 OK\r\n\r\nall of it", 1
    asked = asyncio.ensure_future(ask(client, server))
    await server.was_asked.wait()
    for writer in server._writers:
        writer.close()
    assert (await asked).body == b"all of it"


async def test_what_a_server_says_before_it_is_asked_is_not_the_next_answer(client: Http, server: Server) -> None:
    await ask(client, server)
    server._writers[0].write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale")
    (kept,) = (wire for wires in client._idle.values() for wire in wires)
    async with asyncio.timeout(5):
        while not kept._was_sent_more():  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0)
    assert (await ask(client, server)).body == b"ok"
    assert server.connections == 2


async def test_a_path_is_escaped_so_that_no_name_in_it_ends_the_request_line(client: Http, server: Server) -> None:
    await client.ask("GET", server.origin, "/a b\r\nX: y/ä?c=d%20e&f=(g)", deadline=1.0)
    assert server.asked[0].splitlines()[0] == "GET /a%20b%0D%0AX:%20y/%C3%A4?c=d%20e&f=(g) HTTP/1.1"


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0\r\n\r\n",
        b"HTTP/1.0 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    ],
    ids=["SSH", "HTTP/1.0", "no size of a chunk"],
)
async def test_what_is_no_answer_is_none(client: Http, server: Server, answer: bytes, golden: Golden) -> None:
    server.answer = answer
    with golden.raises(NoAnswer):
        await ask(client, server)


async def test_a_connection_that_the_server_has_closed_is_replaced_within_the_same_call(
    client: Http, server: Server
) -> None:
    await ask(client, server)
    server.cut()
    assert (await ask(client, server)).status == 200
    server.answers_before_it_cuts = 1  # it takes the next request, and ends instead of an answer
    server.cut()
    await ask(client, server)
    assert (await ask(client, server)).status == 200
    assert server.connections == 4


async def test_one_that_is_gone_is_gone_at_once_and_its_successor_there_at_once(client: Http, server: Server) -> None:
    await ask(client, server)
    await server.close()
    with pytest.raises(NoAnswer) as gone:
        await ask(client, server)
    assert gone.value.refused
    successor = Server(answer=OK.replace(b"ok", b"no"), port=server.port)
    await successor.open()
    assert (await ask(client, successor)).body == b"no"
    await successor.close()


async def test_what_may_have_been_done_is_not_sent_twice(client: Http, server: Server) -> None:
    await ask(client, server)
    assert (await ask(client, server, method="PATCH")).status == 200
    assert server.connections == 2, "it goes over a connection that cannot have been closed before"
    server.answers_before_it_cuts = 0
    server.cut()
    with pytest.raises(NoAnswer):
        await ask(client, server, method="PATCH")
    assert len([each for each in server.asked if each.startswith("PATCH")]) == 1


async def test_an_answer_that_breaks_off_is_not_asked_for_again(client: Http, server: Server) -> None:
    await ask(client, server)
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
    server.was_asked.clear()
    asked = asyncio.ensure_future(ask(client, server))
    await server.was_asked.wait()
    await asyncio.sleep(0.02)
    server.cut()
    with pytest.raises(NoAnswer):
        await asked
    assert server.connections == 1


async def test_silence_ends_at_the_deadline_over_a_kept_connection_too(
    client: Http, server: Server, golden: Golden
) -> None:
    await ask(client, server)
    server.answer = b""
    since = asyncio.get_running_loop().time()
    with golden.raises(NoAnswer) as silent:
        await ask(client, server, deadline=0.2)
    assert silent.value.late
    assert asyncio.get_running_loop().time() - since < 0.4, "it was not waited for twice"
    server.answer = OK
    assert (await ask(client, server)).status == 200
    assert server.connections == 2, "nobody knows what is still to come over the former one"


async def test_a_body_that_never_ends_has_a_deadline_as_a_whole(client: Http, golden: Golden) -> None:
    """Each piece comes in time, and another one after it."""

    over = asyncio.Event()

    async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.transport.abort()
        over.set()

    async with await asyncio.start_server(dribble, "127.0.0.1", 0) as listening, asyncio.timeout(5):
        origin = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        with golden.raises(NoAnswer):
            await client.ask("GET", origin, "/", deadline=0.2)
        await over.wait()


async def test_no_connection_is_older_than_a_few_seconds_or_a_few_looks_where_these_are_far_apart(
    client: Http, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(http.FEW + 1):
        await ask(client, server)
    assert server.connections == 1
    monkeypatch.setattr(http, "KEPT", 0.0)
    for _ in range(http.FEW):
        await ask(client, server)
    assert server.connections == 2
    await ask(client, server)
    assert server.connections == 3
    monkeypatch.setattr(http, "_OLDEST", 0.0)
    await ask(client, server)
    assert server.connections == 4


@dataclass
class Authority:
    folder: Path
    pair: KeyPair = field(default_factory=lambda: create_authority("test", datetime.now(UTC)))

    def server(self, ip: str = "127.0.0.1") -> ssl.SSLContext:
        request = CertificateRequest(
            common_name="s", usage=Usage.SERVER, lifetime=timedelta(days=1), ip_addresses=(ip,)
        )
        issued = issue(self.pair, request, datetime.now(UTC))
        (self.folder / "pem").write_bytes(issued.certificate + issued.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "pem")
        return context


async def test_a_connection_of_a_manager_that_is_secured_does_not_take_a_quarter_of_a_megabyte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", sslproto.SSLProtocol.max_size)  # to be put back
    keep_small_tls_buffers()
    authority = Authority(tmp_path)
    server, client = Server(tls=authority.server()), Http(client_context(authority.pair.certificate))
    await server.open()
    before = Http(client_context(authority.pair.certificate))
    await ask(before, server)  # what the first one of a process has made is not the connection's
    await before.close()
    tracemalloc.start()
    try:
        await ask(client, server)
        assert tracemalloc.get_traced_memory()[0] < 200_000, "of both its ends"
    finally:
        tracemalloc.stop()
        await client.close()
        await server.close()


async def test_who_shows_the_certificate_of_another_is_not_believed_and_one_renewed_is_seen_at_the_next_handshake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path)
    server = Server(tls=authority.server())
    await server.open()
    client = Http(client_context(authority.pair.certificate))
    assert (await ask(client, server)).status == 200
    assert (await ask(client, server)).status == 200
    assert server.connections == 1
    await server.close()
    for wrong in (stranger.server(), authority.server("127.0.0.9")):
        server.tls = wrong
        await server.open()
        with golden.raises(NoAnswer):
            await ask(client, server)
        await server.close()
    server.tls = authority.server()
    await server.open()
    assert (await ask(client, server)).status == 200
    await client.close()
    await server.close()


async def test_a_handshake_that_nobody_answers_ends_at_its_deadline_and_leaves_no_socket() -> None:
    """Whoever is just starting takes connections, and answers none. (A socket left is a warning, which is an error.)"""

    ended = asyncio.Semaphore(0)

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.transport.abort()
        ended.release()

    authority = create_authority("test", datetime.now(UTC))
    client = Http(client_context(authority.certificate))
    async with await asyncio.start_server(mute, "127.0.0.1", 0) as listening:
        origin = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        with pytest.raises(NoAnswer) as silent:
            await client.ask("GET", origin, "/", deadline=0.1)
        assert silent.value.late
        cut_short = asyncio.ensure_future(client.ask("GET", origin, "/", deadline=5.0))
        await asyncio.sleep(0.05)
        cut_short.cancel()
        await asyncio.gather(cut_short, return_exceptions=True)
        for _ in range(2):
            await ended.acquire()
    await client.close()


def test_importing_quarterdeck_changes_nothing_in_asyncio() -> None:
    """It may be a part of somebody else's program."""
    program = """
from asyncio import sslproto
before = sslproto.SSLProtocol.max_size
import quarterdeck.app.face, quarterdeck.app.service
from quarterdeck.tls_buffers import keep_small_tls_buffers
assert sslproto.SSLProtocol.max_size == before
keep_small_tls_buffers()
assert sslproto.SSLProtocol.max_size < before
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
