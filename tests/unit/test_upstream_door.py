"""The door: which place a program is taken from, and what is said when it can be had from none."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support.golden import Golden
from support.upstream_lab import AMD64, Heard, elf

from quarterdeck.errors import Corrupt, InvalidInput, NotFound, PreconditionFailed, Unavailable
from quarterdeck.progress import Progress
from quarterdeck.upstream.cache import Cache, State
from quarterdeck.upstream.catalog import CONTROL_PLANE, UpstreamProgram, Version, Versions
from quarterdeck.upstream.sources import CannotGive, ProgramRequest
from quarterdeck.upstream.upstream import Upstream, cache_root

ETCD = (UpstreamProgram.ETCD, UpstreamProgram.ETCDCTL)


class Shelf:
    """A source that has everything, unless ``trouble`` says otherwise."""

    def __init__(self, name: str, trouble: Callable[[ProgramRequest], Exception] | None = None) -> None:
        self.name = name
        self.orders: list[ProgramRequest] = []
        self._trouble = trouble

    async def fetch(self, order: ProgramRequest, progress: Progress) -> Mapping[UpstreamProgram, Path]:
        self.orders.append(order)
        await asyncio.sleep(0)
        for program in order.programs:
            (order.folder / program).write_bytes(elf(program.encode()))
        if self._trouble:
            raise self._trouble(order)
        return {program: order.folder / program for program in order.programs}


def absent(_: ProgramRequest) -> Exception:
    return CannotGive("no such release here", absent=True)


def unreachable(_: ProgramRequest) -> Exception:
    return CannotGive("no way there", absent=False)


def door(root: Path, *sources: Shelf, given: Path | None = None, heard: Heard | None = None) -> Upstream:
    return Upstream(Cache(root, AMD64), sources, given=given, progress=heard)


async def test_missing_programs_of_a_project_are_ordered_together_and_only_once(tmp_path: Path) -> None:
    shelf = Shelf("release")
    upstream = door(tmp_path, shelf)
    first = await upstream.ensure((*ETCD, UpstreamProgram.COREDNS, UpstreamProgram.ETCD), Versions())
    assert sorted(order.programs for order in shelf.orders) == [(UpstreamProgram.COREDNS,), ETCD]
    assert first[UpstreamProgram.ETCDCTL].read_bytes() == elf(b"etcdctl")
    assert await upstream.ensure((*ETCD, UpstreamProgram.COREDNS), Versions()) == first
    assert len(shelf.orders) == 2
    assert upstream.path(UpstreamProgram.ETCD, Versions().etcd) == first[UpstreamProgram.ETCD]


async def test_another_version_is_another_program(tmp_path: Path) -> None:
    shelf = Shelf("release")
    upstream = door(tmp_path, shelf)
    new = await upstream.ensure([UpstreamProgram.ETCD], Versions())
    old = await upstream.ensure([UpstreamProgram.ETCD], Versions.parse(etcd="3.5.31"))
    assert new != old
    assert len(shelf.orders) == 2
    rows = upstream.list(Versions())
    assert [(row.program, row.version, row.state) for row in rows[len(CONTROL_PLANE) :]] == [
        (UpstreamProgram.ETCD, Version(3, 5, 31), State.READY)
    ]


async def test_the_next_source_is_asked_when_one_cannot_give(tmp_path: Path) -> None:
    closed, build = Shelf("release", unreachable), Shelf("build")
    upstream = door(tmp_path, closed, build)
    await upstream.ensure(ETCD, Versions())
    assert len(closed.orders) == len(build.orders) == 1
    (entry,) = [entry for entry in upstream.list(Versions()) if entry.program is UpstreamProgram.ETCD]
    assert (entry.state, entry.source, entry.size) == (State.READY, "build", len(elf(b"etcd")))


async def test_corrupt_downloads_never_fall_through_to_the_next_source(tmp_path: Path, golden: Golden) -> None:
    bad, build = Shelf("release", lambda _: Corrupt("downloading", "wrong sum")), Shelf("build")
    with golden.raises(Corrupt):
        await door(tmp_path, bad, build).ensure(ETCD, Versions())
    assert build.orders == []
    assert Cache(tmp_path, AMD64).entries() == ()


async def test_a_version_that_no_source_has_is_not_found(tmp_path: Path, golden: Golden) -> None:
    with golden.raises(NotFound):
        await door(tmp_path, Shelf("a", absent), Shelf("b", unreachable)).ensure(ETCD, Versions())


async def test_without_any_usable_source_it_says_what_to_set(tmp_path: Path, golden: Golden) -> None:
    with golden.raises(Unavailable):
        await door(tmp_path, Shelf("a", unreachable)).ensure(ETCD, Versions())


async def test_a_full_disk_leaves_nothing_half_done(tmp_path: Path, golden: Golden) -> None:
    full = Shelf("release", lambda _: OSError(errno.ENOSPC, "No space left on device"))
    with golden.raises(PreconditionFailed):
        await door(tmp_path, full, Shelf("build")).ensure(ETCD, Versions())
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"] == []


async def test_a_cached_program_whose_content_changed_is_never_handed_out(tmp_path: Path) -> None:
    shelf, heard = Shelf("release"), Heard()
    paths = await door(tmp_path, shelf).ensure(ETCD, Versions())
    paths[UpstreamProgram.ETCD].write_bytes(elf(b"evil"))
    later = door(tmp_path, shelf, heard=heard)
    assert later.path(UpstreamProgram.ETCD, Versions().etcd) is None
    assert await later.ensure(ETCD, Versions()) == paths
    assert paths[UpstreamProgram.ETCD].read_bytes() == elf(b"etcd")
    assert any("the cached etcd 3.7.3 has changed" in note for note in heard.notes)


async def test_a_broken_cached_program_is_fetched_again_with_a_word(tmp_path: Path, golden: Golden) -> None:
    shelf, heard = Shelf("release"), Heard()
    upstream = door(tmp_path, shelf, heard=heard)
    paths = await upstream.ensure(ETCD, Versions())
    paths[UpstreamProgram.ETCD].write_bytes(elf(b"etcd")[:-1])
    assert upstream.path(UpstreamProgram.ETCD, Versions().etcd) is None
    assert await upstream.ensure(ETCD, Versions()) == paths
    assert shelf.orders[1].programs == (UpstreamProgram.ETCD,)
    golden(heard.notes)
    assert paths[UpstreamProgram.ETCD].read_bytes() == elf(b"etcd")


async def test_two_at_once_fetch_only_once(tmp_path: Path, golden: Golden) -> None:
    shelf, heard = Shelf("release"), Heard()
    one, two = door(tmp_path, shelf, heard=heard), door(tmp_path, shelf, heard=heard)
    first, second = await asyncio.gather(one.ensure(ETCD, Versions()), two.ensure(ETCD, Versions()))
    assert first == second
    assert len(shelf.orders) == 1
    golden(heard.notes)


async def test_a_read_only_cache_serves_what_it_has(tmp_path: Path, golden: Golden) -> None:
    shelf = Shelf("release")
    await door(tmp_path, shelf).ensure(ETCD, Versions())
    work = tmp_path / "upstream" / ".work"
    for lock in work.iterdir():
        lock.unlink()
    work.rmdir()
    work.write_text("nothing can be made below a file")
    again = door(tmp_path, shelf)
    assert set(await again.ensure(ETCD, Versions())) == set(ETCD)
    with golden.raises(PreconditionFailed):
        await again.ensure([UpstreamProgram.COREDNS], Versions())


async def test_the_first_failure_ends_the_other_downloads(tmp_path: Path) -> None:
    def only_coredns(order: ProgramRequest) -> Exception:
        return Corrupt("downloading", f"wrong sum of {order.project}")

    with pytest.raises(Corrupt):
        await door(tmp_path, Shelf("release", only_coredns)).ensure((*ETCD, UpstreamProgram.COREDNS), Versions())
    assert Cache(tmp_path, AMD64).entries() == ()


@pytest.mark.parametrize(
    ("content", "why"), [(elf(bytes(9))[:-1], "is cut short"), (elf(machine=183), "is of the wrong architecture")]
)
async def test_a_wrong_given_program_is_refused_not_replaced(tmp_path: Path, content: bytes, why: str) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "etcd").write_bytes(content)
    shelf = Shelf("release")
    upstream = door(tmp_path / "cache", shelf, given=given)
    with pytest.raises(PreconditionFailed, match=rf"using the given .*/etcd: it {why}"):
        await upstream.ensure(ETCD, Versions())
    assert shelf.orders == []
    (row,) = [entry for entry in upstream.list(Versions()) if entry.program is UpstreamProgram.ETCD]
    assert (row.state, row.source) == (State.BROKEN, "given")
    assert why in row.why


async def test_what_the_given_folder_lacks_comes_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    paths = await door(tmp_path, Shelf("release"), given=tmp_path / "given").ensure(ETCD, Versions())
    assert set(paths) == set(ETCD)


@pytest.mark.parametrize("name", ["QUARTERDECK_BIN_DIR", "QUARTERDECK_MIRROR"])
def test_settings_that_make_no_sense_are_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        Upstream.from_environment({"QUARTERDECK_CACHE": str(tmp_path), name: str(tmp_path / "nothing")})


async def test_envoy_comes_with_its_package_through_the_same_door(tmp_path: Path) -> None:
    upstream = door(tmp_path)
    paths = await upstream.ensure([UpstreamProgram.ENVOY], Versions())
    assert paths[UpstreamProgram.ENVOY].stat().st_size > 1_000_000
    (row,) = [entry for entry in upstream.list(Versions()) if entry.program is UpstreamProgram.ENVOY]
    assert (row.state, row.source, row.path) == (State.READY, "package", paths[UpstreamProgram.ENVOY])


def test_the_list_shows_what_is_missing(tmp_path: Path) -> None:
    rows = door(tmp_path).list(Versions())
    assert [row.program for row in rows] == list(CONTROL_PLANE)
    assert {row.state for row in rows if row.program is not UpstreamProgram.ENVOY} == {State.MISSING}


def test_the_cache_folder_follows_the_environment(tmp_path: Path) -> None:
    assert cache_root({"QUARTERDECK_CACHE": "/q", "XDG_CACHE_HOME": "/x"}) == Path("/q")
    assert cache_root({"XDG_CACHE_HOME": "/x"}) == Path("/x/quarterdeck")
    assert cache_root({}) == Path.home() / ".cache" / "quarterdeck"
