"""An address that is led from machine to machine, on the real kernel: nobody who is connected notices."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from contract.test_floating import Peer, started, until

from quarterdeck.endpoint.addresses.floating.election import PATIENCE
from quarterdeck.files import write_atomic
from quarterdeck.package import python_path
from quarterdeck.sites.netns.lab import Lab, available
from quarterdeck.sites.netns.layout import CLIENT, inside, led_addresses

pytestmark = [pytest.mark.netns, pytest.mark.timeout(120)]
PORT, TALK = 7000, 7001
ALONE, EDGE, OTHER = "m1", "edge", "edge-2"
NUMBERS = {ALONE: 1, EDGE: 254, OTHER: 253}
ADDRESS = led_addresses(1)[0]
#: Seconds within which an address is to be with another machine, and a client to be answered meanwhile.
SOON = 1.5


@dataclass
class Machines:
    """A site with a machine whose apiserver clients talk to straight, and two edges."""

    lab: Lab
    folder: Path
    client: Peer
    other: Peer
    servers: dict[str, Peer] = field(default_factory=dict)
    agents: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    number: int = 0

    async def server(self, machine: str) -> None:
        peer = self.servers[machine] = await started(self.lab, inside("east", machine))
        (self.folder / machine).unlink(missing_ok=True)
        await peer.do("floats", str(PORT), machine, str(self.folder / machine))

    async def agent(self, machine: str) -> None:
        self.agents[machine] = await asyncio.create_subprocess_exec(
            *self.lab.enter_argv(inside("east", machine)),
            *(
                sys.executable,
                "-S",
                "-P",
                "-m",
                "quarterdeck.endpoint.addresses.floating.agent",
                str(self._file(machine)),
            ),
            env={"PYTHONPATH": python_path()},
        )

    async def lead(self, *machines: str) -> None:
        """As the driver does: newer orders for those that are to have it, and for nobody else."""
        self.number += 1
        for machine in machines:
            orders = {
                "edge": machine,
                "owners": {ADDRESS: machines[0]},
                "port": PORT,
                "talk": TALK,
                "admin": "" if machine == ALONE else str(self.folder / machine),
                "order": machines,
                "leads": machines,
                "number": (1, self.number),
            }
            write_atomic(self._file(machine), json.dumps(orders).encode(), mode=0o600)
            if machine not in self.agents:
                await self.agent(machine)

    def _file(self, machine: str) -> Path:
        return self.folder / f"{machine}.json"

    async def connect(self, name: str, client: Peer | None = None) -> str:
        """Which machine a new connection leads to."""
        client = client or self.client
        await client.do("connect", name, ADDRESS, PORT, SOON + 8.0)
        return str(await client.do("hear", name, SOON + 8.0)).strip()

    async def led_to(self, machine: str, within: float = 4.0) -> None:
        began = time.monotonic()

        async def there() -> bool:
            found = await self.connect("look")
            await self.client.do("close", "look")
            return found == machine

        await until(there, 2 * within)
        took = time.monotonic() - began
        assert took < within, f"{took:.2f} s"

    async def rules(self, machine: str) -> int:
        """How many connections a machine goes on with, or passes on."""
        argv = [*self.lab.enter_argv(inside("east", machine)), sys.executable, "-c", RULES]
        process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
        return int((await process.communicate())[0])

    @asynccontextmanager
    async def used(self, *held: str) -> AsyncIterator[dict[str, float]]:
        """While the block lasts clients use their connections all the time, and others come and go."""
        longest = {"round": 0.0, "new": 0.0, "count": 0.0}
        done = asyncio.Event()

        async def use() -> None:
            turn = 0
            while not done.is_set():
                turn += 1
                began = time.monotonic()
                for name in held:
                    await self.client.do("round", name, 5.0)
                longest["round"] = max(longest["round"], time.monotonic() - began)
                began = time.monotonic()
                await self.connect(f"new-{turn}")
                await self.client.do("round", f"new-{turn}", 5.0)
                longest["new"] = max(longest["new"], time.monotonic() - began)
                longest["count"] += 1
                if turn > 5:  # some of them are being made in the moment of the change, and used after it
                    await self.client.do("round", f"new-{turn - 5}", 5.0)
                    await self.client.do("close", f"new-{turn - 5}")
            for last in range(max(1, turn - 4), turn + 1):
                await self.client.do("round", f"new-{last}", 5.0)
                await self.client.do("close", f"new-{last}")

        using = asyncio.create_task(use())
        try:
            yield longest
            await asyncio.sleep(0.5)
        finally:
            done.set()
            await using


@pytest.fixture
async def site() -> AsyncIterator[Machines]:
    allowed, reason = await available()
    if not allowed:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="qd-"))
    lab = await Lab.open(folder)
    await lab.add_site("east", 1)
    for machine, number in NUMBERS.items():
        await lab.add_machine("east", machine, number)
    made = Machines(lab, folder, await started(lab, CLIENT), await started(lab, CLIENT))
    try:
        for machine in NUMBERS:
            await made.server(machine)
        await made.lead(ALONE)
        await made.led_to(ALONE)
        yield made
    finally:
        await lab.close()
        for each in (made.client, made.other, *made.servers.values()):
            await each.process.communicate()
        for agent in made.agents.values():
            await agent.wait()
        shutil.rmtree(folder)


async def test_nobody_who_is_connected_notices_that_an_address_is_led_elsewhere_and_back(site: Machines) -> None:
    held = [f"held-{each}" for each in range(20)]
    for name in held:
        assert await site.connect(name) == ALONE
    async with site.used(*held) as longest:
        await site.lead(EDGE)
        await until(lambda: is_led(site, EDGE))
    print(f"to the edge: {longest}")
    assert max(longest["round"], longest["new"]) < SOON, longest
    later = [f"later-{each}" for each in range(20)]
    for name in later:
        assert await site.connect(name) == EDGE
    async with site.used(*held, *later) as longest:
        await site.lead(ALONE)
        await until(lambda: is_led(site, ALONE))
    print(f"and back: {longest}")
    assert max(longest["round"], longest["new"]) < SOON, longest
    for name in (*held, *later):
        assert await site.client.do("round", name, 2.0)
        await site.client.do("close", name)
    for machine in (ALONE, EDGE):
        await until(lambda machine=machine: has_rules(site, machine, 1 if machine == EDGE else 0))


async def is_led(site: Machines, machine: str) -> bool:
    """By what the machine itself says: no client is asked."""
    argv = [*site.lab.enter_argv(inside("east", machine)), sys.executable, "-c", HAS, ADDRESS]
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    return b"yes" in (await process.communicate())[0]


async def has_rules(site: Machines, machine: str, most: int) -> bool:
    return await site.rules(machine) <= most


RULES = """
from pyroute2 import IPRoute
print(sum(1 for each in IPRoute().get_rules() if each.get_attr("FRA_PRIORITY") in (6, 8)))
"""
HAS = """
import sys
from pyroute2 import IPRoute
print("yes" if any(each.get_attr("IFA_LOCAL") == sys.argv[1] for each in IPRoute().get_addr()) else "no")
"""


async def test_it_is_led_to_and_fro_again_and_again(site: Machines) -> None:
    held: list[str] = []
    async with site.used():
        for turn in range(6):
            there = (EDGE, ALONE)[turn % 2]
            await site.lead(there)
            await until(lambda there=there: is_led(site, there))
            held.append(f"held-{turn}")
            assert await site.connect(held[-1], site.other) == there
            for name in held:
                assert await site.other.do("round", name, 5.0), name


async def test_between_two_edges_it_goes_over_when_one_dies_and_nobody_else_takes_it(site: Machines) -> None:
    assert await site.connect("first") == ALONE
    await site.lead(EDGE, OTHER)
    await until(lambda: is_led(site, EDGE))
    assert await site.connect("second") == EDGE
    await site.lab.cut_machine("east", EDGE)
    with pytest.raises(OSError, match="ConnectionReset"):
        await site.client.do("hear", "second", 10.0)
    await site.led_to(OTHER)
    assert await site.client.do("round", "first", 2.0), "that one is passed on by the other edge as well"
    await site.lab.cut_machine("east", OTHER)
    await site.led_to(ALONE, PATIENCE + 5.0)
    await site.lab.restore_machine("east", OTHER)
    await site.led_to(OTHER)


async def test_clients_are_held_for_a_moment_and_go_on_by_themselves(site: Machines) -> None:
    assert await site.connect("one") == ALONE
    await site.lead(EDGE)
    await until(lambda: is_led(site, EDGE))
    assert await site.connect("two") == EDGE
    write_atomic(site.folder / "hold", b"0.800", mode=0o600)
    await asyncio.sleep(0.3)
    began = time.monotonic()
    assert await site.client.do("round", "one", 5.0), "held where it is, though another machine has the address"
    assert 0.3 < time.monotonic() - began < 4.0


async def test_an_agent_that_is_killed_goes_on_where_it_was(site: Machines) -> None:
    for name in ("one", "two"):
        assert await site.connect(name) == ALONE
    await site.lead(EDGE)
    await until(lambda: is_led(site, EDGE))
    assert await site.connect("three") == EDGE
    for machine in (ALONE, EDGE):
        site.agents[machine].kill()
        await site.agents[machine].wait()
        await site.agent(machine)
        end = time.monotonic() + 3.0
        while time.monotonic() < end:
            for name in ("one", "two", "three"):
                assert await site.client.do("round", name, 2.0), (machine, name)
        assert await is_led(site, EDGE), f"{machine} goes on where it was"
    await site.led_to(EDGE)
