"""Random histories of a real etcd: what was written, what a watch told of it, and what etcd answered after each."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from contextlib import aclosing
from pathlib import Path

import pytest

from quarterdeck.backup.records import LeaseTimes, RevisionChange, change_of
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.facts import KeyValue
from quarterdeck.etcd.kv import DeleteRange, Get, Put, prefix_end
from quarterdeck.etcd.watch import WatchRequest
from quarterdeck.upstream.catalog import UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream

ALL = Get(key=b"\0", range_end=b"\0")


@pytest.fixture(scope="session")
def etcdutl() -> Path:
    upstream = Upstream.from_environment(os.environ)
    return asyncio.run(upstream.ensure([UpstreamProgram.ETCDUTL], Versions()))[UpstreamProgram.ETCDUTL]


def is_whole(etcdutl: Path, database: Path) -> bool:
    """Whether etcd finds each page of the file in order. (Its ``etcdutl hashkv`` panics where a key has a lease.)"""
    argv = (etcdutl, "snapshot", "status", database)
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


class History:
    """Random writes, what the watch told of them, and what etcd answered after each."""

    def __init__(self, member: EtcdMember, seed: int) -> None:
        self._member, self._random = member, random.Random(seed)
        self._leases: list[int] = []
        self.states: dict[int, tuple[KeyValue, ...]] = {}
        self.changes: list[RevisionChange] = []

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
