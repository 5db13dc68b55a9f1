"""Labs on the real kernel. Run as root these hold with a user namespace of all users; the last one runs all of
them again as somebody without any privilege.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from quarterdeck.endpoint.door_guests import add_guest, guests_file
from quarterdeck.errors import Conflict, NotFound, Unavailable
from quarterdeck.linux.processes import ProcessId
from quarterdeck.sites.isolation import MachinePlace
from quarterdeck.sites.netns.control import KEEPER_FILE, lab_folder
from quarterdeck.sites.netns.lab import Lab, NetnsIsolation, available
from quarterdeck.sites.netns.layout import CLIENT, HUB, OUTSIDE, Cut, Layout, Way, inside

pytestmark = [pytest.mark.netns, pytest.mark.timeout(120)]
PEER = Path(__file__).with_name("netns_peer.py")
E1, E2, W1, W2 = (inside(site, f"{site}-{number}") for site in ("east", "west") for number in (1, 2))
ADDRESS = {E1: "10.89.1.1", E2: "10.89.1.2", W1: "10.89.2.1", W2: "10.89.2.2", CLIENT: "10.89.0.2", HUB: "10.89.0.53"}


class Silence(Exception):
    """Nothing came."""


class Peer:
    """A process inside the lab that does what it is told."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def do(self, verb: str, *args: object) -> object:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([verb, *args]).encode() + b"\n")
        answer = json.loads(await asyncio.wait_for(self.process.stdout.readline(), 90))
        if "error" in answer:
            raise Silence if answer["error"] == "TimeoutError" else OSError(answer["error"])
        return answer["ok"]

    async def quickest(self, name: str = "c") -> float:
        """The shortest of several round trips, in seconds: each takes longer where the host's processors are busy."""
        return min([await self.rtt(name) for _ in range(5)])

    async def rtt(self, name: str, timeout: float = 20.0) -> float:
        seconds = await self.do("round", name, timeout)
        assert isinstance(seconds, float)
        return seconds


class World:
    """A lab with two machines at each of two sites, and the peers in it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.peers: list[Peer] = []

    async def peer(self, where: str) -> Peer:
        argv = [*self.lab.enter_argv(where), sys.executable, str(PEER)]
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        self.peers.append(Peer(process))
        return self.peers[-1]

    async def echo(self, where: str) -> Peer:
        peer = await self.peer(where)
        await peer.do("listen", ADDRESS[where], 7000, "echo")
        return peer

    async def connected(self, where: str, target: str) -> Peer:
        """A peer with the connection ``c`` to an echo server elsewhere."""
        await self.echo(target)
        peer = await self.peer(where)
        await peer.do("connect", "c", ADDRESS[target], 7000, 20.0)
        return peer


@pytest.fixture(scope="module")
def shared_home() -> Iterator[Path]:
    """The home of one lab that the tests use in turn; most leave its keeper alive."""
    allowed, reason = asyncio.run(available())
    if not allowed:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix=f"quarterdeck-{'long' * 30}-"))
    yield folder
    asyncio.run(Lab(folder).close())
    shutil.rmtree(folder)


@pytest.fixture
async def home(shared_home: Path) -> AsyncIterator[Path]:
    """The same home for one test, which gets it empty and in any order."""
    yield shared_home
    await emptied(shared_home)


@pytest.fixture
async def world(home: Path) -> AsyncIterator[World]:
    lab = await Lab.open(home)
    world = World(lab)
    try:
        for number, site in enumerate(("east", "west"), start=1):
            await lab.add_site(site, number)
            for machine in (1, 2):
                assert await lab.add_machine(site, f"{site}-{machine}", machine) == f"10.89.{number}.{machine}"
        yield world
    finally:
        await emptied(home)  # ends the peers
        for peer in world.peers:
            await peer.process.communicate()


async def emptied(home: Path) -> None:
    """Leave a lab without machines, sites, ways and processes to the next test."""
    lab = await Lab.open(home)
    layout = await lab.layout()
    for where in (CLIENT, HUB, *(inside(each.site, each.name) for each in layout.machines)):
        for pid in await lab.processes(where):
            os.kill(pid, signal.SIGKILL)
    for site in layout.sites:  # its last machine takes a site along, and one without machines has none to do so
        if not any(each.site == site.name for each in layout.machines):
            await lab.add_machine(site.name, "last", 1)
    for each in (await lab.layout()).machines:
        await lab.remove_machine(each.site, each.name)
    assert await lab.layout() == Layout()


async def test_all_places_of_a_lab_reach_each_other(world: World) -> None:
    servers = (E1, W1, W2, HUB)
    for server in servers:
        await world.echo(server)
    for where in (E1, E2, W1, CLIENT, HUB):
        peer = await world.peer(where)
        for number, server in enumerate(servers):
            await peer.do("connect", f"c{number}", ADDRESS[server], 7000, 5.0)
            assert await peer.quickest(f"c{number}") < 0.1


ASKS = """
import asyncio, sys, pathlib
from quarterdeck.sites.netns.lab import Lab
print(asyncio.run(Lab(pathlib.Path(sys.argv[1])).holds_us()))
"""


@pytest.mark.parametrize("where", [CLIENT, HUB, W1])
async def test_a_process_knows_whether_it_is_in_the_lab(world: World, where: str, tmp_path: Path) -> None:
    assert not await world.lab.holds_us()
    for home, answer in ((world.lab.home, b"True"), (tmp_path, b"False")):  # another home's lab is out of reach
        argv = [*world.lab.enter_argv(where), sys.executable, "-c", ASKS, str(home)]
        process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
        assert (await process.communicate())[0].strip() == answer


async def test_a_lab_does_not_see_the_network_of_the_host(world: World) -> None:
    with_listener = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
    port = with_listener.sockets[0].getsockname()[1]
    for where in (E1, CLIENT):
        peer = await world.peer(where)
        with pytest.raises(OSError, match="ConnectionRefused"):
            await peer.do("connect", "c", "127.0.0.1", port, 2.0)
    with_listener.close()
    await with_listener.wait_closed()


async def test_the_addresses_of_its_seats_lead_to_a_machine_wherever_its_own_does(world: World) -> None:
    """They are cut and delayed as it is."""
    (seat, *_), lab = await world.lab.seat_addresses("west", "west-1"), world.lab
    server = await world.peer(W1)
    await server.do("listen", seat, 7000, "echo")
    peers = {where: await world.peer(where) for where in (E1, W1, W2, CLIENT)}
    for peer in peers.values():
        await peer.do("connect", "c", seat, 7000, 5.0)
        assert await peer.quickest() < 0.1
    await lab.set_link("east", "west", delay_ms=30.0)
    assert await peers[E1].rtt("c") > 0.06
    assert await peers[W2].quickest() < 0.03
    await lab.set_link("east", "west", cut=Cut.A_TO_B)
    with pytest.raises(Silence):
        await peers[E1].rtt("c", 0.5)
    assert await peers[W2].quickest() < 0.1


@pytest.mark.parametrize("cut", [Cut.BOTH, Cut.A_TO_B, Cut.B_TO_A])
async def test_a_connection_falls_silent_in_a_cut_and_goes_on_after_it(world: World, cut: Cut) -> None:
    peer = await world.connected(E1, W1)
    await peer.rtt("c")
    await world.lab.set_link("east", "west", cut=cut)
    with pytest.raises(Silence):
        await peer.rtt("c", 0.5)
    inside_site = await world.connected(E2, E1)
    assert await inside_site.quickest() < 0.1, "the sites themselves are whole"
    await world.lab.set_link("east", "west")
    assert await peer.do("hear", "c", 20.0) == "x", "what was lost in the cut came through after it"
    assert await peer.quickest() < 0.2


@pytest.mark.parametrize("delay_ms", [0.0, 5.0])
async def test_a_cut_of_one_direction_leaves_the_other_open(world: World, delay_ms: float) -> None:
    east, west = await world.peer(E1), await world.peer(W1)
    await east.do("bind", "u", ADDRESS[E1], 5000)
    await west.do("bind", "u", ADDRESS[W1], 5000)
    await world.lab.set_link("east", "west", delay_ms=delay_ms, cut=Cut.A_TO_B)
    await east.do("throw", "u", ADDRESS[W1], 5000, "lost")
    await west.do("throw", "u", ADDRESS[E1], 5000, "kept")
    assert await east.do("hear", "u", 5.0) == "kept"
    with pytest.raises(Silence):
        await west.do("hear", "u", 0.3)
    await world.lab.set_link("east", "west", delay_ms=delay_ms, cut=Cut.B_TO_A)
    await east.do("throw", "u", ADDRESS[W1], 5000, "kept")
    assert await west.do("hear", "u", 5.0) == "kept"


async def test_a_deaf_machine_is_heard_and_hears_nothing(world: World) -> None:
    deaf, other, far = await world.peer(E1), await world.peer(E2), await world.peer(W1)
    connected = await world.connected(E2, E1)
    await deaf.do("bind", "u", ADDRESS[E1], 5000)
    await other.do("bind", "u", ADDRESS[E2], 5000)
    await far.do("bind", "u", ADDRESS[W1], 5000)
    await world.lab.deafen_machine("east", "east-1")
    for peer, address in ((other, ADDRESS[E2]), (far, ADDRESS[W1])):
        await peer.do("throw", "u", ADDRESS[E1], 5000, "lost")
        await deaf.do("throw", "u", address, 5000, "kept")
        assert await peer.do("hear", "u", 5.0) == "kept"
    with pytest.raises(Silence):
        await connected.rtt("c", 0.5)
    with pytest.raises(Silence):
        await deaf.do("hear", "u", 0.3)
    await world.lab.restore_machine("east", "east-1")
    assert await connected.do("hear", "c", 20.0) == "x", "what was lost came through afterwards"
    await other.do("throw", "u", ADDRESS[E1], 5000, "kept")
    assert await deaf.do("hear", "u", 5.0) == "kept"


async def test_a_new_connection_into_a_cut_gets_no_answer_at_all(world: World) -> None:
    await world.echo(W1)
    await world.lab.set_link("east", "west", cut=Cut.BOTH)
    peer = await world.peer(E1)
    with pytest.raises(Silence):
        await peer.do("connect", "c", ADDRESS[W1], 7000, 0.5)


async def test_the_client_can_be_cut_off_from_a_site(world: World) -> None:
    peer = await world.connected(CLIENT, W1)
    await world.lab.set_link(OUTSIDE, "west", cut=Cut.BOTH)
    with pytest.raises(Silence):
        await peer.rtt("c", 0.3)
    between_sites = await world.connected(E1, W2)
    assert await between_sites.quickest() < 0.1


async def test_a_delay_is_what_was_asked_for_and_can_be_changed_under_a_connection(world: World) -> None:
    peer = await world.connected(E1, W1)
    for asked_ms in (40.0, 10.0, 80.0, 0.0):
        await world.lab.set_link("east", "west", delay_ms=asked_ms)
        both_ways = 2 * asked_ms / 1000
        assert both_ways <= await peer.quickest() < both_ways + 0.015
        inner = await world.connected(CLIENT, E1) if asked_ms == 40.0 else None
        assert inner is None or await inner.quickest() < 0.03, "other ways are not delayed"
        if inner is not None:
            world.peers[-2].process.kill()  # its port is free for the next round
    assert (await world.lab.link("east", "west")).rtt_ms == 0


async def test_a_delay_may_differ_by_direction(world: World) -> None:
    await world.lab.set_link("east", "west", delay_ms=60.0, delay_back_ms=0.0)
    link = await world.lab.link("west", "east")
    assert (link.a_to_b, link.b_to_a) == (Way(), Way(60.0))
    peer = await world.connected(W1, E1)
    assert 0.06 <= await peer.quickest() < 0.09


async def test_a_stream_survives_every_change_of_its_way_whole(world: World) -> None:
    server, peer = await world.peer(W1), await world.peer(E1)
    await server.do("listen", ADDRESS[W1], 7001, "sink")
    await peer.do("connect", "c", ADDRESS[W1], 7001, 5.0)
    streaming = asyncio.create_task(peer.do("stream", "c", 64 << 20))
    for delay_ms in (5.0, 0.0, 20.0, 2.0):
        await world.lab.set_link("east", "west", delay_ms=delay_ms)
        await world.lab.set_link("east", "west", delay_ms=delay_ms, cut=Cut.BOTH)
        await world.lab.set_link("east", "west", delay_ms=delay_ms)
    taken, _seconds = await streaming  # type: ignore[misc]
    assert taken == 64 << 20


async def test_an_idle_lab_sleeps(world: World) -> None:
    await world.lab.set_link("east", "west", delay_ms=5.0)
    peer, neighbour = await world.connected(E1, W1), await world.connected(W2, E2)
    await peer.rtt("c")
    await neighbour.rtt("c")
    within_site = await world.connected(CLIENT, HUB)
    holder = keeper(world.lab.home)["keeper"].pid
    processes = (holder, *children_of(holder))
    before = [awakenings(each) for each in processes]
    for _ in range(200):
        await within_site.rtt("c")
    # A last acknowledgement of the way between the sites may still come by.
    assert sum(awakenings(each) for each in processes) - sum(before) <= 8


async def test_a_dead_forwarder_is_replaced_and_the_delay_never_lost(world: World) -> None:
    await world.lab.set_link("east", "west", delay_ms=30.0)
    peer = await world.connected(E1, W1)
    for _ in range(3):
        forwarder = children_of(keeper(world.lab.home)["keeper"].pid)
        assert len(forwarder) == 1
        os.kill(forwarder[0], signal.SIGKILL)
        assert await peer.rtt("c") >= 0.06


async def test_a_machine_that_is_cut_off_is_silent_and_comes_back(world: World) -> None:
    peer = await world.connected(E1, W1)
    neighbour = await world.connected(W2, E2)
    await world.lab.cut_machine("west", "west-1")
    with pytest.raises(Silence):
        await peer.rtt("c", 0.5)
    assert await neighbour.quickest() < 0.1
    await world.lab.restore_machine("west", "west-1")
    assert await peer.do("hear", "c", 20.0) == "x"


async def test_everything_may_be_asked_for_twice(world: World) -> None:
    peer = await world.connected(E1, W1)
    for _ in range(2):
        await world.lab.add_site("east", 1)
        await world.lab.add_machine("east", "east-1", 1)
        await world.lab.set_link("east", "west", delay_ms=1.0)
        await world.lab.cut_machine("east", "east-2")
        await world.lab.remove_machine("west", "west-2")
    assert await peer.quickest() < 0.1
    layout = await world.lab.layout()
    assert [each.name for each in layout.machines if each.plugged] == ["east-1", "west-1"]


async def test_what_cannot_be_is_refused(world: World) -> None:
    with pytest.raises(Conflict):
        await world.lab.add_site("north", 1)
    with pytest.raises(Conflict):
        await world.lab.add_machine("east", "east-9", 1)
    with pytest.raises(NotFound):
        await world.lab.add_machine("north", "north-1", 1)
    with pytest.raises(NotFound):
        await world.lab.set_link("east", "north", delay_ms=1.0)
    with pytest.raises(NotFound):
        await world.lab.cut_machine("east", "nobody")
    process = await asyncio.create_subprocess_exec(
        *world.lab.enter_argv(inside("east", "nobody")), "true", stderr=asyncio.subprocess.PIPE
    )
    assert b"nobody" in (await process.communicate())[1]
    assert process.returncode == 69


async def test_processes_of_a_machine_are_found_also_when_nobody_remembers_them(world: World) -> None:
    peer = await world.peer(E1)
    daemon = await peer.do("daemon")
    assert set(await world.lab.processes(E1)) == {peer.process.pid, daemon}
    assert await world.lab.processes(E2) == ()


async def test_the_last_machine_takes_its_site_along(world: World) -> None:
    await world.lab.set_link("east", "west", delay_ms=5.0, cut=Cut.BOTH)
    for name in ("west-1", "west-2"):
        await world.lab.remove_machine("west", name)
    layout = await world.lab.layout()
    assert [each.name for each in layout.sites] == ["east"]
    assert layout.ways == ()
    await world.lab.add_site("north", 2)
    await world.lab.add_machine("north", "north-1", 1)
    await world.echo(E1)
    peer = await world.peer(inside("north", "north-1"))
    await peer.do("connect", "c", ADDRESS[E1], 7000, 5.0)


@pytest.mark.parametrize("role", ["keeper", "guard"])
async def test_nothing_is_left_when_the_keeper_or_its_guard_is_killed(world: World, role: str) -> None:
    mounts = Path("/proc/self/mounts").read_text()
    interfaces = Path("/proc/net/dev").read_text().count(":")
    await world.lab.set_link("east", "west", delay_ms=5.0)
    peer = await world.peer(E1)
    daemon = await peer.do("daemon")
    assert isinstance(daemon, int)
    ids = keeper(world.lab.home)
    everybody = [*ids.values(), known(daemon), known(children_of(ids["keeper"].pid)[0]), known(peer.process.pid)]
    os.kill(ids[role].pid, signal.SIGKILL)
    for process in everybody:
        await asyncio.to_thread(process.wait, asyncio.get_running_loop().time() + 20)
    assert not [process for process in everybody if process.alive()]
    assert Path("/proc/self/mounts").read_text() == mounts
    assert Path("/proc/net/dev").read_text().count(":") == interfaces
    with pytest.raises(Unavailable):
        await world.lab.layout()
    assert not await world.lab.runs()


async def test_a_lab_whose_keeper_was_killed_comes_back_as_it_was(world: World) -> None:
    await world.lab.set_link("east", "west", delay_ms=20.0)
    await world.lab.cut_machine("east", "east-2")
    before = await world.lab.layout()
    os.kill(keeper(world.lab.home)["keeper"].pid, signal.SIGKILL)
    # At once, while the guard may still be cleaning up.
    again = await Lab.open(world.lab.home)
    assert await again.layout() == before
    peer = await world.connected(W1, E1)
    assert 0.04 <= await peer.quickest() < 0.08


async def test_those_who_open_a_lab_at_once_share_it(home: Path) -> None:
    await Lab(home).close()
    labs = await asyncio.gather(*(Lab.open(home) for _ in range(3)))
    first = keeper(home)
    await labs[0].add_site("east", 1)
    assert [each.name for each in (await labs[2].layout()).sites] == ["east"]
    assert keeper(home) == first
    await labs[0].close()
    assert not first["keeper"].alive()
    await labs[2].close()  # nothing happens to one that is closed


async def test_a_program_in_the_client_can_start_others_on_machines(world: World) -> None:
    nested = [*world.lab.enter_argv(CLIENT), *world.lab.enter_argv(E1), "cat", "/proc/net/fib_trie"]
    process = await asyncio.create_subprocess_exec(*nested, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert ADDRESS[E1].encode() in output
    assert ADDRESS[CLIENT].encode() not in output


async def test_the_local_driver_can_plug_in_and_out_and_release_as_often_as_it_likes(home: Path) -> None:
    isolation = NetnsIsolation(home)
    place = MachinePlace(site="north", site_number=254, machine="north-1", machine_number=254, zone="a")
    assert isolation.address(place) == "10.89.254.254"
    await Lab(home).close()
    await isolation.unplug(place)
    assert not await Lab(home).runs(), "there is nothing to unplug where nothing runs"
    for _ in range(2):
        await isolation.prepare(place)
    process = await asyncio.create_subprocess_exec(
        *isolation.launch_prefix(place), "cat", "/proc/net/fib_trie", stdout=asyncio.subprocess.PIPE, env={}
    )
    assert b"10.89.254.254" in (await process.communicate())[0]
    for _ in range(2):
        await isolation.unplug(place)
    await isolation.prepare(place)
    assert [each.plugged for each in (await Lab(home).layout()).machines] == [False], "it stays as it is"
    await isolation.plug(place)
    assert [each.plugged for each in (await Lab(home).layout()).machines] == [True]
    for _ in range(2):
        await isolation.release(place)
    await isolation.unplug(place)
    assert await Lab(home).layout() == Layout()


async def test_the_door_leads_from_the_host_to_where_the_name_points_now(world: World) -> None:
    name = "api.plane.example"
    names = await world.peer(HUB)
    await names.do("dns", ADDRESS[HUB], 53)
    for where in (E1, W1):
        server = await world.peer(where)
        await server.do("listen", ADDRESS[where], 7002, "who")
    guests = guests_file(world.lab.home, "netns")
    guest = add_guest(guests, "plane", uid="1", host=name, port=7002)
    credential = base64.b64encode(f"plane:{guest.secret}".encode()).decode()
    door = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quarterdeck.endpoint.door", "--listen", "127.0.0.1:0"),
        *("--dns", f"{ADDRESS[HUB]}:53", "--guests", str(guests), "--lab", str(world.lab.home)),
        stdout=asyncio.subprocess.PIPE,
    )
    world.peers.append(Peer(door))
    assert door.stdout is not None
    port = int((await door.stdout.readline()).rpartition(b":")[2])
    for where in (E1, W1):
        await names.do("record", name, ADDRESS[where], 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"CONNECT {name}:7002 HTTP/1.1\r\nHost: {name}:7002\r\n"
        writer.write(f"{head}Proxy-Authorization: Basic {credential}\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert await reader.read() == ADDRESS[where].encode()
        writer.close()
        await writer.wait_closed()
    door.terminate()
    assert await asyncio.wait_for(door.wait(), 10) == 0


def keeper(home: Path) -> dict[str, ProcessId]:
    ids = json.loads((lab_folder(home) / KEEPER_FILE).read_text())
    return {role: ProcessId(**fields) for role, fields in ids.items()}


def known(pid: int) -> ProcessId:
    process = ProcessId.of(pid)
    assert process is not None
    return process


def awakenings(pid: int) -> int:
    """How often a process has waited for something so far."""
    lines = dict(line.split(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines["voluntary_ctxt_switches"])


def children_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(each) for each in children]
