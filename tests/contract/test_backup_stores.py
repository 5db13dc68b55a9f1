"""Backup stores: in memory for tests, a folder, and a real S3 server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest
from fakes.objects import MemoryObjects
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, PreconditionError
from support.s3_lab import BUCKET, S3Lab, s3_server

from quarterdeck.backup.objects.port import ObjectExists, ObjectHeld, ObjectStore
from quarterdeck.backup.objects.stores import BucketStore, open_store
from quarterdeck.errors import InvalidInput, NotFound, Unavailable


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Lab]:
    with s3_server(tmp_path_factory.mktemp("s3")) as lab:
        yield lab


@pytest.fixture(params=["memory", "folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "memory":
        return MemoryObjects()
    if request.param == "folder":
        return open_store(f"file://{tmp_path}")
    lab: S3Lab = request.getfixturevalue("s3")
    return open_store(f"s3://{BUCKET}/{tmp_path.name}", lab.options())


async def parts(count: int, size: int = 1 << 20) -> AsyncIterator[bytes]:
    for number in range(count):
        yield bytes((number,)) * size


async def test_what_is_created_is_read_and_never_written_over(store: ObjectStore) -> None:
    await store.create("manifest/1", b"first")
    with pytest.raises(ObjectExists):
        await store.create("manifest/1", b"second")
    assert await store.read("manifest/1") == b"first"
    assert await store.exists("manifest/1")
    assert not await store.exists("manifest/2")


async def test_of_many_writers_of_one_name_one_succeeds(store: ObjectStore) -> None:
    tries = [store.create("manifest/1", b"%d" % number) for number in range(20)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert [type(each) for each in results if each is not None] == [ObjectExists] * 19
    assert await store.read("manifest/1") == b"%d" % results.index(None)


async def test_a_large_object_goes_by_in_parts(store: ObjectStore) -> None:
    assert await store.write("data/large", parts(20)) == 20 << 20
    read = bytearray()
    async with aclosing(store.stream("data/large")) as coming:
        async for part in coming:
            read += part
    assert bytes(read) == b"".join([each async for each in parts(20)])


async def test_an_object_that_is_not_written_to_its_end_is_not_there(store: ObjectStore) -> None:
    async def breaks() -> AsyncIterator[bytes]:
        async for part in parts(10):
            yield part
        raise RuntimeError("the database is gone")

    with pytest.raises((RuntimeError, Unavailable)):
        await store.write("data/half", breaks())
    assert not await store.exists("data/half")
    assert [*await store.names("data")] == []


async def test_objects_are_listed_below_a_prefix_and_deleted(store: ObjectStore) -> None:
    for name in ("a/2", "a/1", "ab/3", "b/1"):
        await store.create(name, name.encode())
    assert [(each.name, each.size) for each in await store.names("a")] == [("a/1", 3), ("a/2", 3)]
    await store.delete(["a/1", "a/1", "nothing"])
    assert [each.name for each in await store.names("")] == ["a/2", "ab/3", "b/1"]


@pytest.mark.parametrize("refusal", [PermissionDeniedError, AlreadyExistsError, PreconditionError])
async def test_a_deletion_that_a_bucket_refuses_is_told_from_a_bucket_that_does_not_answer(
    refusal: type[BaseError],
) -> None:
    """The errors that obstore makes of 403 (S3, Google Cloud Storage), 409 (Azure) and 412."""

    class Holding:
        async def delete_async(self, _: str) -> None:
            raise refusal("Client error: the blob is immutable due to a policy\n<Error>the whole answer</Error>")

    store = BucketStore(cast("Any", Holding()), "az://planes")
    with pytest.raises(ObjectHeld, match=r"deleting data/1 at az://planes: the store refuses: .* due to a policy"):
        await store.delete(["data/1"])


async def test_what_is_not_there_is_said(store: ObjectStore) -> None:
    with pytest.raises(NotFound, match="data/none"):
        await store.read("data/none")
    with pytest.raises(NotFound, match="data/none"):
        async with aclosing(store.stream("data/none")) as coming:
            await anext(coming)


@pytest.mark.parametrize(
    ("url", "options", "error"),
    [
        ("s3://nobody/x", {}, InvalidInput),
        (f"s3://{BUCKET}/x", {"secret_access_key": "wrong"}, Unavailable),
        (f"s3://{BUCKET}/x", {"endpoint": "http://127.0.0.1:9"}, Unavailable),
    ],
    ids=["no such bucket", "wrong key", "nobody listens"],
)
async def test_a_bucket_that_cannot_be_used_is_named(
    s3: S3Lab, url: str, options: dict[str, str], error: type[Exception]
) -> None:
    store = open_store(url, s3.options(**options))
    with pytest.raises(error, match=url):
        await store.read("manifest/1")


@pytest.mark.parametrize("url", ["ftp://x/y", "s3://", "file://relative", "file:///no/such/folder", "planes"])
def test_what_is_no_url_of_a_store_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        open_store(url)


@pytest.mark.parametrize("url", ["s3://planes", "gs://planes", "az://planes"])
@pytest.mark.parametrize("name", ["allow_http", "AWS_TIMEOUT", "proxy_url", "nonsense"])
def test_an_option_that_the_store_does_not_have_is_named(url: str, name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        open_store(url, {name: "1"})


async def test_a_folder_has_files_that_only_its_owner_reads(tmp_path: Path) -> None:
    await open_store(f"file://{tmp_path}").create("manifest/1", b"")
    assert (tmp_path / "manifest" / "1").stat().st_mode & 0o077 == 0
    assert [each.name for each in (tmp_path / "manifest").iterdir()] == ["1"]


@pytest.mark.parametrize("name", ["../outside", "data/../../outside", "data//1", "/outside"])
async def test_no_name_leads_out_of_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").write_bytes(b"secret")
    (tmp_path / "store" / "data").mkdir(parents=True)
    with pytest.raises(NotFound):
        async with aclosing(open_store(f"file://{tmp_path / 'store'}").stream(name)) as coming:
            await anext(coming)
