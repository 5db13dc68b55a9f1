"""The one writer of a chain: answers that are lost fence nobody, and another process's link does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from support.recording_lab import FaultyObjects

from quarterdeck.backup.chain import FullBackup, ObjectReference
from quarterdeck.backup.chain_store import ChainStore
from quarterdeck.backup.writer import ChainWriter
from quarterdeck.errors import LeaseLost, Unavailable

AT = datetime(2030, 1, 1, tzinfo=UTC)


def full(revision: int) -> FullBackup:
    stored = ObjectReference(name=f"alpha/data/{revision}", sha256="0", size_bytes=1)
    return FullBackup(cluster="main", epoch=0, revision=revision, at=AT, etcd_version="3.6.16", stored=stored)


async def held() -> None:
    return None


def writer(store: FaultyObjects, name: str) -> ChainWriter:
    return ChainWriter(ChainStore(store, "uid", "alpha"), name, held, lambda: AT)


def once(done: bool) -> Callable[[int, str, bool], None]:
    """One creation of a link fails, before or after it was done."""
    left = 1

    def fault(number: int, does: str, was_done: bool) -> None:
        nonlocal left
        if left and does.startswith("creating") and was_done is done:
            left -= 1
            raise Unavailable(does, "no answer")

    return fault


async def revisions(store: FaultyObjects) -> list[int]:
    return [each.revision for each in (await ChainStore(store, "uid", "alpha").read()).fulls]


@pytest.mark.parametrize("done", [False, True])
async def test_a_link_whose_answer_was_lost_is_added_once_also_when_another_one_came_between(done: bool) -> None:
    store = FaultyObjects()
    one = writer(store, "one")
    await one.append(fulls=[full(1)])
    store.fault = once(done)
    with pytest.raises(Unavailable):
        await one.append(fulls=[full(2)])
    await one.append(fulls=[full(3)])
    await one.append(fulls=[full(2)])
    assert sorted(await revisions(store)) == [1, 2, 3]
    assert one.chain == await ChainStore(store, "uid", "alpha").read()


async def test_what_is_added_at_the_same_time_is_added_one_after_the_other() -> None:
    store = FaultyObjects()
    one = writer(store, "one")
    await asyncio.gather(*(one.append(fulls=[full(revision)]) for revision in range(1, 20)))
    assert sorted(await revisions(store)) == [*range(1, 20)]


async def test_a_link_of_another_process_ends_the_writer() -> None:
    store = FaultyObjects()
    one, two = writer(store, "one"), writer(store, "two")
    await one.append(fulls=[full(1)])
    await two.append(fulls=[full(2)])
    with pytest.raises(LeaseLost, match="another process has written link 2"):
        await one.append(fulls=[full(3)])
    assert await revisions(store) == [1, 2]
