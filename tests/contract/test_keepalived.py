"""Addresses that go from edge to edge by VRRP, on real machines with the distribution's keepalived."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
import pytest_asyncio
from support.endpoint_lab import MANAGER, SERVER_NAME, Authority, Backend, connect, eventually
from support.hosts_lab import HostsLab, LabHost, why_not

from quarterdeck.components.traffic.envoy import BalancerSettings
from quarterdeck.components.traffic.keepalived import KEEPALIVED, keepalived_unit, router_settings, served_file
from quarterdeck.endpoint.balancers.envoy import EnvoyBalancer, Floating, issue_balancer_tls
from quarterdeck.errors import Unavailable
from quarterdeck.http import Http
from quarterdeck.model.endpoints import BackendAddress
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.netns.layout import CLIENT_ADDRESS
from quarterdeck.sites.ssh.connections import HostConnections
from quarterdeck.sites.ssh.hosts import Login, SshHost, SshSettings
from quarterdeck.sites.ssh.site import SshSite, open_ssh_site
from quarterdeck.upstream import Upstream, UpstreamProgram, Versions

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.timeout(180),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.asyncio(loop_scope="module"),
]
E1, E2 = EDGES = ("east-e1", "east-e2")
PORT, STATUS = 6443, 26443
UNIT = "demo-envoy"
#: Seconds within which an address answers again when its edge has lost its power.
TAKEOVER = 3.0


@pytest.fixture(scope="module")
def lab() -> Iterator[HostsLab]:
    with HostsLab([LabHost(each, "east", "a") for each in EDGES]) as made:
        yield made


@dataclass
class Edges:
    """Two edges that share one address, and a client of theirs."""

    lab: HostsLab
    site: SshSite
    address: str
    balancers: dict[str, EnvoyBalancer]
    authority: Authority
    backend: Backend

    def has(self, edge: str) -> bool:
        return f"inet {self.address}/32" in self.lab.sh(edge, "ip -o addr")

    @property
    def holders(self) -> list[str]:
        return [each for each in EDGES if self.lab.is_on(each) and self.has(each)]

    async def are(self, *holders: str, within: float = 30.0) -> None:
        async def as_expected() -> bool:
            return self.holders == [*holders]

        await eventually(as_expected, within=within)

    async def ask(self) -> str:
        client = await asyncio.wait_for(connect(self.address, PORT, self.authority.anonymous()), 1.0)
        try:
            return await asyncio.wait_for(client.ask(), 1.0)
        finally:
            client.writer.transport.abort()

    async def answers(self) -> bool:
        try:
            return await self.ask() == "r1"
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            return False

    async def apply(self) -> None:
        there = {"r1": BackendAddress(self.backend.ip, self.backend.port)}
        await asyncio.gather(*(each.apply(there) for each in self.balancers.values()))
        await eventually(self.answers)


@asynccontextmanager
async def shared(lab: HostsLab, folder: Path) -> AsyncIterator[Edges]:
    home, os.environ["HOME"] = os.environ["HOME"], str(lab.access.folder)
    vip = ".".join((*lab.address(E1).split(".")[:3], "200"))
    hosts = HostConnections("tests")
    authority = Authority(folder)
    envoy = (await Upstream.from_environment(os.environ).ensure([UpstreamProgram.ENVOY], Versions()))[
        UpstreamProgram.ENVOY
    ]
    try:
        with lab.inside():
            settings = SshSettings(
                name="east",
                hosts=tuple(_host(lab, each) for each in EDGES),
                floating_addresses=(vip,),
            )
            site = open_ssh_site(settings, hosts)
            client = Http(authority.manager())
            backend = Backend("r1", CLIENT_ADDRESS, 7443, authority.server(ip=CLIENT_ADDRESS))
            await backend.start()
            balancers = {each: _balancer(site, each, lab, vip, authority, client, envoy) for each in EDGES}
            try:
                yield Edges(lab, site, vip, balancers, authority, backend)
            finally:
                lab.power_on(*(each for each in EDGES if not lab.is_on(each)))
                await backend.stop()
                await client.close()
                await site.destroy()
                await hosts.close()
    finally:
        os.environ["HOME"] = home


def _host(lab: HostsLab, name: str) -> SshHost:
    login = Login(host=name, user="deck")
    return SshHost(name=name, address=lab.address(name), zone="a", roles=(MachineRole.EDGE,), login=login)


def _balancer(
    site: SshSite, edge: str, lab: HostsLab, vip: str, authority: Authority, client: Http, envoy: Path
) -> EnvoyBalancer:
    address, folder = lab.address(edge), site.folder(edge, KEEPALIVED)
    return EnvoyBalancer(
        site=site,
        machine=edge,
        settings=BalancerSettings(
            unit=UNIT,
            binary=PurePosixPath(envoy),
            folder=site.folder(edge, UNIT),
            address=address,
            port=PORT,
            status_port=STATUS,
            floating=(vip,),
            ready_port=STATUS,
            server_name=SERVER_NAME,
        ),
        tls=lambda: issue_balancer_tls(authority.authorities, MANAGER, (address, vip), authority.now, (edge,)),
        client=client,
        floating=Floating(
            own=vip,
            unit=keepalived_unit(site.router(edge), folder, site.routing(edge, KEEPALIVED)),
            watched=served_file(folder, "demo", ready=STATUS, port=PORT),
            named=edge,
        ),
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(lab: HostsLab, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Edges]:
    async with shared(lab, tmp_path_factory.mktemp("edges")) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def edges(both: Edges) -> Edges:
    """The same edges for each test, which gets them well, with the address at the first one."""
    await both.apply()
    await both.are(E1)
    return both


async def test_one_edge_has_the_address_and_both_say_which(edges: Edges) -> None:
    seen = {name: await each.observe() for name, each in edges.balancers.items()}
    assert {name: (each.running, each.at_home) for name, each in seen.items()} == {E1: (True, True), E2: (True, False)}
    assert all(each.healthy == {"r1"} for each in seen.values()), "who stands by is told everything"


async def test_when_its_edge_loses_its_power_the_address_answers_from_the_other_one(edges: Edges) -> None:
    try:
        await asyncio.to_thread(edges.lab.network.unplug, edges.lab.place(E1))
        silent = time.monotonic()
        await eventually(edges.answers, within=TAKEOVER)
        assert time.monotonic() - silent < TAKEOVER
        await asyncio.to_thread(edges.lab.power_off, E1)
        assert edges.has(E2)
        assert (await edges.balancers[E2].observe()).at_home
        with pytest.raises(Unavailable):
            await edges.balancers[E1].observe()
    finally:
        if edges.lab.is_on(E1):
            await asyncio.to_thread(edges.lab.power_off, E1)
        await asyncio.to_thread(edges.lab.power_on, E1)
    await edges.are(E1, within=60.0)  # the other one has tried in vain to give the address away, and waits
    await eventually(edges.answers)


async def test_the_address_goes_home_only_when_nobody_is_connected(edges: Edges) -> None:
    await edges.site.stop_unit(E1, KEEPALIVED)
    await edges.are(E2)
    client = await connect(edges.address, PORT, edges.authority.anonymous())
    await asyncio.sleep(2)  # it is seen to be connected
    await edges.balancers[E1].apply({"r1": BackendAddress(edges.backend.ip, edges.backend.port)})
    until = time.monotonic() + 4.0
    while time.monotonic() < until:
        assert edges.holders == [E2]
        assert await client.ask() == "r1"
    await client.close()
    await edges.are(E1)


async def test_keepalived_that_somebody_stops_is_seen_and_runs_again_with_the_next_word(edges: Edges) -> None:
    first = edges.balancers[E1]
    assert not (await first.observe(await edges.site.facts())).unrouted
    edges.lab.sh(E1, "systemctl stop quarterdeck-keepalived")
    await edges.are(E2)
    seen = await first.observe(await edges.site.facts())
    assert (seen.running, seen.at_home, seen.unrouted) == (True, False, "keepalived does not run there")
    assert not (await edges.balancers[E2].observe(await edges.site.facts())).unrouted
    await first.apply({"r1": BackendAddress(edges.backend.ip, edges.backend.port)})
    assert not (await first.observe(await edges.site.facts())).unrouted
    await edges.are(E1)
    await eventually(edges.answers)


async def test_an_edge_whose_load_balancer_leads_nowhere_gives_the_address_up(edges: Edges) -> None:
    await edges.site.stop_unit(E1, UNIT)
    await edges.are(E2)
    await eventually(edges.answers)
    await edges.site.stop_unit(E2, UNIT)
    await asyncio.sleep(4)
    assert len(edges.holders) == 1, "nobody is any better, and nobody is connected: it may be at home"


async def test_a_load_balancer_that_starts_again_keeps_the_address_and_one_that_goes_leaves_it(edges: Edges) -> None:
    pid = next(each.pid for each in await edges.site.units(E1) if each.name == UNIT)
    edges.lab.sh(E1, f"kill -9 {pid}")
    until = time.monotonic() + 4.0
    while time.monotonic() < until:
        assert edges.holders == [E1]
    await edges.balancers[E1].remove()
    await asyncio.sleep(4)
    assert edges.holders == [E1], "it is for all planes"


async def test_keepalived_that_is_killed_leaves_no_second_address(edges: Edges) -> None:
    edges.lab.sh(E1, "systemctl kill -s KILL quarterdeck-keepalived")
    await edges.are(E1)
    await eventually(edges.answers)


async def test_one_more_edge_is_made_known_while_the_address_stays_where_it_is(edges: Edges) -> None:
    third = {**{each: edges.lab.address(each) for each in EDGES}, "east-e3": "192.0.2.3"}
    folder = edges.site.folder(E1, KEEPALIVED)
    client = await connect(edges.address, PORT, edges.authority.anonymous())
    for edge in EDGES:
        pid = edges.lab.sh(edge, "pgrep -o -x keepalived")
        settings = router_settings(edge, third, (edges.address,))
        await edges.site.reload_unit(edge, keepalived_unit(settings, folder, edges.site.routing(edge, KEEPALIVED)))

        async def has_reloaded(edge: str = edge) -> bool:
            count = edges.lab.sh(edge, "journalctl -q -o cat -u quarterdeck-keepalived | grep -c Reloading || true")
            return int(count) > 0

        await eventually(has_reloaded)
        until = time.monotonic() + 3.0  # a few advertisements
        while time.monotonic() < until:
            assert edges.holders == [E1]
            assert await client.ask() == "r1"
            assert await edges.ask() == "r1"
        assert edges.lab.sh(edge, "pgrep -o -x keepalived") == pid
        assert "192.0.2.3" in edges.lab.sh(edge, "cat /run/quarterdeck/keepalived.conf")
        assert not next(each for each in await edges.site.units(edge) if each.name == KEEPALIVED).altered
    await client.close()


async def test_it_is_confined(edges: Edges) -> None:
    report = edges.lab.sh(E1, "systemd-analyze security --no-pager --json=short quarterdeck-keepalived.service || true")
    exposed = [each for each in json.loads(report) if each["exposure"] and float(each["exposure"]) >= 0.3]
    text = edges.lab.sh(E1, "systemd-analyze security --no-pager quarterdeck-keepalived.service | tail -n 1")
    assert float(text.split("unit:")[-1].split("service:")[-1].split()[0]) <= 4.0, (text, exposed)
    assert "quarterdeck-vrrp" in edges.lab.sh(E1, "ps -C keepalived -o user:32=")
