"""Which machines are to have a promoted address, by the orders that they know of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import cast

import pytest

from quarterdeck.components.traffic.keepalived import Routing, held_line
from quarterdeck.endpoint.promoted_address import Order, PromotedAddress
from quarterdeck.errors import PreconditionFailed, TimedOut, Unavailable
from quarterdeck.model.endpoints import Ownership, RecordClaim
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import Machine, MachineRole, MachineState, UnitFile, UnitSpec, UnitState, UnitStatus
from quarterdeck.sites.port import SitePort

UNIT = "demo-keepalived"
EDGE, ONE, TWO = "127.0.61.1", "127.0.61.2", "127.0.61.3"
#: Where something listens as long as a test wants it to.
ADDRESS = "127.0.61.9"
MINE = RecordClaim(owner="demo/1", token=7, addresses=frozenset({EDGE, ONE, TWO}))


@dataclass
class Machines:
    """A site whose machines do as they are told. ``off`` do not answer; on the ``deaf`` nobody's clients are held.
    ``done``: what was started and reloaded, in this order.
    """

    units_of: dict[str, UnitSpec] = field(default_factory=dict)
    states: dict[str, UnitState] = field(default_factory=dict)
    served: dict[str, str] = field(default_factory=dict)
    held: dict[str, bool] = field(default_factory=dict)
    logged: dict[str, str] = field(default_factory=dict)
    off: set[str] = field(default_factory=set)
    deaf: set[str] = field(default_factory=set)
    done: list[tuple[str, str]] = field(default_factory=list)
    name: str = "n1"
    cannot_route: str = ""

    def folder(self, machine: str, unit: str) -> PurePosixPath:
        return PurePosixPath("/machines", machine, unit)

    def routing(self, machine: str, unit: str) -> Routing:
        return Routing(argv=("/vrrp", unit))

    async def write_files(self, machine: str, files: tuple[UnitFile, ...]) -> None:
        self._require(machine)
        (file,) = files
        if file.path.parent.name == "live":
            self.served[machine] = file.content.decode()
            return
        milliseconds, number = map(int, file.content.split())
        self.held[machine] = milliseconds > 0
        if machine not in self.deaf:
            self.logged[machine] = f"something else\n{held_line(number)}\n"

    async def logs(self, machine: str, unit: str, *, lines: int) -> str:
        return self.logged.get(machine, "")

    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        self._require(machine)
        self.units_of[machine] = spec
        self.states[machine] = UnitState.RUNNING
        self.done.append(("start", machine))

    async def reload_unit(self, machine: str, spec: UnitSpec) -> None:
        self._require(machine)
        assert self.units_of[machine].differs_in_files_alone(spec)
        self.units_of[machine] = spec
        self.done.append(("reload", machine))

    async def remove_unit(self, machine: str, unit: str) -> None:
        del self.units_of[machine]

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
        self._require(machine)
        return self._units(machine)

    def priority(self, machine: str) -> str:
        lines = self.units_of[machine].files[0].content.decode().splitlines()
        return next(each.split()[-1] for each in lines if "priority" in each)

    def _units(self, machine: str) -> tuple[UnitStatus, ...]:
        spec = self.units_of.get(machine)
        return (UnitStatus(name=UNIT, state=self.states[machine], note=spec.note),) if spec is not None else ()

    def _require(self, machine: str) -> None:
        if machine in self.off:
            raise Unavailable("asking", f"{machine} does not answer")


def machine(name: str, address: str, role: MachineRole = MachineRole.CONTROL) -> Machine:
    return Machine(name=name, site="n1", zone="a", address=address, role=role, state=MachineState.UP)


MACHINES = (machine("edge", EDGE, MachineRole.EDGE), machine("one", ONE), machine("two", TWO))


@dataclass
class Made:
    site: Machines
    dns: PromotedAddress
    server: asyncio.Server


@pytest.fixture
async def made() -> AsyncIterator[Made]:
    site = Machines()

    async def answers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(answers, ADDRESS, 0)
    now = iter(range(1, 1_000))
    dns = PromotedAddress(
        plane="demo",
        address=ADDRESS,
        site=cast("SitePort", site),
        machines=MACHINES,
        unit=UNIT,
        port=server.sockets[0].getsockname()[1],
        status_port=26443,
        ttl=5,
        steady=lambda: float(next(now)),
        patience=0.5,
    )
    yield Made(site, dns, server)
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("owner", ["demo/0a1b-2c", ""])
def test_an_order_is_told_as_plain_words_and_read_again(owner: str) -> None:
    order = Order((7, 12), Ownership(owner, 7), (ONE, TWO))
    assert Order.read(order.note) == order
    assert all(Order.read(each) is None for each in ("", "1", "1 2", "1 x 3 demo", "written by hand"))


async def test_there_is_no_record_before_anybody_has_an_order(made: Made) -> None:
    assert (await made.dns.look(ADDRESS)).record is None


async def test_a_machine_that_is_to_have_it_goes_by_what_serves_there(made: Made) -> None:
    await made.dns.set(ADDRESS, (ONE,), 5, MINE)
    seen = await made.dns.look(ADDRESS)
    assert seen.record is not None
    assert (seen.record.addresses, seen.record.ttl, seen.torn, seen.ownership) == ((ONE,), 5, "", MINE.ownership)
    await made.dns.set(ADDRESS, (EDGE,), 5, MINE)
    assert made.site.served == {"one": f"- {made.dns.port}\n", "edge": f"26443 {made.dns.port}\n"}


async def test_whoever_had_it_stands_by_once_the_others_do_and_runs_on(made: Made) -> None:
    await made.dns.set(ADDRESS, (ONE,), 5, MINE)
    await made.dns.set(ADDRESS, (EDGE,), 5, MINE)
    assert made.site.done == [("start", "one"), ("start", "edge"), ("reload", "one")]
    assert (made.site.priority("edge"), made.site.priority("one")) == ("150", "45")
    seen = await made.dns.look(ADDRESS)
    assert (seen.record and seen.record.addresses, seen.torn, seen.others) == ((EDGE,), "", ())
    await made.dns.set(ADDRESS, (ONE,), 5, MINE)
    assert made.site.done[3:] == [("reload", "one"), ("reload", "edge")]
    assert (made.site.priority("edge"), made.site.priority("one")) == ("45", "150")


async def test_a_machine_that_was_silent_is_told_of_the_newest_order_when_it_is_back(made: Made) -> None:
    await made.dns.set(ADDRESS, (ONE,), 5, MINE)
    made.site.off.add("one")
    await made.dns.set(ADDRESS, (EDGE,), 5, MINE)
    made.site.off.clear()
    seen = await made.dns.look(ADDRESS)
    assert seen.record is not None
    assert (seen.record.addresses, seen.uneven) == ((EDGE,), True)
    assert seen.torn == f"{UNIT} on one has an older order"
    assert [each.addresses for each in seen.others if each] == [(ONE,)]
    await made.dns.set(ADDRESS, (EDGE,), 5, MINE)
    assert (await made.dns.look(ADDRESS)).torn == ""


@pytest.mark.parametrize("state", [UnitState.FAILED, UnitState.STOPPED, UnitState.UNKNOWN])
async def test_a_unit_that_does_not_run_counts_until_it_is_removed(made: Made, state: UnitState) -> None:
    await made.dns.set(ADDRESS, (ONE,), 5, MINE)
    made.site.states["one"] = state
    seen = await made.dns.look(ADDRESS)
    assert seen.record is not None
    assert (seen.record.addresses, seen.torn) == ((ONE,), f"{UNIT} does not run on one")
    await made.dns.set(ADDRESS, (ONE,), 5, MINE)
    assert made.site.done == [("start", "one")] * 2, "it is started again"
    await made.dns.remove(ADDRESS, MINE)
    assert (await made.dns.look(ADDRESS)).record is None


async def test_an_edge_that_is_silent_may_have_it(made: Made) -> None:
    made.site.off.add("edge")
    with pytest.raises(Unavailable, match="edge does not answer"):
        await made.dns.look(ADDRESS)


async def test_an_order_after_which_nothing_answers_is_told(made: Made) -> None:
    made.server.close()
    await made.server.wait_closed()
    with pytest.raises(TimedOut, match=rf"nothing answers at {ADDRESS}:\d+ after 0.5 s"):
        await made.dns.set(ADDRESS, (ONE,), 5, MINE)


async def test_an_older_driver_changes_nothing_and_nor_does_a_stranger(made: Made) -> None:
    await made.dns.set(ADDRESS, (ONE,), 5, MINE)
    for claim in (replace(MINE, token=6), replace(MINE, owner="other/2")):
        with pytest.raises(Exception, match=r"newer driver|claimed by"):
            await made.dns.set(ADDRESS, (TWO,), 5, claim)
    with pytest.raises(PreconditionFailed, match="has no machine"):
        await made.dns.set(ADDRESS, ("10.0.0.9",), 5, MINE)


async def test_who_is_connected_to_apiservers_themselves_can_be_held(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made.dns.set(ADDRESS, (ONE,), 5, MINE)
    await made.dns.set(ADDRESS, (EDGE,), 5, MINE)
    await made.dns.hold(2.0)
    assert made.site.held == {"one": True}, "the load balancer holds its own"
    await made.dns.let_go()
    assert made.site.held == {"one": False}
    monkeypatch.setattr("quarterdeck.endpoint.clients_wait._HELD", 0.1)
    made.site.deaf.add("one")
    with pytest.raises(Unavailable, match="not paused in time"):
        await made.dns.hold(2.0)


async def test_nothing_is_left_of_it_anywhere(made: Made) -> None:
    await made.dns.set(ADDRESS, (ONE,), 5, MINE)
    await made.dns.set(ADDRESS, (TWO,), 5, MINE)
    await made.dns.remove(ADDRESS, MINE)
    assert made.site.units_of == {}
    assert (await made.dns.look(ADDRESS)).record is None
