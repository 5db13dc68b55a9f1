"""A volume of a re-attachable class is never two machines': the fake, and the local driver with each isolation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.site_harness import (
    SMOKE_KINDS,
    LocalUnderTest,
    SiteFaults,
    SiteUnderTest,
    any_lab,
    eventually,
    keeps_writing,
    local_lab,
    runs,
    status,
)

from quarterdeck.errors import Conflict, LeaseLost, NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.units import Fence, UnitState, UnitStatus, Volume

A, B, C = "east-a1", "east-b1", "east-c1"


@pytest.fixture(params=SMOKE_KINDS)
async def lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SiteUnderTest]:
    async with any_lab(request, tmp_path) as made:
        yield made


@pytest.fixture
def site(lab: SiteUnderTest) -> SiteFaults:
    return lab.site


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[LocalUnderTest]:
    async with local_lab("loopback", tmp_path) as made:
        yield made


async def in_use(site: SiteFaults, storage_class: str = "shared") -> UnitStatus:
    """A unit on A that goes on writing to its volume."""
    volume = await site.create_volume(A, "data", storage_class)
    await site.start_unit(A, keeps_writing(volume.path, fresh=True))
    await eventually(lambda: site.list_volume(A, "data", "log"), lambda seen: seen == ("1.wal",))
    return await status(site, A, "keeps-writing")


async def has(site: SiteFaults, machine: str) -> tuple[str, ...] | None:
    """What a look tells of the volume on a machine."""
    facts = (await site.facts("log")).machine(machine)
    assert facts is not None
    return facts.holds("data")


async def test_what_a_dead_machine_had_is_on_another_one_with_all_that_is_in_it(site: SiteFaults) -> None:
    await in_use(site)
    await site.kill_machine(A)
    moved = await site.attach_volume(B, "data", A)
    assert (moved.name, moved.storage_class, moved.used_bytes > 0) == ("data", "shared", True)
    assert await has(site, B) == ("1.wal",)
    assert await site.attach_volume(B, "data", A) == moved, "and can be repeated"
    assert (await site.facts()).away_from(A, "data") == B
    await site.start_unit(B, keeps_writing(moved.path))
    assert (await status(site, B, "keeps-writing")).state is UnitState.RUNNING
    with pytest.raises(NotFound):
        await site.attach_volume(C, "data", A)
    await site.boot_machine(A)
    back = await eventually(lambda: status(site, A, "keeps-writing"), lambda seen: bool(seen.refused))
    assert (back.state, back.pid) == (UnitState.FAILED, None)
    assert await has(site, A) == ()


async def test_what_stands_still_never_writes_again_to_what_was_taken_from_it(
    lab: SiteUnderTest, site: SiteFaults
) -> None:
    before = await in_use(site)
    await site.freeze_machine(A)
    moved = await site.attach_volume(B, "data", A)
    await site.thaw_machine(A)
    assert before.pid is not None
    assert not lab.alive(A, before.pid)
    if isinstance(lab, LocalUnderTest):
        log = Path(moved.path, "log/1.wal")
        size = log.stat().st_size
        await asyncio.sleep(0.3)  # it wrote every 0.02 s
        assert log.stat().st_size == size
    seen = await eventually(lambda: status(site, A, "keeps-writing"), lambda seen: bool(seen.refused))
    assert seen.pid is None


async def test_nothing_is_taken_from_a_machine_that_answers_and_uses_it(lab: SiteUnderTest, site: SiteFaults) -> None:
    before = await in_use(site)
    with pytest.raises(Conflict, match=f"machine {A} answers, and uses it"):
        await site.attach_volume(B, "data", A)
    assert before.pid is not None
    assert lab.alive(A, before.pid)
    assert (await has(site, A), await has(site, B)) == (("1.wal",), ())


async def test_what_is_local_is_nobody_elses_even_when_its_machine_is_dead(site: SiteFaults) -> None:
    await in_use(site, "standard")
    assert (await site.facts()).reattachable == {"shared"}
    await site.kill_machine(A)
    with pytest.raises(PreconditionFailed, match="volumes of storage class standard are local"):
        await site.attach_volume(B, "data", A)
    await site.boot_machine(A)
    assert await has(site, A) == ("1.wal",)


async def test_who_was_replaced_takes_nothing(site: SiteFaults) -> None:
    await site.create_volume(A, "data", "shared")
    await site.start_unit(B, runs())
    old, new = Fence("alpha", 7), Fence("alpha", 8)
    await site.fenced(new).stop_unit(B, "runs")
    await site.kill_machine(A)
    with pytest.raises(LeaseLost):
        await site.fenced(old).attach_volume(B, "data", A)
    assert await has(site, B) == ()
    await site.fenced(new).attach_volume(B, "data", A)


# What only folders have


async def attached(local: LocalUnderTest) -> Volume:
    return await local.site.attach_volume(B, "data", A)


async def test_what_was_cut_short_is_nobodys_and_goes_on(local: LocalUnderTest) -> None:
    await in_use(local.site)
    await local.site.kill_machine(A)
    volume = await attached(local)
    half = Path(volume.path).rename(Path(volume.path).with_name(".arriving-data"))  # and here it was killed
    assert (await has(local.site, A), await has(local.site, B)) == (None, ()), "A does not answer"
    assert (await local.site.facts()).away_from(B, "data") == B
    assert (await attached(local)).path == volume.path
    assert not half.exists()


async def test_what_is_nobodys_yet_goes_with_its_name(local: LocalUnderTest) -> None:
    await in_use(local.site)
    await local.site.kill_machine(A)
    volume = await attached(local)
    Path(volume.path).rename(Path(volume.path).with_name(".arriving-data"))
    await local.site.delete_volume(B, "data")
    assert (await local.site.facts()).away_from(A, "data") == ""


async def test_where_a_stranger_writes_it_is_refused_and_nobody_has_it(local: LocalUnderTest) -> None:
    await in_use(local.site)
    await local.site.kill_machine(A)
    folder = next(Path(local.site.folder(A, "x")).parents[2].glob("volumes/shared/data"))
    with (folder / "log/1.wal").open("ab") as log:
        process = await asyncio.create_subprocess_exec("sleep", "60", stdout=log)
        try:
            with pytest.raises(Unavailable, match=f"process {process.pid}, which belongs to no machine, writes to it"):
                await attached(local)
            assert await has(local.site, B) == ()
        finally:
            process.kill()
            await process.wait()
    assert (await attached(local)).name == "data"
