"""Objects in a folder, in S3 and what speaks like it, in Google Cloud Storage and in Azure Blob Storage, by obstore."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from io import FileIO
from pathlib import Path
from urllib.parse import unquote, urlsplit

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import LocalStore, from_url
from obstore.store import ObjectStore as Bucket
from typing_extensions import override

from quarterdeck.backup.objects.port import ObjectExists, ObjectHeld, ObjectStore, StoredObject
from quarterdeck.errors import InvalidInput, NotFound, Unavailable
from quarterdeck.files import sync_folder, write_temporary

#: Seconds for one request, and how often one that failed is tried again.
_TIMEOUT = timedelta(seconds=30)
_RETRIES = 4
#: Bytes of one part of an object that is written part by part.
_PART = 8 << 20
#: Bytes of an object that are read at once.
_READ = 1 << 20
#: Options of HTTP clients, which are set here. obstore panics where they are among those of a store
#: (pyo3-object_store: IntoPyObject of PyAmazonS3Config).
_OF_CLIENTS = re.compile(
    r"((aws|google|azure)_)?(allow_http|allow_invalid_certificates|connect_timeout|default_content_type|http1_only|"
    r"http2_\w+|pool_\w+|proxy_\w+|randomize_addresses|read_timeout|timeout|user_agent)",
    re.IGNORECASE,
)


def open_store(url: str, options: Mapping[str, str] | None = None) -> ObjectStore:
    """The store at a URL: ``file:///folder``, ``s3://bucket/prefix``, ``gs://bucket/prefix`` or
    ``az://container/prefix``.

    ``options`` are those of obstore: ``region``, ``endpoint``, ``access_key_id``, ``secret_access_key``...; credentials
    that are not given come from the environment, as the store's own tools find them. Raises InvalidInput.
    """
    parts = urlsplit(url)
    doing = f"opening the backup store {address_of(url)}"
    if parts.scheme == "file":
        folder = Path(unquote(parts.path))
        if parts.netloc or not folder.is_absolute():
            raise InvalidInput(doing, "its path is not absolute", "write it as file:///folder")
        if not folder.is_dir():
            raise InvalidInput(doing, "there is no such folder", "make it, or mount what should be there")
        return FolderStore(folder)
    if parts.scheme not in ("s3", "gs", "az") or not parts.netloc:
        raise InvalidInput(
            doing, "this is no URL of a store", "give file:///folder, s3://, gs:// or az://BUCKET/PREFIX"
        )
    for name in options or {}:
        if _OF_CLIENTS.fullmatch(name):
            raise InvalidInput(doing, f"{name} is no option of the store", "remove it")
    try:
        bucket = from_url(  # type: ignore[call-overload]  # its types list each option of each store by name
            url,
            config=dict(options or {}),  # pyright: ignore[reportArgumentType] - options of any store
            client_options={
                "timeout": _TIMEOUT,
                "connect_timeout": timedelta(seconds=5),
                "allow_http": (options or {}).get("endpoint", "").startswith("http://"),
            },
            retry_config={"max_retries": _RETRIES, "retry_timeout": _TIMEOUT},
        )
    except (BaseError, ValueError) as error:
        raise InvalidInput(doing, _short(error), "see the options of the store") from error
    return BucketStore(bucket, address_of(url))


def address_of(url: str) -> str:
    """A URL without the credentials that it may hold."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class BucketStore(ObjectStore):
    """Objects in a bucket, or below a prefix of one."""

    def __init__(self, bucket: Bucket, address: str) -> None:
        self._bucket = bucket
        self._address = address

    @property
    @override
    def address(self) -> str:
        return self._address

    @override
    async def create(self, name: str, content: bytes) -> None:
        with self._errors(f"storing {name}"):
            await self._bucket.put_async(name, content, mode="create")

    @override
    async def write(self, name: str, content: AsyncIterable[bytes]) -> int:
        counted = _Counted(content)
        with self._errors(f"storing {name}"):
            await self._bucket.put_async(name, counted.parts(), use_multipart=True, chunk_size=_PART, max_concurrency=2)
        return counted.size

    @override
    async def read(self, name: str) -> bytes:
        with self._errors(f"reading {name}"):
            return bytes(await (await self._bucket.get_async(name)).bytes_async())

    @override
    async def stream(self, name: str) -> AsyncGenerator[bytes, None]:
        with self._errors(f"reading {name}"):
            async for part in (await self._bucket.get_async(name)).stream(min_chunk_size=_READ):
                yield bytes(part)

    @override
    async def exists(self, name: str) -> bool:
        try:
            with self._errors(f"looking for {name}"):
                await self._bucket.head_async(name)
        except NotFound:
            return False
        return True

    @override
    async def names(self, prefix: str) -> Sequence[StoredObject]:
        found = []
        with self._errors(f"listing {prefix}"):
            async for batch in self._bucket.list(prefix):
                found += [StoredObject(each["path"], each["size"], each["last_modified"]) for each in batch]
        return sorted(found, key=lambda each: each.name)

    @override
    async def delete(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                with self._errors(f"deleting {name}"), self._refusals(f"deleting {name}"):
                    await self._bucket.delete_async(name)
            except NotFound:
                continue

    @contextmanager
    def _refusals(self, doing: str) -> Iterator[None]:
        """A deletion of what the store holds is refused with 403 by S3 and by Google Cloud Storage (retention policy
        not met), with 409 by Azure (blob immutable due to policy), and by some others with 412.
        """
        try:
            yield
        except (PermissionDeniedError, AlreadyExistsError, PreconditionError) as error:
            seen, then = f"the store refuses: {_short(error)}", "it can be deleted when its lock or retention ends"
            raise ObjectHeld(f"{doing} at {self._address}", seen, then) from error

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        at = f"{doing} at {self._address}"
        try:
            yield
        except AlreadyExistsError as error:
            raise ObjectExists(at, "it exists already") from error
        except FileNotFoundError as error:  # obstore has no class of its own for it any more
            if "NoSuchBucket" in str(error):
                raise InvalidInput(at, "there is no such bucket", "make the bucket, or give another one") from error
            raise NotFound(at, "there is no such object") from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise Unavailable(at, f"access is denied: {_short(error)}", "give credentials that may do this") from error
        except (BaseError, OSError) as error:
            raise Unavailable(at, _short(error), "try again when the store answers") from error


class FolderStore(BucketStore):
    """Objects as files of a folder that exists. obstore does not wait for the disk; here an object is on it before its
    name is, so that no crash leaves half of one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        super().__init__(LocalStore(folder, automatic_cleanup=False), f"file://{folder}")

    @override
    async def create(self, name: str, content: bytes) -> None:
        await asyncio.to_thread(self._create, name, content)

    @override
    async def write(self, name: str, content: AsyncIterable[bytes]) -> int:
        counted = _Counted(content)
        with self._errors(f"storing {name}"):
            path = await asyncio.to_thread(self._place, name)
            temporary = path.with_name(f".{path.name}#{secrets.token_hex(6)}")
            try:
                with temporary.open("xb", buffering=0) as file:
                    async for part in counted.parts():
                        await asyncio.to_thread(_write_all, file, part)
                    await asyncio.to_thread(os.fsync, file.fileno())
                await asyncio.to_thread(temporary.rename, path)
                await asyncio.to_thread(sync_folder, path.parent)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        return counted.size

    @override
    async def stream(self, name: str) -> AsyncGenerator[bytes, None]:
        # Not by obstore, which reads a file in pieces of 8 KiB.
        with self._errors(f"reading {name}"), self._inside(name).open("rb", buffering=0) as file:
            while part := await asyncio.to_thread(file.read, _READ):
                yield part

    def _create(self, name: str, content: bytes) -> None:
        with self._errors(f"storing {name}"):
            path = self._place(name)
            temporary = write_temporary(path, content, mode=0o600)
            try:
                os.link(temporary, path)
            except FileExistsError as error:
                raise AlreadyExistsError(name) from error
            finally:
                temporary.unlink()
            sync_folder(path.parent)

    def _inside(self, name: str) -> Path:
        """The file of an object. A link may be forged: no name leads out of the folder."""
        if {"", ".", ".."}.intersection(name.split("/")):
            raise FileNotFoundError(name)
        return self._folder / name

    def _place(self, name: str) -> Path:
        path = self._folder / name
        made = [each for each in path.parents if not each.exists()]
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for each in made:
            sync_folder(each.parent)
        return path


class _Counted:
    """Parts as they go by, and how many bytes they were."""

    def __init__(self, parts: AsyncIterable[bytes]) -> None:
        self._parts = parts
        self.size = 0

    async def parts(self) -> AsyncGenerator[bytes, None]:
        async for part in self._parts:
            self.size += len(part)
            yield part


def _write_all(file: FileIO, part: bytes) -> None:
    left = memoryview(part)
    while left:
        left = left[file.write(left) :]


def _short(error: Exception) -> str:
    """The first line of an error: obstore adds the whole request to it."""
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
