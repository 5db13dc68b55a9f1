"""Records one cluster of etcd into the chain of its plane: a full backup, and behind it everything the cluster does.

Three things go on side by side. The collector takes down what etcd does, and never waits for the store. The sender
brings that to the store, in order, and makes it part of the chain. Full backups are taken from etcd and stored beside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from quarterdeck.backup.chain import Chain, FullBackup, Increments, ObjectReference
from quarterdeck.backup.deposit import Deposit
from quarterdeck.backup.recording.collector import Collector, Subject
from quarterdeck.backup.recording.fulls import Snapshot, SnapshotTaker
from quarterdeck.backup.recording.patience import Patience
from quarterdeck.backup.recording.policy import FullReason, RecorderEvents, RecordingPace, Side, why_full
from quarterdeck.backup.recording.restorable import Restorable
from quarterdeck.backup.recording.sources import reports
from quarterdeck.backup.recording.spool import Outbox, PieceHeader, Spool, SpoolFull
from quarterdeck.backup.writer import ChainWriter, Now
from quarterdeck.concurrency import until_one_ends
from quarterdeck.errors import InvalidInput, NotFound, PreconditionFailed, Unavailable
from quarterdeck.etcd.faults import EtcdCompacted

T = TypeVar("T")

#: How many increments one link adds at most, where many wait.
_AT_ONCE = 16


class Recorder:
    """Records one cluster while ``run`` runs. It is used once."""

    def __init__(
        self,
        subject: Subject,
        deposit: Deposit,
        writer: ChainWriter,
        spool: Spool,
        *,
        scratch: Path,
        events: RecorderEvents,
        now: Now,
        pace: RecordingPace | None = None,
    ) -> None:
        """``writer`` is shared by all that write the plane's chain; ``spool`` is this cluster's own; ``scratch`` is a
        folder with room for the whole database, while a full backup is taken.
        """
        self._subject, self._deposit, self._writer, self._spool = subject, deposit, writer, spool
        self._events, self._now = events, now
        self._pace = pace or RecordingPace()
        self._snapshots = SnapshotTaker(subject=subject, folder=scratch, now=now, pace=self._pace)
        self._outbox = Outbox(spool)
        self._restorable = Restorable(subject.cluster, events)
        self._store = Patience(Side.STORE, events, now, self._pace)
        self._cluster = Patience(Side.CLUSTER, events, now, self._pace)
        self._collector = Collector(
            subject, deposit.recipients, self._outbox.put, patience=self._cluster, now=now, pace=self._pace
        )
        #: A full backup that the collector goes on behind, or the reason to take one beside it.
        self._wanted: asyncio.Queue[Snapshot | FullReason] = asyncio.Queue()
        #: Set while no full backup is on its way.
        self._idle = asyncio.Event()
        self._idle.set()
        self._base: Snapshot | None = None
        self._ready: tuple[FullBackup, FullReason] | None = None
        self._stalled = False  # the collector has lost history, and nothing more comes of what is before
        self._astray = asyncio.Event()  # what waits does not continue the chain: it is collected again

    async def run(self) -> None:
        """Record until cancelled. What was collected and not stored yet may be in the spool, for the next run.

        Raises LeaseLost where another process records this plane now, Corrupt where the chain is damaged, and
        PreconditionFailed where the cluster is not the one that the chain is of.
        """
        subject = self._subject
        try:
            await self._spool.open(subject.plane, subject.cluster, subject.epoch)
            await until_one_ends(self._collect(), self._send(), self._take_fulls(), self._pulse())
        except BaseException as error:
            self._restorable.ended(error)
            raise
        finally:
            while not self._wanted.empty():
                waiting = self._wanted.get_nowait()
                if isinstance(waiting, Snapshot):
                    waiting.scratch.close()

    async def covered(self, revision: int) -> None:
        """Return once this revision can be restored. Raises Unavailable where ``run`` ends before."""
        await self._restorable.covered(revision)

    def renew(self, reason: FullReason) -> None:
        """Have a full backup taken beside what is recorded, unless one is on its way already."""
        if self._idle.is_set():
            self._idle.clear()
            self._wanted.put_nowait(reason)

    # Collecting.

    async def _collect(self) -> None:
        """Collect without an end, from where the spool or the chain ends, or behind a new full backup."""
        start = self._spool.headers[-1].last + 1 if self._spool.headers else await self._behind_the_chain()
        while True:
            if start is None:
                start = await self._begin()
            self._astray.clear()
            self._stalled = False
            try:
                await until_one_ends(self._collector.run(start), self._until_astray())
                start = await self._behind_the_chain()
            except EtcdCompacted:
                start = None
            except SpoolFull as error:
                self._events.spool_discarded(error.seen)
                self._pause_collecting()
                await self._store.answering.wait()
                start = await self._behind_the_chain()

    def _pause_collecting(self) -> None:
        self._stalled = True
        self._outbox.filled.set()

    async def _until_astray(self) -> None:
        await self._astray.wait()

    async def _behind_the_chain(self) -> int | None:
        """The first revision that the chain has not got; None where it has no full backup of this epoch."""
        await self._store.until_done(self._writer.read)
        found = self._end_of(self._writer.chain)
        if found is None:
            return None
        end, _ = found
        newest = await self._cluster.until_done(lambda: self._subject.etcd.revision(self._subject.urls()))
        if newest < end:
            raise PreconditionFailed(
                f"recording cluster {self._subject.cluster}",
                f"its newest revision is {newest:,}, and its backup of the same epoch has revision {end:,}",
                "find out what was restored or replaced by hand, and back it up to another place",
            )
        return end + 1

    async def _begin(self) -> int:
        """Take a full backup, unless one that is on its way helps; the first revision to collect behind it."""
        self._pause_collecting()
        before = self._restorable.revision
        await self._store.until_done(self._writer.read)
        await self._idle.wait()
        end = self._restorable.revision
        if end is not None and end != before:
            return end + 1
        chain, subject = self._writer.chain, self._subject
        due = why_full(chain, subject.cluster, subject.epoch, versions=(), now=self._now(), pace=self._pace)
        begins = (FullReason.FIRST, FullReason.EPOCH)
        reason = FullReason.HISTORY_LOST if due is None or due not in begins else due
        self._idle.clear()
        self._base = await self._cluster.until_done(partial(self._snapshots.take, reason))
        self._wanted.put_nowait(self._base)
        return self._base.revision + 1

    # Full backups.

    async def _take_fulls(self) -> None:
        while True:
            wanted = await self._wanted.get()
            if isinstance(wanted, FullReason):
                wanted = await self._cluster.until_done(partial(self._snapshots.take, wanted))
            with wanted.scratch:
                reference = await self._store.until_done(partial(self._upload, wanted))
            self._ready = wanted.full(self._subject, reference), wanted.reason
            self._outbox.filled.set()
            await self._idle.wait()

    async def _upload(self, snapshot: Snapshot) -> ObjectReference:
        async with aclosing(snapshot.parts()) as parts:
            return await self._deposit.put(parts)

    # Sending.

    async def _send(self) -> None:
        """Make what waits part of the chain, in the order of revisions."""
        await self._store.until_done(self._writer.read)
        end = self._end_of(self._writer.chain)
        for full in self._writer.chain.fulls:
            if (full.cluster, full.epoch) == (self._subject.cluster, self._subject.epoch):
                self._tell_gap(full)
        if end is not None:
            self._restorable.reached(*end)
        while True:
            self._outbox.filled.clear()
            if not await self._send_next():
                await self._outbox.filled.wait()

    async def _send_next(self) -> bool:
        """Store what comes next; whether there was something."""
        headers, end = self._outbox.headers, self._restorable.revision
        useless = [each for each in headers if end is not None and each.last <= end]
        batch = following(headers, end)
        if useless:
            for header in useless:
                await self._outbox.drop(header)
        elif batch:
            await self._store_pieces(batch)
        elif self._ready is not None and self._may_follow(self._ready[0], end):
            await self._link_full(*self._ready)
        elif headers and not self._comes_before(headers[0]):
            await self._outbox.clear()
            self._astray.set()
        else:
            return False
        return True

    def _may_follow(self, full: FullBackup, end: int | None) -> bool:
        """Whether nothing comes any more that is missing before this full backup."""
        return self._stalled or self._base is not None or (end is not None and full.revision <= end)

    def _comes_before(self, header: PieceHeader) -> bool:
        """Whether a full backup is on its way that these increments continue."""
        return self._base is not None and self._base.revision + 1 >= header.first

    async def _store_pieces(self, headers: Sequence[PieceHeader]) -> None:
        stored = []
        for header in headers:
            piece = await self._outbox.load(header)
            if piece is None:
                break  # it was damaged; those behind it do not continue the chain, and are collected again
            name = self._deposit.new_name()
            await self._until_stored(partial(self._deposit.put_sealed, name, piece.content))
            stored.append(_increments(header, name))
        if stored:
            await self._until_stored(partial(self._writer.append, increments=stored))
        for header, increments in zip(headers, stored, strict=False):
            self._events.stored(increments)
            self._restorable.reached(header.last, header.last_at)
            await self._outbox.drop(header)

    async def _until_stored(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of a call to the store. What is only in memory goes to the disk once it has failed."""

        async def once() -> T:
            try:
                return await call()
            except (Unavailable, InvalidInput):
                await self._outbox.keep()
                raise

        return await self._store.until_done(once)

    async def _link_full(self, full: FullBackup, reason: FullReason) -> None:
        end = self._restorable.revision
        if end is not None and full.revision > end + 1:
            full = full.model_copy(update={"lost_from": end + 1})
        await self._until_stored(partial(self._writer.append, fulls=[full]))
        self._tell_gap(full)
        self._ready = self._base = None
        self._events.full_taken(full, reason)
        self._restorable.reached(full.revision, full.at)
        self._idle.set()

    def _tell_gap(self, full: FullBackup) -> None:
        if full.lost_from is not None:
            self._events.gap(full.lost_from, full.revision - 1)

    # The age of the backup.

    async def _pulse(self) -> None:
        """Ask a quorum for the newest revision again and again, and whether a new full backup is due."""
        etcd, urls = self._subject.etcd, self._subject.urls
        while True:
            asked_at = self._now()
            try:
                newest = await etcd.revision(urls())
            except Unavailable:
                pass  # the collector tells that, and the age of the backup grows
            else:
                self._restorable.seen(newest, asked_at)
                if self._collector.watching:
                    self._cluster.succeeded()
                if self._idle.is_set() and self._restorable.revision is not None:
                    await self._take_one_if_due()
            await asyncio.sleep(self._pace.pulse_seconds)

    async def _take_one_if_due(self) -> None:
        subject, urls = self._subject, self._subject.urls()
        found = await reports(subject.etcd, urls)
        versions = {each.version for each in found.values()} if len(found) == len(urls) else set[str]()
        chain = self._writer.chain
        why = why_full(chain, subject.cluster, subject.epoch, versions=versions, now=self._now(), pace=self._pace)
        if why is not None and self._collector.watching:
            self.renew(why)

    def _end_of(self, chain: Chain) -> tuple[int, datetime] | None:
        """The newest revision that the chain has, and when it was; None without a full backup of this epoch."""
        try:
            latest = chain.latest(self._subject.cluster, self._subject.epoch)
        except NotFound:
            return None
        return latest.revision, latest.at


def following(headers: Sequence[PieceHeader], end: int | None) -> list[PieceHeader]:
    """The increments that continue a chain which ends with this revision, as many as one link adds."""
    found: list[PieceHeader] = []
    for header in headers:
        if end is None or header.first > end + 1 or len(found) == _AT_ONCE:
            break
        found.append(header)
        end = max(end, header.last)
    return found


def _increments(header: PieceHeader, name: str) -> Increments:
    return Increments(
        cluster=header.cluster,
        epoch=header.epoch,
        first=header.first,
        last=header.last,
        first_at=header.first_at,
        last_at=header.last_at,
        raw_bytes=header.raw_bytes,
        stored=ObjectReference(name=name, sha256=header.sha256, size_bytes=header.size_bytes),
    )
