"""Who has an address that goes from machine to machine, by what the processes on these say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import cast

import pytest

from quarterdeck.endpoint.addresses.promoted import PromotedAddress
from quarterdeck.errors import PreconditionFailed, TimedOut, Unavailable
from quarterdeck.model.endpoints import Claim
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import Machine, MachineRole, MachineState, UnitFile, UnitSpec, UnitState, UnitStatus
from quarterdeck.sites.port import Site

A, UNIT = "100.64.64.1", "demo-floating"
EDGE, ONE, TWO = "127.0.61.1", "127.0.61.2", "127.0.61.3"
MINE = Claim(owner="demo/1", token=7, addresses=frozenset({EDGE, ONE, TWO}))


@dataclass
class Machines:
    """A site whose machines do as they are told at once: whoever has the newest orders has the address. ``off`` do not
    answer, ``slow`` do not take it.
    """

    orders: dict[str, dict[str, object]] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    off: set[str] = field(default_factory=set)
    slow: set[str] = field(default_factory=set)
    name: str = "n1"
    holder: str = ""
    held: set[str] = field(default_factory=set)
    deaf: bool = False
    states: dict[str, UnitState] = field(default_factory=dict)

    def folder(self, machine: str, unit: str) -> PurePosixPath:
        return PurePosixPath("/machines", machine, unit)

    async def write_files(self, machine: str, files: tuple[UnitFile, ...]) -> None:
        if machine in self.off:
            raise Unavailable("writing files", f"{machine} does not answer")
        (file,) = files
        if file.path.name == "hold":
            self.held = {*self.held, machine} if float(file.content) else self.held - {machine}
            return
        self.orders[machine] = json.loads(file.content)
        if machine not in self.slow:
            self.holder = machine

    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        self.runs[machine] = spec.name

    async def remove_unit(self, machine: str, unit: str) -> None:
        self.runs.pop(machine, None)
        self.orders.pop(machine, None)

    async def facts(self, below: str = "") -> SiteFacts:
        return SiteFacts(
            name=self.name,
            storage_classes=(),
            machines=tuple(
                MachineFacts(machine=each, units=None if each.name in self.off else self._units(each.name))
                for each in MACHINES
            ),
        )

    async def units(self, machine: str) -> tuple[UnitStatus, ...]:
        return self._units(machine)

    def _units(self, machine: str) -> tuple[UnitStatus, ...]:
        state = self.states.get(machine, UnitState.RUNNING)
        return (UnitStatus(name=UNIT, state=state),) if machine in self.runs else ()

    def says(self, machine: str) -> bytes:
        newest = max(self.orders.values(), key=lambda each: cast("list[int]", each["number"]))
        holds = [A] if self.holder == machine else []
        told = {each: newest[each] for each in ("number", "leads", "owner", "token")}
        held = machine in self.held and not self.deaf
        return json.dumps({"edge": machine, "fit": True, "holds": holds, "held": held, **told}).encode()


def machine(name: str, address: str, role: MachineRole = MachineRole.CONTROL) -> Machine:
    return Machine(name=name, site="n1", zone="a", address=address, role=role, state=MachineState.UP)


MACHINES = (machine("edge", EDGE, MachineRole.EDGE), machine("one", ONE), machine("two", TWO))


class Agent(asyncio.DatagramProtocol):
    def __init__(self, site: Machines, name: str) -> None:
        self.site, self.name = site, name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self.name in self.site.orders and self.name not in self.site.off:
            self.transport.sendto(self.site.says(self.name), addr)


@dataclass
class Made:
    site: Machines
    dns: PromotedAddress


@pytest.fixture
async def made() -> AsyncIterator[Made]:
    site, loop = Machines(), asyncio.get_running_loop()
    first, _ = await loop.create_datagram_endpoint(lambda: Agent(site, "edge"), local_addr=(EDGE, 0))
    port = first.get_extra_info("sockname")[1]
    rest = [
        (await loop.create_datagram_endpoint(lambda each=each: Agent(site, each.name), local_addr=(each.address, port)))
        for each in MACHINES[1:]
    ]
    now = iter(range(1, 1_000))
    dns = PromotedAddress(
        address=A,
        site=cast("Site", site),
        machines=MACHINES,
        unit=UNIT,
        port=6443,
        talk=port,
        ttl=5,
        admin=lambda name: PurePosixPath("/machines", name, "admin.sock"),
        python=PurePosixPath("/python"),
        search_path="/src",
        steady=lambda: float(next(now)),
        patience=0.5,
    )
    yield Made(site, dns)
    for transport in (first, *(each for each, _ in rest)):
        transport.close()


async def test_there_is_no_record_before_anybody_has_orders(made: Made) -> None:
    assert (await made.dns.look(A)).record is None


@pytest.mark.parametrize("state", [UnitState.FAILED, UnitState.STOPPED, UnitState.UNKNOWN])
async def test_a_process_that_does_not_run_and_that_its_machine_knows_of_counts_until_it_is_removed(
    made: Made, state: UnitState
) -> None:
    await made.dns.set(A, (ONE,), 5, MINE)
    made.site.states["one"] = state
    seen = await made.dns.look(A)
    assert seen.record is not None
    assert (seen.record.addresses, seen.torn) == ((ONE,), f"{UNIT} does not run on one")
    await made.dns.remove(A, MINE)
    assert (await made.dns.look(A)).record is None


async def test_an_edge_that_is_silent_may_have_it(made: Made) -> None:
    made.site.off.add("edge")
    with pytest.raises(Unavailable, match="edge does not answer"):
        await made.dns.look(A)


async def test_the_newest_orders_are_the_record_and_whoever_had_it_need_not_be_told(made: Made) -> None:
    await made.dns.set(A, (ONE,), 5, MINE)
    seen = await made.dns.look(A)
    assert seen.record is not None
    assert (seen.record.addresses, seen.record.ttl, seen.torn, seen.ownership) == ((ONE,), 5, "", MINE.ownership)
    made.site.off.add("one")
    await made.dns.set(A, (EDGE,), 5, MINE)
    made.site.off.clear()
    assert (await made.dns.observe(A)) == replace(seen.record, addresses=(EDGE,))
    first, then = (made.site.orders[each]["number"] for each in ("one", "edge"))
    assert first == [7, 1000]
    assert then == [7, 2000]
    assert (made.site.orders["one"]["admin"], made.site.orders["edge"]["admin"]) == ("", "/machines/edge/admin.sock")


async def test_as_long_as_another_machine_has_it_not_all_is_as_it_was_ordered(made: Made) -> None:
    await made.dns.set(A, (ONE,), 5, MINE)
    made.site.slow.add("edge")
    with pytest.raises(TimedOut, match=r"100.64.64.1 is at one still"):
        await made.dns.set(A, (EDGE,), 5, MINE)
    seen = await made.dns.look(A)
    assert [each.addresses for each in seen.others if each] == [(ONE,)]
    made.site.holder = ""
    assert "is not at edge yet" in (await made.dns.look(A)).torn


async def test_an_older_driver_changes_nothing_and_nor_does_a_stranger(made: Made) -> None:
    await made.dns.set(A, (ONE,), 5, MINE)
    for claim in (replace(MINE, token=6), replace(MINE, owner="other/2")):
        with pytest.raises(Exception, match=r"newer driver|claimed by"):
            await made.dns.set(A, (TWO,), 5, claim)
    with pytest.raises(PreconditionFailed, match="has no machine"):
        await made.dns.set(A, ("10.0.0.9",), 5, MINE)


async def test_who_is_connected_to_apiservers_themselves_can_be_held(made: Made) -> None:
    await made.dns.set(A, (ONE,), 5, MINE)
    await made.dns.set(A, (EDGE,), 5, MINE)
    await made.dns.hold(2.0)
    assert made.site.held == {"one"}, "the load balancer holds its own"
    await made.dns.let_go()
    assert made.site.held == set()
    made.site.deaf = True
    with pytest.raises(Unavailable, match="not held in time"):
        await made.dns.hold(2.0)


async def test_nothing_is_left_of_it_anywhere(made: Made) -> None:
    await made.dns.set(A, (ONE,), 5, MINE)
    await made.dns.set(A, (TWO,), 5, MINE)
    await made.dns.remove(A, MINE)
    assert made.site.runs == {}
    assert (await made.dns.look(A)).record is None
