"""Every site keeps the same promises: the fake, and the local driver with each isolation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from support.hosts_site import HostsUnderTest
from support.site_harness import (
    LIMIT,
    SMOKE_KINDS,
    SiteFaults,
    SiteUnderTest,
    any_lab,
    complains,
    eventually,
    fails,
    job_fails,
    job_hangs,
    job_prints,
    listens,
    prints,
    runs,
    status,
)

from quarterdeck.errors import Conflict, InvalidInput, LeaseLost, NotFound, PreconditionFailed, TimedOut, Unavailable
from quarterdeck.model.capabilities import (
    Capability,
    ClockOffset,
    DiskSync,
    Found,
    FreeMemory,
    JobResult,
    RoundTrip,
    Search,
)
from quarterdeck.model.seats import Seat, TakenSeat
from quarterdeck.model.site_facts import VolumeFacts
from quarterdeck.model.units import (
    Fence,
    MachineRole,
    MachineState,
    Priority,
    Program,
    UnitFile,
    UnitSpec,
    UnitState,
    UnitStatus,
)
from quarterdeck.sites.endings import complaint, why_unit_ended
from quarterdeck.sites.port import Faults, Holds

A, B = "east-a1", "east-b1"


@pytest.fixture(params=SMOKE_KINDS)
async def lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SiteUnderTest]:
    async with any_lab(request, tmp_path) as made:
        yield made


@pytest.fixture
def site(lab: SiteUnderTest) -> SiteFaults:
    return lab.site


async def start(site: SiteFaults, spec: UnitSpec, machine: str = A) -> UnitStatus:
    await site.start_unit(machine, spec)
    return await status(site, machine, spec.name)


async def state_of(site: SiteFaults, machine: str) -> MachineState:
    return next(each.state for each in await site.machines() if each.name == machine)


async def test_a_new_site_has_its_machines_over_the_zones_and_one_edge(site: SiteFaults) -> None:
    machines = await site.machines()
    assert [(each.name, each.zone) for each in machines] == [
        ("east-a1", "a"),
        ("east-b1", "b"),
        ("east-c1", "c"),
        ("east-a2", "a"),
        ("east-b2", "b"),
        ("east-c2", "c"),
        ("east-edge", "a"),
    ]
    assert [each.name for each in machines if each.role is MachineRole.EDGE] == ["east-edge"]
    assert {each.state for each in machines} == {MachineState.UP}
    assert len({each.address for each in machines}) == len(machines)
    assert await site.units(A) == ()


async def test_one_look_has_all_that_each_machine_tells_by_itself(lab: SiteUnderTest, site: SiteFaults) -> None:
    first, second = await start(site, runs()), await start(site, runs("other"), B)
    volume = await site.create_volume(A, "data", "small")
    lab.put_file(A, volume.path, "log/1.wal", 10)
    seen = await site.facts("log")
    assert (seen.name, seen.storage_classes) == (site.name, await site.storage_classes())
    assert tuple(each.machine for each in seen.machines) == await site.machines()
    at_a, at_b = (next(each for each in seen.machines if each.machine.name == name) for name in (A, B))
    assert (at_a.units, at_b.units) == ((first,), (second,))
    assert at_a.volumes == (VolumeFacts(name="data", storage_class="small", entries=("1.wal",)),)
    assert (at_b.volumes, at_b.away) == ((), ())
    assert [each.entries for each in (await site.facts("elsewhere")).machines[0].volumes or ()] == [()]


async def test_a_look_says_nothing_of_machines_that_do_not_answer_and_all_of_the_others(
    lab: SiteUnderTest, site: SiteFaults
) -> None:
    for name in (A, B, "east-c1"):
        await start(site, runs(), name)
    await site.kill_machine(A)
    await site.freeze_machine(B)
    seen = {each.machine.name: each for each in (await site.facts()).machines}
    assert (seen[A].machine.state, seen[B].machine.state) == (lab.dead, MachineState.UNREACHABLE)
    assert [(each.units, each.volumes) for each in (seen[A], seen[B])] == [(None, None)] * 2
    assert seen["east-c1"].unit("runs").state is UnitState.RUNNING
    await site.thaw_machine(B)


async def test_a_machine_that_the_site_does_not_have_is_not_found(site: SiteFaults) -> None:
    with pytest.raises(NotFound):
        await site.units("west-a1")
    with pytest.raises(NotFound):
        await site.start_unit("west-a1", runs())
    with pytest.raises(NotFound):
        site.folder("west-a1", "unit")


async def test_a_site_says_which_optional_ports_it_offers(site: SiteFaults) -> None:
    can = site.capabilities
    assert (Capability.HOLDS in can, Capability.FAULTS in can) == (isinstance(site, Holds), isinstance(site, Faults))


async def test_a_unit_is_not_touched_when_a_seat_on_its_machine_is_given_and_let_go(site: SiteFaults) -> None:
    before = await start(site, runs())
    await site.allocate(A, "p1", "r1", PORTS)
    await site.release(A, "p1", "r1")
    assert await site.units(A) == (before,)
    await site.remove_unit(A, before.name)
    assert await site.units(A) == ()
    assert (await start(site, runs())).state is UnitState.RUNNING


async def test_a_program_is_where_its_machine_has_it_and_one_of_another_kind_is_refused(site: SiteFaults) -> None:
    shell, image = Program("sh", PurePosixPath("/bin/sh")), Program("sh", image="registry.test/sh:1")
    installed = await site.install(A, shell)
    assert await site.install(A, shell) == installed
    assert (await start(site, UnitSpec(name="runs", argv=(str(installed), "-c", "exec sleep 1000")))).state
    with pytest.raises(PreconditionFailed):
        await site.install(A, image)


async def test_a_job_runs_to_its_end_and_it_is_said_how_it_ended(site: SiteFaults) -> None:
    done = await site.run_job(A, job_prints("hello"))
    assert done == JobResult(exit_code=0, output="hello\nhello to stderr\n")
    assert (await site.run_job(A, job_fails(3))).exit_code == 3
    assert await site.units(A) == (), "it is no unit"


async def test_of_what_a_job_says_the_last_is_kept(site: SiteFaults) -> None:
    assert await site.run_job(A, job_prints("hello", most_output=7)) == JobResult(
        exit_code=0, output="stderr\n", cut=True
    )


async def test_a_job_that_takes_too_long_is_killed_with_all_that_it_started(
    lab: SiteUnderTest, site: SiteFaults
) -> None:
    with pytest.raises(TimedOut, match=r"not done within 0\.3 s"):
        await site.run_job(A, job_hangs(deadline=0.3))
    assert await lab.job_processes(A) == 0


async def test_a_job_that_nobody_waits_for_any_more_is_killed_with_all_that_it_started(
    lab: SiteUnderTest, site: SiteFaults
) -> None:
    waiting = asyncio.create_task(site.run_job(A, job_hangs()))
    await eventually(lambda: lab.job_processes(A), lambda seen: seen > 0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await lab.job_processes(A) == 0


async def test_a_started_unit_runs_with_the_digest_of_its_spec(lab: SiteUnderTest, site: SiteFaults) -> None:
    seen = await start(site, runs())
    assert (seen.state, seen.digest, seen.restarts) == (UnitState.RUNNING, runs().digest, 0)
    assert seen.pid is not None
    assert lab.alive(A, seen.pid)


async def test_starting_the_same_spec_again_leaves_the_process_alone(site: SiteFaults) -> None:
    first = await start(site, runs())
    again = await start(site, replace(runs(), boot_argv=("another first start",)))
    assert again == first


@pytest.mark.parametrize("priority", Priority)
async def test_only_a_unit_that_runs_has_a_priority_and_it_runs_on(site: SiteFaults, priority: Priority) -> None:
    await site.set_priority(A, "unknown", priority)
    first = await start(site, runs())
    await site.set_priority(A, first.name, priority)
    assert await status(site, A, first.name) == first
    await site.stop_unit(A, first.name)
    await site.set_priority(A, first.name, priority)
    assert (await status(site, A, first.name)).state is UnitState.STOPPED


async def test_another_digest_replaces_the_process(lab: SiteUnderTest, site: SiteFaults) -> None:
    first = await start(site, runs())
    changed = runs(env=(("ANSWER", "42"),))
    second = await start(site, changed)
    assert (second.state, second.digest) == (UnitState.RUNNING, changed.digest)
    assert first.pid is not None
    assert not lab.alive(A, first.pid)


async def test_a_change_of_one_unit_does_not_touch_another(site: SiteFaults) -> None:
    other = await start(site, runs("other"))
    await start(site, runs("changed"))
    await start(site, runs("changed", env=(("A", "B"),)))
    await site.stop_unit(A, "changed")
    await site.remove_unit(A, "changed")
    assert await site.units(A) == (other,)


async def test_files_are_there_with_their_mode(lab: SiteUnderTest, site: SiteFaults) -> None:
    folder = site.folder(A, "runs")
    files = (UnitFile(folder / "pki/key", b"secret"), UnitFile(folder / "conf", b"public", 0o644))
    await start(site, runs(files=files))
    assert [lab.file(A, each.path) for each in files] == list(files)


async def test_a_changed_file_is_another_spec(lab: SiteUnderTest, site: SiteFaults) -> None:
    path = site.folder(A, "runs") / "conf"
    first = await start(site, runs(files=(UnitFile(path, b"one"),)))
    second = await start(site, runs(files=(UnitFile(path, b"two"),)))
    assert second.pid != first.pid
    assert lab.file(A, path).content == b"two"


async def test_a_unit_is_reloaded_under_its_running_process(lab: SiteUnderTest, site: SiteFaults) -> None:
    path = site.folder(A, "runs") / "conf"
    files = (UnitFile(path, b"one"), UnitFile(path.with_name("key"), b"key"))
    before = await start(site, runs(files=files))
    after = runs(files=(UnitFile(path, b"two", 0o640), files[1], UnitFile(path.with_name("more"), b"more")))
    await site.reload_unit(A, after)
    await site.reload_unit(A, after)
    seen = await status(site, A, "runs")
    assert (seen.state, seen.pid, seen.digest) == (UnitState.RUNNING, before.pid, after.digest)
    assert [lab.file(A, each.path) for each in after.files] == list(after.files)
    await site.start_unit(A, after)
    assert (await status(site, A, "runs")).pid == before.pid, "it runs as wanted"
    await site.kill_machine(A)
    await site.boot_machine(A)
    assert (await status(site, A, "runs")).digest == after.digest, "its machine remembers"


async def test_a_file_that_somebody_else_changes_is_told_until_the_unit_is_restarted(
    lab: SiteUnderTest, site: SiteFaults
) -> None:
    path = site.folder(A, "runs") / "conf"
    spec = runs(files=(UnitFile(path, b"one"), UnitFile(path.with_name("key"), b"key")))
    assert not (await start(site, spec)).altered
    await site.write_files(A, (UnitFile(path, b"by hand"),))
    assert (await status(site, A, "runs")).altered
    await site.stop_unit(A, "runs")
    assert not (await start(site, spec)).altered
    assert lab.file(A, path).content == b"one"
    await site.reload_unit(A, runs(files=(UnitFile(path, b"two"), spec.files[1])))
    assert not (await status(site, A, "runs")).altered, "it was we who changed it"
    await site.remove_files(A, (path.with_name("key"),))
    assert (await status(site, A, "runs")).altered


async def test_what_does_not_run_so_is_not_reloaded(lab: SiteUnderTest, site: SiteFaults) -> None:
    path = site.folder(A, "runs") / "conf"
    before = await start(site, runs(files=(UnitFile(path, b"one"),)))
    for other in (
        runs(files=(UnitFile(path, b"two"),), env=(("ANSWER", "42"),)),
        runs("never", files=(UnitFile(path, b"two"),)),
    ):
        with pytest.raises(Conflict):
            await site.reload_unit(A, other)
    assert await site.units(A) == (before,)
    await site.stop_unit(A, "runs")
    with pytest.raises(Conflict):
        await site.reload_unit(A, runs(files=(UnitFile(path, b"two"),)))
    assert lab.file(A, path).content == b"one"


async def test_watched_files_change_under_a_running_unit(lab: SiteUnderTest, site: SiteFaults) -> None:
    folder = site.folder(A, "runs")
    before = await start(site, runs())
    await site.write_files(A, (UnitFile(folder / "eds/one", b"1"), UnitFile(folder / "eds/two", b"2", 0o644)))
    await site.write_files(A, (UnitFile(folder / "eds/one", b"11"),))
    assert lab.file(A, folder / "eds/one") == UnitFile(folder / "eds/one", b"11")
    assert lab.file(A, folder / "eds/two").mode == 0o644
    await site.remove_files(A, (folder / "eds/two", folder / "eds/never"))
    with pytest.raises((FileNotFoundError, KeyError)):
        lab.file(A, folder / "eds/two")
    assert await site.units(A) == (before,)


async def test_watched_files_may_be_there_before_their_unit(lab: SiteUnderTest, site: SiteFaults) -> None:
    path = site.folder(A, "runs") / "early"
    await site.write_files(A, (UnitFile(path, b"1"),))
    assert [each.files_only for each in await site.units(A)] == [True]
    await start(site, runs())
    assert lab.file(A, path).content == b"1"


async def test_watched_files_lie_below_the_folder_of_a_unit(site: SiteFaults) -> None:
    folder = site.folder(A, "runs")
    for path in (folder.parents[3] / "elsewhere", folder / "../../other/unit.json", PurePosixPath("relative")):
        with pytest.raises(InvalidInput):
            await site.write_files(A, (UnitFile(path, b""),))
        with pytest.raises(InvalidInput):
            await site.remove_files(A, (path,))


async def test_a_stopped_unit_is_known_and_stays_stopped(lab: SiteUnderTest, site: SiteFaults) -> None:
    first = await start(site, runs())
    await site.stop_unit(A, "runs")
    await site.stop_unit(A, "runs")
    assert first.pid is not None
    assert not lab.alive(A, first.pid)
    seen = await status(site, A, "runs")
    assert (seen.state, seen.pid, seen.exit_code, seen.digest) == (UnitState.STOPPED, None, -15, first.digest)


async def test_a_stopped_unit_starts_again(site: SiteFaults) -> None:
    await start(site, runs())
    await site.stop_unit(A, "runs")
    assert (await start(site, runs())).state is UnitState.RUNNING


async def test_killing_a_unit_leaves_it_no_time(site: SiteFaults) -> None:
    await start(site, runs())
    await site.stop_unit(A, "runs", kill=True)
    seen = await status(site, A, "runs")
    assert (seen.state, seen.exit_code) == (UnitState.STOPPED, -9)


async def test_stopping_and_removing_what_is_not_there_is_done_already(site: SiteFaults) -> None:
    await site.stop_unit(A, "nothing")
    await site.remove_unit(A, "nothing")
    assert await site.logs(A, "nothing") == ""
    assert await site.units(A) == ()


async def test_a_removed_unit_is_forgotten_with_its_folder(lab: SiteUnderTest, site: SiteFaults) -> None:
    path = site.folder(A, "runs") / "conf"
    seen = await start(site, runs(files=(UnitFile(path, b"x"),)))
    await site.remove_unit(A, "runs")
    assert await site.units(A) == ()
    assert seen.pid is not None
    assert not lab.alive(A, seen.pid)
    with pytest.raises((FileNotFoundError, KeyError)):
        lab.file(A, path)
    assert (await start(site, runs())).restarts == 0


async def test_a_unit_of_which_only_files_are_there_is_known_and_removed(lab: SiteUnderTest, site: SiteFaults) -> None:
    """Who wrote them has died before it started the unit."""
    path = site.folder(A, "half") / "live" / "key.pem"
    await site.write_files(A, (UnitFile(path, b"a private key"),))
    assert await site.units(A) == (UnitStatus(name="half", state=UnitState.STOPPED, files_only=True),)
    assert (await site.facts()).machine(B).units == ()  # type: ignore[union-attr]
    await site.stop_unit(A, "half")
    assert [each.name for each in await site.units(A)] == ["half"]
    await site.remove_unit(A, "half")
    assert await site.units(A) == ()
    with pytest.raises((FileNotFoundError, KeyError)):
        lab.file(A, path)
    await site.write_files(A, (UnitFile(path, b"a private key"),))
    started = await start(site, runs("half"))
    assert (started.state, started.files_only) == (UnitState.RUNNING, False)
    assert len(await site.units(A)) == 1


async def test_a_crashed_unit_is_started_again_and_counted(lab: SiteUnderTest, site: SiteFaults) -> None:
    await start(site, runs())
    settled = await eventually(lambda: status(site, A, "runs"), lambda seen: seen.state is UnitState.RUNNING)
    lab.crash(A, settled)
    seen = await eventually(
        lambda: status(site, A, "runs"),
        lambda seen: seen.state is UnitState.RUNNING and seen.pid not in (None, settled.pid),
    )
    assert seen.restarts == 1
    assert seen.exit_code == -9
    assert seen.digest == runs().digest


async def test_a_unit_that_exits_again_and_again_has_failed_with_its_exit_code(site: SiteFaults) -> None:
    await site.start_unit(A, fails(3))
    seen = await eventually(
        lambda: status(site, A, "fails-3"), lambda seen: seen.state is UnitState.FAILED and seen.pid is None
    )
    assert seen.exit_code == 3
    await site.stop_unit(A, "fails-3")
    assert (await status(site, A, "fails-3")).state is UnitState.STOPPED


async def test_logs_are_of_all_starts_and_both_streams(site: SiteFaults) -> None:
    spec = prints("hello")
    once = ["quarterdeck: starting", "hello", "hello to stderr"]

    async def lines() -> list[str]:
        return (await site.logs(A, spec.name)).splitlines()

    await site.start_unit(A, spec)
    await eventually(lines, lambda seen: seen == once)
    await site.stop_unit(A, spec.name)
    await site.start_unit(A, spec)
    await eventually(lines, lambda seen: seen == [*once, "quarterdeck: ended: killed by SIGTERM", *once])
    assert await site.logs(A, spec.name, lines=1) == "hello to stderr\n"
    assert await site.logs(A, spec.name, lines=0) == ""


async def test_the_reason_of_an_ending_is_that_of_the_last_run_that_has_ended(
    lab: SiteUnderTest, site: SiteFaults
) -> None:
    await site.start_unit(A, complains("Error: cannot bind", exit_code=3))
    await eventually(
        lambda: why_unit_ended(site, A, "complains"), lambda seen: seen == "exit code 3: Error: cannot bind"
    )
    await site.start_unit(A, complains("all is well"))
    await eventually(lambda: complaint(site, A, "complains"), lambda seen: seen == "all is well")
    before = await eventually(lambda: status(site, A, "complains"), lambda seen: seen.state is UnitState.RUNNING)
    lab.crash(A, before)
    why = await eventually(
        lambda: why_unit_ended(site, A, "complains"), lambda seen: seen.startswith("killed by SIGKILL")
    )
    assert why == "killed by SIGKILL", "and not for the reason of the run before"


async def test_names_cannot_lead_out_of_the_machine(site: SiteFaults) -> None:
    for name in ("../escape", "", "a/b", ".hidden"):
        with pytest.raises(InvalidInput):
            await site.start_unit(A, runs(name))
        with pytest.raises(InvalidInput):
            await site.create_volume(A, name, "standard")


async def test_lines_are_found_in_the_files_of_a_volume_that_were_written_lately(
    lab: SiteUnderTest, site: SiteFaults
) -> None:
    volume = await site.create_volume(A, "log", "standard")
    lab.put_text(A, volume.path, "audit-1.log", 'first "a"\nsecond b\\n\n')
    lab.put_text(A, volume.path, "audit.log", "third a*\nfourth\nfifth .b")
    lab.put_text(A, volume.path, "other", "a\n")

    async def look(*texts: str, files: str = "audit*.log", since: float = 0.0, most: int = 1000) -> Found:
        return await site.search_volume(A, "log", Search(files=files, texts=texts, since=since, most=most))

    assert await look('"a"', "b\\n") == Found(('first "a"', "second b\\n"))
    assert await look("a*", ".b") == Found(("third a*", "fifth .b")), "they are no patterns"
    assert await look("fourth", files="audit.log") == Found(("fourth",))
    assert await look("nowhere") == Found(())
    assert await look("i", most=19) == Found(("third a*", "fifth .b"), cut=True), "the last, and no half lines"
    assert await look("i", since=time.time() + 3600.0) in (Found(()), await look("i")), "a fake's files have no time"
    with pytest.raises(NotFound):
        await site.search_volume(A, "nothing", Search(files="*", texts=("a",), since=0.0))


async def test_a_volume_outlives_units_and_power(lab: SiteUnderTest, site: SiteFaults) -> None:
    volume = await site.create_volume(A, "data", "standard")
    assert await site.list_volume(A, "data") == ()
    assert volume.changed is None
    lab.put_file(A, volume.path, "member/wal/0.wal", 100_000)
    await start(site, runs())
    await site.remove_unit(A, "runs")
    await site.kill_machine(A)
    await site.boot_machine(A)
    assert await site.list_volume(A, "data") == ("member",)
    assert await site.list_volume(A, "data", "member") == ("wal",)
    assert await site.list_volume(A, "data", "member/snap") == ()
    (seen,) = await site.volumes(A)
    assert (seen.name, seen.storage_class, seen.path) == ("data", "standard", volume.path)
    assert 100_000 <= seen.used_bytes <= 200_000
    assert seen.changed == pytest.approx(time.time(), abs=60)
    assert await site.volumes(B) == ()


async def test_a_volume_is_made_once_and_keeps_its_class(site: SiteFaults) -> None:
    first = await site.create_volume(A, "data", "standard")
    assert await site.create_volume(A, "data", "standard") == first
    with pytest.raises(Conflict):
        await site.create_volume(A, "data", "small")
    with pytest.raises(NotFound):
        await site.create_volume(A, "other", "gold")


async def test_a_deleted_volume_takes_its_data_along(lab: SiteUnderTest, site: SiteFaults) -> None:
    volume = await site.create_volume(A, "data", "standard")
    lab.put_file(A, volume.path, "file", 10)
    await site.delete_volume(A, "data")
    await site.delete_volume(A, "data")
    assert await site.volumes(A) == ()
    with pytest.raises(NotFound):
        await site.list_volume(A, "data")
    await site.create_volume(A, "data", "small")
    assert await site.list_volume(A, "data") == ()


async def test_free_space_of_a_limited_class_shrinks_with_use(lab: SiteUnderTest, site: SiteFaults) -> None:
    assert await site.storage_classes() == ("standard", "small", "shared")
    assert await site.free_bytes(A, "standard") > 0
    assert await site.free_bytes(A, "small") == LIMIT
    volume = await site.create_volume(A, "data", "small")
    lab.put_file(A, volume.path, "file", 2**20)
    assert LIMIT - 2 * 2**20 <= await site.free_bytes(A, "small") <= LIMIT - 2**20
    assert await site.free_bytes(B, "small") == LIMIT
    with pytest.raises(NotFound):
        await site.free_bytes(A, "gold")


async def test_memory_is_what_a_machine_has_with_all_of_its_host(lab: SiteUnderTest, site: SiteFaults) -> None:
    assert await site.measure(A, FreeMemory()) > 0
    machines = await site.machines()
    assert len({each.host for each in machines}) == (len(machines) if isinstance(lab, HostsUnderTest) else 1)


async def test_how_long_a_disk_takes_is_measured_on_that_of_the_class(site: SiteFaults) -> None:
    assert 0 < await site.measure(A, DiskSync("small")) < 10
    assert await site.volumes(A) == ()
    with pytest.raises(NotFound):
        await site.measure(A, DiskSync("gold"))


async def test_ports_in_use_are_those_of_that_machine_alone(site: SiteFaults) -> None:
    address = next(each.address for each in await site.machines() if each.name == A)
    candidates = tuple(range(20_000, 20_100))
    taken = await site.ports_in_use(A, candidates)
    port, other = [each for each in candidates if each not in taken][:2]
    await site.start_unit(A, listens(address, port))
    assert await eventually(lambda: site.ports_in_use(A, (other, port)), lambda seen: seen != ()) == (port,)
    assert await site.ports_in_use(B, (other, port)) == ()


async def test_the_round_trip_to_a_listener_is_measured_and_without_one_is_not_made_up(site: SiteFaults) -> None:
    addresses = {each.name: each.address for each in await site.machines()}
    port = 20_000
    assert await site.ports_in_use(B, (port,)) == ()  # it is up: a neighbour asked for in vain stays unknown a while
    with pytest.raises(Unavailable, match="nothing answers"):
        await site.measure(A, RoundTrip(addresses[B], port))
    await site.start_unit(B, listens(addresses[B], port))
    await eventually(lambda: site.ports_in_use(B, (port,)), lambda seen: seen == (port,))
    assert 0 < await site.measure(A, RoundTrip(addresses[B], port)) < 1


async def test_a_healthy_machine_has_the_right_time(site: SiteFaults) -> None:
    assert abs(await site.measure(A, ClockOffset())) < 1


async def test_a_killed_machine_is_down_and_nothing_runs_on_it(lab: SiteUnderTest, site: SiteFaults) -> None:
    on_a = await start(site, runs())
    on_b = await start(site, runs(), B)
    await site.kill_machine(A)
    await site.kill_machine(A)
    assert on_a.pid is not None
    assert not lab.alive(A, on_a.pid)
    assert await state_of(site, A) is lab.dead
    assert await site.units(B) == (on_b,)


async def test_a_machine_that_is_off_refuses_everything(site: SiteFaults) -> None:
    await site.create_volume(A, "data", "standard")
    await site.kill_machine(A)
    calls = (
        site.units(A),
        site.install(A, Program("sh", PurePosixPath("/bin/sh"))),
        site.run_job(A, job_fails(0)),
        site.start_unit(A, runs()),
        site.stop_unit(A, "runs"),
        site.set_priority(A, "runs", Priority.SERVING),
        site.hold_unit(A, "runs", 1.0),
        site.let_go_unit(A, "runs"),
        site.reload_unit(A, runs()),
        site.guard_unit(A, "runs", PurePosixPath("/x")),
        site.remove_unit(A, "runs"),
        site.write_files(A, ()),
        site.remove_files(A, ()),
        site.logs(A, "runs"),
        site.create_volume(A, "more", "standard"),
        site.volumes(A),
        site.list_volume(A, "data"),
        site.delete_volume(A, "data"),
        site.attach_volume(A, "data", B),
        site.free_bytes(A, "standard"),
        site.allocate(A, "p1", "r1", {"etcd-peer": 2380}),
        site.occupy(A, TakenSeat(plane="p1", replica="r1", seat=Seat(machine=A, ports=()))),
        site.seats(A),
        site.release(A, "p1", "r1"),
        site.ports_in_use(A, (1,)),
        site.measure(A, RoundTrip("127.0.0.1", 1)),
        site.measure(A, DiskSync("standard")),
        site.measure(A, FreeMemory()),
        site.measure(A, ClockOffset()),
    )
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in outcomes] == [Unavailable] * len(calls)


async def test_a_booted_machine_starts_what_was_wanted_and_no_more(site: SiteFaults) -> None:
    await start(site, runs("wanted"))
    await start(site, runs("stopped"))
    await site.stop_unit(A, "stopped")
    await site.kill_machine(A)
    await site.boot_machine(A)
    await site.boot_machine(A)
    assert await state_of(site, A) is MachineState.UP
    wanted = await eventually(lambda: status(site, A, "wanted"), lambda seen: seen.pid is not None)
    assert (wanted.state, wanted.digest) == (UnitState.RUNNING, runs("wanted").digest)
    assert (await status(site, A, "stopped")).state is UnitState.STOPPED


async def test_a_machine_may_be_killed_before_it_was_ever_used(lab: SiteUnderTest, site: SiteFaults) -> None:
    await site.kill_machine(A)
    assert await state_of(site, A) is lab.dead
    await site.boot_machine(A)
    assert await state_of(site, A) is MachineState.UP
    assert (await start(site, runs())).state is UnitState.RUNNING


async def test_a_frozen_machine_is_unreachable_and_goes_on_where_it_stood(site: SiteFaults) -> None:
    before = await start(site, runs())
    await site.freeze_machine(A)
    assert await state_of(site, A) is MachineState.UNREACHABLE
    assert await state_of(site, B) is MachineState.UP
    with pytest.raises(Unavailable):
        await site.units(A)
    await site.thaw_machine(A)
    assert await state_of(site, A) is MachineState.UP
    assert await status(site, A, "runs") == before


async def test_what_was_asked_of_a_frozen_machine_is_not_done_later(site: SiteFaults) -> None:
    before = await start(site, runs())
    await site.freeze_machine(A)
    with pytest.raises(Unavailable):
        await site.stop_unit(A, "runs")
    with pytest.raises(Unavailable):
        await site.start_unit(A, runs(env=(("A", "B"),)))
    await site.thaw_machine(A)
    assert await site.units(A) == (before,)


async def test_a_frozen_machine_can_be_killed_and_booted(lab: SiteUnderTest, site: SiteFaults) -> None:
    before = await start(site, runs())
    await site.freeze_machine(A)
    await site.kill_machine(A)
    assert await state_of(site, A) is lab.dead
    await site.boot_machine(A)
    after = await eventually(lambda: status(site, A, "runs"), lambda seen: seen.pid is not None)
    assert after.pid != before.pid


async def test_a_machine_may_be_frozen_before_it_was_ever_used(site: SiteFaults) -> None:
    await site.freeze_machine(A)
    assert await state_of(site, A) is MachineState.UNREACHABLE
    await site.thaw_machine(A)
    assert await state_of(site, A) is MachineState.UP


async def test_many_units_may_be_started_at_once(site: SiteFaults) -> None:
    where = [(machine, runs(f"unit-{number}")) for machine in (A, B) for number in range(4)]
    await asyncio.gather(*(site.start_unit(machine, spec) for machine, spec in where))
    for machine in (A, B):
        seen = await site.units(machine)
        assert sorted(each.name for each in seen) == [f"unit-{number}" for number in range(4)]
        assert {each.state for each in seen} == {UnitState.RUNNING}


# Fences


OLD, NEW = Fence("alpha", 7), Fence("alpha", 8)


async def test_a_machine_takes_no_file_from_a_driver_once_a_newer_one_has_written(
    lab: SiteUnderTest, site: SiteFaults
) -> None:
    path = site.folder(A, "runs") / "eds/one"
    await site.fenced(OLD).write_files(A, (UnitFile(path, b"old"),))
    await site.fenced(NEW).write_files(A, (UnitFile(path, b"new"),))
    with pytest.raises(LeaseLost, match="token 8"):
        await site.fenced(OLD).write_files(A, (UnitFile(path, b"late"), UnitFile(path.with_name("two"), b"late")))
    with pytest.raises(LeaseLost):
        await site.fenced(OLD).remove_files(A, (path,))
    assert lab.file(A, path).content == b"new"
    assert lab.names(A, path.parent) == ["one"]
    await site.fenced(NEW).remove_files(A, (path,))
    with pytest.raises((FileNotFoundError, KeyError)):
        lab.file(A, path)


async def test_a_machine_does_nothing_to_units_for_a_driver_once_a_newer_one_was_there(site: SiteFaults) -> None:
    old, new = site.fenced(OLD), site.fenced(NEW)
    await old.start_unit(A, runs())
    await new.start_unit(A, runs())
    before = await site.units(A)
    for late in (
        old.start_unit(A, runs(env=(("ANSWER", "42"),))),
        old.reload_unit(A, runs()),
        old.stop_unit(A, "runs"),
        old.stop_unit(A, "runs", kill=True),
        old.hold_unit(A, "runs", 1.0),
        old.remove_unit(A, "runs"),
    ):
        with pytest.raises(LeaseLost):
            await late
    await new.create_volume(A, "data", "standard")
    with pytest.raises(LeaseLost):
        await old.delete_volume(A, "data")
    assert [each.name for each in await site.volumes(A)] == ["data"]
    await new.delete_volume(A, "data")
    assert await site.units(A) == before
    await new.hold_unit(A, "runs", 1.0)
    await old.let_go_unit(A, "runs")  # this helps whoever waits
    await new.stop_unit(A, "runs")
    await new.remove_unit(A, "runs")
    assert await site.units(A) == ()


async def test_who_has_let_go_of_a_unit_is_the_newest_driver_from_then_on(site: SiteFaults) -> None:
    """It may find nothing to change there, while the one before it still has a call under way."""
    await site.fenced(OLD).start_unit(A, runs())
    await site.fenced(NEW).let_go_unit(A, "load-balancer")
    with pytest.raises(LeaseLost, match="token 8"):
        await site.fenced(OLD).start_unit(A, runs("load-balancer"))


async def test_fences_are_of_one_plane_and_one_machine_and_outlive_its_power(site: SiteFaults) -> None:
    await site.fenced(NEW).start_unit(A, runs())
    await site.fenced(Fence("beta", 1)).start_unit(A, runs("other"))
    await site.fenced(OLD).start_unit(B, runs())
    await site.start_unit(A, runs("nobody"))
    await site.kill_machine(A)
    await site.boot_machine(A)
    with pytest.raises(LeaseLost):
        await site.fenced(OLD).stop_unit(A, "runs")


# Seats


PORTS = {"etcd-client": 2379, "etcd-peer": 2380, "kube-apiserver": 6443}


def numbers(seat: Seat) -> list[int]:
    return [each.listen.port for each in seat.ports]


def places(*seats: Seat) -> list[tuple[str, int]]:
    """Where they listen: a site may tell them apart by ports, or by addresses."""
    return [(each.listen.host, each.listen.port) for seat in seats for each in seat.ports]


async def test_a_seat_has_ports_of_its_own_at_the_machines_address(site: SiteFaults) -> None:
    seat = await site.allocate(A, "p1", "r1", PORTS)
    address = next(each.address for each in await site.machines() if each.name == A)
    assert (seat.machine, [each.name for each in seat.ports]) == (A, list(PORTS))
    assert {each.listen.host for each in seat.ports} == {address}
    assert [each.advertised for each in seat.ports] == [each.listen for each in seat.ports]
    assert numbers(seat) == list(PORTS.values())
    assert await site.seats(A) == (TakenSeat(plane="p1", replica="r1", seat=seat),)
    assert await site.seats(B) == ()


async def test_whoever_asks_again_gets_the_same_seat_and_nobody_else_does(site: SiteFaults) -> None:
    first = await site.allocate(A, "p1", "r1", PORTS)
    others = [await site.allocate(A, "p1", "r2", PORTS), await site.allocate(A, "p2", "r1", PORTS)]
    assert await site.allocate(A, "p1", "r1", PORTS) == first
    every = places(first, *others)
    assert len(set(every)) == len(every)
    assert numbers(await site.allocate(B, "p1", "r3", PORTS)) == numbers(first), "each machine counts for itself"
    with pytest.raises(Conflict, match="other ports"):
        await site.allocate(A, "p1", "r1", {**PORTS, "kube-scheduler": 10259})


async def test_a_seat_that_is_let_go_is_given_to_the_next(site: SiteFaults) -> None:
    first = await site.allocate(A, "p1", "r1", PORTS)
    await site.allocate(A, "p1", "r2", PORTS)
    await site.release(A, "p1", "r1")
    await site.release(A, "p1", "r1")
    assert await site.allocate(A, "p2", "r9", PORTS) == first


async def test_ports_that_somebody_listens_on_are_passed_over(site: SiteFaults) -> None:
    address = next(each.address for each in await site.machines() if each.name == A)
    await site.start_unit(A, listens(address, 2380))
    await eventually(lambda: site.ports_in_use(A, (2380,)), lambda seen: seen == (2380,))
    seat = await site.allocate(A, "p1", "r1", PORTS)
    apiserver = numbers(seat)[2]
    assert not set(places(seat)) & {(address, port) for port in PORTS.values()}
    await site.start_unit(A, listens(address, apiserver))
    await eventually(lambda: site.ports_in_use(A, (apiserver,)), lambda seen: seen == (apiserver,))
    assert await site.allocate(A, "p1", "r1", PORTS) == seat, "it listens there itself"


async def test_a_seat_from_before_there_were_any_is_nobody_elses(site: SiteFaults) -> None:
    taken = TakenSeat(plane="old", replica="r1", seat=await site.allocate(A, "p1", "r1", PORTS))
    await site.release(A, "p1", "r1")
    await site.occupy(A, taken)
    await site.occupy(A, taken)
    assert await site.seats(A) == (taken,)
    assert not set(places(await site.allocate(A, "p1", "r1", PORTS))) & set(places(taken.seat))


async def test_seats_outlive_power(site: SiteFaults) -> None:
    first = await site.allocate(A, "p1", "r1", PORTS)
    await site.kill_machine(A)
    await site.boot_machine(A)
    assert await site.allocate(A, "p1", "r2", PORTS) != first
    assert await site.allocate(A, "p1", "r1", PORTS) == first


async def test_who_sits_where_is_no_affair_of_a_driver_once_a_newer_one_was_there(site: SiteFaults) -> None:
    """Whether anything runs on the machine or not."""
    seat = await site.fenced(OLD).allocate(A, "alpha", "r1", PORTS)
    await site.fenced(NEW).allocate(A, "alpha", "r2", PORTS)
    for late in (
        site.fenced(OLD).allocate(A, "alpha", "r3", PORTS),
        site.fenced(OLD).occupy(A, TakenSeat(plane="alpha", replica="r2", seat=seat)),
        site.fenced(OLD).release(A, "alpha", "r2"),
    ):
        with pytest.raises(LeaseLost, match="token 8"):
            await late
    assert [each.replica for each in await site.seats(A)] == ["r1", "r2"]
    await site.fenced(Fence("beta", 1)).release(A, "alpha", "r2")
    assert [each.replica for each in await site.seats(A)] == ["r1"]


async def test_a_site_that_is_destroyed_has_nothing_left(lab: SiteUnderTest, site: SiteFaults) -> None:
    unit = await start(site, runs())
    await site.create_volume(A, "data", "standard")
    await site.allocate(A, "p1", "r1", PORTS)
    await site.destroy()
    assert unit.pid is not None
    assert not lab.alive(A, unit.pid)
    assert (await site.units(A), await site.volumes(A), await site.seats(A)) == ((), (), ())
