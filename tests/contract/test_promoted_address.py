"""A promoted address on machines of this host, with the distribution's keepalived: what becomes of connections."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from quarterdeck.endpoint.clients_wait import pause_clients, pause_new_clients
from quarterdeck.endpoint.promoted_address import PromotedAddress
from quarterdeck.model.endpoints import RecordClaim
from quarterdeck.model.units import UnitSpec
from quarterdeck.sites.local.settings import LocalSiteSettings
from quarterdeck.sites.local.site import LocalSite, open_local_site
from quarterdeck.sites.netns.lab import Lab, NetnsIsolation, available
from quarterdeck.sites.netns.layout import CLIENT, inside
from quarterdeck.sites.vrrp import why_not_here

pytestmark = [
    pytest.mark.netns,
    pytest.mark.timeout(180),
    pytest.mark.skipif(bool(why_not_here()), reason=why_not_here()),
]
PEER = Path(__file__).with_name("netns_peer.py")
ALONE, EDGE = "east-a1", "east-edge"
UNIT, PORT, STATUS = "demo-keepalived", 7000, 7001
#: Seconds within which an address is with another machine once its own has ended, or fallen silent.
TAKEOVER = 4.0


@dataclass
class Peer:
    """A process inside the lab that does what it is told."""

    process: asyncio.subprocess.Process

    async def do(self, verb: str, *args: object) -> object:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([verb, *args]).encode() + b"\n")
        answer = json.loads(await asyncio.wait_for(self.process.stdout.readline(), 90))
        if "error" in answer:
            raise OSError(answer["error"])
        return answer["ok"]

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()


async def started(lab: Lab, where: str) -> Peer:
    argv = (*lab.enter_argv(where), sys.executable, str(PEER))
    pipe = asyncio.subprocess.PIPE
    return Peer(await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe))


@dataclass(frozen=True, slots=True, kw_only=True)
class FromInside(PromotedAddress):
    """The port as a manager inside the network has it."""

    client: Peer

    async def _answers(self) -> bool:
        try:
            await self.client.do("connect", "driver", self.address, self.port, 0.5)
        except OSError:
            return False
        await self.client.do("close", "driver")
        return True


@dataclass
class Machines:
    """A site with a machine whose apiserver clients talk to straight, and an edge."""

    site: LocalSite
    lab: Lab
    client: Peer
    dns: FromInside
    servers: dict[str, Peer] = field(default_factory=dict)

    @property
    def claim(self) -> RecordClaim:
        return RecordClaim(owner="demo/1", token=1, addresses=frozenset(each.address for each in self.dns.machines))

    async def lead(self, machine: str) -> None:
        address = next(each.address for each in self.dns.machines if each.name == machine)
        await self.dns.set("", (address,), 5, self.claim)

    async def connect(self, name: str, within: float = 8.0) -> str:
        """Which machine a new connection leads to."""
        await self.client.do("connect", name, self.dns.address, PORT, within)
        return str(await self.client.do("hear", name, within)).strip()

    async def leads_to(self, machine: str) -> bool:
        try:
            found = await self.connect("look", 0.3)
        except OSError:
            return False
        await self.client.do("close", "look")
        return found == machine

    async def held(self, *names: str) -> None:
        for name in names:
            assert await self.client.do("round", name, 5.0), name


async def until(holds: Callable[[], Awaitable[bool]], within: float = 10.0) -> float:
    began = time.monotonic()
    while not await holds():
        assert time.monotonic() - began < within, f"not within {within} s"
        await asyncio.sleep(0.2)  # who asks is a client too, and the address stays while one is connected
    return time.monotonic() - began


@pytest.fixture
async def made() -> AsyncIterator[Machines]:
    allowed, reason = await available()
    if not allowed:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="qd-"))
    settings = LocalSiteSettings(name="east", zones=("a",), machines_per_zone=1)
    site = open_local_site(folder, settings, NetnsIsolation(folder))
    lab = await Lab.open(folder)
    peers: list[Peer] = []
    try:
        for machine in (ALONE, EDGE):  # which makes it
            await site.start_unit(machine, UnitSpec(name="idle", argv=("/bin/sleep", "1000")))
        client = await started(lab, CLIENT)
        peers.append(client)
        dns = FromInside(
            plane="demo",
            address=site.led_addresses[0],
            site=site,
            machines=await site.machines(),
            unit=UNIT,
            port=PORT,
            status_port=STATUS,
            ttl=5,
            steady=time.monotonic,
            client=client,
        )
        machines = Machines(site, lab, client, dns)
        for machine in (ALONE, EDGE):
            peer = machines.servers[machine] = await started(lab, inside("east", machine))
            peers.append(peer)
            await peer.do("serves", PORT, machine, STATUS if machine == EDGE else 0)
        await machines.lead(ALONE)
        assert await machines.leads_to(ALONE)
        yield machines
    finally:
        for each in peers:
            await each.end()
        await site.destroy()
        await lab.close()
        shutil.rmtree(folder)


async def test_the_address_stays_with_those_who_are_connected_and_goes_once_they_have_left(made: Machines) -> None:
    assert await made.connect("held") == ALONE
    await asyncio.sleep(0.5)  # it is seen to be connected
    await made.lead(EDGE)
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        await made.held("held")
        assert await made.leads_to(ALONE), "a new client is answered where the address is"
    await made.client.do("close", "held")
    await until(lambda: made.leads_to(EDGE))
    assert await made.connect("later") == EDGE
    await made.lead(ALONE)
    await made.held("later")
    await made.client.do("close", "later")
    await until(lambda: made.leads_to(ALONE))


async def test_clients_that_come_and_go_while_it_goes_are_each_answered_by_one_machine(made: Machines) -> None:
    """At times nobody is connected, and the next client comes at any moment after."""
    coming = await started(made.lab, CLIENT)
    try:
        came = asyncio.create_task(coming.do("come and go", 4, made.dns.address, PORT, 20.0))
        for machine in (EDGE, ALONE):
            await made.lead(machine)
            took = await until(lambda machine=machine: made.leads_to(machine), 12.0)
            print(f"it is with {machine} after {took:.1f} s")
        seen = await came
    finally:
        await coming.end()
    assert isinstance(seen, list)
    assert seen
    assert set(seen) <= {ALONE, EDGE}  # one whose first packet is lost may find it at its old machine again


async def test_a_machine_that_stands_by_takes_over_from_one_that_falls_silent(made: Machines) -> None:
    assert await made.connect("held") == ALONE
    await made.lead(EDGE)
    assert await made.leads_to(ALONE)
    await made.lab.cut_machine("east", ALONE)
    took = await until(lambda: made.leads_to(EDGE), TAKEOVER)
    print(f"the address answers again after {took:.1f} s")
    await made.lab.restore_machine("east", ALONE)
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        assert await made.leads_to(EDGE), "who comes back takes nothing from those that are to have it"


async def test_clients_wait_for_a_moment_and_what_they_sent_is_answered(made: Machines) -> None:
    assert await made.connect("held") == ALONE
    await made.dns.hold(1.5)
    with pytest.raises(OSError, match=r"[Tt]imed? ?out"):
        await made.client.do("round", "held", 0.5)
    began = time.monotonic()
    assert await made.client.do("hear", "held", 5.0) == "x", "it is sent again, once the machine itself lets it through"
    assert time.monotonic() - began < 4.0
    await made.dns.hold(10.0)
    await made.dns.let_go()
    await made.held("held")


async def test_new_clients_wait_and_those_who_are_connected_go_on(made: Machines) -> None:
    assert await made.connect("held") == ALONE
    await pause_new_clients(made.site, ALONE, UNIT, 10.0)
    with pytest.raises(OSError, match=r"[Tt]imed? ?out"):
        await made.connect("new", 0.5)
    await made.held("held")
    await pause_clients(made.site, ALONE, UNIT, 10.0)
    with pytest.raises(OSError, match=r"[Tt]imed? ?out"):
        await made.client.do("round", "held", 0.5)
    await made.dns.let_go()
    assert await made.connect("new") == ALONE
    await made.held("new")


async def test_an_apiserver_that_ends_while_clients_wait_gives_the_address_to_the_next_and_refuses_nobody(
    made: Machines,
) -> None:
    assert await made.connect("held") == ALONE
    await asyncio.sleep(0.5)
    await made.lead(EDGE)
    assert await made.leads_to(ALONE)
    await made.dns.hold(10.0)
    coming = asyncio.create_task(made.connect("comes", 9.0))  # its first packet is lost, and sent again after a second
    await asyncio.sleep(0.2)
    await made.servers[ALONE].end()
    await made.dns.let_go()
    assert await coming == EDGE
    await until(lambda: made.leads_to(EDGE), TAKEOVER)


async def test_what_runs_keepalived_leaves_nothing_and_only_one_machine_has_the_address(made: Machines) -> None:
    await made.lead(EDGE)
    await until(lambda: made.leads_to(EDGE))
    assert await has(made, EDGE)
    assert not await has(made, ALONE)
    await made.dns.remove("", made.claim)
    for machine in (ALONE, EDGE):
        assert not await has(made, machine)
        assert [each.name for each in await made.site.units(machine)] == ["idle"]


async def has(made: Machines, machine: str) -> bool:
    argv = (*made.lab.enter_argv(inside("east", machine)), "ip", "-o", "addr", "show", "to", f"{made.dns.address}/32")
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    return bool((await process.communicate())[0])
