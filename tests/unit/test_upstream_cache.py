"""The cache: what it finds wrong, and that nothing half-done is ever in it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from pathlib import Path

import pytest
from support.golden import Golden
from support.upstream_lab import AMD64, elf, sha256

from quarterdeck.errors import Corrupt, PreconditionFailed
from quarterdeck.upstream.cache import Cache, CacheEntry, State, storing
from quarterdeck.upstream.catalog import Project, UpstreamProgram, Version
from quarterdeck.upstream.sources import Target, fault

V = Version(3, 6, 16)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", AMD64)


async def store(cache: Cache, content: bytes) -> CacheEntry:
    async with cache.work_folder(Project.ETCD, V, pytest.fail) as folder:
        file = folder / "anything"
        file.write_bytes(content)
        return cache.put(UpstreamProgram.ETCD, V, file, "release")


async def test_what_was_stored_is_ready_where_the_layout_says(cache: Cache) -> None:
    entry = await store(cache, elf(b"etcd"))
    assert entry == cache.look(UpstreamProgram.ETCD, V)
    assert entry.state is State.READY
    assert entry.source == "release"
    assert entry.path == cache.root / "upstream/etcd/3.6.16/linux-amd64/etcd"
    assert entry.path.read_bytes() == elf(b"etcd")
    assert entry.path.stat().st_mode & 0o777 == 0o755
    assert sha256(elf(b"etcd")) in (entry.path.parent / "facts.json").read_text()


async def test_a_program_whose_content_changed_in_its_place_is_seen_before_it_is_used(
    cache: Cache, golden: Golden
) -> None:
    entry = await store(cache, elf(b"etcd"))
    assert cache.checked(entry) == entry
    entry.path.write_bytes(elf(b"evil"))
    assert cache.look(UpstreamProgram.ETCD, V).state is State.READY, "its size and headers tell nothing"
    seen = cache.checked(cache.look(UpstreamProgram.ETCD, V))
    assert seen.state is State.BROKEN
    golden(seen.why)


async def test_facts_that_were_changed_along_with_a_release_do_not_help(cache: Cache) -> None:
    entry = await store(cache, elf(b"evil"))
    assert cache.checked(entry, pinned=sha256(elf(b"evil"))).state is State.READY
    fresh = Cache(cache.root, AMD64)
    seen = fresh.checked(entry, pinned=sha256(elf(b"etcd")))
    assert (seen.state, "pinned was" in seen.why) == (State.BROKEN, True)


async def test_a_program_is_read_again_only_if_it_may_have_changed(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = await store(cache, elf(b"etcd"))
    cache.checked(entry)
    monkeypatch.setattr("quarterdeck.upstream.cache._digest", lambda _: pytest.fail("read again"))
    assert cache.checked(entry) == entry


async def test_what_was_never_stored_is_missing(cache: Cache) -> None:
    assert cache.look(UpstreamProgram.ETCD, V).state is State.MISSING
    assert cache.entries() == ()


async def test_the_cache_lists_what_it_has_for_this_machine(cache: Cache) -> None:
    await store(cache, elf())
    (cache.root / "upstream/etcd/not-a-version/linux-amd64").mkdir(parents=True)
    (cache.root / "upstream/kubectl/1.36.3/linux-arm64").mkdir(parents=True)
    assert [(entry.program, entry.version) for entry in cache.entries()] == [(UpstreamProgram.ETCD, V)]


async def test_a_program_cut_short_in_the_cache_is_seen(cache: Cache, golden: Golden) -> None:
    entry = await store(cache, elf(bytes(1000)))
    entry.path.write_bytes(elf(bytes(1000))[:500])
    seen = cache.look(UpstreamProgram.ETCD, V)
    assert seen.state == State.BROKEN
    golden(seen.why)


async def test_a_program_of_another_architecture_in_the_cache_is_seen(cache: Cache) -> None:
    entry = await store(cache, elf())
    entry.path.write_bytes(elf(machine=183))
    seen = cache.look(UpstreamProgram.ETCD, V)
    assert seen.state is State.BROKEN
    assert "wrong architecture (arm64, this machine is amd64)" in seen.why


async def test_lost_or_unreadable_facts_are_seen(cache: Cache) -> None:
    entry = await store(cache, elf())
    facts = entry.path.parent / "facts.json"
    facts.write_text("{")
    assert cache.look(UpstreamProgram.ETCD, V).state is State.BROKEN
    facts.unlink()
    assert cache.look(UpstreamProgram.ETCD, V).why == "is incomplete"


async def test_a_program_that_may_not_be_executed_is_seen(cache: Cache, golden: Golden) -> None:
    entry = await store(cache, elf())
    entry.path.chmod(0o644)
    golden(cache.look(UpstreamProgram.ETCD, V).why)


async def test_a_broken_program_is_replaced(cache: Cache) -> None:
    entry = await store(cache, elf(b"old"))
    entry.path.write_bytes(b"")
    assert (await store(cache, elf(b"new"))).state is State.READY
    assert entry.path.read_bytes() == elf(b"new")


@pytest.mark.parametrize("content", [b"", b"<html>", elf(machine=183), elf(bytes(1000))[:-1]])
async def test_what_is_no_whole_program_for_this_machine_is_never_stored(cache: Cache, content: bytes) -> None:
    with pytest.raises(Corrupt, match=r"storing etcd 3\.6\.16"):
        await store(cache, content)
    assert cache.look(UpstreamProgram.ETCD, V).state is State.MISSING


async def test_nothing_stays_in_the_work_folder(cache: Cache) -> None:
    with contextlib.suppress(RuntimeError):
        async with cache.work_folder(Project.ETCD, V, pytest.fail) as folder:
            (folder / "half").write_bytes(b"half")
            raise RuntimeError("midway")
    assert not folder.exists()


async def test_what_a_killed_process_left_is_gone_for_the_next(cache: Cache) -> None:
    left = cache.root / "upstream/.work/etcd-3.6.16-linux-amd64/half"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    async with cache.work_folder(Project.ETCD, V, pytest.fail) as folder:
        assert list(folder.iterdir()) == []


async def test_only_one_at_a_time_fetches_a_release(cache: Cache) -> None:
    waits = asyncio.Event()
    inside: list[str] = []

    async def second() -> None:
        other = Cache(cache.root, AMD64)
        async with other.work_folder(Project.ETCD, V, waits.set):
            inside.append("second")

    async with cache.work_folder(Project.ETCD, V, pytest.fail):
        task = asyncio.create_task(second())
        await asyncio.wait_for(waits.wait(), 10)
        async with cache.work_folder(Project.COREDNS, V, pytest.fail):  # another release does not wait
            inside.append("first")
    await asyncio.wait_for(task, 10)
    assert inside == ["first", "second"]


async def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = Cache(tmp_path / "file" / "cache", AMD64)
    assert cache.look(UpstreamProgram.ETCD, V).state is State.MISSING
    with golden.raises(PreconditionFailed):
        await store(cache, elf())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named(tmp_path: Path, number: int, golden: Golden) -> None:
    with golden.raises(PreconditionFailed), storing("writing", tmp_path):
        raise OSError(number, "full")


def test_other_faults_of_the_file_system_are_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="broken disk"), storing("writing", tmp_path):
        raise OSError(errno.EIO, "broken disk")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (elf(b"x"), None),
        (b"", "is empty"),
        (b"#!/bin/sh\necho 1.36.3\n" + bytes(100), "is not a 64-bit Linux program"),
        (elf()[:40], "is not a 64-bit Linux program"),
        (elf()[:100], "is cut short (100 bytes)"),
        (elf(bytes(50))[:-1], "is cut short (169 of at least 170 bytes)"),
        (elf(machine=183), "is of the wrong architecture (arm64, this machine is amd64)"),
    ],
)
def test_faults_of_a_program_file(tmp_path: Path, content: bytes, why: str | None) -> None:
    file = tmp_path / "program"
    file.write_bytes(content)
    assert fault(file, AMD64) == why


def test_this_machine_is_a_target() -> None:
    assert str(Target.here()) in {"linux-amd64", "linux-arm64"}
