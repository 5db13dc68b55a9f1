"""Databases that are restored from a full snapshot and increments: a real etcd that lived through the same history says
what must be in them, key by key, and by its own hash.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from support.etcd_cluster import (  # noqa: F401
    RealLab,
    etcd_binary,
    leader,
    real_lab,
    real_labs,
)
from support.etcd_history import ALL, History, etcdutl, is_whole  # noqa: F401
from support.tiers import in_each_tier, sized

from quarterdeck.backup.database import advance, cut_checksum, newest_revision
from quarterdeck.backup.records import Increment, LeaseTimes, RevisionChange, decode, encode
from quarterdeck.etcd.client import EtcdMember

ROUNDS = 40


@pytest.fixture
async def member(real_lab: RealLab) -> AsyncIterator[EtcdMember]:  # noqa: F811
    async with EtcdMember((await leader(real_lab)).client_url, real_lab.tls) as one:
        yield one


async def taken(member: EtcdMember, path: Path) -> None:
    with path.open("wb") as file:
        async with aclosing(member.maintenance.snapshot()) as parts:
            async for part in parts:
                file.write(part)
    cut_checksum(path)


@pytest.mark.parametrize("seed", range(sized(smoke=1, full=2, soak=40)))
@in_each_tier
async def test_what_is_restored_is_what_etcd_had_at_that_revision(
    seed: int,
    member: EtcdMember,
    real_lab: RealLab,  # noqa: F811
    etcdutl: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    history = History(member, seed)
    await history.write(ROUNDS)
    await member.kv.compact(max(history.states) - 10)
    await taken(member, tmp_path / "full")
    begins = newest_revision(tmp_path / "full")
    await history.write(ROUNDS)
    ends = max(history.states)
    await history.watch(begins, ends)
    increments = parted(history.changes, await history.leases())
    for revision in random.Random(seed).sample(sorted(each for each in history.states if each > begins), 3):
        database = tmp_path / f"at-{revision}"
        shutil.copy(tmp_path / "full", database)
        advance(database, increments, revision)
        assert newest_revision(database) == revision
        assert is_whole(etcdutl, database)
        spare = real_lab.spares[0]
        await real_lab.restore(spare, database, etcdutl)
        async with EtcdMember(spare.client_url, real_lab.tls) as restored:
            assert tuple((await restored.kv.get(ALL)).items) == history.states[revision]
            hashes = [await each.maintenance.hash_keys(revision=revision) for each in (member, restored)]
            assert (hashes[0].hash, hashes[0].compact_revision) == (hashes[1].hash, hashes[1].compact_revision)
            if revision == ends:
                for lease in await history.leases():
                    assert (await restored.lease.life(lease.lease)).granted_ttl == lease.granted
        await real_lab.kill(spare)


def parted(changes: Sequence[RevisionChange], leases: tuple[LeaseTimes, ...]) -> list[Increment]:
    """Changes as increments of seven, as bytes and back; the leases are those after the last one."""
    parts = [Increment(tuple(changes[at : at + 7])) for at in range(0, len(changes), 7)]
    parts[-1] = replace(parts[-1], leases=leases)
    return [*decode(b"".join(encode(each) for each in parts))]
