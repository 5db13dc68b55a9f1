"""Full backups: a member's database, out of etcd as quickly as this host's disk allows, and then to the store."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from quarterdeck.backup.chain import FullBackup, KeyHash, ObjectReference
from quarterdeck.backup.database import newest_revision
from quarterdeck.backup.making import make_scratch
from quarterdeck.backup.recording.collector import Subject
from quarterdeck.backup.recording.policy import FullReason, RecordingPace
from quarterdeck.backup.recording.sources import hash_at, live_hash, sources
from quarterdeck.backup.writer import Now
from quarterdeck.concurrency import ahead, in_thread
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.facts import MemberReport
from quarterdeck.etcd.faults import EtcdCorrupt
from quarterdeck.files import file_errors

#: Bytes that are read at once from the scratch file.
_PART = 1 << 20
#: Seconds between two looks at a member that is behind.
_AGAIN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A database as a member gave it, in a scratch file that has no name: it is gone with this process. A slow store
    keeps no transaction of etcd open (it would keep the pages of all history since then), and what failed to be stored
    is not asked for again.
    """

    scratch: BinaryIO
    size_bytes: int
    revision: int
    at: datetime
    etcd_version: str
    hash: KeyHash | None
    reason: FullReason

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """Its content, with etcd's SHA-256 at the end. From the beginning each time."""
        at = 0
        while part := await asyncio.to_thread(os.pread, self.scratch.fileno(), _PART, at):
            at += len(part)
            yield part

    def full(self, subject: Subject, stored: ObjectReference) -> FullBackup:
        """What the chain says of it once it is stored."""
        return FullBackup(
            cluster=subject.cluster,
            epoch=subject.epoch,
            revision=self.revision,
            at=self.at,
            etcd_version=self.etcd_version,
            hash=self.hash,
            database_bytes=self.size_bytes,
            stored=stored,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTaker:
    """Takes the database of one member out of etcd. ``folder`` is for the scratch files."""

    subject: Subject
    folder: Path
    now: Now
    pace: RecordingPace

    async def take(self, reason: FullReason) -> Snapshot:
        """The database of one member, with every write that was acknowledged before: a standby's where one has them,
        since it serves nobody, and else a voter's.

        Raises Unavailable, also where the disk has no room, and Corrupt where what came is no database.
        """
        etcd, urls = self.subject.etcd, self.subject.urls()
        confirmed = await etcd.revision(urls)
        *firsts, last = (*self.subject.standbys(), *await sources(etcd, urls))
        for url in firsts:
            try:
                return await self._from(url, confirmed, reason)
            except (Unavailable, EtcdCorrupt):
                continue  # it is taken from another one
        try:
            return await self._from(last, confirmed, reason)
        except EtcdCorrupt as error:  # it was cut off on its way
            raise Unavailable(error.doing, error.seen, error.next_step) from error

    async def _from(self, url: str, confirmed: int, reason: FullReason) -> Snapshot:
        """The database of the member at ``url``. Raises Unavailable where it does not have all revisions up to the
        ``confirmed`` one in time.
        """
        subject, folder = self.subject, self.folder
        doing = f"taking a full backup of cluster {subject.cluster} from {url}"
        status = await self._caught_up(url, confirmed, doing)
        with file_errors(doing):
            await asyncio.to_thread(make_scratch, folder, status.db_size, doing)
            scratch = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - in a thread that is cancelled it would stay open
        try:
            at = self.now()
            async with aclosing(subject.etcd.snapshot(url)) as parts:
                await _written(parts, scratch, doing)
            with file_errors(doing):
                revision = await asyncio.to_thread(newest_revision, Path(f"/proc/self/fd/{scratch.fileno()}"))
            if revision < confirmed:
                raise _behind(doing, revision, confirmed)
            return Snapshot(
                scratch=scratch,
                size_bytes=os.fstat(scratch.fileno()).st_size,
                revision=revision,
                at=at,
                etcd_version=status.version,
                hash=await self._hash(url, status, revision),
                reason=reason,
            )
        except BaseException:
            scratch.close()
            raise

    async def _caught_up(self, url: str, confirmed: int, doing: str) -> MemberReport:
        """The status of a member once it has applied the ``confirmed`` revision."""
        status = await self.subject.etcd.status(url)
        try:
            async with asyncio.timeout(self.pace.apply_seconds):
                while status.revision < confirmed:
                    await asyncio.sleep(_AGAIN)
                    status = await self.subject.etcd.status(url)
        except TimeoutError:
            raise _behind(doing, status.revision, confirmed) from None
        return status

    async def _hash(self, url: str, status: MemberReport, revision: int) -> KeyHash | None:
        """The hash of the keys at a revision: the member's own, or a voter's, since learners report none. That also
        shows later whether a learner has what the voters have.
        """
        etcd = self.subject.etcd
        if status.is_learner:
            return await live_hash(etcd, self.subject.urls(), revision)
        return await hash_at(etcd, url, revision)


def _behind(doing: str, revision: int, confirmed: int) -> Unavailable:
    seen = f"it has revision {revision:,}, and a quorum has confirmed revision {confirmed:,}"
    return Unavailable(doing, seen, "another member is asked")


async def _written(parts: AsyncGenerator[bytes, None], scratch: BinaryIO, doing: str) -> None:
    """Write parts, while the next ones come from etcd."""
    async with aclosing(ahead(_larger(parts))) as coming:
        async for part in coming:
            with file_errors(doing):
                await in_thread(scratch.write, part)
    with file_errors(doing):
        await in_thread(scratch.flush)


async def _larger(parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Parts of 32 KiB joined to larger ones."""
    held: list[bytes] = []
    size = 0
    async for part in parts:
        held.append(part)
        size += len(part)
        if size >= _PART:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)
