"""Real DNS servers for the contract suite, each on an address and a port of its own."""

from __future__ import annotations

import asyncio
import base64
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath

import pytest

from quarterdeck.components.traffic.coredns import DnsSettings
from quarterdeck.endpoint.dns.coredns import CoreDns
from quarterdeck.endpoint.dns.records import DnsServer, ask
from quarterdeck.endpoint.dns.rfc2136 import Rfc2136Dns, TsigKey
from quarterdeck.errors import Unavailable
from quarterdeck.upstream import Upstream, UpstreamProgram, Versions
from support.endpoint_lab import EDGE, free_port, local_site, loopback

ZONE = "planes.test."
PRIMARIES = ("knotd", "named")

_ZONE_FILE = """$ORIGIN planes.test.
@ 60 IN SOA ns hostmaster 1 3600 600 86400 1
@ 60 IN NS ns
ns 60 IN A 192.0.2.53
alias 60 IN CNAME ns
"""

_KNOT = """server:
    listen: {ip}@{port}
    rundir: {folder}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: {folder}
key:
  - id: {key.name}
    algorithm: {key.algorithm}
    secret: {key.secret}
  - id: reader
    algorithm: {key.algorithm}
    secret: {key.secret}
acl:
  - id: updates
    key: {key.name}
    action: update
zone:
  - domain: planes.test
    storage: {folder}
    file: planes.zone
    acl: updates
log:
  - target: stderr
    any: warning
"""

_BIND = """options {{
    directory "{folder}";
    pid-file none;
    session-keyfile none;
    listen-on port {port} {{ {ip}; }};
    listen-on-v6 {{ none; }};
    recursion no;
    dnssec-validation no;
}};
controls {{ }};
key "{key.name}" {{ algorithm {key.algorithm}; secret "{key.secret}"; }};
key "reader" {{ algorithm {key.algorithm}; secret "{key.secret}"; }};
logging {{ channel err {{ stderr; severity warning; }}; category default {{ err; }}; }};
zone "planes.test" {{
    type primary;
    file "{folder}/planes.zone";
    update-policy {{ grant {key.name} zonesub ANY; }};
}};
"""


def found(program: str) -> str | None:
    """Where a DNS server's program is; Debian keeps it out of the PATH of plain users."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def require(program: str) -> None:
    """Skip what needs a program that is not installed; in CI one of the two must be there."""
    others = [each for each in PRIMARIES if each != program and found(each)]
    if found(program) is None and (others or "CI" not in os.environ):
        pytest.skip(f"{program} is not installed (Debian: apt-get install knot bind9)")


@asynccontextmanager
async def primary(program: str, folder: Path) -> AsyncIterator[Rfc2136Dns]:
    """A running ``knotd`` or ``named`` that takes updates of ``ZONE``."""
    ip = "127.0.0.1" if program == "named" else loopback()  # named listens on addresses of interfaces only
    server = DnsServer(ip, free_port(ip))
    key = TsigKey(name="quarterdeck", secret=base64.b64encode(secrets.token_bytes(32)).decode())
    (folder / "planes.zone").write_text(_ZONE_FILE)
    template = _KNOT if program == "knotd" else _BIND
    config = folder / "server.conf"
    config.write_text(template.format(ip=ip, port=server.port, folder=folder, key=key))
    arguments = ("-c", str(config)) if program == "knotd" else ("-f", "-n", "1", "-c", str(config))
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(found(program)), *arguments, stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL
        )
    try:
        await _answering(process, server, folder / "log")
        yield Rfc2136Dns(server=server, zone=ZONE, key=key)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _answering(process: asyncio.subprocess.Process, server: DnsServer, log: Path) -> None:
    def runs() -> None:
        assert process.returncode is None, log.read_text()

    await until_answers(server, runs)


async def until_answers(server: DnsServer, runs: Callable[[], None] = lambda: None) -> None:
    """Wait for a server of ``ZONE`` that starts, as long as it ``runs``."""
    async with asyncio.timeout(20):
        while True:
            runs()
            try:
                await ask(server, f"ns.{ZONE}", timeout=0.2)
            except Unavailable:
                await asyncio.sleep(0.02)
            else:
                return


@asynccontextmanager
async def own_server(home: Path, *, machines: tuple[str, ...] = (EDGE,)) -> AsyncIterator[CoreDns]:
    """CoreDNS that was not started yet, on a site of its own."""
    upstream = Upstream.from_environment(os.environ)
    binary = (await upstream.ensure([UpstreamProgram.COREDNS], Versions()))[UpstreamProgram.COREDNS]
    async with local_site(home) as site:
        hosts = {
            each.name: DnsSettings(
                unit="dns",
                binary=PurePosixPath(binary),
                folder=site.folder(each.name, "dns"),
                address=each.address,
                port=free_port(each.address),
                zone=ZONE,
            )
            for each in await site.machines()
            if each.name in machines
        }
        yield CoreDns(site=site, hosts=hosts)
