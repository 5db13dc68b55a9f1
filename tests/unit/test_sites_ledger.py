"""Who sits where on a machine: the ledger, and the file that it is kept in."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.golden import Golden

from quarterdeck.components.ports import LAST_BLOCK, ports_of, seat_at, seat_with
from quarterdeck.errors import Corrupt, InvalidInput, PreconditionFailed
from quarterdeck.model.seats import HostPort, Seat, TakenSeat
from quarterdeck.model.units import UnitStatus
from quarterdeck.sites.base.seats import SeatLedger
from quarterdeck.sites.local.loopback import open_loopback
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.settings import LocalSiteSettings
from quarterdeck.sites.local.site import LocalSite, open_local_site
from quarterdeck.sites.local.site_files import change_ledger, read_ledger

HOST = "10.0.0.1"
#: Each process takes ten seats, as fast as it can.
MANY = """
import sys
from pathlib import Path
from quarterdeck.sites.local.site_files import change_ledger
for number in range(10):
    change_ledger(Path(sys.argv[1]), lambda ledger: ledger.allocated(
        machine="m",
        hosts=["10.0.0.1"],
        plane=sys.argv[2],
        replica=f"r{number}",
        ports={"etcd-peer": 2380},
        listening=(),
    ))
"""


def allocated(
    ledger: SeatLedger, replica: str, *, listening: frozenset[HostPort] = frozenset()
) -> tuple[SeatLedger, Seat]:
    return ledger.allocated(
        machine="m", hosts=[HOST], plane="p", replica=replica, ports=ports_of(0), listening=listening
    )


def full() -> SeatLedger:
    seats = (seat_at("m", HOST, block) for block in range(LAST_BLOCK + 1))
    return SeatLedger(taken=tuple(TakenSeat(plane="p", replica=f"r{at}", seat=seat) for at, seat in enumerate(seats)))


def test_when_all_blocks_are_taken_that_is_said_and_one_that_is_let_go_is_found(golden: Golden) -> None:
    with golden.raises(PreconditionFailed):
        allocated(full(), "new")
    assert allocated(full().released("p", "r405"), "new")[1] == seat_at("m", HOST, 405)


def test_ports_of_different_kinds_never_meet() -> None:
    """The peers of an etcd of events in block 406 would be at the port of the apiserver of block 0."""
    events = seat_with("m", HOST, ports_of(406, ("events-peer",)))
    ledger = SeatLedger(taken=(TakenSeat(plane="p", replica="r1", seat=events),))
    assert allocated(SeatLedger(), "r2")[1] == seat_at("m", HOST, 0)
    assert allocated(ledger, "r2")[1] == seat_at("m", HOST, LAST_BLOCK)


def test_where_a_machine_has_more_addresses_replicas_that_share_it_have_the_same_ports() -> None:
    """Kubernetes keeps one list of ports for all apiservers of a plane. Blocks come when no address is left."""
    hosts, ledger, seats = (HOST, "100.64.0.1", "100.64.0.2"), SeatLedger(), list[Seat]()
    for number in range(3):
        ledger, seat = ledger.allocated(
            machine="m",
            hosts=hosts,
            plane="p",
            replica=f"r{number}",
            ports=ports_of(4),
            listening={HostPort("100.64.0.1", ports_of(4)["etcd-peer"])},
        )
        seats.append(seat)
    assert seats == [seat_at("m", HOST, 4), seat_at("m", "100.64.0.2", 4), seat_at("m", HOST, LAST_BLOCK)]


def test_a_name_that_no_port_has_is_refused(golden: Golden) -> None:
    taken = SeatLedger(taken=(TakenSeat(plane="p", replica="r1", seat=seat_with("m", HOST, {"konnectivity": 8132})),))
    with golden.raises(InvalidInput):
        taken.allocated(machine="m", hosts=[HOST], plane="p", replica="r", ports={"konnectivity": 8132}, listening=())


def test_two_processes_at_once_give_nobody_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    argv = (sys.executable, "-c", MANY, str(folder))
    running = [subprocess.Popen([*argv, plane]) for plane in ("p1", "p2", "p3")]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    taken = read_ledger(folder).taken
    assert len(taken) == 30
    assert len({each.seat.listen("etcd-peer") for each in taken}) == 30


def test_what_is_kept_is_read_as_it_was(tmp_path: Path) -> None:
    (ledger, seat), folder = allocated(SeatLedger(fences={"demo": 7}), "r1"), tmp_path / "m"
    moved = replace(seat.ports[0], advertised=replace(seat.ports[0].advertised, host="gateway.test"))
    ledger = ledger.occupied(TakenSeat(plane="q", replica="r1", seat=replace(seat, ports=(moved,))))
    change_ledger(folder, lambda _: (ledger, None))
    assert read_ledger(folder) == ledger


async def nothing_runs(_: LocalMachine) -> tuple[UnitStatus, ...]:
    return ()


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"taken": [{}], "fences": {}}', '{"taken": 1, "fences": {}}'])
def test_a_ledger_that_cannot_be_read_is_not_taken_for_an_empty_one(
    tmp_path: Path, content: str, golden: Golden
) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/ledger.json").write_text(content)
    with golden.raises(Corrupt):
        change_ledger(tmp_path / "m", lambda ledger: allocated(ledger, "r1"))
    assert (tmp_path / "m/ledger.json").read_text() == content


async def test_another_driver_of_the_same_site_finds_what_the_one_before_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalMachine, "started", nothing_runs)

    def site() -> LocalSite:
        network = open_loopback(tmp_path, registry=tmp_path / "registry")
        return open_local_site(tmp_path, LocalSiteSettings(name="east"), network)

    first = await site().allocate("east-a1", "p", "r1", ports_of(0))
    assert await site().allocate("east-a1", "p", "r2", ports_of(0)) != first
    assert await site().allocate("east-a1", "p", "r1", ports_of(0)) == first
