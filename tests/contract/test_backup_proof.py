"""Databases that are built out of a chain, and what a real etcd says of them."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.conditions import until
from support.databases import IDENTITIES, StoredMoment, database, history, parted, stored_moment
from support.etcd_cluster import RealLab, etcd_binary, leader, real_lab, real_labs  # noqa: F401
from support.etcd_history import ALL, History
from support.leftovers import working_in
from support.tiers import in_each_tier, sized

from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.build import build
from quarterdeck.backup.chain import Chain, FullBackup, KeyHash
from quarterdeck.backup.contents import count_keys, keys_at
from quarterdeck.backup.database import KEYS, LEASES, cut_checksum, newest_revision
from quarterdeck.backup.proof import hashes_of, prove
from quarterdeck.backup.replay import replay
from quarterdeck.backup.revival import revive
from quarterdeck.backup.scratch_etcd import EtcdPrograms, scratch_etcd, snapshot_status
from quarterdeck.errors import Corrupt, PreconditionFailed, TimedOut
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.kv import Put
from quarterdeck.upstream.catalog import UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream

#: Seconds; the machine may be busy.
DEADLINE = 120.0
ROUNDS = 20


@pytest.fixture(scope="session")
def programs() -> EtcdPrograms:
    wanted = [UpstreamProgram.ETCD, UpstreamProgram.ETCDUTL]
    found = asyncio.run(Upstream.from_environment(os.environ).ensure(wanted, Versions()))
    return EtcdPrograms(found[UpstreamProgram.ETCD], found[UpstreamProgram.ETCDUTL])


@pytest.fixture
async def member(real_lab: RealLab) -> AsyncIterator[EtcdMember]:  # noqa: F811
    async with EtcdMember((await leader(real_lab)).client_url, real_lab.tls) as one:
        yield one


class Cluster(History):
    """A history in which apiservers have told their addresses, and what is backed up of it."""

    async def written(self) -> int:
        """Write some; the revision after that."""
        await self.write(ROUNDS)
        lease = await self._member.lease.grant(900)
        self._leases.append(lease.id)
        for number in range(2):
            await self._member.kv.put(Put(b"/registry/masterleases/10.0.0.%d" % number, b"x", lease.id))
            await self._note()
        return max(self.states)

    async def hash(self) -> KeyHash:
        found = await self._member.maintenance.hash_keys()
        return KeyHash(value=found.hash, revision=found.hash_revision, compact_revision=found.compact_revision)

    async def snapshot(self, path: Path) -> int:
        """Take a snapshot; its revision."""
        with path.open("wb") as file:
            async with aclosing(self._member.maintenance.snapshot()) as parts:
                async for part in parts:
                    file.write(part)
        cut_checksum(path)
        return newest_revision(path)


@dataclass
class Backup:
    """What was backed up of a cluster, and hashes that it had since the full backup."""

    cluster: Cluster
    made: StoredMoment
    hashes: tuple[KeyHash, ...]


async def backup_of(member: EtcdMember, folder: Path, seed: int) -> Backup:
    """A cluster with compactions in the middle, whose changes were watched before they were compacted."""
    cluster = Cluster(member, seed)
    begins = await cluster.written()
    await member.kv.compact(begins - 5, physical=True)
    hashes = [await cluster.hash()]
    assert await cluster.snapshot(folder / "full") == begins
    middle = await cluster.written()
    await cluster.watch(begins, middle)
    hashes.append(await cluster.hash())
    await member.kv.compact(begins + (middle - begins) // 2, physical=True)
    hashes.append(await cluster.hash())
    ends = await cluster.written()
    await cluster.watch(middle, ends)
    hashes.append(await cluster.hash())
    increments = parted(cluster.changes, 9, await cluster.leases())
    made = await stored_moment(folder / "full", increments, revision=ends, begins=begins, key_hash=hashes[0])
    return Backup(cluster, made, tuple(hashes))


def other_fulls(full: FullBackup, hashes: tuple[KeyHash, ...]) -> Chain:
    """A chain that has a full backup with each of these hashes."""
    return Chain("uid", fulls=tuple(full.model_copy(update={"hash": each}) for each in hashes))


@pytest.mark.parametrize("seed", range(sized(smoke=1, full=2, soak=40)))
@in_each_tier
async def test_what_is_built_is_proven_by_each_hash_that_the_cluster_had(
    seed: int, member: EtcdMember, programs: EtcdPrograms, tmp_path: Path
) -> None:
    backup = await backup_of(member, tmp_path, seed)
    moment = backup.made.moment
    chain = other_fulls(moment.full, backup.hashes)
    lots = random.Random(seed)
    revisions = [each for each in backup.cluster.states if each > moment.full.revision]
    for revision in (*lots.sample(sorted(revisions), 1), moment.revision):
        at = replace(moment, revision=revision)
        built = await build(backup.made.store, at, IDENTITIES, tmp_path / "db")
        hashes = hashes_of(chain, at)
        proof = await prove(built.path, revision, hashes, programs, deadline=DEADLINE)
        assert (proof.revision, proof.keys, proof.hashes, proof.incomparable) == (
            revision,
            len(backup.cluster.states[revision]),
            len(hashes),
            0,
        )
        assert tuple(keys_at(built.path)) == backup.cluster.states[revision]
        assert count_keys(built.path) == proof.keys
    assert len(hashes) == len(backup.hashes)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["db", "full"]


async def test_a_database_that_differs_by_one_key_is_not_proven(
    member: EtcdMember, programs: EtcdPrograms, tmp_path: Path
) -> None:
    backup = await backup_of(member, tmp_path, 7)
    moment = backup.made.moment
    built = await build(backup.made.store, moment, IDENTITIES, tmp_path / "db")
    wrong = backup.hashes[-1].model_copy(update={"value": backup.hashes[-1].value ^ 1})
    with pytest.raises(Corrupt, match=f"the hash at revision {wrong.revision} is"):
        await prove(built.path, moment.revision, (*backup.hashes[:-1], wrong), programs, deadline=DEADLINE)
    with pytest.raises(Corrupt, match=f"it has revision {moment.revision}, and revision 5 was built"):
        await prove(built.path, 5, (), programs, deadline=DEADLINE)
    # A hash from before a compaction that the full backup has already cannot be computed any more.
    old = KeyHash(value=1, revision=moment.full.revision - 6, compact_revision=-1)
    assert (await prove(built.path, moment.revision, (old,), programs, deadline=DEADLINE)).incomparable == 1


async def test_a_revived_database_has_none_of_the_dead_apiservers_and_etcd_serves_it(
    member: EtcdMember, programs: EtcdPrograms, tmp_path: Path
) -> None:
    backup = await backup_of(member, tmp_path, 11)
    moment = backup.made.moment
    built = await build(backup.made.store, moment, IDENTITIES, tmp_path / "db")
    done = revive(built.path)
    stale = tuple(each.key for each in backup.cluster.states[moment.revision] if b"/masterleases/" in each.key)
    assert done.removed == stale
    proof = await prove(built.path, done.revision, backup.hashes, programs, deadline=DEADLINE)
    assert (proof.hashes, proof.keys) == (
        len(backup.hashes),
        len(backup.cluster.states[moment.revision]) - len(stale),
    )
    async with scratch_etcd(built.path, programs, deadline=DEADLINE) as restored:
        for each in await backup.cluster.leases():
            life = await restored.lease.life(each.lease)
            assert (life.granted_ttl, life.ttl > each.granted - 60) == (each.granted, True)
        kept = [each for each in backup.cluster.states[moment.revision] if each.key not in stale]
        assert list((await restored.kv.get(ALL)).items) == kept


async def test_a_replay_comes_to_the_same_rows(member: EtcdMember, programs: EtcdPrograms, tmp_path: Path) -> None:
    backup = await backup_of(member, tmp_path, 5)
    store, moment = backup.made.store, backup.made.moment
    for revision in (moment.revision - 4, moment.revision):
        at = replace(moment, revision=revision)
        built = await build(store, at, IDENTITIES, tmp_path / "built")
        replayed = await replay(store, at, IDENTITIES, tmp_path / "replayed", programs, deadline=DEADLINE)
        with BoltFile(built.path) as one, BoltFile(replayed.path) as other:
            assert [*one.rows(KEYS)] == [*other.rows(KEYS)]
            assert [*one.rows(LEASES)] == [*other.rows(LEASES)]
    proof = await prove(replayed.path, moment.revision, backup.hashes, programs, deadline=DEADLINE)
    assert proof.hashes == len(backup.hashes)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["built", "full", "replayed"]


async def test_a_replay_of_a_chain_with_a_gap_leaves_nothing(
    member: EtcdMember, programs: EtcdPrograms, tmp_path: Path
) -> None:
    backup = await backup_of(member, tmp_path, 6)
    first, _, *rest = backup.made.moment.increments
    moment = replace(backup.made.moment, increments=(first, *rest))
    with pytest.raises(Corrupt, match=f"replaying revision {rest[0].first}: etcd came to revision {first.last + 1}"):
        await replay(backup.made.store, moment, IDENTITIES, tmp_path / "db", programs, deadline=DEADLINE)
    assert [each.name for each in tmp_path.iterdir()] == ["full"]


async def test_an_etcd_that_demands_authentication_is_asked_as_root(
    real_lab: RealLab,  # noqa: F811
    programs: EtcdPrograms,
    tmp_path: Path,
) -> None:
    url = (await leader(real_lab)).client_url
    async with EtcdMember(url, real_lab.tls) as one:
        await Cluster(one, 1).written()
    root = await real_lab.enable_authentication()
    async with EtcdMember(url, ClientTls(real_lab.tls.ca, root)) as one:
        revision = await Cluster(one, 1).snapshot(tmp_path / "db")
    assert (await prove(tmp_path / "db", revision, (), programs, deadline=DEADLINE)).keys > 0


# --- what etcd refuses, and processes


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return database(tmp_path / "db", history([{f"/registry/a/{number}": b"x" * 900} for number in range(200)]))


async def test_a_database_that_was_written_without_etcd_is_served_by_it(small: Path, programs: EtcdPrograms) -> None:
    assert (await prove(small, 201, (), programs, deadline=DEADLINE)).keys == 200


@pytest.mark.parametrize("at", [4096 * 9 + 8, 4096 * 20 + 16])
async def test_a_damaged_page_is_found(small: Path, programs: EtcdPrograms, at: int) -> None:
    content = bytearray(small.read_bytes())
    content[at] ^= 0x7F
    small.write_bytes(content)
    with pytest.raises(Corrupt) as seen:
        await snapshot_status(small, programs.etcdutl, deadline=DEADLINE)
    assert "\n" not in str(seen.value)
    assert [each.name for each in small.parent.iterdir()] == ["db"]


async def test_what_is_no_database_and_no_program_is_said(small: Path, programs: EtcdPrograms) -> None:
    none = small.with_name("none")
    none.write_bytes(b"x" * 8192)
    with pytest.raises(Corrupt):
        await snapshot_status(none, programs.etcdutl, deadline=DEADLINE)
    with pytest.raises(Corrupt):
        async with scratch_etcd(none, programs, deadline=DEADLINE):
            raise AssertionError("it serves")
    gone = EtcdPrograms(Path("/no/etcd"), Path("/no/etcdutl"))
    with pytest.raises(PreconditionFailed, match="/no/etcdutl"):
        await snapshot_status(small, gone.etcdutl, deadline=DEADLINE)
    with pytest.raises(PreconditionFailed, match="/no/etcd"):
        async with scratch_etcd(small, replace(programs, etcd=gone.etcd), deadline=DEADLINE):
            raise AssertionError("it serves")
    assert sorted(each.name for each in small.parent.iterdir()) == ["db", "none"]


async def test_an_etcd_that_does_not_serve_in_time_is_given_up(small: Path, programs: EtcdPrograms) -> None:
    with pytest.raises(TimedOut):
        async with scratch_etcd(small, replace(programs, etcd=Path("/usr/bin/env")), deadline=0.01):
            raise AssertionError("it serves")
    assert [each.name for each in small.parent.iterdir()] == ["db"]


async def test_nothing_outlives_a_proof_that_is_cancelled(small: Path, programs: EtcdPrograms) -> None:
    serving = asyncio.Event()

    async def use() -> None:
        async with scratch_etcd(small, programs, deadline=DEADLINE):
            serving.set()
            await asyncio.Event().wait()

    using = asyncio.ensure_future(use())
    await serving.wait()
    assert working_in(small.parent)
    assert (small.parent / ".db.etcd").stat().st_mode & 0o777 == 0o700
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    assert not working_in(small.parent)
    assert [each.name for each in small.parent.iterdir()] == ["db"]


_USER = """
import asyncio, sys
from pathlib import Path
from quarterdeck.backup.scratch_etcd import EtcdPrograms, scratch_etcd

async def use():
    async with scratch_etcd(Path(sys.argv[1]), EtcdPrograms(Path(sys.argv[2]), Path(sys.argv[3])), deadline=120):
        print("serves", flush=True)
        await asyncio.Event().wait()

asyncio.run(use())
"""


def test_nothing_outlives_a_process_that_is_killed_and_the_next_one_cleans_up(
    small: Path, programs: EtcdPrograms
) -> None:
    argv = (sys.executable, "-c", _USER, small, programs.etcd, programs.etcdutl)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == "serves\n"
        user.kill()
    until(lambda: not working_in(small.parent), "the etcd has ended")
    assert (small.parent / ".db.etcd").exists()
    assert asyncio.run(prove(small, 201, (), programs, deadline=DEADLINE)).keys == 200
    assert [each.name for each in small.parent.iterdir()] == ["db"]
