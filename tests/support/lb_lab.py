"""An Envoy with real backends and clients, for the contract suites."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from quarterdeck.components.traffic.envoy import BalancerSettings
from quarterdeck.endpoint.balancers.envoy import EnvoyBalancer, issue_balancer_tls
from quarterdeck.http import Http
from quarterdeck.model.endpoints import BackendAddress
from quarterdeck.upstream import Upstream, UpstreamProgram, Versions
from support.endpoint_lab import (
    EDGE,
    MANAGER,
    SERVER_NAME,
    Authority,
    Backend,
    Client,
    connect,
    edge_address,
    eventually,
    free_port,
    local_site,
    loopback,
)

UNIT = "lb-demo"


@dataclass(slots=True)
class EnvoyClient:
    """A client that says None where its connection was cut."""

    client: Client

    async def ask(self) -> str | None:
        try:
            return await self.client.ask()
        except (OSError, asyncio.IncompleteReadError):
            return None


@dataclass(slots=True)
class EnvoyLab:
    """One Envoy, its backends and its clients."""

    authority: Authority
    balancer: EnvoyBalancer
    trust: ssl.SSLContext
    backends: dict[str, Backend] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)

    @property
    def ip(self) -> str:
        return self.balancer.settings.address

    async def add(self, name: str) -> BackendAddress:
        ip = loopback()
        backend = Backend(name, ip, free_port(ip), self.authority.server(ip=ip))
        await backend.start()
        self.backends[name] = backend
        return BackendAddress(backend.ip, backend.port)

    async def set_ready(self, name: str, ready: bool) -> None:
        self.backends[name].ready = ready

    async def stop(self, name: str) -> None:
        await self.backends[name].stop()

    def break_program(self) -> None:
        settings = replace(self.balancer.settings, binary=PurePosixPath("/bin/false"))
        self.balancer = replace(self.balancer, settings=settings, patience=2.0)

    async def connect(self) -> EnvoyClient | None:
        try:
            client = await connect(self.ip, self.balancer.settings.port, self.trust)
        except OSError:
            return None
        self.clients.append(client)
        return EnvoyClient(client)

    async def healthy(self, *names: str) -> None:
        """Wait until exactly these backends pass the check: three that fail may take 2 s each, on a quiet machine."""

        async def seen() -> bool:
            return (await self.balancer.observe()).healthy == set(names)

        await eventually(seen, within=30.0)

    async def close(self) -> None:
        for client in self.clients:
            await client.close()
        for backend in self.backends.values():
            await backend.stop()


@asynccontextmanager
async def envoy_lab(folder: Path, *, patience: float = 20.0) -> AsyncIterator[EnvoyLab]:
    """An Envoy that was not started yet, on a site of its own."""
    authority = Authority(folder)
    found = await Upstream.from_environment(os.environ).ensure([UpstreamProgram.ENVOY], Versions())
    async with local_site(folder / "home") as site:
        ip = await edge_address(site)
        http = Http(authority.manager())
        balancer = EnvoyBalancer(
            site=site,
            machine=EDGE,
            settings=BalancerSettings(
                unit=UNIT,
                binary=PurePosixPath(found[UpstreamProgram.ENVOY]),
                folder=site.folder(EDGE, UNIT),
                address=ip,
                port=free_port(ip),
                status_port=free_port(ip),
                server_name=SERVER_NAME,
            ),
            tls=lambda: issue_balancer_tls(authority.authorities, MANAGER, (ip,), authority.now),
            client=http,
            patience=patience,
        )
        lab = EnvoyLab(authority, balancer, authority.anonymous())
        try:
            yield lab
        finally:
            await lab.close()
            await http.close()
