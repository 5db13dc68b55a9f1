"""What the local driver promises beyond the port: about processes, power, and drivers that come and go."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import stat
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil
import pytest
from support.site_harness import (
    ISOLATIONS,
    LocalUnderTest,
    eventually,
    job,
    job_hangs,
    local_lab,
    of_a_job,
    process_alive,
    runs,
    settings,
    shell,
    status,
    written,
)

from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.model.capabilities import JobResult
from quarterdeck.model.units import Priority, Program, UnitFile, UnitSpec, UnitState, UnitStatus
from quarterdeck.sites.isolation import MachinePlace
from quarterdeck.sites.local.loopback import Loopback, open_loopback
from quarterdeck.sites.local.site import LocalSite, open_local_site
from quarterdeck.sites.local.supervisor.client import SupervisorClient
from quarterdeck.sites.local.supervisor.courtesy import LONGEST, NICE
from quarterdeck.sites.local.supervisor.own_user import may_give_users, user_of
from quarterdeck.sites.local.supervisor.records import NICE as NICES
from quarterdeck.sites.local.supervisor.unit import SETTLED_AFTER

A, B = "east-a1", "east-b1"
ONE_RUN = """
import asyncio, sys
from pathlib import Path, PurePosixPath
from quarterdeck.sites.local.loopback import open_loopback
from quarterdeck.sites.local.supervisor.client import SupervisorClient
from quarterdeck.sites.local.supervisor.own_user import may_give_users, user_of
from quarterdeck.sites.local.site import open_local_site
from support.site_harness import runs, settings
home = Path(sys.argv[1])
site = open_local_site(home, settings(), open_loopback(home))
asyncio.run(site.start_unit("east-a1", runs()))
print("started", flush=True)
sys.stdin.read()
"""
ONE_JOB = """
import asyncio, sys
from pathlib import Path, PurePosixPath
from quarterdeck.sites.local.loopback import open_loopback
from quarterdeck.sites.local.site import open_local_site
from support.site_harness import job_hangs, settings
home = Path(sys.argv[1])
site = open_local_site(home, settings(), open_loopback(home))
asyncio.run(site.run_job("east-a1", job_hangs(deadline=100.0)))
"""
RUN_AWAY = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", "1000"], {})
    os._exit(0)
os.wait()
time.sleep(1000)
"""


@pytest.fixture(params=ISOLATIONS)
async def lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LocalUnderTest]:
    async with local_lab(request.param, tmp_path) as lab:
        yield lab


@pytest.fixture
def site(lab: LocalUnderTest) -> LocalSite:
    return lab.site


async def test_a_unit_with_data_of_its_own_runs_as_a_user_of_its_own_where_root_may_give_it_one() -> None:
    """Not below pytest's folder, which nobody else may pass through."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-own-user-") as folder:
        home = Path(folder).resolve()
        async with local_lab("loopback", home) as lab:
            site = lab.site
            volume = await site.create_volume(A, "data", "standard")
            Path(volume.path, "old").write_text("x")
            secret = UnitFile(site.folder(A, "own") / "key", b"secret")
            script = f"echo new > {volume.path}/new; id -u; cat key; exec sleep 1000"
            await site.start_unit(A, shell("own", script, owns=(volume.path,), files=(secret,)))
            found = await eventually(lambda: first_lines(site, "own", 2), lambda lines: len(lines) == 2)
            user = user_of(home) if may_give_users() else os.geteuid()
            assert found == (str(user), "secret")
            for each in (Path(volume.path), Path(volume.path, "old"), Path(volume.path, "new"), Path(secret.path)):
                assert each.stat().st_uid == user
            before = (await status(site, A, "own")).pid
            assert before is not None
            Path(volume.path, "old").unlink()
            Path(volume.path, "old").write_text("put back by root")
            os.kill(before, signal.SIGKILL)
            again = (await running(site, "own", other_than=before)).pid
            assert Path(volume.path, "old").stat().st_uid == user
            assert again is not None
            assert os.stat(f"/proc/{again}").st_uid == user  # noqa: PTH116 - a process, no file
            os.kill(psutil.Process(again).ppid(), signal.SIGKILL)
            await eventually(lambda: gone(again), bool)  # it dies with its supervisor, whoever it runs as
            assert home.stat().st_mode & 0o777 == (0o701 if may_give_users() else 0o700)


async def test_where_another_user_could_not_reach_its_data_a_unit_runs_as_its_supervisor_does(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    async with local_lab("loopback", closed / "home") as lab:
        volume = await lab.site.create_volume(A, "data", "standard")
        await lab.site.start_unit(A, shell("own", "id -u; exec sleep 1000", owns=(volume.path,)))
        found = await eventually(lambda: first_lines(lab.site, "own", 1), bool)
        assert found == (str(os.geteuid()),)
        assert (closed / "home" / "sites").stat().st_mode & 0o007 == 0


async def first_lines(site: LocalSite, unit: str, count: int) -> tuple[str, ...]:
    return tuple((await written(site, A, unit)).splitlines()[:count])


async def gone(pid: int) -> bool:
    return not process_alive(pid)


async def test_a_full_disk_is_said_in_words_and_starting_again_is_enough(
    site: LocalSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.start_unit(A, runs("first"))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os, "fsync", full)
        for machine in (A, B):  # one that runs, and one that would have to be started first
            with pytest.raises(Unavailable, match=f"{machine}.*No space left on device; make room"):
                await site.start_unit(machine, runs("second"))
    assert (await status(site, A, "first")).state is UnitState.RUNNING
    await site.start_unit(A, runs("second"))
    assert (await status(site, A, "second")).state is UnitState.RUNNING


async def running(site: LocalSite, unit: str, machine: str = A, *, other_than: int | None = None) -> UnitStatus:
    return await eventually(
        lambda: status(site, machine, unit),
        lambda seen: seen.state is UnitState.RUNNING and seen.pid not in (None, other_than),
    )


async def test_a_settled_unit_that_ends_by_itself_is_started_again_after_its_pause(
    site: LocalSite, lab: LocalUnderTest
) -> None:
    async def starts() -> list[float]:
        return [float(each) for each in (await written(site, A, "pauses")).split()]

    pause = 0.6
    await site.start_unit(A, shell("pauses", "date +%s.%N; exec sleep 1000", restart_pause=pause))
    first = (await eventually(starts, bool))[0]

    async def age() -> float:
        return time.time() - first

    await eventually(age, lambda seen: seen > SETTLED_AFTER + pause + 1.0)  # supervisor looks once a second
    before = await running(site, "pauses")
    crashed = time.time()
    lab.crash(A, before)
    again = (await eventually(starts, lambda seen: len(seen) == 2))[1]
    assert again - crashed >= pause
    assert (await running(site, "pauses", other_than=before.pid)).restarts == 1


async def test_a_unit_with_a_pause_that_ends_again_and_again_has_failed(site: LocalSite) -> None:
    script = "[ ! -e begun ] || exit 3; sleep 2.5; touch begun; exit 3"
    await site.start_unit(A, shell("ends", script, restart_pause=0.3))
    seen = await eventually(lambda: status(site, A, "ends"), lambda seen: seen.state is UnitState.FAILED)
    assert seen.exit_code == 3


async def supervisord(site: LocalSite, unit: str, machine: str = A) -> int:
    """The parent of a unit's process."""
    pid = (await running(site, unit, machine)).pid
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def all_gone(pids: set[int]) -> None:
    async def left() -> set[int]:
        return {pid for pid in pids if process_alive(pid)}

    await eventually(left, lambda seen: not seen)


async def test_units_die_with_their_supervisord_and_a_new_one_starts_them(site: LocalSite) -> None:
    await site.start_unit(A, runs("one"))
    await site.start_unit(A, shell("two", "sleep 1000 & sleep 1000"))
    before = {each.pid for each in await site.units(A)}
    old = await supervisord(site, "one")
    family = set(await site.processes(A))
    os.kill(old, signal.SIGKILL)
    await running(site, "one", other_than=next(iter(before)))
    after = {each.pid for each in await site.units(A)}
    assert before.isdisjoint(after)
    assert await supervisord(site, "one") != old
    # only the machine's first process is still the same
    assert len(family & set(await site.processes(A))) == 1


async def test_a_machine_whose_first_process_was_killed_starts_again(site: LocalSite) -> None:
    await site.start_unit(A, shell("runs", "sleep 1000 & sleep 1000"))
    pids = set(await site.processes(A))
    first = int(Path(f"/proc/{await supervisord(site, 'runs')}/stat").read_text().rpartition(")")[2].split()[1])
    before = (await status(site, A, "runs")).pid
    os.kill(first, signal.SIGKILL)
    await running(site, "runs", other_than=before)
    await all_gone(pids)


async def test_units_outlive_the_driver_that_started_them_even_when_it_is_killed(tmp_path: Path) -> None:
    site = open_local_site(tmp_path, settings(), open_loopback(tmp_path))
    driver = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        ONE_RUN,
        str(tmp_path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "SECRET_OF_THE_DRIVER": "x"},
        start_new_session=True,
    )
    assert driver.stdout is not None
    try:
        assert await asyncio.wait_for(driver.stdout.readline(), 60) == b"started\n"
        seen = await running(site, "runs")
        os.killpg(driver.pid, signal.SIGKILL)
        await driver.communicate()
        assert await status(site, A, "runs") == seen
        assert seen.digest == runs().digest
        for pid in await site.processes(A):
            assert b"SECRET_OF_THE_DRIVER" not in Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        await site.destroy()


async def test_two_drivers_at_once_start_one_supervisord(site: LocalSite, tmp_path: Path) -> None:
    other = open_local_site(tmp_path, settings(), open_loopback(tmp_path), patience=5.0)
    await asyncio.gather(site.start_unit(A, runs("one")), other.start_unit(A, runs("two")))
    assert await supervisord(site, "one") == await supervisord(site, "two")
    pids = await site.processes(A)
    assert len(pids) == 4


def has_fled(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep")
    except FileNotFoundError:
        return False


async def test_power_loss_reaches_what_fled_its_session_and_emptied_its_environment(site: LocalSite) -> None:
    await site.start_unit(A, UnitSpec(name="flees", argv=(sys.executable, "-c", RUN_AWAY)))
    pids = await eventually(lambda: site.processes(A), lambda seen: len(seen) == 4 and any(map(has_fled, seen)))
    await site.kill_machine(A)
    assert not {pid for pid in pids if process_alive(pid)}


async def test_stopping_a_unit_takes_the_processes_that_it_started_along(site: LocalSite) -> None:
    await site.start_unit(A, shell("family", "sleep 1000 & sleep 1000 & sleep 1000"))
    await eventually(lambda: site.processes(A), lambda seen: len(seen) == 6)
    await site.stop_unit(A, "family")
    await eventually(lambda: site.processes(A), lambda seen: len(seen) == 2)


async def test_a_unit_that_ignores_sigterm_is_killed_after_its_time(site: LocalSite) -> None:
    spec = shell("deaf", "trap '' TERM; echo ready; while :; do sleep 1; done", stop_timeout=0.5)
    await site.start_unit(A, spec)
    await eventually(lambda: written(site, A, "deaf"), lambda seen: seen == "ready\n")
    started = time.monotonic()
    await site.stop_unit(A, "deaf")
    assert time.monotonic() - started >= 0.5
    assert (await status(site, A, "deaf")).exit_code == -9


async def test_a_call_that_a_frozen_machine_reads_too_late_is_not_carried_out(site: LocalSite, tmp_path: Path) -> None:
    await site.start_unit(A, runs())
    before = await running(site, "runs")
    impatient = SupervisorClient(A, tmp_path / "sites/east/machines" / A, patience=0.2)
    await site.freeze_machine(A)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(impatient.stop("runs", kill=False, stop_timeout=0), 1)
    with pytest.raises(Unavailable):
        await impatient.forget("runs")
    await site.thaw_machine(A)
    assert await site.units(A) == (before,)


async def test_a_kill_does_not_wait_for_a_stop_that_is_under_way(site: LocalSite) -> None:
    spec = shell("deaf", "trap '' TERM; echo ready; while :; do sleep 1; done", stop_timeout=60.0)
    await site.start_unit(A, spec)
    await eventually(lambda: written(site, A, "deaf"), lambda seen: seen == "ready\n")
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(30):
        tasks.create_task(site.stop_unit(A, "deaf"))
        await eventually(lambda: status(site, A, "deaf"), lambda seen: seen.state is UnitState.STOPPING)
        await site.stop_unit(A, "deaf", kill=True)
    assert (await status(site, A, "deaf")).exit_code == -9


async def test_a_unit_stopped_while_it_is_being_started_dies_of_sigterm(site: LocalSite, tmp_path: Path) -> None:
    await site.start_unit(A, runs(stop_timeout=60.0))
    quick = SupervisorClient(A, tmp_path / "sites/east/machines" / A, patience=10)
    for _ in range(50):
        await asyncio.wait_for(quick.stop("runs", kill=False, stop_timeout=60.0), 30)
        assert (await status(site, A, "runs")).exit_code == -15
        await quick.start("runs")


async def test_a_failing_unit_is_tried_again_until_it_stays_up(site: LocalSite) -> None:
    script = "echo try; [ $(cat tries 2>/dev/null | wc -l) -ge 3 ] && exec sleep 1000; echo x >> tries; exit 7"
    await site.start_unit(A, shell("shy", script))
    failed = await eventually(lambda: status(site, A, "shy"), lambda seen: seen.state is UnitState.FAILED)
    assert failed.exit_code == 7
    settled = await running(site, "shy")
    assert settled.restarts == 3
    assert (await site.logs(A, "shy")).count("try") == 4


async def test_a_failing_unit_started_with_other_boot_arguments_takes_them(site: LocalSite) -> None:
    argv = ("/bin/sh", "-c", '[ "$1" = right ] && exec sleep 1000; exit 1', "sh")
    spec = UnitSpec(name="joiner", argv=argv, boot_argv=("wrong",))
    await site.start_unit(A, spec)
    await eventually(lambda: status(site, A, "joiner"), lambda seen: seen.state is UnitState.FAILED)
    await site.start_unit(A, UnitSpec(name="joiner", argv=argv, boot_argv=("right",)))
    assert (await running(site, "joiner")).digest == spec.digest


async def test_a_program_that_does_not_exist_fails_and_the_log_says_so(site: LocalSite) -> None:
    await site.start_unit(A, UnitSpec(name="missing", argv=("/proc/nowhere/etcd",)))
    assert (await status(site, A, "missing")).state is UnitState.FAILED
    assert "/proc/nowhere/etcd" in await site.logs(A, "missing")


async def test_arguments_and_environment_arrive_as_they_were_given(site: LocalSite) -> None:
    odd = ("%(here)s %d", "two words", "'single' \"double\"", "line\nbreak", "", "#;=$HOME", "grüße")
    show = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['ODD']]), flush=True); sys.stdin.read()"
    spec = UnitSpec(name="odd", argv=(sys.executable, "-c", show), boot_argv=odd, env=(("ODD", odd[2]),))
    await site.start_unit(A, spec)
    text = await eventually(lambda: written(site, A, "odd"), lambda seen: seen.endswith("\n"))
    assert json.loads(text) == [list(odd), odd[2]]


async def test_observing_takes_less_than_ten_milliseconds(site: LocalSite) -> None:
    for number in range(5):
        await site.start_unit(A, runs(f"unit-{number}"))
    took = []
    for _ in range(30):
        started = time.perf_counter()
        await site.units(A)
        took.append(time.perf_counter() - started)
    # the best, since the rest tells how busy this host is
    assert min(took) < 0.010


async def test_a_home_with_a_very_long_path_works_and_its_sockets_are_private(tmp_path: Path) -> None:
    home = tmp_path / "/".join(["x" * 50] * 5)
    home.mkdir(parents=True)
    site = open_local_site(home, settings(), open_loopback(home))
    try:
        await site.start_unit(A, runs())
        assert (await running(site, "runs")).pid
        machine = home / "sites/east/machines" / A
        private = [each for each in machine.rglob("*") if each.is_socket() or each.name == "unit.json"]
        assert len(private) == 2
        assert [stat.S_IMODE(each.stat().st_mode) for each in private] == [0o600, 0o600]
        assert stat.S_IMODE(machine.stat().st_mode) == 0o700
    finally:
        await site.destroy()


async def test_a_destroyed_site_leaves_nothing_behind(site: LocalSite, tmp_path: Path) -> None:
    await site.start_unit(A, runs())
    await site.start_unit(B, runs())
    await site.freeze_machine(B)
    pids = {pid for machine in (A, B) for pid in await site.processes(machine)}
    assert len(pids) == 6
    await site.destroy()
    await site.destroy()
    assert not {pid for pid in pids if process_alive(pid)}
    assert not (tmp_path / "sites/east").exists()


@dataclass(frozen=True)
class Broken(Loopback):
    """An isolation whose machines cannot be entered."""

    def launch_prefix(self, place: MachinePlace) -> tuple[str, ...]:
        return ("/bin/false",)


async def test_a_machine_that_does_not_start_is_unavailable_and_leaves_no_process(tmp_path: Path) -> None:
    site = open_local_site(tmp_path, settings(), Broken(open_loopback(tmp_path).home_number))
    with pytest.raises(Unavailable, match="ended with 1"):
        await site.start_unit(A, runs())
    assert await site.processes(A) == ()


async def niceness(pid: int | None) -> int:
    return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1])


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel has no autogroups")
async def test_a_unit_gives_way_while_it_starts_until_it_is_to_serve(site: LocalSite) -> None:
    await site.start_unit(A, shell("busy", "while :; do :; done"))
    busy = await running(site, "busy")
    assert await eventually(lambda: niceness(busy.pid), lambda nice: nice == NICE)
    await site.set_priority(A, "busy", Priority.SERVING)
    assert await eventually(lambda: niceness(busy.pid), lambda nice: nice == 0, LONGEST / 2) == 0
    assert (await running(site, "busy")).pid == busy.pid


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel has no autogroups")
async def test_a_unit_has_the_priority_that_it_was_given_last(site: LocalSite) -> None:
    await site.start_unit(A, runs())
    unit = await running(site, "runs")
    for priority in (Priority.BACKGROUND, Priority.SERVING):
        await site.set_priority(A, "runs", priority)
        await eventually(lambda: niceness(unit.pid), lambda nice, wanted=NICES[priority]: nice == wanted)


async def test_a_machine_runs_while_somebody_has_a_seat_or_a_unit_there_and_no_longer(site: LocalSite) -> None:
    async def at_rest(machine: str) -> bool:
        return await site.processes(machine) == ()

    await site.allocate(A, "p1", "r1", {"etcd-peer": 2380})
    assert not await at_rest(A)
    assert not await at_rest("east-edge"), "its load balancer comes soon"
    await site.start_unit(A, runs())
    await site.start_unit("east-edge", runs())
    await site.remove_unit(A, "runs")
    assert not await at_rest(A), "what is left of the replica is let go by who holds the lease"
    await site.start_unit(A, runs("other"))
    await site.release(A, "p1", "r1")
    assert not await at_rest(A)
    await site.remove_unit(A, "other")
    await site.remove_unit("east-edge", "runs")
    assert await at_rest(A)
    assert await at_rest("east-edge")


async def test_a_machine_that_runs_a_job_does_not_rest(site: LocalSite, lab: LocalUnderTest) -> None:
    await site.allocate(A, "p1", "r1", {"etcd-peer": 2380})
    waiting = asyncio.create_task(site.run_job(A, job_hangs(deadline=100.0)))
    await eventually(lambda: lab.job_processes(A), lambda seen: seen > 0)
    await site.release(A, "p1", "r1")
    assert await lab.job_processes(A) > 0
    waiting.cancel()


async def test_a_program_that_is_not_there_is_not_installed(site: LocalSite, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="is not a program"):
        await site.install(A, Program("etcd", PurePosixPath(tmp_path / "etcd")))


async def test_what_a_job_leaves_behind_ends_with_it(site: LocalSite, lab: LocalUnderTest) -> None:
    leaves = job("leaves", "setsid sleep 1000 & (sleep 1000 &) ; echo done")
    assert await site.run_job(A, leaves) == JobResult(exit_code=0, output="done\n")
    assert await lab.job_processes(A) == 0


async def test_a_job_dies_with_who_waits_for_it(tmp_path: Path) -> None:
    site = open_local_site(tmp_path, settings(), open_loopback(tmp_path))
    driver = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ONE_JOB, str(tmp_path), env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    )
    try:
        pids = await eventually(lambda: site.processes(A), lambda seen: sum(map(of_a_job, seen)) >= 4)
    finally:
        driver.kill()
        await driver.wait()
    await all_gone(set(pids))
    await site.destroy()


async def test_a_job_on_a_machine_that_stands_still_ends_with_its_deadline(site: LocalSite) -> None:
    waiting = asyncio.create_task(site.run_job(A, job_hangs(deadline=2.0)))
    pids = await eventually(lambda: site.processes(A), lambda seen: sum(map(of_a_job, seen)) >= 4)
    await site.freeze_machine(A)
    with pytest.raises(TimedOut):
        await waiting
    assert not any(process_alive(pid) for pid in pids if of_a_job(pid))
    await site.thaw_machine(A)


async def stands_still(pid: int | None) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


async def test_a_held_unit_goes_on_when_it_is_let_go(site: LocalSite) -> None:
    await site.start_unit(A, runs())
    held = await running(site, "runs")
    await site.hold_unit(A, "runs", 60.0)
    assert await eventually(lambda: stands_still(held.pid), lambda still: still)
    await site.let_go_unit(A, "runs")
    assert not await eventually(lambda: stands_still(held.pid), lambda still: not still)
    assert (await running(site, "runs")).pid == held.pid


async def test_a_held_unit_goes_on_by_itself_when_nobody_lets_it_go(site: LocalSite) -> None:
    await site.start_unit(A, runs())
    held = await running(site, "runs")
    await site.hold_unit(A, "runs", 0.5)
    assert await eventually(lambda: stands_still(held.pid), lambda still: still)
    assert not await eventually(lambda: stands_still(held.pid), lambda still: not still)


async def test_holding_what_does_not_run_does_nothing(site: LocalSite) -> None:
    await site.hold_unit(A, "nothing", 60.0)
    await site.let_go_unit(A, "nothing")
