"""Databases of etcd and chains of backups for tests, made without etcd."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fakes.objects import MemoryObjects
from pyrage import x25519

from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.bolt.pages import BoltMeta, leaf
from quarterdeck.backup.chain import BackupMoment, FullBackup, Increments, KeyHash, ObjectReference
from quarterdeck.backup.records import ChangedKey, Increment, LeaseTimes, RevisionChange, encode, removed
from quarterdeck.backup.sealing import Identities, Recipients, seal
from quarterdeck.etcd.rpc import kv_pb2

PAGE = 4096
KEY = x25519.Identity.generate()
RECIPIENTS, IDENTITIES = Recipients((str(KEY.to_public()),)), Identities((str(KEY),))
AT = datetime(2030, 1, 1, tzinfo=UTC)


def put(name: str, value: bytes, revision: int, *, lease: int = 0, created: int = 0) -> ChangedKey:
    """A key as etcd stores it; ``created``: at an earlier revision. Its version is not looked at by tests."""
    stored = kv_pb2.KeyValue(
        key=name.encode(),
        value=value,
        create_revision=created or revision,
        mod_revision=revision,
        version=1,
        lease=lease,
    )
    return ChangedKey(stored.SerializeToString())


def history(writes: Sequence[Mapping[str, bytes | None]], first: int = 2) -> list[RevisionChange]:
    """One change for each of these: the values of keys, None for a key that is deleted."""
    return [
        RevisionChange(
            revision,
            0,
            tuple(
                removed(name.encode()) if value is None else put(name, value, revision) for name, value in each.items()
            ),
        )
        for revision, each in enumerate(writes, first)
    ]


def database(
    path: Path, changes: Iterable[RevisionChange], buckets: Mapping[bytes, Mapping[bytes, bytes]] | None = None
) -> Path:
    """A database that has these changes, and other buckets with these rows."""
    first = [BoltMeta(page_size=PAGE, flags=0, root=3, sequence=0, pages=4, transaction=each) for each in (0, 1)]
    path.write_bytes(b"".join((*(each.to_page() for each in first), bytes(PAGE), leaf(3, (), PAGE))))
    with BoltFile(path) as file:
        file.replace(b"key", (row for change in changes for row in change.rows()))
        for name, rows in ({b"meta": {}, b"lease": {}, b"alarm": {}, b"cluster": {}} | dict(buckets or {})).items():
            file.replace(name, sorted(rows.items()))
        file.commit()
    return path


def snapshot(path: Path) -> bytes:
    """A database as etcd sends it: its hash behind it."""
    content = path.read_bytes()
    return content + hashlib.sha256(content).digest()


async def _parts(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), 10_000):
        yield content[at : at + 10_000]


async def stored(
    store: MemoryObjects, name: str, content: bytes, recipients: Recipients = RECIPIENTS
) -> ObjectReference:
    """Store an object."""
    sealed = b"".join([part async for part in seal(_parts(content), recipients)])
    store.objects[name] = (sealed, AT)
    return ObjectReference(name=name, sha256=hashlib.sha256(sealed).hexdigest(), size_bytes=len(sealed))


@dataclass
class StoredMoment:
    """A moment, and the store that has its objects."""

    store: MemoryObjects
    moment: BackupMoment


async def stored_moment(
    full: Path,
    increments: Sequence[Increment],
    *,
    revision: int,
    begins: int,
    recipients: Recipients = RECIPIENTS,
    key_hash: KeyHash | None = None,
) -> StoredMoment:
    """A full backup of revision ``begins`` and increments as a moment of a backup store."""
    store = MemoryObjects()
    whole = FullBackup(
        cluster="main",
        epoch=0,
        revision=begins,
        at=AT,
        etcd_version="3.6.16",
        hash=key_hash or KeyHash(value=0, revision=begins, compact_revision=-1),
        stored=await stored(store, "data/full", snapshot(full), recipients),
    )
    steps = [
        Increments(
            cluster="main",
            epoch=0,
            first=each.first,
            last=each.last,
            first_at=AT,
            last_at=AT,
            stored=await stored(store, f"data/{each.first}", encode(each), recipients),
        )
        for each in increments
    ]
    return StoredMoment(store, BackupMoment(whole, tuple(steps), revision))


def parted(changes: Sequence[RevisionChange], size: int, leases: tuple[LeaseTimes, ...] = ()) -> list[Increment]:
    """Changes as increments of ``size`` revisions."""
    return [Increment(tuple(changes[at : at + size]), leases) for at in range(0, len(changes), size)]
