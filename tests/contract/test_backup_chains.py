"""Long chains in a real S3 server: checkpoints, stale listings, links that are deleted, and two writers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fakes.objects import MemoryObjects
from support.chains import link
from support.damaged_backups import backed_up_planes, rows_of
from support.databases import IDENTITIES
from support.s3_lab import BUCKET, S3Lab, s3_server
from typing_extensions import override

from quarterdeck.backup.build import build
from quarterdeck.backup.chain import Chain
from quarterdeck.backup.chain_store import CHECKPOINT_LINKS, ChainStore
from quarterdeck.backup.objects.port import ObjectStore, StoredObject
from quarterdeck.backup.objects.stores import BucketStore, open_store
from quarterdeck.errors import LeaseLost

PREFIX = "alpha/uid"
AT_ONCE = 32


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Lab]:
    with s3_server(tmp_path_factory.mktemp("s3")) as lab:
        yield lab


@pytest.fixture
def store(s3: S3Lab, tmp_path: Path) -> ObjectStore:
    return open_store(f"s3://{BUCKET}/{tmp_path.name}", s3.options())


def chains(store: ObjectStore) -> ChainStore:
    return ChainStore(store, "uid", PREFIX)


async def long_chain(count: int) -> tuple[MemoryObjects, Chain]:
    """A chain of so many links, made in memory: an answer of a server for each would take minutes."""
    made = MemoryObjects()
    its, chain = chains(made), Chain("uid")
    for number in range(count):
        chain = await its.append(chain, link(belongings=f"belongings-{number % 2}"))
    return made, chain


async def copy(source: MemoryObjects, target: ObjectStore) -> None:
    names = sorted(source.objects)
    for at in range(0, len(names), AT_ONCE):
        batch = names[at : at + AT_ONCE]
        await asyncio.gather(*(target.create(each, source.objects[each][0]) for each in batch))


class StaleListings(BucketStore):
    """A bucket whose listings lack the last ``missing`` objects."""

    def __init__(self, s3: S3Lab, folder: str, missing: int) -> None:
        self._missing = missing
        found = open_store(f"s3://{BUCKET}/{folder}", s3.options())
        assert isinstance(found, BucketStore)
        super().__init__(found._bucket, found.address)

    @override
    async def names(self, prefix: str) -> Sequence[StoredObject]:
        return (await super().names(prefix))[: -self._missing]


async def test_a_chain_of_three_checkpoints_is_read_swept_and_continued_by_one_of_two_writers(
    store: ObjectStore, s3: S3Lab, tmp_path: Path
) -> None:
    made, chain = await long_chain(2 * CHECKPOINT_LINKS + 40)
    await copy(made, store)
    assert await chains(store).read() == chain
    for missing in (1, 60):  # also the newest checkpoint
        assert await chains(StaleListings(s3, tmp_path.name, missing)).read() == chain

    outlived = await chains(store).outlived(chain)
    assert len(outlived) == CHECKPOINT_LINKS - 1
    for at in range(0, len(outlived), AT_ONCE):
        await asyncio.gather(*(store.delete([each]) for each in outlived[at : at + AT_ONCE]))
    assert await chains(store).read() == chain
    assert await chains(store).outlived(chain) == ()

    tries = (chains(store).append(chain, link(belongings="one", writer=each)) for each in ("first", "second"))
    ended = await asyncio.gather(*tries, return_exceptions=True)
    assert sorted(type(each).__name__ for each in ended) == [Chain.__name__, LeaseLost.__name__]
    assert await chains(store).read() == next(each for each in ended if isinstance(each, Chain))


async def test_a_writer_that_slept_while_its_link_was_deleted_is_refused(store: ObjectStore) -> None:
    made, chain = await long_chain(40)
    await copy(made, store)
    early = await chains(made).read()
    await store.delete([max(made.objects)])
    with pytest.raises(LeaseLost, match=f"link {early.length} is gone"):
        await chains(store).append(chain, link(belongings="late"))


async def test_each_revision_is_restored_out_of_checkpoints_and_joined_increments(
    store: ObjectStore, tmp_path: Path
) -> None:
    made, (plane, _) = await backed_up_planes(tmp_path)
    await copy(made, store)
    chain = await ChainStore(store, plane.folder, plane.folder, checkpoint_links=4).read()
    assert any(each.last - each.first > 2 for each in chain.increments), "none was joined"
    for revision in (7, 16, 19, chain.latest("main", 0).revision):
        built = await build(store, chain.at_revision("main", revision, 0), IDENTITIES, tmp_path / "db")
        assert rows_of(built.path) == plane.rows[revision]
