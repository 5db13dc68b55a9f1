"""Faults that are made end: when they are told to, when their time is over, and when whoever made them dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from support.site_harness import (
    ISOLATIONS,
    KINDS,
    LocalUnderTest,
    SiteFaults,
    SiteUnderTest,
    any_lab,
    eventually,
    job_prints,
    keeps_data,
    keeps_syncing,
    listens,
    local_lab,
    runs,
    status,
    written,
)

from quarterdeck import clocks
from quarterdeck.errors import Conflict, NotFound, PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.model.capabilities import RoundTrip
from quarterdeck.model.faults import SLOW_SYNC, Fault, FaultKind
from quarterdeck.model.units import MachineState, UnitState, UnitStatus
from quarterdeck.sites.local.fault.fault_book import FaultBook, MadeFault
from quarterdeck.sites.local.fault.faults import all_stopped
from quarterdeck.sites.local.fault.strace import TRACER, cannot_trace
from quarterdeck.sites.local.processes import processes_of
from quarterdeck.sites.local.site import LocalSite

A, B = "east-a1", "east-b1"
OFF = Fault(kind=FaultKind.POWER_OFF, machine=A)
FROZEN = Fault(kind=FaultKind.FREEZE, machine=A)
HUNG = Fault(kind=FaultKind.HANG_UNIT, machine=A, unit="runs")
LOST = Fault(kind=FaultKind.LOSE_DATA, machine=A, unit="keeps-data", volume="data")
SLOW = Fault(kind=FaultKind.SLOW_DISK, machine=A)
FULL = Fault(kind=FaultKind.FILL_DISK, machine=A)
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
from quarterdeck.sites.netns.lab import NetnsIsolation
home, isolation, kind = Path(sys.argv[1]), sys.argv[2], FaultKind(sys.argv[3])
network = open_loopback(home) if isolation == "loopback" else NetnsIsolation(home)
site = open_local_site(home, settings(), network)
async def main():
    await site.make_fault(Fault(kind=kind, machine="east-a1"), 300.0)
    print("made", flush=True)
    await asyncio.sleep(300)
asyncio.run(main())
"""


@pytest.fixture(params=KINDS)
async def lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SiteUnderTest]:
    async with any_lab(request, tmp_path) as made:
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
    await site.make_fault(fault, 2.0)  # a busy host is to look at it before that is over
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
    assert left.startswith("the former content of volume data is kept")
    assert await lab.site.list_volume(A, "data", "log") == ("other",)
    if isinstance(lab, LocalUnderTest):
        assert (Path(left.rpartition(" ")[2]) / "log/1.wal").exists()


async def test_a_text_is_another_one_of_its_length_for_good_while_its_unit_goes_on(lab: SiteUnderTest) -> None:
    volume = await with_data(lab)
    before = await status(lab.site, A, "keeps-data")
    lab.put_text(A, volume, "log/db", "all right, that is right.")
    lab.put_text(A, volume, "log/other", "right")
    await lab.site.make_fault(CORRUPT, LONG)
    text = lab.text(A, volume, "log/db")
    assert (len(text), text[:4], text[9:19], text[24:]) == (25, "all ", ", that is ", ".")
    assert "right" not in text
    assert lab.text(A, volume, "log/other") == "right", "no other file is touched"
    assert await lab.site.faults_made() == ()
    assert await lab.site.undo_fault(CORRUPT) == ""
    assert lab.text(A, volume, "log/db") == text
    after = await status(lab.site, A, "keeps-data")
    assert (after.pid, after.state) == (before.pid, UnitState.RUNNING)
    if isinstance(lab, LocalUnderTest):
        assert after.pid is not None
        assert not all_stopped(after.pid)
    with pytest.raises(NotFound, match="that text is not in log/db"):
        await lab.site.make_fault(CORRUPT, LONG)
    await lab.site.make_fault(replace(HUNG, unit="keeps-data"), LONG)
    with pytest.raises(Conflict, match=r"frozen|stands still|another fault"):
        await lab.site.make_fault(CORRUPT, LONG)
    await lab.site.undo_fault(replace(HUNG, unit="keeps-data"))


async def syncing(lab: SiteUnderTest) -> UnitStatus:
    """A unit that has data of its own and syncs it, as it runs."""
    if isinstance(lab, LocalUnderTest):
        require_strace()
    volume = (await lab.site.create_volume(A, "data", "standard")).path
    await lab.site.start_unit(A, keeps_syncing(volume, fresh=True))
    await eventually(lambda: lab.site.list_volume(A, "data", "log"), lambda names: names == ("1.wal",))
    return await eventually(lambda: status(lab.site, A, "keeps-syncing"), lambda unit: unit.pid is not None)


async def test_a_disk_is_slow_until_it_is_told_to_be_well_and_nobody_is_restarted(lab: SiteUnderTest) -> None:
    before = await syncing(lab)
    for _ in range(3):
        await lab.site.make_fault(SLOW, LONG)
        assert await lab.site.faults_made() == (SLOW,)
        await last_sync(lab, before.pid, lambda seconds: seconds >= SLOW_SYNC)
        assert await lab.site.undo_fault(SLOW) == ""
        await last_sync(lab, before.pid, lambda seconds: seconds < SLOW_SYNC)
        assert traced_by(before.pid) == 0
        assert await lab.site.faults_made() == ()
    assert (await status(lab.site, A, "keeps-syncing")).pid == before.pid


async def test_who_needs_room_on_a_full_disk_ends_again_and_again_until_there_is_some(lab: SiteUnderTest) -> None:
    await syncing(lab)
    await lab.site.start_unit(A, runs())
    other = await eventually(lambda: status(lab.site, A, "runs"), lambda unit: unit.pid is not None)
    await lab.site.make_fault(FULL, LONG)
    ended = await eventually(lambda: status(lab.site, A, "keeps-syncing"), lambda u: u.state is UnitState.FAILED)
    assert ended.exit_code == 1
    if isinstance(lab, LocalUnderTest):
        await eventually(lambda: status(lab.site, A, "keeps-syncing"), lambda u: u.restarts >= ended.restarts + 2)
        assert "No space left on device" in await lab.site.logs(A, "keeps-syncing")
    assert await lab.site.undo_fault(FULL) == ""
    await eventually(lambda: status(lab.site, A, "keeps-syncing"), lambda unit: unit.state is UnitState.RUNNING)
    assert await lab.site.list_volume(A, "data", "log") == ("1.wal",)
    assert (await status(lab.site, A, "runs")).pid == other.pid, "it has nothing on that disk"


async def test_what_cannot_be_made_is_refused_and_changes_nothing(site: SiteFaults) -> None:
    await site.start_unit(A, runs())
    await site.make_fault(OFF, LONG)
    with pytest.raises(Conflict, match="is off"):
        await site.make_fault(FROZEN, LONG)
    await site.undo_fault(OFF)
    await eventually(lambda: status(site, A, "runs"), lambda unit: unit.pid is not None)
    await site.make_fault(HUNG, LONG)
    with pytest.raises(Conflict, match=r"frozen|stands still|another fault"):
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
        (Fault(kind=FaultKind.SET_CLOCK, machine=A), PreconditionFailed),
    ):
        with pytest.raises(QuarterdeckError) as caught:
            await site.make_fault(fault, LONG)
        assert isinstance(caught.value, error), fault
    assert site.cannot_make(FaultKind.SET_CLOCK)
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
    os.kill(site._made[A].hold._process.pid, signal.SIGKILL)
    assert await site.undo_fault(FROZEN) == ""
    assert await seen(site) is MachineState.UP
    assert await site.faults_made() == ()


async def test_who_is_started_while_its_disk_is_slow_has_a_slow_one(local: LocalUnderTest) -> None:
    before = await syncing(local)
    await local.site.make_fault(SLOW, LONG)
    local.crash(A, before)
    again = await eventually(lambda: status(local.site, A, "keeps-syncing"), lambda u: u.pid not in (None, before.pid))
    await last_sync(local, again.pid, lambda seconds: seconds >= SLOW_SYNC)
    killed = traced_by(again.pid)
    os.kill(killed, signal.SIGKILL)
    await eventually(lambda: asyncio.to_thread(traced_by, again.pid), lambda tracer: tracer not in (0, killed))
    await last_sync(local, again.pid, lambda seconds: seconds >= SLOW_SYNC)
    await local.site.undo_fault(SLOW)
    await last_sync(local, again.pid, lambda seconds: seconds < SLOW_SYNC)


async def test_nobody_traces_a_program_whose_fault_has_lost_its_maker_or_its_guard(local: LocalUnderTest) -> None:
    site, before = local.site, await syncing(local)
    async with made_by_another(site, FaultKind.SLOW_DISK):
        assert traced_by(before.pid)
    await eventually(site.faults_made, lambda made: not made)
    assert tracers(site) == ()
    await site.make_fault(SLOW, LONG)
    os.kill(site._made[A].hold._process.pid, signal.SIGKILL)
    await eventually(lambda: asyncio.to_thread(tracers, site), lambda found: not found)
    await last_sync(local, before.pid, lambda seconds: seconds < SLOW_SYNC)
    assert await site.undo_fault(SLOW) == ""
    assert await site.faults_made() == ()
    assert (await status(site, A, "keeps-syncing")).pid == before.pid
    await site.make_fault(SLOW, 0.2)
    await eventually(site.faults_made, lambda made: not made)
    assert tracers(site) == ()
    assert await site.undo_fault(SLOW) == ""


async def test_what_takes_strace_is_refused_where_that_is_not_there_or_may_not(
    local: LocalUnderTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site, before = local.site, await syncing(local)
    pretended = tmp_path / "bin" / "strace"
    pretended.parent.mkdir()
    monkeypatch.setenv("PATH", str(pretended.parent))
    with pytest.raises(PreconditionFailed, match="install it"):
        await site.make_fault(SLOW, LONG)
    pretended.write_text("#!/bin/sh\necho 'strace: attach: Operation not permitted' >&2; exit 1\n")
    pretended.chmod(0o755)
    with pytest.raises(Unavailable, match=r"each sync takes .* strace: attach: Operation not permitted"):
        await site.make_fault(SLOW, LONG)
    assert await site.faults_made() == ()
    assert (traced_by(before.pid), tracers(site)) == (0, ())


@pytest.mark.parametrize("local", ["loopback", "netns"], indirect=True)
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


def require_strace() -> None:
    """Leave a test out unless programs can be traced here."""
    if why := cannot_trace():
        pytest.skip(why)


async def last_sync(lab: SiteUnderTest, pid: int | None, good: Callable[[float], bool]) -> None:
    """Wait until a process says that its last sync took so long; nobody can see that in memory."""
    if not isinstance(lab, LocalUnderTest):
        return

    async def read() -> float | None:
        lines = (await written(lab.site, A, "keeps-syncing")).splitlines()
        last = lines[-1].split() if lines else []
        return float(last[1]) if len(last) == 2 and last[0] == str(pid) else None

    await eventually(read, lambda seconds: seconds is not None and good(seconds))


def traced_by(pid: int | None) -> int:
    """Who traces a process; 0: nobody. In memory nobody does."""
    status = Path("/proc", str(pid), "status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(each.split()[1]) for each in lines if each.startswith("TracerPid:")), 0)


def tracers(site: LocalSite) -> tuple[int, ...]:
    """Those of the machine's programs."""
    return tuple(each.pid for each in processes_of(site._machine(A).mark, TRACER))


def standing(pid: int | None) -> bool:
    """Whether a process is stopped, or comes to be within a moment."""
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        stat = Path("/proc", str(pid), "stat").read_bytes()
        if stat[stat.rindex(b")") + 2 :].split()[0] == b"T":
            return True
        time.sleep(0.01)
    return False
