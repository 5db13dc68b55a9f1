"""A cluster in memory that is recorded into a store in memory, with faults, and what can be restored from it."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster, MemberAddress
from fakes.objects import MemoryObjects
from typing_extensions import override

from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.chain import Chain, FullBackup, Increments, ObjectReference, verified
from quarterdeck.backup.chain_store import ChainStore
from quarterdeck.backup.database import advance, cut_checksum
from quarterdeck.backup.deposit import Deposit
from quarterdeck.backup.objects.port import StoredObject
from quarterdeck.backup.recording.collector import Subject
from quarterdeck.backup.recording.policy import FullReason, RecordingPace, Side
from quarterdeck.backup.recording.recorder import Recorder
from quarterdeck.backup.recording.spool import Spool
from quarterdeck.backup.records import Increment, LeaseTimes, change_of, decode
from quarterdeck.backup.sealing import Identities, Recipients, unseal
from quarterdeck.backup.writer import ChainWriter, Check
from quarterdeck.errors import QuarterdeckError, Unavailable

PLANE, PREFIX = "uid", "alpha"
#: As quick as can be: no test waits for times.
QUICK = RecordingPace(flush_seconds=0.002, pulse_seconds=0.005, first_pause=0.001, longest_pause=0.002)


async def until(good: Callable[[], object], what: str = "", seconds: float = 20.0) -> None:
    """Return once ``good`` is true."""
    end = asyncio.get_running_loop().time() + seconds
    while not good():
        assert asyncio.get_running_loop().time() < end, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(0.001)


class FaultyObjects(MemoryObjects):
    """A store that fails as tests say. ``fault`` is called with the number of each call, what it does, and whether it
    was done; it may raise.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls = itertools.count(1)
        self.fault: Callable[[int, str, bool], None] = lambda number, does, done: None

    def away(self) -> None:
        """Let it not answer."""

        def fault(number: int, does: str, done: bool) -> None:
            raise Unavailable(does, "no answer")

        self.fault = fault

    def back(self) -> None:
        """Let it answer."""
        self.fault = lambda number, does, done: None

    @override
    async def create(self, name: str, content: bytes) -> None:
        number, does = next(self.calls), f"creating {name}"
        self.fault(number, does, False)
        await super().create(name, content)
        self.fault(number, does, True)

    @override
    async def write(self, name: str, content: AsyncIterable[bytes]) -> int:
        number, does = next(self.calls), f"writing {name}"
        self.fault(number, does, False)
        size = await super().write(name, content)
        self.fault(number, does, True)
        return size

    @override
    async def read(self, name: str) -> bytes:
        self.fault(next(self.calls), f"reading {name}", False)
        return await super().read(name)

    @override
    async def names(self, prefix: str) -> Sequence[StoredObject]:
        self.fault(next(self.calls), f"listing {prefix}", False)
        return await super().names(prefix)


@dataclass
class RecordedEvents:
    """What a recorder has reported."""

    restorables: list[tuple[int, datetime]] = field(default_factory=list)
    increments: list[Increments] = field(default_factory=list)
    fulls: list[tuple[int, FullReason]] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    failures: list[tuple[Side, datetime, str]] = field(default_factory=list)
    back: list[Side] = field(default_factory=list)

    def restorable(self, revision: int, at: datetime) -> None:
        self.restorables.append((revision, at))

    def stored(self, increments: Increments) -> None:
        self.increments.append(increments)

    def full_taken(self, full: FullBackup, reason: FullReason) -> None:
        self.fulls.append((full.revision, reason))

    def gap(self, first: int, last: int) -> None:
        self.gaps.append((first, last))

    def spool_discarded(self, why: str) -> None:
        self.discarded.append(why)

    def failed(self, side: Side, since: datetime, error: QuarterdeckError) -> None:
        self.failures.append((side, since, str(error)))

    def answers(self, side: Side) -> None:
        self.back.append(side)


def address(name: str) -> MemberAddress:
    return MemberAddress(
        name=name,
        peer_url=f"https://{name}:2380",
        client_url=f"https://{name}:2379",
        metrics_url=f"http://{name}:2381",
    )


class RecordingLab:
    """One cluster, one store, and recorders that come and go."""

    def __init__(self, folder: Path, *, recipients: Recipients | None = None, keys: Identities | None = None) -> None:
        self.folder = folder
        self.addresses = [address(name) for name in "abc"]
        self.cluster = FakeCluster.founded(self.addresses)
        self.store = FaultyObjects()
        self.events = RecordedEvents()
        self.epoch = 0
        self.pace = QUICK
        self.spool_bytes = 1 << 20
        self.checks: Check = _held
        self.etcd = FakeEtcd(self.cluster)
        self.standbys: list[str] = []
        self._runs = itertools.count(1)
        self._recipients, self._keys = recipients or Recipients(), keys or Identities()

    def now(self) -> datetime:
        return datetime.now(UTC)

    @property
    def urls(self) -> list[str]:
        return [each.client_url for each in self.addresses]

    def subject(self, cluster: str = "main") -> Subject:
        return Subject(
            plane=PLANE,
            cluster=cluster,
            epoch=self.epoch,
            etcd=self.etcd,
            urls=lambda: self.urls,
            standbys=lambda: self.standbys,
        )

    @property
    def deposit(self) -> Deposit:
        return Deposit(store=self.store, prefix=PREFIX, recipients=self._recipients)

    def writer(self, chains: ChainStore | None = None) -> ChainWriter:
        chains = chains or ChainStore(self.store, PLANE, PREFIX)
        return ChainWriter(chains, f"run-{next(self._runs)}", self.checks, self.now)

    def spool(self, cluster: str = "main") -> Spool:
        return Spool(self.folder / "spool" / cluster, self.spool_bytes)

    def recorder(self, cluster: str = "main", writer: ChainWriter | None = None) -> Recorder:
        return Recorder(
            self.subject(cluster),
            self.deposit,
            writer or self.writer(),
            self.spool(cluster),
            scratch=self.folder / "scratch",
            events=self.events,
            now=self.now,
            pace=self.pace,
        )

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[Recorder]:
        """A recorder that runs, and is killed at the end."""
        recorder = self.recorder()
        running = asyncio.ensure_future(recorder.run())
        try:
            yield recorder
        finally:
            running.cancel()
            await asyncio.wait((running,))
            if not running.cancelled():
                running.result()

    async def all_stored(self, recorder: Recorder) -> None:
        """Return once everything that was written can be restored."""
        async with asyncio.timeout(20):
            await recorder.covered(self.cluster.revision)

    async def chain(self) -> Chain:
        """The chain, read by somebody else."""
        self.store.back()
        return await ChainStore(self.store, PLANE, PREFIX).read()

    def rows(self, revision: int) -> list[tuple[bytes, bytes]]:
        """What etcd's database has in bucket ``key`` after a revision."""
        history = self.cluster.history_of_keys
        return [row for each in range(2, revision + 1) for row in change_of(history.events(each), 0).rows()]

    async def restored(self, revision: int, cluster: str = "main") -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """The rows of the database that is restored, and the ids of the leases that it has."""
        chain = await self.chain()
        moment = chain.at_revision(cluster, revision, self.epoch)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "db")
            path.write_bytes(await self.content(moment.full.stored))
            cut_checksum(path)
            increments = [part for each in moment.increments for part in decode(await self.content(each.stored))]
            advance(path, increments, revision)
            with BoltFile(path) as file:
                return [*file.rows(b"key")], [key for key, _ in file.rows(b"lease")]

    async def content(self, stored: ObjectReference) -> bytes:
        """The content of a stored object."""
        parts = unseal(verified(self.store.stream(stored.name), stored), self._keys, stored.name)
        return b"".join([part async for part in parts])

    async def increments(self) -> list[Increment]:
        """All that are part of the chain, in order."""
        return [part for each in (await self.chain()).increments for part in decode(await self.content(each.stored))]

    async def leases(self) -> dict[int, LeaseTimes]:
        """The leases of the newest increment."""
        return {each.lease: each for each in (await self.increments())[-1].leases}


async def _held() -> None:
    return None


async def one(content: bytes) -> AsyncGenerator[bytes, None]:
    yield content
