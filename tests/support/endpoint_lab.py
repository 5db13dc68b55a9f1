"""What the endpoint's contract suites run on: a real site, TLS backends, and clients."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from quarterdeck.components.credentials import Authority as Authorities
from quarterdeck.components.credentials import KeyPair
from quarterdeck.files import write_secret
from quarterdeck.pki.authority import create_authority, issue
from quarterdeck.pki.certificate import CertificateRequest, Usage
from quarterdeck.pki.tls import client_context
from quarterdeck.sites.local.loopback import open_loopback
from quarterdeck.sites.local.settings import LocalSiteSettings
from quarterdeck.sites.local.site import LocalSite, open_local_site
from quarterdeck.sites.port import SitePort

SERVER_NAME = "kubernetes.default.svc"
DAY = timedelta(days=1)
EDGE = "east-edge"
MANAGER = "CN=manager,O=system:masters"
_ids = iter(range(1, 250 * 250))


def loopback() -> str:
    """A 127.x.y.z address that no other test of this process or of a process beside it uses."""
    number = next(_ids)
    return f"127.{64 + os.getpid() % 128}.{number // 250 + 1}.{number % 250 + 1}"


def free_port(ip: str) -> int:
    """A port that nobody listens on at ``ip`` now."""
    with socket.socket() as probe:
        probe.bind((ip, 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def local_site(home: Path) -> AsyncIterator[LocalSite]:
    """A real site of which nothing is left in the end; its load balancers and servers run on ``EDGE``."""
    settings = LocalSiteSettings(name="east", zones=("a",), machines_per_zone=1)
    site = open_local_site(home, settings, open_loopback(home))
    try:
        yield site
    finally:
        await site.destroy()


async def edge_address(site: SitePort) -> str:
    return next(machine.address for machine in await site.machines() if machine.name == EDGE)


async def crash(site: SitePort, unit: str) -> None:
    """kill -9 of a unit's process."""
    pid = next(status.pid for status in await site.units(EDGE) if status.name == unit)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


@dataclass(slots=True)
class Authority:
    """A plane's CA, and the TLS contexts of those who use it."""

    folder: Path
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    pair: KeyPair = field(init=False)

    def __post_init__(self) -> None:
        self.pair = create_authority("plane-ca", self.now)

    @property
    def authorities(self) -> Authorities:
        return Authorities.of(self.pair)

    def server(self, *, ip: str) -> ssl.SSLContext:
        request = CertificateRequest(
            common_name="apiserver", usage=Usage.SERVER, lifetime=DAY, dns_names=(SERVER_NAME,), ip_addresses=(ip,)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pair = issue(self.pair, request, self.now)
        path = self.folder / f"{ip}.pem"
        write_secret(path, pair.certificate + pair.key)
        context.load_cert_chain(path)
        return context

    def manager(self, *, name: str = "manager") -> ssl.SSLContext:
        """A client with a certificate of the plane's CA; ``MANAGER`` is the subject of the default one."""
        request = CertificateRequest(
            common_name=name, organizations=("system:masters",), usage=Usage.CLIENT, lifetime=DAY
        )
        return client_context(self.pair.certificate, issue(self.pair, request, self.now))

    def anonymous(self) -> ssl.SSLContext:
        return client_context(self.pair.certificate)


@dataclass(slots=True, eq=False)
class Backend:
    """A TLS server that says its name to GET /name, and 200 or 500 to GET /readyz."""

    name: str
    ip: str
    port: int
    context: ssl.SSLContext
    ready: bool = True
    hang: bool = False
    fail_next: int = 0  # so many checks fail though it is ready
    checks: int = 0
    server: asyncio.Server | None = None
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._serve, self.ip, self.port, ssl=self.context)

    async def stop(self) -> None:
        """The process ends: its listener and all its connections are gone."""
        if self.server is None:
            return
        self.server.close()
        for writer in list(self.writers):
            writer.transport.abort()
        await self.server.wait_closed()
        self.server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].partition(b"?")[0]
                if path == b"/readyz":
                    self.checks += 1
                    if self.hang:
                        continue
                good = path != b"/readyz" or (self.ready and self.fail_next == 0)
                if path == b"/readyz" and self.fail_next:
                    self.fail_next -= 1
                status = b"200 OK" if good else b"500 Internal Server Error"
                body = self.name.encode()
                writer.write(b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()


@dataclass(slots=True)
class Client:
    """A client's connection, TLS to whoever is behind the load balancer."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self) -> str:
        """The name of the backend; raises OSError or IncompleteReadError when the connection is cut."""
        self.writer.write(b"GET /name HTTP/1.1\r\nhost: x\r\n\r\n")
        await self.writer.drain()
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return (await self.reader.readexactly(length)).decode()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def connect(ip: str, port: int, context: ssl.SSLContext) -> Client:
    """A new connection; raises OSError when refused or cut."""
    reader, writer = await asyncio.wait_for(
        asyncio.open_connection(ip, port, ssl=context, server_hostname=SERVER_NAME), 10
    )
    return Client(reader, writer)


async def eventually(holds: Callable[[], Awaitable[bool]], *, within: float = 60.0) -> None:
    """Wait for a condition with a deadline (seconds)."""
    async with asyncio.timeout(within):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.005)
