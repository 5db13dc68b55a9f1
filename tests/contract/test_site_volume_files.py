"""A file of this host goes into a volume of any kind of site: as a whole or not at all, and nobody else reads it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

import pytest
from support.hosts_site import HostsUnderTest
from support.site_harness import KINDS, LIMIT, FakeUnderTest, SiteUnderTest, any_lab, runs

from quarterdeck.errors import InvalidInput, LeaseLost, NotFound, Unavailable
from quarterdeck.model.units import Fence

A = "east-a1"
NAME = "restore.db"


@pytest.fixture(params=KINDS)
async def lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SiteUnderTest]:
    async with any_lab(request, tmp_path) as made:
        await made.site.create_volume(A, "data", "standard")
        yield made


def source(folder: Path, size: int = 3_000_000, seed: str = "one") -> Path:
    """A text that does not get much smaller, in several parts."""
    file = folder / f"{seed}.db"
    file.write_text(random.Random(seed).randbytes(size // 2).hex())
    return file


async def volume(lab: SiteUnderTest) -> PurePosixPath:
    return next(each.path for each in await lab.site.volumes(A) if each.name == "data")


@pytest.mark.parametrize("size", [3_000_000, 0])
async def test_all_of_it_is_there_and_nothing_else(lab: SiteUnderTest, tmp_path: Path, size: int) -> None:
    file = source(tmp_path, size)
    path = await lab.site.fill_volume(A, "data", NAME, file)
    assert path == await volume(lab) / NAME
    assert lab.text(A, path.parent, NAME) == file.read_text()
    assert await lab.site.list_volume(A, "data") == (NAME,)
    assert await lab.site.fill_volume(A, "data", NAME, file) == path, "once more: it is there"


async def test_it_takes_the_place_of_a_file_of_that_name_and_leaves_others(lab: SiteUnderTest, tmp_path: Path) -> None:
    folder = await volume(lab)
    lab.put_text(A, folder, NAME, "former")
    lab.put_text(A, folder, "member/snap", "kept")
    lab.put_text(A, folder, ".filling-other", "what an attempt with another file has left")
    file = source(tmp_path, 1000)
    await lab.site.fill_volume(A, "data", NAME, file)
    assert (lab.text(A, folder, NAME), lab.text(A, folder, "member/snap")) == (file.read_text(), "kept")
    left = set(await lab.site.list_volume(A, "data"))
    assert left - ({".filling-other"} if isinstance(lab, FakeUnderTest) else set()) == {NAME, "member"}


async def test_it_can_be_read_by_the_user_of_the_volume_alone(lab: SiteUnderTest, tmp_path: Path) -> None:
    file = source(tmp_path, 1000)
    file.chmod(0o644)
    path = await lab.site.fill_volume(A, "data", NAME, file)
    if isinstance(lab, FakeUnderTest):
        return
    assert lab.file(A, path).mode == 0o600
    if isinstance(lab, HostsUnderTest):
        owners = lab.lab.sh(A, 'stat -c "%U:%G" "$1" "$2"', str(path), str(path.parent)).split()
        assert owners == ["quarterdeck-etcd:quarterdeck-etcd"] * 2


async def test_what_there_is_no_room_for_is_refused_before_anything_is_written(
    lab: SiteUnderTest, tmp_path: Path
) -> None:
    await lab.site.create_volume(A, "narrow", "small")
    file = tmp_path / "large.db"
    with file.open("wb") as made:
        made.truncate(LIMIT + 2**20)
    with pytest.raises(Unavailable, match=r"51\.0 MiB are needed and 50\.0 MiB are free"):
        await lab.site.fill_volume(A, "narrow", NAME, file)
    assert NAME not in await lab.site.list_volume(A, "narrow")


async def test_what_cannot_be_is_one_clear_error(lab: SiteUnderTest, tmp_path: Path) -> None:
    file = source(tmp_path, 1000)
    with pytest.raises(NotFound, match="no such machine"):
        await lab.site.fill_volume("nowhere", "data", NAME, file)
    with pytest.raises(NotFound, match="no"):
        await lab.site.fill_volume(A, "nothing", NAME, file)
    with pytest.raises(Unavailable, match="No such file"):
        await lab.site.fill_volume(A, "data", NAME, tmp_path / "missing.db")
    for name in ("../escape", "a/b", ".hidden", ""):
        with pytest.raises(InvalidInput):
            await lab.site.fill_volume(A, "data", name, file)
    await lab.site.kill_machine(A)
    with pytest.raises(Unavailable):
        await lab.site.fill_volume(A, "data", NAME, file)
    await lab.site.boot_machine(A)
    assert await lab.site.list_volume(A, "data") == ()


async def test_a_driver_that_was_overtaken_fills_nothing(lab: SiteUnderTest, tmp_path: Path) -> None:
    old, new = lab.site.fenced(Fence("alpha", 7)), lab.site.fenced(Fence("alpha", 8))
    first, second = source(tmp_path, 1000), source(tmp_path, 1000, "two")
    await new.start_unit(A, runs())  # a local machine has a supervisor, which keeps fences, once it has a unit
    path = await new.fill_volume(A, "data", NAME, first)
    with pytest.raises(LeaseLost):
        await old.fill_volume(A, "data", NAME, second)
    assert lab.text(A, path.parent, NAME) == first.read_text()


async def test_two_at_once_leave_one_of_both_whole(lab: SiteUnderTest, tmp_path: Path) -> None:
    files = source(tmp_path), source(tmp_path, seed="two")
    calls = (lab.site.fill_volume(A, "data", NAME, each) for each in files)
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert any(isinstance(each, PurePosixPath) for each in outcomes)
    assert all(isinstance(each, PurePosixPath | Unavailable) for each in outcomes), outcomes
    assert lab.text(A, await volume(lab), NAME) in {each.read_text() for each in files}
    assert await lab.site.list_volume(A, "data") == (NAME,)
