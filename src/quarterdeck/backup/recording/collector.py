"""Takes down what a cluster does, from a watch on all keys, as sealed increments."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

from quarterdeck.backup.recording.lease_book import LeaseBook
from quarterdeck.backup.recording.patience import Patience
from quarterdeck.backup.recording.policy import RecordingPace
from quarterdeck.backup.recording.sources import sources
from quarterdeck.backup.recording.spool import Piece, PieceHeader
from quarterdeck.backup.records import Increment, RevisionChange, change_of, encode
from quarterdeck.backup.sealing import Recipients, seal
from quarterdeck.backup.writer import Now
from quarterdeck.concurrency import until_one_ends
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.facts import KeyEvent
from quarterdeck.etcd.faults import EtcdCompacted
from quarterdeck.etcd.port import EtcdCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is recorded: a cluster of a plane in one epoch. ``urls``: the client URLs of its members as they are now;
    ``standbys``: those of members that never vote, from which full backups are taken first.
    """

    plane: str
    cluster: str
    epoch: int
    etcd: EtcdCluster
    urls: Callable[[], Sequence[str]]
    standbys: Callable[[], Sequence[str]] = tuple


class Collector:
    """Watches one cluster, and passes on what it did in pieces. It never waits for more than that these are taken."""

    def __init__(
        self,
        subject: Subject,
        recipients: Recipients,
        take: Callable[[Piece], Awaitable[None]],
        *,
        patience: Patience,
        now: Now,
        pace: RecordingPace,
    ) -> None:
        self._subject, self._recipients, self._take = subject, recipients, take
        self._patience, self._now, self._pace = patience, now, pace
        self._leases = LeaseBook(subject.etcd, subject.urls, pace.leases_seconds)
        #: Whether it has a watch that has not ended.
        self.watching = False
        self._next = 0
        self._changes: list[RevisionChange] = []
        self._used: set[int] = set()
        self._bytes = 0
        self._came, self._much, self._left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(self, start: int) -> None:
        """Take down everything from a revision on, until cancelled. Raises EtcdCompacted where a revision is gone, with
        all before it passed on, and whatever ``take`` raises.
        """
        self._next, self._changes, self._bytes, self._used = start, [], 0, set()
        await self._patience.until_done(self._leases.read)
        try:
            await until_one_ends(self._watch(), self._flushes())
        except EtcdCompacted:
            await self._flush()
            raise

    async def _watch(self) -> None:
        attempt = 0
        while True:
            try:
                urls = await sources(self._subject.etcd, self._subject.urls())
                async with aclosing(self._subject.etcd.changes(urls[attempt % len(urls)], self._next)) as changes:
                    self.watching = True
                    async for events in changes:
                        self._patience.succeeded()
                        await self._note(events)
            except Unavailable as error:
                attempt, self.watching = attempt + 1, False
                await self._patience.failed(error)

    async def _note(self, events: Sequence[KeyEvent]) -> None:
        revision = events[0].revision
        if revision < self._next:
            return
        if revision > self._next:  # each revision has changes: one that does not come was compacted (etcd #19179)
            raise EtcdCompacted(f"recording revision {self._next} of cluster {self._subject.cluster}", None)
        change = change_of(events, int(self._now().timestamp() * 1000))
        self._changes.append(change)
        self._used.update(each.now.lease for each in events if each.now.lease)
        self._bytes += sum(len(each.stored) for each in change.keys)
        self._next += 1
        self._came.set()
        while self._bytes >= self._pace.flush_bytes:
            self._much.set()
            self._left.clear()
            await self._left.wait()

    async def _flushes(self) -> None:
        while True:
            await self._came.wait()
            try:
                async with asyncio.timeout(self._pace.flush_seconds):
                    await self._much.wait()
            except TimeoutError:
                pass  # few changes came in that time: they are stored now
            await self._flush()

    async def _flush(self) -> None:
        """Pass on what has come. It is only forgotten once it was taken."""
        self._came.clear()
        self._much.clear()
        changes, used = tuple(self._changes), frozenset(self._used)
        if not changes:
            return
        increment = Increment(changes, await self._leases.after(used))
        await self._take(await self._sealed(increment))
        del self._changes[: len(changes)]
        if not self._changes:
            self._used.clear()
        self._bytes = sum(len(key.stored) for each in self._changes for key in each.keys)
        if self._changes:
            self._came.set()
        self._left.set()

    async def _sealed(self, increment: Increment) -> Piece:
        encoded = await asyncio.to_thread(encode, increment)
        content = b"".join([part async for part in seal(_whole(encoded), self._recipients)])
        header = PieceHeader(
            plane=self._subject.plane,
            cluster=self._subject.cluster,
            epoch=self._subject.epoch,
            first=increment.first,
            last=increment.last,
            first_at=_time(increment.changes[0].at_ms),
            last_at=_time(increment.changes[-1].at_ms),
            raw_bytes=len(encoded),
            sha256=hashlib.sha256(content).hexdigest(),
            size_bytes=len(content),
        )
        return Piece(header, content)


async def _whole(content: bytes) -> AsyncGenerator[bytes, None]:
    yield content


def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
