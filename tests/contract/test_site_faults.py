"""Faults that are made end: when they are told to, when their time is over, and when whoever made them dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from support.site_harness import (
    ISOLATIONS,
    LocalUnderTest,
    SiteFaults,
    SiteUnderTest,
    any_lab,
    eventually,
    job_prints,
    keeps_data,
    listens,
    local_lab,
    runs,
    status,
)

from quarterdeck import clocks
from quarterdeck.errors import Conflict, NotFound, PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.model.faults import Fault, FaultKind
from quarterdeck.model.measures import RoundTrip
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.sites.local.altering import all_stopped
from quarterdeck.sites.local.made_faults import FaultBook, MadeFault
from quarterdeck.sites.local.site import LocalSite

A, B = "east-a1", "east-b1"
OFF = Fault(kind=FaultKind.POWER_OFF, machine=A)
FROZEN = Fault(kind=FaultKind.FREEZE, machine=A)
HUNG = Fault(kind=FaultKind.HANG_UNIT, machine=A, unit="runs")
LOST = Fault(kind=FaultKind.LOSE_DATA, machine=A, unit="keeps-data", volume="data")
CORRUPT = Fault(kind=FaultKind.CORRUPT, machine=A, unit="keeps-data", volume="data", path="log/db", text="right")
LONG = 300.0
#: A process that makes a fault, says so, and stays.
MAKER = """
import asyncio, sys, time
from pathlib import Path
from support.site_harness import settings
from quarterdeck.model.faults import Fault, FaultKind
from quarterdeck.sites.local.loopback import open_loopback
from quarterdeck.sites.local.site import open_local_site
from quarterdeck.sites.netns.isolation import NetnsIsolation
home, isolation, kind = Path(sys.argv[1]), sys.argv[2], FaultKind(sys.argv[3])
network = open_loopback(home) if isolation == "loopback" else NetnsIsolation(home)
site = open_local_site(home, settings(), network)
async def main():
    await site.make_fault(Fault(kind=kind, machine="east-a1"), 300.0)
    print("made", flush=True)
    await asyncio.sleep(300)
asyncio.run(main())
"""


@pytest.fixture(params=["fake", *ISOLATIONS])
async def lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SiteUnderTest]:
    async with any_lab(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def site(lab: SiteUnderTest) -> SiteFaults:
    return lab.site


async def seen(site: SiteFaults, machine: str = A) -> MachineState:
    """How a machine looks to those who look at all of them."""
    found = (await site.facts()).machine(machine)
    assert found is not None
    return found.machine.state


def is_up(state: MachineState) -> bool:
    return state is MachineState.UP


@pytest.mark.parametrize(
    ("fault", "state"), [(OFF, MachineState.DOWN), (FROZEN, MachineState.UNREACHABLE)], ids=["off", "frozen"]
)
async def test_a_machine_fails_until_it_is_told_to_be_well(site: SiteFaults, fault: Fault, state: MachineState) -> None:
    await site.start_unit(A, runs())
    await site.make_fault(fault, LONG)
    assert await seen(site) is state
    assert await site.faults_made() == (fault,)
    assert await site.undo_fault(fault) == ""
    assert await seen(site) is MachineState.UP
    await eventually(lambda: status(site, A, "runs"), lambda unit: unit.state is UnitState.RUNNING)
    assert await site.faults_made() == ()
    assert await site.undo_fault(fault) == "", "that is fine"


async def test_a_machine_that_was_never_used_fails_and_rests_again(lab: SiteUnderTest) -> None:
    fault = replace(OFF, machine=B)
    await lab.site.make_fault(fault, LONG)
    assert await seen(lab.site, B) is MachineState.DOWN
    assert await lab.site.undo_fault(fault) == ""
    assert await seen(lab.site, B) is MachineState.UP
    if isinstance(lab, LocalUnderTest):
        assert await lab.site.processes(B) == ()


@pytest.mark.parametrize("fault", [OFF, FROZEN, HUNG], ids=["off", "frozen", "hung"])
async def test_a_fault_ends_by_itself_when_its_time_is_over(site: SiteFaults, fault: Fault) -> None:
    await site.start_unit(A, runs())
    await site.make_fault(fault, 0.6)
    assert await site.faults_made() == (fault,)
    assert await eventually(site.faults_made, lambda made: not made) == ()
    assert await eventually(lambda: seen(site), is_up) is MachineState.UP
    assert await site.undo_fault(fault) == ""


async def test_a_unit_that_is_killed_is_started_again(site: SiteFaults) -> None:
    await site.start_unit(A, runs())
    before = await eventually(lambda: status(site, A, "runs"), lambda unit: unit.pid is not None)
    await site.make_fault(Fault(kind=FaultKind.KILL_UNIT, machine=A, unit="runs"), LONG)
    again = await eventually(lambda: status(site, A, "runs"), lambda unit: unit.pid not in (None, before.pid))
    assert again.exit_code == -9
    await eventually(lambda: status(site, A, "runs"), lambda unit: unit.state is UnitState.RUNNING)
    assert await site.faults_made() == (), "there is nothing to undo"


async def test_a_unit_that_hangs_stands_still_until_it_is_told_to_go_on(lab: SiteUnderTest) -> None:
    await lab.site.start_unit(A, runs())
    unit = await eventually(lambda: status(lab.site, A, "runs"), lambda unit: unit.pid is not None)
    await lab.site.make_fault(HUNG, LONG)
    if isinstance(lab, LocalUnderTest):
        assert standing(unit.pid)
    await lab.site.undo_fault(HUNG)
    if isinstance(lab, LocalUnderTest):
        assert not standing(unit.pid)
    assert (await status(lab.site, A, "runs")).pid == unit.pid


async def with_data(lab: SiteUnderTest) -> PurePosixPath:
    volume = (await lab.site.create_volume(A, "data", "standard")).path
    await lab.site.start_unit(A, keeps_data(volume, fresh=True))
    await eventually(lambda: lab.site.list_volume(A, "data", "log"), lambda names: names == ("1.wal",))
    await eventually(lambda: status(lab.site, A, "keeps-data"), lambda unit: unit.state is UnitState.RUNNING)
    return volume


async def test_data_that_is_lost_is_back_at_the_end(lab: SiteUnderTest) -> None:
    await with_data(lab)
    await lab.site.make_fault(LOST, LONG)
    assert await lab.site.list_volume(A, "data") == ()
    assert [each.name for each in await lab.site.volumes(A)] == ["data"]
    lost = await eventually(lambda: status(lab.site, A, "keeps-data"), lambda unit: bool(unit.refused))
    assert lost.state is UnitState.FAILED
    assert await lab.site.undo_fault(LOST) == ""
    assert await lab.site.list_volume(A, "data", "log") == ("1.wal",)
    await eventually(lambda: status(lab.site, A, "keeps-data"), lambda unit: unit.state is UnitState.RUNNING)


async def test_data_that_others_have_taken_the_place_of_is_kept_and_told_of(lab: SiteUnderTest) -> None:
    volume = await with_data(lab)
    await lab.site.make_fault(LOST, LONG)
    lab.put_file(A, volume, "log/other", 1)
    left = await lab.site.undo_fault(LOST)
    assert left.startswith("what volume data had is kept")
    assert await lab.site.list_volume(A, "data", "log") == ("other",)
    if isinstance(lab, LocalUnderTest):
        assert (Path(left.rpartition(" ")[2]) / "log/1.wal").exists()


async def test_a_text_is_another_one_of_its_length_for_good_while_its_unit_goes_on(lab: SiteUnderTest) -> None:
    volume = await with_data(lab)
    before = await status(lab.site, A, "keeps-data")
    lab.put_text(A, volume, "log/db", "all right, that is right.")
    lab.put_text(A, volume, "log/other", "right")
    await lab.site.make_fault(CORRUPT, LONG)
    said = lab.text(A, volume, "log/db")
    assert (len(said), said[:4], said[9:19], said[24:]) == (25, "all ", ", that is ", ".")
    assert "right" not in said
    assert lab.text(A, volume, "log/other") == "right", "no other file is touched"
    assert await lab.site.faults_made() == ()
    assert await lab.site.undo_fault(CORRUPT) == ""
    assert lab.text(A, volume, "log/db") == said
    after = await status(lab.site, A, "keeps-data")
    assert (after.pid, after.state) == (before.pid, UnitState.RUNNING)
    if isinstance(lab, LocalUnderTest):
        assert after.pid is not None
        assert not all_stopped(after.pid)
    with pytest.raises(NotFound, match="that text is not in log/db"):
        await lab.site.make_fault(CORRUPT, LONG)
    await lab.site.make_fault(replace(HUNG, unit="keeps-data"), LONG)
    with pytest.raises(Conflict, match="stands still"):
        await lab.site.make_fault(CORRUPT, LONG)
    await lab.site.undo_fault(replace(HUNG, unit="keeps-data"))


async def test_what_cannot_be_made_is_refused_and_changes_nothing(site: SiteFaults) -> None:
    await site.start_unit(A, runs())
    await site.make_fault(OFF, LONG)
    with pytest.raises(Conflict, match="is off"):
        await site.make_fault(FROZEN, LONG)
    await site.undo_fault(OFF)
    await site.make_fault(HUNG, LONG)
    with pytest.raises(Conflict, match="stands still"):
        await site.make_fault(OFF, LONG)
    await site.undo_fault(HUNG)
    await site.kill_machine(B)
    for fault, error in (
        (Fault(kind=FaultKind.POWER_OFF, machine=B), Conflict),
        (Fault(kind=FaultKind.KILL_UNIT, machine=A, unit="nobody"), NotFound),
        (Fault(kind=FaultKind.HANG_UNIT, machine=A, unit="nobody"), NotFound),
        (Fault(kind=FaultKind.LOSE_DATA, machine=A, volume="none"), NotFound),
        (Fault(kind=FaultKind.CORRUPT, machine=A, unit="runs", volume="none", path="x", text="y"), NotFound),
        (Fault(kind=FaultKind.POWER_OFF, machine="west-a1"), NotFound),
        (Fault(kind=FaultKind.SLOW_DISK, machine=A), PreconditionFailed),
        (Fault(kind=FaultKind.SET_CLOCK, machine=A), PreconditionFailed),
    ):
        with pytest.raises(QuarterdeckError) as caught:
            await site.make_fault(fault, LONG)
        assert isinstance(caught.value, error), fault
    assert site.cannot_make(FaultKind.SLOW_DISK)
    assert await site.faults_made() == ()
    assert await seen(site) is MachineState.UP


# What the local driver alone can show


@pytest.fixture(params=ISOLATIONS)
async def local(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LocalUnderTest]:
    async with local_lab(request.param, tmp_path) as made:
        yield made


@asynccontextmanager
async def made_by_another(site: LocalSite, kind: FaultKind) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that has made a fault, until the block ends."""
    maker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MAKER, str(site._home), site._isolation.name, kind.value),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert maker.stdout is not None
        async with asyncio.timeout(30):
            assert await maker.stdout.readline() == b"made\n"
        yield maker
    finally:
        if maker.returncode is None:
            maker.kill()
        await maker.wait()


@pytest.mark.parametrize("fault", [OFF, FROZEN], ids=["off", "frozen"])
async def test_a_fault_ends_with_the_process_that_made_it(local: LocalUnderTest, fault: Fault) -> None:
    site = local.site
    await site.start_unit(A, runs())
    async with made_by_another(site, fault.kind):
        assert await site.faults_made() == (fault,)
    await eventually(site.faults_made, lambda made: not made)
    assert await eventually(lambda: seen(site), is_up) is MachineState.UP
    await eventually(lambda: status(site, A, "runs"), lambda unit: unit.state is UnitState.RUNNING)


async def test_a_fault_that_nobody_is_left_to_undo_ends_with_the_next_look(local: LocalUnderTest) -> None:
    site = local.site
    await site.start_unit(A, runs())
    await site.kill_machine(A)
    book = FaultBook(site._home / "sites" / "east" / "faults")
    made = MadeFault(fault=OFF, until=clocks.steady() + LONG, boot=clocks.boot())
    book.begin(made)
    assert await seen(site) is MachineState.DOWN, "somebody may be at it"
    book.end(A)
    book.begin(replace(made, boot="another"))
    assert await seen(site) is MachineState.UP
    assert book.all() == ()


async def test_a_machine_boots_whose_power_was_cut_by_somebody_who_died_at_it(local: LocalUnderTest) -> None:
    site = local.site
    await site.start_unit(A, runs())
    before = await status(site, A, "runs")
    await site.freeze_machine(A)  # all are stopped before the first is killed
    (site._home / "sites" / "east" / "machines" / A / "off").touch()
    await site.boot_machine(A)
    assert await seen(site) is MachineState.UP
    after = await eventually(lambda: status(site, A, "runs"), lambda unit: unit.state is UnitState.RUNNING)
    assert after.pid != before.pid


async def test_who_undoes_a_fault_may_die(local: LocalUnderTest) -> None:
    site = local.site
    await site.start_unit(A, runs())
    await site.make_fault(FROZEN, LONG)
    os.kill(site._owned[A].guard._process.pid, signal.SIGKILL)
    assert await site.undo_fault(FROZEN) == ""
    assert await seen(site) is MachineState.UP
    assert await site.faults_made() == ()


@pytest.mark.parametrize("kind", [FaultKind.CUT, FaultKind.DEAFEN])
async def test_a_machine_is_cut_off_where_networks_can_be(local: LocalUnderTest, kind: FaultKind) -> None:
    site, fault = local.site, Fault(kind=kind, machine=A)
    if site._isolation.name == "loopback":
        assert "isolation netns" in site.cannot_make(kind)
        with pytest.raises(PreconditionFailed, match="isolation netns"):
            await site.make_fault(fault, LONG)
        return
    address = next(each.address for each in await site.machines() if each.name == A)
    await site.start_unit(A, listens(address, 7000))
    await site.start_unit(B, runs())

    async def reached() -> bool:
        try:
            await site.measure(B, RoundTrip(address, 7000))
        except Unavailable:
            return False
        return True

    await eventually(reached, bool)
    await site.make_fault(fault, LONG)
    assert not await reached()
    assert await site.run_job(A, job_prints("x")) is not None, "what is started there leaves it as it is"
    assert not await reached()
    await site.undo_fault(fault)
    await eventually(reached, bool)
    async with made_by_another(site, kind):
        assert not await reached()
    await eventually(site.faults_made, lambda made: not made)
    assert await reached(), "it ends with the process that made it, and leaves no rule"


def standing(pid: int | None) -> bool:
    """Whether a process is stopped, or comes to be within a moment."""
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        stat = Path("/proc", str(pid), "stat").read_bytes()
        if stat[stat.rindex(b")") + 2 :].split()[0] == b"T":
            return True
        time.sleep(0.01)
    return False
