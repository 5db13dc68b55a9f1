"""Increments: what a cluster of etcd did, revision by revision, as bytes and back.

A change is kept as the rows that etcd itself writes for it. So applying it is copying rows, and what is restored has
the hash that etcd computed. An increment is a header and frames: ``r`` is a revision with its rows, ``l`` a lease with
its times. Integers are big-endian. Nothing is compressed or encrypted here. Increments that continue each other are
joined by writing one behind the other one: so a moment in their middle has the leases that it always had.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from google.protobuf.message import DecodeError

from quarterdeck.errors import Corrupt
from quarterdeck.etcd.facts import KeyEvent, KeyValue, WatchKind
from quarterdeck.etcd.kv import key_value
from quarterdeck.etcd.rpc import kv_pb2

_HEADER = b"quarterdeck increment 1\n"
_REVISION = struct.Struct(">cqqI")
_LEASE = struct.Struct(">cqqq")
_ROW = struct.Struct(">BI")
_DELETED = 1
#: How etcd writes a revision as a key: the revision, and the number of the change in it (etcd: mvcc/revision.go).
_ROW_KEY = struct.Struct(">qcq")
#: The tag of the name in a ``mvccpb.KeyValue``; etcd writes fields in order, this one first.
_NAME_FIELD = b"\x0a"


@dataclass(frozen=True, slots=True)
class ChangedKey:
    """A key as it was written, as etcd stores it: a ``mvccpb.KeyValue``. Of a deleted key that has only its name."""

    stored: bytes
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class RevisionChange:
    """All that one revision changed, in the order in which it did. ``at_ms``: when that was seen, in ms since 1970."""

    revision: int
    at_ms: int
    keys: tuple[ChangedKey, ...]

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """The rows of etcd's bucket ``key`` for it, in order."""
        for sub, each in enumerate(self.keys):
            yield _ROW_KEY.pack(self.revision, b"_", sub) + (b"t" if each.deleted else b""), each.stored


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """A lease, the time to live that it was granted, and what was left of it. Seconds."""

    lease: int
    granted: int
    left: int


@dataclass(frozen=True, slots=True)
class Increment:
    """Changes of consecutive revisions, and the leases that there were after the last one."""

    changes: tuple[RevisionChange, ...]
    leases: tuple[LeaseTimes, ...] = ()

    @property
    def first(self) -> int:
        """The first revision."""
        return self.changes[0].revision

    @property
    def last(self) -> int:
        """The last revision."""
        return self.changes[-1].revision


def change_of(events: Sequence[KeyEvent], at_ms: int) -> RevisionChange:
    """What a watch on all keys reported of one revision. Its events are in the order of the changes."""
    return RevisionChange(events[0].revision, at_ms, tuple(map(_changed, events)))


def removed(name: bytes) -> ChangedKey:
    """The removal of a key."""
    return ChangedKey(kv_pb2.KeyValue(key=name).SerializeToString(), deleted=True)


def revision_of(row_key: bytes) -> int:
    """The revision of a row of the bucket ``key``. Raises Corrupt."""
    if len(row_key) not in (_ROW_KEY.size, _ROW_KEY.size + 1):
        raise Corrupt("reading a database of etcd", f"{row_key.hex()} is no revision", "use another backup")
    return int(_ROW_KEY.unpack_from(row_key)[0])


def is_deletion(row_key: bytes) -> bool:
    """Whether a row of the bucket ``key`` says that its key was deleted."""
    return len(row_key) > _ROW_KEY.size


def name_of(stored: bytes) -> bytes:
    """The name of the key in a row of the bucket ``key``, without reading its value. "" where there is none: such a row
    is what ``etcdutl snapshot restore --bump-revision`` leaves. Raises Corrupt.
    """
    if not stored.startswith(_NAME_FIELD):
        return b""
    size = shift = 0
    for at in range(1, min(len(stored), 6)):
        size |= (stored[at] & 0x7F) << shift
        if stored[at] < 0x80:
            if at + 1 + size > len(stored):
                break
            return stored[at + 1 : at + 1 + size]
        shift += 7
    raise Corrupt("reading a database of etcd", f"{stored[:32].hex()} is no key", "use another backup")


def stored_key(stored: bytes) -> KeyValue:
    """A key as etcd stores it. Raises Corrupt."""
    try:
        return key_value(kv_pb2.KeyValue.FromString(stored))
    except DecodeError as error:
        raise Corrupt("reading a database of etcd", f"{stored[:32].hex()} is no key", "use another backup") from error


def encode(increment: Increment) -> bytes:
    """An increment as bytes."""
    parts = [_HEADER]
    for change in increment.changes:
        parts.append(_REVISION.pack(b"r", change.revision, change.at_ms, len(change.keys)))
        for key in change.keys:
            parts += (_ROW.pack(key.deleted, len(key.stored)), key.stored)
    parts += (_LEASE.pack(b"l", each.lease, each.granted, each.left) for each in increment.leases)
    return b"".join(parts)


def decode(content: bytes) -> tuple[Increment, ...]:
    """Increments from bytes: one, or all that were joined. Raises Corrupt where they are not whole, or their revisions
    are not consecutive.
    """
    found: list[Increment] = []
    at = 0
    while at < len(content) or not found:
        increment, at = _increment_at(content, at)
        if found and increment.first != found[-1].last + 1:
            _refuse(f"revision {increment.first} follows revision {found[-1].last}")
        found.append(increment)
    return tuple(found)


def _increment_at(content: bytes, at: int) -> tuple[Increment, int]:
    if not content.startswith(_HEADER, at):
        _refuse("it does not begin as increments of this version do")
    changes: list[RevisionChange] = []
    leases: list[LeaseTimes] = []
    at += len(_HEADER)
    try:
        while at < len(content) and not content.startswith(_HEADER[:1], at):
            if content[at : at + 1] == b"r":
                change, at = _change_at(content, at)
                if changes and change.revision != changes[-1].revision + 1:
                    _refuse(f"revision {change.revision} follows revision {changes[-1].revision}")
                changes.append(change)
            else:
                kind, *times = _LEASE.unpack_from(content, at)
                if kind != b"l":
                    _refuse(f"a frame of kind {kind!r} is at byte {at}")
                leases.append(LeaseTimes(*times))
                at += _LEASE.size
    except struct.error:
        _refuse(f"it ends in the middle of the frame at byte {at}")
    if not changes:
        _refuse("it has no revision")
    return Increment(tuple(changes), tuple(leases)), at


def _change_at(content: bytes, at: int) -> tuple[RevisionChange, int]:
    _, revision, at_ms, count = _REVISION.unpack_from(content, at)
    at += _REVISION.size
    keys = []
    for _ in range(count):
        deleted, size = _ROW.unpack_from(content, at)
        at += _ROW.size
        if deleted not in (0, _DELETED) or at + size > len(content):
            _refuse(f"a key of revision {revision} is cut off")
        keys.append(ChangedKey(content[at : at + size], deleted == _DELETED))
        at += size
    if not keys:
        _refuse(f"revision {revision} has no changes")
    return RevisionChange(revision, at_ms, tuple(keys)), at


def _changed(event: KeyEvent) -> ChangedKey:
    now = event.now
    if event.kind is WatchKind.DELETE:
        return removed(now.key)
    stored = kv_pb2.KeyValue(
        key=now.key,
        create_revision=now.create_revision,
        mod_revision=now.mod_revision,
        version=now.version,
        value=now.value,
        lease=now.lease,
    )
    return ChangedKey(stored.SerializeToString())


def _refuse(seen: str) -> NoReturn:
    raise Corrupt("reading an increment of a backup", seen, "restore to a moment before it, or from another backup")
