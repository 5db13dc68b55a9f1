"""A unit never starts without the data that it needs, whoever starts it: the fake, and the local driver."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

import pytest
from support.site_harness import (
    HOSTS,
    LocalUnderTest,
    SiteFaults,
    SiteUnderTest,
    any_lab,
    eventually,
    has_no_data_yet,
    keeps_data,
    runs,
    status,
)
from support.tiers import smoke

from quarterdeck.errors import Unavailable
from quarterdeck.model.units import UnitState, UnitStatus
from quarterdeck.sites.local.supervisor.unit_files import MARKER

A = "east-a1"


@pytest.fixture(params=[*smoke("fake", "loopback"), HOSTS])
async def lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SiteUnderTest]:
    async with any_lab(request, tmp_path) as made:
        yield made


@pytest.fixture
def site(lab: SiteUnderTest) -> SiteFaults:
    return lab.site


@pytest.fixture
async def volume(site: SiteFaults) -> PurePosixPath:
    return (await site.create_volume(A, "data", "standard")).path


def is_refused(seen: UnitStatus) -> bool:
    return seen.state is UnitState.FAILED and seen.pid is None and bool(seen.refused)


async def with_data(lab: SiteUnderTest, volume: PurePosixPath) -> UnitStatus:
    """A unit that was started freshly, and has its data."""
    await lab.site.start_unit(A, keeps_data(volume, fresh=True))
    await eventually(lambda: lab.site.list_volume(A, "data", "log"), lambda seen: seen == ("1.wal",))
    seen = await status(lab.site, A, "keeps-data")
    assert seen.state is UnitState.RUNNING
    assert not seen.refused
    if isinstance(lab, LocalUnderTest):
        marker = Path(lab.site.folder(A, "keeps-data")).parent / MARKER

        async def marked() -> bool:
            return marker.exists()

        await eventually(marked, bool)
    return seen


async def test_without_a_fresh_start_nothing_starts_on_an_empty_folder(site: SiteFaults, volume: PurePosixPath) -> None:
    with pytest.raises(Unavailable, match="data"):
        await site.start_unit(A, keeps_data(volume))
    seen = await eventually(lambda: status(site, A, "keeps-data"), is_refused)
    assert "no data" in seen.refused or "not there" in seen.refused
    assert seen.restarts == 0
    assert await site.list_volume(A, "data") == ()
    assert "cannot start" in await site.logs(A, "keeps-data")


async def test_what_needs_data_says_nothing_about_what_a_unit_is(volume: PurePosixPath) -> None:
    assert keeps_data(volume, fresh=True).digest == keeps_data(volume).digest


async def test_a_crashed_unit_whose_data_is_gone_is_not_started_until_it_is_back(
    lab: SiteUnderTest, site: SiteFaults, volume: PurePosixPath
) -> None:
    before = await with_data(lab, volume)
    lab.take_file(A, volume, "log")
    lab.crash(A, before)
    await eventually(lambda: status(site, A, "keeps-data"), is_refused)
    assert await site.list_volume(A, "data", "log") == ()
    lab.put_file(A, volume, "log/7.wal", 10)
    after = await eventually(lambda: status(site, A, "keeps-data"), lambda seen: seen.state is UnitState.RUNNING)
    assert after.pid != before.pid
    assert not after.refused


async def test_a_crashed_unit_with_its_data_is_started_again(
    lab: SiteUnderTest, site: SiteFaults, volume: PurePosixPath
) -> None:
    before = await with_data(lab, volume)
    lab.crash(A, before)
    after = await eventually(
        lambda: status(site, A, "keeps-data"),
        lambda seen: seen.pid not in (None, before.pid) and seen.state is UnitState.RUNNING,
    )
    assert after.restarts == 1


async def test_files_that_are_no_data_do_not_count_as_data(
    lab: SiteUnderTest, site: SiteFaults, volume: PurePosixPath
) -> None:
    before = await with_data(lab, volume)
    lab.take_file(A, volume, "log")
    lab.put_file(A, volume, "log/0.tmp", 10)
    lab.crash(A, before)
    await eventually(lambda: status(site, A, "keeps-data"), is_refused)


async def test_a_boot_starts_nothing_whose_data_is_gone(
    lab: SiteUnderTest, site: SiteFaults, volume: PurePosixPath
) -> None:
    await with_data(lab, volume)
    await site.start_unit(A, runs())
    await site.kill_machine(A)
    lab.take_file(A, volume, "log")
    await site.boot_machine(A)
    await eventually(lambda: status(site, A, "runs"), lambda seen: seen.state is UnitState.RUNNING)
    await eventually(lambda: status(site, A, "keeps-data"), is_refused)
    assert await site.list_volume(A, "data", "log") == ()


async def test_not_even_a_fresh_start_is_made_where_there_was_data(
    lab: SiteUnderTest, site: SiteFaults, volume: PurePosixPath
) -> None:
    await with_data(lab, volume)
    await site.stop_unit(A, "keeps-data")
    await site.delete_volume(A, "data")
    await site.create_volume(A, "data", "standard")
    for _ in range(2):
        with pytest.raises(Unavailable, match="data"):
            await site.start_unit(A, keeps_data(volume, fresh=True))
        await eventually(lambda: status(site, A, "keeps-data"), is_refused)
    assert await site.list_volume(A, "data", "log") == ()


async def test_a_removed_unit_takes_along_what_is_known_of_its_data(
    lab: SiteUnderTest, site: SiteFaults, volume: PurePosixPath
) -> None:
    await with_data(lab, volume)
    await site.remove_unit(A, "keeps-data")
    await site.delete_volume(A, "data")
    await site.create_volume(A, "data", "standard")
    await with_data(lab, volume)


async def test_a_start_that_failed_before_there_was_data_does_not_use_up_the_permission(
    lab: SiteUnderTest, site: SiteFaults, volume: PurePosixPath
) -> None:
    fresh = has_no_data_yet(volume, fresh=True)
    await site.start_unit(A, fresh)
    before = await status(site, A, fresh.name)
    assert before.state is UnitState.RUNNING
    for count in (1, 2):
        lab.crash(A, before)
        before = await eventually(
            lambda: status(site, A, fresh.name),
            lambda seen, last=before.pid: seen.pid not in (None, last) and seen.state is UnitState.RUNNING,
        )
        assert before.restarts == count
    await site.kill_machine(A)
    await site.boot_machine(A)
    await eventually(lambda: status(site, A, fresh.name), is_refused)
    await site.start_unit(A, has_no_data_yet(volume))
    assert is_refused(await status(site, A, fresh.name))
    await site.start_unit(A, fresh)
    assert (await status(site, A, fresh.name)).state is UnitState.RUNNING


async def test_a_unit_that_is_refused_can_be_asked_to_start_at_any_moment_of_its_attempts(
    site: SiteFaults, volume: PurePosixPath
) -> None:
    with pytest.raises(Unavailable, match="data"):
        await site.start_unit(A, has_no_data_yet(volume))
    asked_until = time.monotonic() + 3  # over several attempts, each of which systemd begins and ends
    while time.monotonic() < asked_until:
        await site.start_unit(A, has_no_data_yet(volume))
    assert is_refused(await status(site, A, has_no_data_yet(volume).name))


async def test_a_running_unit_is_guarded_without_a_restart(
    lab: SiteUnderTest, site: SiteFaults, volume: PurePosixPath
) -> None:
    await site.start_unit(A, runs())
    before = await status(site, A, "runs")
    lab.put_file(A, volume, "log/1.wal", 10)
    await site.guard_unit(A, "runs", volume / "log/*.wal")
    await site.guard_unit(A, "nobody", volume / "log/*.wal")
    assert await status(site, A, "runs") == before
    lab.take_file(A, volume, "log")
    lab.crash(A, before)
    await eventually(lambda: status(site, A, "runs"), is_refused)
