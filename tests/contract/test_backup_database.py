"""Databases that are restored from a full snapshot and increments: a real etcd that lived through the same history says
what must be in them, key by key, and by its own hash.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
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
from support.tiers import in_each_tier, sized

from quarterdeck.backup.database import advance, cut_checksum, newest_revision
from quarterdeck.backup.records import Change, Increment, LeaseTimes, change_of, decode, encode
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.facts import KeyValue
from quarterdeck.etcd.kv import DeleteRange, Get, Put, prefix_end
from quarterdeck.etcd.watch import WatchRequest
from quarterdeck.upstream.catalog import UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream

ALL = Get(key=b"\0", range_end=b"\0")
ROUNDS = 40


@pytest.fixture
async def member(real_lab: RealLab) -> AsyncIterator[EtcdMember]:  # noqa: F811
    async with EtcdMember((await leader(real_lab)).client_url, real_lab.tls) as one:
        yield one


class History:
    """Random writes, what the watch told of them, and what etcd answered after each."""

    def __init__(self, member: EtcdMember, seed: int) -> None:
        self._member, self._random = member, random.Random(seed)
        self._leases: list[int] = []
        self.states: dict[int, tuple[KeyValue, ...]] = {}
        self.changes: list[Change] = []

    async def write(self, rounds: int) -> None:
        for _ in range(rounds):
            await self._one()
            await self._note()

    async def _note(self) -> None:
        found = await self._member.kv.get(ALL)
        self.states[found.revision] = tuple(found.items)

    async def _one(self) -> None:
        kv, lots = self._member.kv, self._random
        key = b"/k/%d" % lots.randrange(30)
        match lots.randrange(8):
            case 0:
                await kv.delete(DeleteRange(key))
            case 1:
                await kv.txn(
                    (), [Put(b"/many/%d" % number, lots.randbytes(10)) for number in range(lots.randrange(1, 120))]
                )
            case 2:
                await kv.delete(DeleteRange(b"/many/", prefix_end(b"/many/")))
            case 3:
                self._leases.append((await self._member.lease.grant(600)).id)
                await kv.put(Put(key, b"leased", self._leases[-1]))
            case 4 if self._leases:
                await self._member.lease.revoke(self._leases.pop(lots.randrange(len(self._leases))))
            case 5:
                await kv.txn((), [DeleteRange(key), Put(b"/large", lots.randbytes(lots.randrange(20_000)))])
            case _:
                await kv.put(Put(key, lots.randbytes(lots.randrange(2_000))))

    async def watch(self, behind: int, until: int) -> None:
        """Take down what revisions did, up to ``until``."""
        request = WatchRequest(key=ALL.key, range_end=ALL.range_end, start_revision=behind + 1)
        if behind >= until:
            return
        async with aclosing(self._member.watch.revisions(request)) as revisions:
            async for events in revisions:
                self.changes.append(change_of(events, 0))
                if self.changes[-1].revision >= until:
                    return

    async def leases(self) -> tuple[LeaseTimes, ...]:
        lives = [await self._member.lease.life(each) for each in self._leases]
        return tuple(LeaseTimes(each.id, each.granted_ttl, each.ttl) for each in lives)


async def taken(member: EtcdMember, path: Path) -> None:
    with path.open("wb") as file:
        async with aclosing(member.maintenance.snapshot()) as parts:
            async for part in parts:
                file.write(part)
    cut_checksum(path)


@pytest.fixture(scope="session")
def etcdutl() -> Path:
    upstream = Upstream.from_environment(os.environ)
    return asyncio.run(upstream.ensure([UpstreamProgram.ETCDUTL], Versions()))[UpstreamProgram.ETCDUTL]


def is_whole(etcdutl: Path, database: Path) -> bool:
    """Whether etcd finds each page of the file in order. (Its ``etcdutl hashkv`` panics where a key has a lease.)"""
    argv = (etcdutl, "snapshot", "status", database)
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("seed", range(sized(smoke=1, full=2, soak=40)))
@in_each_tier
async def test_what_is_restored_is_what_etcd_had_at_that_revision(
    seed: int,
    member: EtcdMember,
    real_lab: RealLab,  # noqa: F811
    etcdutl: Path,
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


def parted(changes: Sequence[Change], leases: tuple[LeaseTimes, ...]) -> list[Increment]:
    """Changes as increments of seven, as bytes and back; the leases are those after the last one."""
    parts = [Increment(tuple(changes[at : at + 7])) for at in range(0, len(changes), 7)]
    parts[-1] = replace(parts[-1], leases=leases)
    return [decode(encode(each)) for each in parts]
