"""The other way to a moment: etcd itself does once more what it did, revision by revision, in a scratch member.

It is slower by far than writing rows, and it uses nothing of etcd's file format but its leases and alarms.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.build import BuiltDatabase, made_database, read_increments, write_moment
from quarterdeck.backup.chain import BackupMoment
from quarterdeck.backup.database import ALARMS, LEASES, cut_checksum, lease_of, replace_leases
from quarterdeck.backup.objects.port import ObjectStore
from quarterdeck.backup.records import Increment, LeaseTimes, RevisionChange, stored_key
from quarterdeck.backup.scratch_etcd import EtcdPrograms, scratch_etcd
from quarterdeck.backup.sealing import Identities
from quarterdeck.errors import Corrupt
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.faults import EtcdConflict
from quarterdeck.etcd.kv import DeleteRange, Put

#: Seconds that leases last meanwhile: one that ended would make a revision of its own.
_LASTING = 10 * 365 * 86_400
#: A revision may have as many changes as a range of keys that was deleted has keys.
_FLAGS = ("--max-txn-ops=10000000", "--max-request-bytes=1073741824")


async def replay(
    store: ObjectStore,
    moment: BackupMoment,
    identities: Identities,
    target: Path,
    programs: EtcdPrograms,
    *,
    deadline: float = 600.0,
) -> BuiltDatabase:
    """Build the database of a moment as ``build`` does, with the same keys and revisions, by a scratch etcd. It has no
    alarms, with which etcd would write nothing. ``deadline``: seconds for its start, and for each revision.

    Raises as ``build`` and ``scratch_etcd`` do.
    """
    return await made_database(store, moment, target, partial(_write, store, moment, identities, programs, deadline))


async def _write(
    store: ObjectStore,
    moment: BackupMoment,
    identities: Identities,
    programs: EtcdPrograms,
    deadline: float,
    path: Path,
) -> None:
    full = replace(moment, increments=(), revision=moment.full.revision)
    await write_moment(store, full, identities, path)
    leases = await asyncio.to_thread(_prepare, path)
    async with scratch_etcd(path, programs, deadline=deadline, flags=_FLAGS) as member:
        known, reached = {each.lease for each in leases}, moment.full.revision
        async with aclosing(_increments(store, moment, identities)) as increments:
            async for increment in increments:
                changes = [each for each in increment.changes if reached < each.revision <= moment.revision]
                for change in changes:
                    await _do(member, change, known, deadline)
                    reached = change.revision
                leases = increment.leases if changes else leases
        if reached != moment.revision:
            raise Corrupt(f"replaying revision {moment.revision}", f"the backup ends with revision {reached}")
        with path.open("wb") as file:
            async with aclosing(member.maintenance.snapshot()) as parts:
                async for part in parts:
                    file.write(part)
    await asyncio.to_thread(_finish, path, leases)


async def _increments(
    store: ObjectStore, moment: BackupMoment, identities: Identities
) -> AsyncGenerator[Increment, None]:
    for each in moment.increments:
        for increment in await read_increments(store, each, identities):
            yield increment


async def _do(member: EtcdMember, change: RevisionChange, known: set[int], deadline: float) -> None:
    """Do what a revision did, and see that it is that revision. ``known``: the leases that there are."""
    operations: list[Put | DeleteRange] = []
    for each in change.keys:
        key = stored_key(each.stored)
        if key.lease and key.lease not in known:
            with suppress(EtcdConflict):  # it is there already
                await member.lease.grant(_LASTING, lease_id=key.lease)
            known.add(key.lease)
        operations.append(DeleteRange(key.key) if each.deleted else Put(key.key, key.value, key.lease))
    done = await member.kv.txn((), operations, deadline=deadline)
    if done.revision != change.revision:
        seen = f"etcd came to revision {done.revision} by it"
        raise Corrupt(f"replaying revision {change.revision}", seen, "restore without replaying")


def _prepare(path: Path) -> tuple[LeaseTimes, ...]:
    """Have the leases last, and no alarm; the leases as they were."""
    with BoltFile(path) as file:
        leases = tuple(lease_of(value) for _, value in file.rows(LEASES))
        replace_leases(file, (replace(each, granted=_LASTING, left=0) for each in leases))
        file.replace(ALARMS, ())
        file.commit()
    return leases


def _finish(path: Path, leases: tuple[LeaseTimes, ...]) -> None:
    """Make a snapshot a database with these leases, on the disk."""
    cut_checksum(path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    with BoltFile(path) as database:
        replace_leases(database, leases)
        database.commit()
