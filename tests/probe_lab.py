"""A kube-apiserver of our own, over HTTP/1.1 and HTTP/2, that misbehaves on demand; and a DNS server."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h11
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hyperframe.frame import GoAwayFrame

from quarterdeck.probe.target import ProbeTarget

HOST = "plane.test"


@dataclass(frozen=True)
class Pems:
    ca: str
    server: str
    server_key: str
    client: str
    client_key: str


@cache
def pems() -> Pems:
    """One CA, a server certificate for HOST and 127.0.0.1, and a client certificate."""
    now = dt.datetime.now(dt.UTC)

    def build(name: str, key: ec.EllipticCurvePrivateKey, issuer: str, signer: ec.EllipticCurvePrivateKey, ca: bool):
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        )
        if ca:
            usage = x509.KeyUsage(
                digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
                key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
            )  # fmt: skip
            builder = builder.add_extension(usage, critical=True)
        else:
            names = [x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(signer, hashes.SHA256())

    def pem(certificate: x509.Certificate) -> str:
        return certificate.public_bytes(serialization.Encoding.PEM).decode()

    def key_pem(key: ec.EllipticCurvePrivateKey) -> str:
        return key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()

    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(3)]
    return Pems(
        ca=pem(build("test ca", keys[0], "test ca", keys[0], ca=True)),
        server=pem(build("server", keys[1], "test ca", keys[0], ca=False)),
        server_key=key_pem(keys[1]),
        client=pem(build("client", keys[2], "test ca", keys[0], ca=False)),
        client_key=key_pem(keys[2]),
    )


class Act(StrEnum):
    """What the server may do instead of serving."""

    CLOSE = "close the connection without a byte"
    RESET = "reset the connection without a byte"
    HEAD = "close the connection in the middle of the response's head"
    HALF = "close the connection in the middle of the response"
    HANG = "never answer"
    REFUSE = "429 with Connection: close"
    FORGET = "acknowledge a write and forget it"
    OLD = "answer a read with what was there before"
    GARBAGE = "answer 200 with no JSON"
    LAST = "serve it with Connection: close"
    GOODBYE = "serve it, then close without a word"
    GONE = "410"
    FORBID = "403"


@dataclass(frozen=True)
class Exchange:
    """A request as the server sees it. ``turn`` counts the requests of its connection from 1."""

    method: str
    path: str
    turn: int
    http2: bool

    @property
    def watch(self) -> bool:
        return "watch=1" in self.path


@dataclass
class Store:
    """Objects with revisions, and every event that there ever was."""

    revision: int = 100
    objects: dict[str, dict] = field(default_factory=dict)
    before: dict[str, dict] = field(default_factory=dict)
    events: list[tuple[int, dict]] = field(default_factory=list)
    wakers: set[asyncio.Event] = field(default_factory=set)

    def put(self, name: str, document: dict, *, forget: bool = False) -> dict:
        if name in self.objects and self.objects[name].get("data") == document.get("data"):
            return self.objects[name]
        self.revision += 1
        kind = "MODIFIED" if name in self.objects else "ADDED"
        metadata = {**document["metadata"], "resourceVersion": str(self.revision)}
        document = {**document, "metadata": metadata}
        if not forget:
            self.before[name] = self.objects.get(name, document)
            self.objects[name] = document
            self.events.append((self.revision, {"type": kind, "object": document}))
            for waker in self.wakers:
                waker.set()
        return document


class FakeApiserver:
    """``act`` decides for each request; ``edit`` may change the lines that a watch sends."""

    def __init__(self, address: str = "127.0.0.1", store: Store | None = None, port: int = 0) -> None:
        self.address = address
        self.port = port
        self.store = store or Store()
        self.namespaces: set[str] = set()
        self.requests: list[Exchange] = []
        self.connections = 0
        self.act: Callable[[Exchange], Act | None] = lambda exchange: None
        self.edit: Callable[[list[dict]], list[dict]] = lambda events: events
        self.refuse_streams_above: int | None = None
        self._watches: set[asyncio.Event] = set()
        self._writers: dict[asyncio.StreamWriter, H2Side | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> FakeApiserver:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=pems().ca)
        context.verify_mode = ssl.CERT_REQUIRED
        context.set_alpn_protocols(["h2", "http/1.1"])
        with contextlib.ExitStack() as stack:
            import tempfile

            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            (folder / "cert").write_text(pems().server + pems().server_key)
            context.load_cert_chain(folder / "cert")
        self._server = await asyncio.start_server(
            self._connected, self.address, self.port, ssl=context, ssl_shutdown_timeout=0.2
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def target(self, **changes: object) -> ProbeTarget:
        values: dict = {
            "host": HOST, "port": self.port, "ca_pem": pems().ca, "client_cert_pem": pems().client,
            "client_key_pem": pems().client_key, "address": self.address,
        }  # fmt: skip
        return ProbeTarget(**{**values, **changes})

    def end_watches(self) -> None:
        """End every watch as a graceful server does."""
        for waker in self._watches:
            waker.set()
        self._watches.clear()

    def cut_connections(self) -> None:
        """Reset every connection."""
        for writer in self._writers:
            writer.transport.abort()

    def go_away(self, *, last_stream: int = (1 << 31) - 1) -> None:
        """GOAWAY on every HTTP/2 connection: streams up to ``last_stream`` are served, the connection stays open."""
        for writer, side in self._writers.items():
            if side is not None:
                side.limit = last_stream
                writer.write(GoAwayFrame(last_stream_id=last_stream, error_code=0).serialize())

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            if writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2":
                await H2Side(self, reader, writer).serve()
            else:
                self._writers[writer] = None
                await self._serve_h1(reader, writer)
        except (OSError, asyncio.CancelledError, h11.RemoteProtocolError, h2.exceptions.ProtocolError):
            pass
        finally:
            self._writers.pop(writer, None)
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve_h1(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state = h11.Connection(h11.SERVER)
        turn = 0

        async def next_event() -> object:
            while (event := state.next_event()) is h11.NEED_DATA:
                state.receive_data(await reader.read(65536))
            return event

        while True:
            head = await next_event()
            if not isinstance(head, h11.Request):
                return
            body = b""
            while isinstance(event := await next_event(), h11.Data):
                body += bytes(event.data)
            turn += 1
            exchange = Exchange(head.method.decode(), head.target.decode(), turn, http2=False)
            if not await self._answer_h1(exchange, body, state, writer) or state.our_state is not h11.DONE:
                return
            state.start_next_cycle()

    async def _answer_h1(
        self, exchange: Exchange, body: bytes, state: h11.Connection, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection goes on."""

        def send(*events: h11.Response | h11.Data | h11.EndOfMessage) -> None:
            if not writer.is_closing():
                writer.write(b"".join(map(state.send, events)))

        self.requests.append(exchange)
        act = self.act(exchange)
        if act is Act.HANG:
            await asyncio.Event().wait()
        if act is Act.RESET:
            writer.transport.abort()
        elif act is Act.HEAD:
            writer.write(b"HTTP/1.1 20")
        if act in (Act.CLOSE, Act.RESET, Act.HEAD):
            return False
        if exchange.watch and act is None:
            send(h11.Response(status_code=200, headers=[("Transfer-Encoding", "chunked")]))
            async for line in self.watch(exchange.path):
                send(h11.Data(data=line))
                await writer.drain()
            send(h11.EndOfMessage())
        else:
            status, answer = await self.reply(exchange, body, act)
            extra = [("Connection", "close")] if act in (Act.REFUSE, Act.LAST) else []
            send(h11.Response(status_code=status, headers=[("Content-Length", str(len(answer))), *extra]))
            if act is Act.HALF:
                writer.write(answer[: len(answer) // 2])
                return False
            send(h11.Data(data=answer), h11.EndOfMessage())
        await writer.drain()
        return act is not Act.GOODBYE

    async def reply(self, exchange: Exchange, body: bytes, act: Act | None) -> tuple[int, bytes]:
        """Status and body of all but watches."""
        if act is Act.REFUSE:
            return 429, b"{}"
        if act in (Act.GONE, Act.FORBID):
            return int(act), b"{}"
        if act is Act.GARBAGE:
            return 200, b"<html>"
        parts = exchange.path.partition("?")[0].strip("/").split("/")
        if parts[-1] == "namespaces":
            self.namespaces.add(json.loads(body)["metadata"]["name"])
            return 201, body
        if parts[-2] == "namespaces" and exchange.method == "DELETE":
            self.namespaces.discard(parts[-1])
            return 200, b"{}"
        status, document = await self._objects(exchange, parts, body, act)
        return status, json.dumps(document).encode()

    async def _objects(self, exchange: Exchange, parts: list[str], body: bytes, act: Act | None) -> tuple[int, dict]:
        objects = self.store.objects
        if parts[-1] == "configmaps":
            if exchange.method == "POST":
                document = json.loads(body)
                return 201, self.store.put(document["metadata"]["name"], document)
            if exchange.method == "DELETE":
                objects.clear()
                return 200, {}
            revision = {"resourceVersion": str(self.store.revision)}
            return 200, {"kind": "ConfigMapList", "metadata": revision, "items": list(objects.values())}
        name = parts[-1]
        if name not in objects:
            return 404, {"kind": "Status", "code": 404}
        if exchange.method == "PUT":
            return 200, self.store.put(name, json.loads(body), forget=act is Act.FORGET)
        return 200, self.store.before[name] if act is Act.OLD else objects[name]

    async def watch(self, path: str) -> AsyncIterator[bytes]:
        """The lines of a watch from the revision that its path asks for, until it is ended."""
        seen = int(path.partition("resourceVersion=")[2].partition("&")[0])
        waker = asyncio.Event()
        self.store.wakers.add(waker)
        self._watches.add(waker)
        try:
            while waker in self._watches:
                waker.clear()
                fresh = [event for event in self.store.events if event[0] > seen]
                if fresh:
                    seen = fresh[-1][0]
                    for event in self.edit([event[1] for event in fresh]):
                        yield json.dumps(event).encode() + b"\n"
                else:
                    await waker.wait()
        finally:
            self.store.wakers.discard(waker)
            self._watches.discard(waker)


class H2Side:
    """The server's end of one HTTP/2 connection. ``limit`` is the last stream that it still serves."""

    def __init__(self, server: FakeApiserver, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.reader = reader
        self.writer = writer
        self.state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.limit: int | None = None
        self.turn = 0
        server._writers[writer] = self

    async def serve(self) -> None:
        self.state.initiate_connection()
        self.flush()
        heads: dict[int, dict[str, str]] = {}
        bodies: dict[int, bytes] = {}
        async with asyncio.TaskGroup() as group:
            tasks = []
            while data := await self.reader.read(65536):
                for event in self.state.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        heads[event.stream_id] = dict(event.headers)
                        bodies[event.stream_id] = b""
                    elif isinstance(event, h2.events.DataReceived):
                        bodies[event.stream_id] += event.data
                    elif isinstance(event, h2.events.StreamEnded) and (
                        self.limit is None or event.stream_id <= self.limit
                    ):
                        stream = event.stream_id
                        tasks.append(group.create_task(self.answer(stream, heads.pop(stream), bodies.pop(stream))))
                self.flush()
            for task in tasks:
                task.cancel()

    async def answer(self, stream: int, head: dict[str, str], body: bytes) -> None:
        self.turn += 1
        exchange = Exchange(head[":method"], head[":path"], self.turn, http2=True)
        self.server.requests.append(exchange)
        act = self.server.act(exchange)
        if act is Act.HANG:
            await asyncio.Event().wait()
        if act is Act.RESET:
            self.writer.transport.abort()
        elif act is Act.CLOSE:
            self.writer.close()
        if self.writer.is_closing():
            return
        if exchange.watch and act is None:
            self.state.send_headers(stream, [(":status", "200")])
            self.flush()
            async for line in self.server.watch(exchange.path):
                self.state.send_data(stream, line)
                self.flush()
            self.state.send_data(stream, b"", end_stream=True)
        else:
            status, answer = await self.server.reply(exchange, body, act)
            self.state.send_headers(stream, [(":status", str(status))])
            half = act is Act.HALF
            self.state.send_data(stream, answer[: len(answer) // 2] if half else answer, end_stream=not half)
            if half:
                self.flush()
                self.writer.close()
        self.flush()

    def flush(self) -> None:
        if not self.writer.is_closing():
            self.writer.write(self.state.data_to_send())


class FakeDns(asyncio.DatagramProtocol):
    """Answers every A query with ``address`` and ``ttl``; with SERVFAIL when there is no address."""

    def __init__(self, address: str | None, ttl: int = 0) -> None:
        self.address = address
        self.ttl = ttl
        self.queries = 0
        self.silent = False

    async def __aenter__(self) -> FakeDns:
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self.server: tuple[str, int] = self.transport.get_extra_info("sockname")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.transport.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.queries += 1
        if self.silent:
            return
        query = dns.message.from_wire(data)
        reply = dns.message.make_response(query)
        if self.address is None:
            reply.set_rcode(dns.rcode.SERVFAIL)
        else:
            reply.answer.append(dns.rrset.from_text(query.question[0].name, self.ttl, "IN", "A", self.address))
        self.transport.sendto(reply.to_wire(), addr)


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for a condition that other tasks bring about."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what changes is in the code under test, which has no event to wait for
            await asyncio.sleep(0.005)
