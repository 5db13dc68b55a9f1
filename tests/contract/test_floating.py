"""Addresses that float between two edges, on the real kernel: who has one, and what becomes of clients."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from quarterdeck.endpoint.addresses.floating.kernel import LIFETIME
from quarterdeck.package import python_path
from quarterdeck.sites.netns.lab import Lab, available
from quarterdeck.sites.netns.layout import CLIENT, floating_address, inside

pytestmark = [pytest.mark.netns, pytest.mark.timeout(120)]
PEER = Path(__file__).with_name("netns_peer.py")
PORT = 7000
FIRST, SECOND = "east-edge", "east-edge-2"
NUMBERS = {FIRST: 254, SECOND: 253}
ONE, TWO = (str(floating_address(1, number, 0)) for number in NUMBERS.values())
#: Seconds within which an address is to be with another edge.
SOON = 1.0


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


@dataclass
class Edges:
    """A site with two edges on both of which the same plane has a load balancer, and one that clients can use."""

    lab: Lab
    folder: Path
    client: Peer
    balancers: dict[str, Peer] = field(default_factory=dict)
    agents: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    async def balancer(self, edge: str) -> None:
        peer = self.balancers[edge] = await started(self.lab, inside("east", edge))
        (self.folder / edge).unlink(missing_ok=True)
        await peer.do("floats", str(PORT), edge, str(self.folder / edge))

    async def agent(self, edge: str) -> None:
        orders = {"edge": edge, "owners": {ONE: FIRST, TWO: SECOND}, "port": PORT, "talk": 7001}
        file = self.folder / f"{edge}.json"
        file.write_text(json.dumps({**orders, "admin": str(self.folder / edge)}))
        self.agents[edge] = await asyncio.create_subprocess_exec(
            *self.lab.enter_argv(inside("east", edge)),
            *(sys.executable, "-S", "-P", "-m", "quarterdeck.endpoint.addresses.floating.agent", str(file)),
            env={"PYTHONPATH": python_path()},
        )

    async def connected(self, name: str, address: str) -> str:
        """Which machine a new connection of the client leads to; \"\" for none."""
        try:
            await self.client.do("connect", name, address, PORT, 0.2)
            return str(await self.client.do("hear", name, 0.2)).strip()
        except OSError:
            return ""

    async def leads(self, address: str, edge: str, within: float = 10.0) -> float:
        """Wait until an address leads to an edge; how many seconds it took."""
        began = time.monotonic()

        async def there() -> bool:
            found = await self.connected("look", address)
            return found == edge

        await until(there, within)
        return time.monotonic() - began

    async def settled(self) -> None:
        """Each edge has its own address."""
        for edge, address in ((FIRST, ONE), (SECOND, TWO)):
            await until(lambda edge=edge, address=address: holds(self, edge, {address}))
            await self.leads(address, edge)
        await self.client.do("close", "look")

    async def has(self, edge: str) -> set[str]:
        """The addresses that float which an edge has."""
        argv = [*self.lab.enter_argv(inside("east", edge)), sys.executable, "-c", HAS, ONE, TWO]
        process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
        return {*(await process.communicate())[0].decode().split()}


HAS = """
import socket, sys
for each in sys.argv[1:]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((each, 0))
        except OSError:
            continue
        print(each)
"""


async def until(holds: Callable[[], Awaitable[bool]], within: float = 10.0) -> None:
    end = time.monotonic() + within
    while not await holds():
        assert time.monotonic() < end, f"not within {within} s"
        await asyncio.sleep(0.01)


async def started(lab: Lab, where: str) -> Peer:
    argv = [*lab.enter_argv(where), sys.executable, str(PEER)]
    return Peer(
        await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    )


@pytest.fixture
async def edges() -> AsyncIterator[Edges]:
    allowed, reason = await available()
    if not allowed:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="qd-"))
    lab = await Lab.open(folder)
    await lab.add_site("east", 1)
    for edge, number in NUMBERS.items():
        await lab.add_machine("east", edge, number)
    made = Edges(lab, folder, await started(lab, CLIENT))
    try:
        for edge in NUMBERS:
            await made.balancer(edge)
            await made.agent(edge)
        await made.settled()
        yield made
    finally:
        await lab.close()
        for each in (made.client, *made.balancers.values()):
            await each.process.communicate()
        for each in made.agents.values():
            await each.wait()
        shutil.rmtree(folder)


async def test_an_edge_that_is_cut_off_loses_its_address_to_the_other_and_its_clients_know_at_once(
    edges: Edges,
) -> None:
    for name in ("waits", "asks"):
        assert await edges.connected(name, ONE) == FIRST
    assert await edges.connected("other", TWO) == SECOND
    began = time.monotonic()
    await edges.lab.cut_machine("east", FIRST)
    with pytest.raises(OSError, match="ConnectionReset"):  # it has sent nothing, and could wait for ever
        await edges.client.do("hear", "waits", 10.0)
    took = time.monotonic() - began
    assert await edges.connected("anew", ONE) == SECOND
    assert took < SOON, f"{took:.2f} s"
    print(f"another edge has the address after {took:.2f} s")
    with pytest.raises(OSError, match="Connection"):
        await edges.client.do("round", "asks", 2.0)
    assert await edges.client.do("round", "other", 2.0), "the other's own clients notice nothing"

    await edges.lab.restore_machine("east", FIRST)
    await until(lambda: holds(edges, FIRST, set()))
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        assert await edges.client.do("round", "anew", 2.0), "it stays where clients are connected"
    await edges.client.do("close", "anew")
    await until(lambda: holds(edges, FIRST, {ONE}))
    await edges.leads(ONE, FIRST)
    assert await edges.client.do("round", "other", 2.0)


async def holds(edges: Edges, edge: str, addresses: set[str]) -> bool:
    return await edges.has(edge) == addresses


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_an_agent_that_does_nothing_any_more_loses_the_address_by_the_kernel(edges: Edges, number: int) -> None:
    os.kill(edges.agents[FIRST].pid, number)
    took = await edges.leads(ONE, SECOND)
    assert took < SOON, f"{took:.2f} s"
    await until(lambda: holds(edges, FIRST, set()), LIFETIME + 3.0)
    assert await holds(edges, SECOND, {ONE, TWO})


async def test_an_agent_that_is_told_to_end_hands_over_at_once(edges: Edges) -> None:
    edges.agents[FIRST].terminate()
    await edges.agents[FIRST].wait()
    assert await holds(edges, FIRST, set())
    assert await edges.leads(ONE, SECOND) < 0.5


async def test_an_edge_whose_load_balancer_died_hands_over_and_gets_its_address_back(edges: Edges) -> None:
    edges.balancers[FIRST].process.kill()
    took = await edges.leads(ONE, SECOND)
    assert took < SOON, f"{took:.2f} s"
    await edges.client.do("close", "look")
    await edges.balancer(FIRST)
    await until(lambda: holds(edges, FIRST, {ONE}))
    await edges.leads(ONE, FIRST)


async def test_an_edge_that_hears_nothing_keeps_nothing_and_takes_nothing(edges: Edges) -> None:
    await edges.lab.deafen_machine("east", FIRST)
    await edges.leads(ONE, SECOND)
    await until(lambda: holds(edges, FIRST, set()))
    end = time.monotonic() + 2.0
    while time.monotonic() < end:
        assert await edges.connected("look", TWO) == SECOND
        assert await holds(edges, FIRST, set())


async def test_what_comes_again_after_it_died_goes_on_where_it_was(edges: Edges) -> None:
    assert await edges.connected("stays", ONE) == FIRST
    edges.agents[FIRST].kill()
    await edges.agents[FIRST].wait()
    await edges.agent(FIRST)
    end = time.monotonic() + LIFETIME + 1.0
    while time.monotonic() < end:
        assert await edges.client.do("round", "stays", 2.0)
