"""A database of etcd out of a chain: a full backup, and the increments behind it up to one revision.

Nothing of it is ever whole in memory. What is read is checked by the hashes of the chain, by age and zstd, by the hash
that etcd puts behind a snapshot, and by the revisions themselves; the file gets its name only after all of that.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias

from quarterdeck.backup.chain import BackupMoment, FullBackup, Increments, ObjectReference, verified
from quarterdeck.backup.database import CHECKSUM_BYTES, advance, newest_revision
from quarterdeck.backup.making import made_beside, require_room
from quarterdeck.backup.objects.port import ObjectStore
from quarterdeck.backup.records import Increment, decode
from quarterdeck.backup.sealing import Identities, damaged, unseal
from quarterdeck.concurrency import ahead, in_thread, settled
from quarterdeck.errors import Corrupt, NotFound, PreconditionFailed
from quarterdeck.files import file_errors, sync_folder


@dataclass(frozen=True, slots=True)
class BuiltDatabase:
    """A database that was built. ``objects`` of ``stored_bytes`` in all were read and checked for it."""

    path: Path
    revision: int
    size_bytes: int
    objects: int
    stored_bytes: int


async def build(store: ObjectStore, moment: BackupMoment, identities: Identities, target: Path) -> BuiltDatabase:
    """Build the database of a moment at ``target`` (0600), in place of what is there.

    ``target`` is whole and on the disk when this returns. Until then there is a file ``.NAME.made`` beside it, which is
    removed if this fails or is cancelled, and used up by the next build if this process is killed.

    Raises Corrupt for what is damaged, missing or of another chain, PreconditionFailed for a key that does not open it
    and for a disk without room, Conflict where another process builds the same file, Unavailable for a store that does
    not answer and for errors of the file system.
    """
    return await made_database(store, moment, target, partial(write_moment, store, moment, identities))


async def made_database(
    store: ObjectStore, moment: BackupMoment, target: Path, write: Callable[[Path], Awaitable[None]]
) -> BuiltDatabase:
    """A database that ``write`` writes into a file, which gets the name ``target`` after that. See ``build``."""
    doing = f"building {target} from the backup at {store.address}"
    with file_errors(doing):
        await asyncio.to_thread(require_room, target.parent, expected_bytes(moment), doing)
        with made_beside(target, doing) as made:
            await write(made)
            await asyncio.to_thread(made.rename, target)
        await asyncio.to_thread(sync_folder, target.parent)
        size = (await asyncio.to_thread(target.stat)).st_size
    return BuiltDatabase(target, moment.revision, size, len(moment.objects), moment.stored_bytes)


async def write_moment(store: ObjectStore, moment: BackupMoment, identities: Identities, path: Path) -> None:
    """Write the database of a moment into a file, and wait until it is on the disk. If this fails, what the file has
    must not be used. Raises as ``build`` does, and OSError.
    """
    await _write_full(store, moment.full, identities, path)
    if moment.increments:
        await _advance(store, moment, identities, path)


async def read_increments(store: ObjectStore, of: Increments, identities: Identities) -> tuple[Increment, ...]:
    """The increment that an object is, or those that were joined to it, in order. Raises Corrupt where they are not
    those that the chain names.
    """
    name = of.stored.name
    async with opened(store, of.stored, identities) as parts:
        content = b"".join([part async for part in parts])
    try:
        found = await asyncio.to_thread(decode, content)
    except Corrupt as error:
        raise damaged(name, error.seen) from error
    if (found[0].first, found[-1].last) != (of.first, of.last):
        seen = f"it has revisions {found[0].first} to {found[-1].last}, and the chain names {of.first} to {of.last}"
        raise damaged(name, seen)
    return found


@asynccontextmanager
async def opened(
    store: ObjectStore, reference: ObjectReference, identities: Identities
) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """The content of an object, part by part, for the block; at its end it is known to be what was stored."""
    async with (
        aclosing(store.stream(reference.name)) as stored,
        aclosing(ahead(verified(stored, reference))) as checked,
        aclosing(unseal(checked, identities, reference.name)) as content,
    ):
        try:
            yield content
        except PreconditionFailed:
            async for _ in checked:  # a part that no key opens may be damaged: the hash of the whole object says so
                pass
            raise
        except NotFound as error:
            seen = "it is missing: it was dropped and deleted since the backup was read, or somebody has deleted it"
            then = "run the command again; if it stays so, restore another moment, or from another backup"
            raise Corrupt(f"reading {reference.name}", seen, then) from error


def expected_bytes(moment: BackupMoment) -> int:
    """How large the database of a moment is about, at least: not of all that is stored it is known how large it is."""
    increments = sum(max(each.raw_bytes, each.stored.size_bytes) for each in moment.increments)
    return max(moment.full.database_bytes, moment.full.stored.size_bytes) + increments


async def _write_full(store: ObjectStore, full: FullBackup, identities: Identities, path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        snapshot = _Snapshot(file, full.stored.name)
        async with opened(store, full.stored, identities) as parts, aclosing(ahead(parts)) as coming:
            async for part in coming:
                await in_thread(snapshot.write, part)
        await asyncio.to_thread(snapshot.end)
    newest = await asyncio.to_thread(newest_revision, path)
    if newest != full.revision:
        raise damaged(full.stored.name, f"it has revision {newest}, and the chain names revision {full.revision}")


class _Snapshot:
    """A snapshot of etcd on its way into a file: its last 32 bytes are the SHA-256 of all others, and left out."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self._digest = hashlib.sha256()
        self._held = b""

    def write(self, part: bytes) -> None:
        if len(part) < CHECKSUM_BYTES:
            part, self._held = self._held + part, b""
        self._write(self._held)
        self._write(memoryview(part)[:-CHECKSUM_BYTES])  # a copy of each part would cost as much as its hash
        self._held = part[-CHECKSUM_BYTES:]

    def end(self) -> None:
        if self._held != self._digest.digest():
            raise damaged(self._name, "the hash that etcd put behind this snapshot is not that of its content")
        os.fsync(self._file.fileno())

    def _write(self, data: bytes | memoryview) -> None:
        self._digest.update(data)
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]


async def _advance(store: ObjectStore, moment: BackupMoment, identities: Identities, path: Path) -> None:
    """Apply the increments in a thread, while the next one is read. The thread has ended when this returns."""

    async def read(of: Increments) -> tuple[Increment, ...]:
        return await read_increments(store, of, identities)

    ahead = _Ahead(moment.increments, read)
    applying = asyncio.create_task(asyncio.to_thread(advance, path, ahead, moment.revision))
    try:
        await asyncio.shield(applying)
    finally:
        ahead.stop()
        await settled(applying, ahead.reading)


_Read: TypeAlias = Callable[[Increments], Awaitable[tuple[Increment, ...]]]
_Coming: TypeAlias = tuple[Increment, ...] | Exception | None


class _Ahead:
    """Increments for a thread that applies them; the event loop reads one object ahead."""

    def __init__(self, wanted: Sequence[Increments], read: _Read) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[_Coming] = asyncio.Queue(1)
        self._asked: Future[_Coming] | None = None
        self._stopped = False
        self.reading = asyncio.create_task(self._read(wanted, read))

    def __iter__(self) -> Iterator[Increment]:
        """For the thread. Raises what reading raised, and CancelledError (of futures) after ``stop``."""
        while True:
            self._asked = asyncio.run_coroutine_threadsafe(self._queue.get(), self._loop)
            if self._stopped:
                self._asked.cancel()
            coming = self._asked.result()
            if isinstance(coming, Exception):
                raise coming
            if coming is None:
                return
            yield from coming

    def stop(self) -> None:
        """Read nothing more, and have the thread end where it waits for an increment."""
        self._stopped = True
        self.reading.cancel()
        if self._asked is not None:
            self._asked.cancel()

    async def _read(self, wanted: Sequence[Increments], read: _Read) -> None:
        try:
            for each in wanted:
                await self._queue.put(await read(each))
        except Exception as error:  # noqa: BLE001 - the thread raises it
            await self._queue.put(error)
        else:
            await self._queue.put(None)
