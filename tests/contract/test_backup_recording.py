"""A real etcd that is recorded while it is written to, by recorders that are killed: what is restored out of the store
is what etcd had.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyrage import x25519
from support.etcd_cluster import RealLab, etcd_binary, leader, real_lab, real_labs, urls  # noqa: F401
from support.etcd_history import ALL, History, etcdutl, is_whole  # noqa: F401
from support.recording_lab import RecordedEvents
from support.tiers import in_each_tier, sized

from quarterdeck.backup.chain import BackupMoment, Chain, ObjectReference, verified
from quarterdeck.backup.chain_store import ChainStore
from quarterdeck.backup.database import advance, cut_checksum, newest_revision
from quarterdeck.backup.deposit import Deposit
from quarterdeck.backup.folding import fold
from quarterdeck.backup.joining import join
from quarterdeck.backup.objects.port import ObjectStore
from quarterdeck.backup.objects.stores import open_store
from quarterdeck.backup.recording.collector import Subject
from quarterdeck.backup.recording.policy import RecordingPace
from quarterdeck.backup.recording.recorder import Recorder
from quarterdeck.backup.recording.spool import Spool
from quarterdeck.backup.records import decode
from quarterdeck.backup.sealing import Identities, Recipients, unseal
from quarterdeck.backup.writer import ChainWriter
from quarterdeck.etcd.client import EtcdMember

KEY = x25519.Identity.generate()
KEYS = Identities((str(KEY),))
ROUNDS = 60


@pytest.fixture
async def member(real_lab: RealLab) -> AsyncIterator[EtcdMember]:  # noqa: F811
    async with EtcdMember((await leader(real_lab)).client_url, real_lab.tls) as one:
        yield one


class Backup:
    """A cluster's backup in a folder, and recorders of it, one after the other."""

    def __init__(self, lab: RealLab, folder: Path) -> None:
        self._lab, self.folder = lab, folder
        (folder / "store").mkdir()
        self.store: ObjectStore = open_store((folder / "store").as_uri())
        self.chains = ChainStore(self.store, "uid", "alpha")
        self.deposit = Deposit(store=self.store, prefix="alpha", recipients=Recipients((str(KEY.to_public()),)))
        self.events = RecordedEvents()
        self._runs = 0

    def writer(self) -> ChainWriter:
        self._runs += 1
        return ChainWriter(self.chains, f"run-{self._runs}", _held, _now)

    def recorder(self) -> Recorder:
        etcd, founders = self._lab.etcd, urls(self._lab.founders)
        return Recorder(
            Subject(plane="uid", cluster="main", epoch=0, etcd=etcd, urls=lambda: founders),
            self.deposit,
            self.writer(),
            Spool(self.folder / "spool", 1 << 24),
            scratch=self.folder / "scratch",
            events=self.events,
            now=_now,
            pace=RecordingPace(flush_seconds=0.05, pulse_seconds=0.2),
        )

    async def joined(self) -> Chain:
        """The chain after its increments were joined."""
        writer = self.writer()
        run = sorted((await writer.read()).increments, key=lambda each: each.first)
        assert await join(writer, self.deposit, run, KEYS) == {}
        return await self.chains.read()

    async def database(self, moment: BackupMoment, path: Path) -> None:
        path.write_bytes(await self._content(moment.full.stored))
        cut_checksum(path)
        increments = [part for each in moment.increments for part in decode(await self._content(each.stored))]
        advance(path, increments, moment.revision)

    async def _content(self, stored: ObjectReference) -> bytes:
        parts = unseal(verified(self.store.stream(stored.name), stored), KEYS, stored.name)
        return b"".join([part async for part in parts])


async def _held() -> None:
    return None


def _now() -> datetime:
    return datetime.now(UTC)


async def killed_again_and_again(backup: Backup, lots: random.Random) -> None:
    """Let recorders run for a random time each."""
    while True:
        running = asyncio.ensure_future(backup.recorder().run())
        try:
            await asyncio.wait((running,), timeout=lots.random())
        finally:
            running.cancel()
            await asyncio.wait((running,))
        assert running.cancelled(), running.exception()


@pytest.mark.parametrize("seed", range(sized(smoke=1, full=2, soak=20)))
@in_each_tier
async def test_what_was_recorded_by_recorders_that_are_killed_is_what_etcd_had(
    seed: int,
    member: EtcdMember,
    real_lab: RealLab,  # noqa: F811
    etcdutl: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    lots, history, backup = random.Random(seed), History(member, seed), Backup(real_lab, tmp_path)
    recording = asyncio.ensure_future(killed_again_and_again(backup, lots))
    await history.write(ROUNDS)
    recording.cancel()
    await asyncio.wait((recording,))
    assert recording.cancelled(), recording.exception()
    last = backup.recorder()
    running = asyncio.ensure_future(last.run())
    async with asyncio.timeout(60):
        await last.covered(max(history.states))
        await history.write(10)
        await last.covered(max(history.states))
    running.cancel()
    await asyncio.wait((running,))
    chain = await backup.chains.read()
    # A recorder that was killed has perhaps not told of the full backup that it took.
    assert (backup.events.gaps, len(chain.fulls)) == ([], 1)
    ((first, newest),) = chain.ranges("main", 0)
    assert newest == max(history.states)
    choice = [each for each in history.states if each >= first]
    await compare(backup, chain.at_revision("main", lots.choice(choice), 0), history, member, real_lab, etcdutl)
    joined = await backup.joined()
    assert len(chain.increments) > len(joined.increments) == 1
    for revision in {newest, lots.choice(choice)}:
        await compare(backup, joined.at_revision("main", revision, 0), history, member, real_lab, etcdutl)
    await folded_too(backup, history, member, real_lab, etcdutl)


async def compare(
    backup: Backup,
    moment: BackupMoment,
    history: History,
    member: EtcdMember,
    lab: RealLab,
    etcdutl: Path,  # noqa: F811
) -> None:
    """Start etcd with what is restored, and compare it with what it had: keys, leases, and etcd's own hash."""
    database, spare = backup.folder / f"at-{moment.revision}", lab.spares[0]
    await backup.database(moment, database)
    assert newest_revision(database) == moment.revision
    assert is_whole(etcdutl, database)
    await lab.restore(spare, database, etcdutl)
    async with EtcdMember(spare.client_url, lab.tls) as restored:
        found = tuple((await restored.kv.get(ALL)).items)
        assert found == history.states[moment.revision]
        hashes = [await each.maintenance.hash_keys(revision=moment.revision) for each in (member, restored)]
        assert (hashes[0].hash, hashes[0].compact_revision) == (hashes[1].hash, hashes[1].compact_revision)
        known = moment.full.hash
        assert known is not None
        assert (await restored.maintenance.hash_keys(revision=known.revision)).hash == known.value
        alive = {each.lease for each in await history.leases()}
        for lease in {each.lease for each in found} - {0}:
            granted = (await restored.lease.life(lease)).granted_ttl
            # One that was revoked before it could be read has a minute: its keys end too.
            assert granted == 600 or (granted == 60 and lease not in alive)
    await lab.kill(spare)


async def folded_too(
    backup: Backup,
    history: History,
    member: EtcdMember,
    lab: RealLab,
    etcdutl: Path,  # noqa: F811
) -> None:
    full = await fold(backup.writer(), backup.deposit, "main", 0, KEYS, backup.folder / "scratch")
    assert full is not None
    chain: Chain = await backup.chains.read()
    moment = chain.latest("main", 0)
    assert (moment.full, moment.increments) == (full, ())
    await compare(backup, replace(moment, revision=full.revision), history, member, lab, etcdutl)
