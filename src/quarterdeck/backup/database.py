"""etcd's database out of a full snapshot and increments, written row by row as etcd would have done."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.records import Increment, LeaseTimes, RevisionChange, revision_of
from quarterdeck.errors import Corrupt

KEYS, LEASES, ALARMS = b"key", b"lease", b"alarm"
_META, _COMPACTED = b"meta", (b"finishedCompactRev", b"scheduledCompactRev")
#: The SHA-256 that etcd puts behind the pages of a snapshot; pages are multiples of 512 bytes.
CHECKSUM_BYTES, _SECTOR = 32, 512
_LEASE_ID = struct.Struct(">q")
_FIELD_ID, _FIELD_TTL, _FIELD_LEFT = 0x08, 0x10, 0x18


def cut_checksum(path: Path) -> None:
    """Take the checksum off the end of a snapshot: what is left is a database. Fine where there is none."""
    size = path.stat().st_size
    if size % _SECTOR == CHECKSUM_BYTES:
        os.truncate(path, size - CHECKSUM_BYTES)


def newest_revision(path: Path) -> int:
    """The newest revision that a database has; 1 if nothing was ever written. Raises Corrupt."""
    with BoltFile(path) as file:
        return newest_of(file)


def advance(path: Path, increments: Iterable[Increment], to: int) -> None:
    """Bring a database from its newest revision to revision ``to``, in place. It has the leases of the last increment
    that was used then, with the times that they had.

    A crash leaves it as it was. Raises Corrupt where a revision is missing, and OSError as the file system does.
    """
    with BoltFile(path) as file:
        now = newest_of(file)
        if to <= now:
            return
        read = _Changes(increments, now, to)
        file.append(KEYS, (row for change in read for row in change.rows()))
        if read.reached != to:
            raise Corrupt(
                f"restoring revision {to}",
                f"the backup ends with revision {read.reached}",
                f"restore --to {read.reached}, or use another backup",
            )
        replace_leases(file, read.leases)
        file.commit()


def replace_leases(file: BoltFile, leases: Iterable[LeaseTimes]) -> None:
    """Have an open database hold these leases and no others."""
    file.replace(LEASES, sorted((_LEASE_ID.pack(each.lease), lease_value(each)) for each in leases))


def compacted_revision(file: BoltFile) -> int:
    """The revision below which an open database has no history; 0 if it was never compacted. Raises Corrupt."""
    found = [file.get(_META, each) for each in _COMPACTED]
    return max((revision_of(each) for each in found if each is not None), default=0)


def lease_value(times: LeaseTimes) -> bytes:
    """A lease as etcd stores it: ``leasepb.Lease``. (etcd: lease/leasepb/lease.proto)"""
    fields = ((_FIELD_ID, times.lease), (_FIELD_TTL, times.granted), (_FIELD_LEFT, times.left))
    return b"".join(bytes((tag,)) + _varint(value) for tag, value in fields if value)


def lease_of(value: bytes) -> LeaseTimes:
    """A lease from how etcd stores it. Raises Corrupt."""
    found = dict.fromkeys((_FIELD_ID, _FIELD_TTL, _FIELD_LEFT), 0)
    at = 0
    while at < len(value):
        tag = value[at]
        number, at = _read_varint(value, at + 1)
        if tag not in found:
            raise _no_lease(value)
        found[tag] = number
    return LeaseTimes(*found.values())


class _Changes:
    """The changes of increments behind one revision, up to another one, without a gap."""

    def __init__(self, increments: Iterable[Increment], behind: int, to: int) -> None:
        self._increments = increments
        self._to = to
        self.reached = behind
        self.leases: tuple[LeaseTimes, ...] = ()

    def __iter__(self) -> Iterator[RevisionChange]:
        for increment in self._increments:
            if self.reached >= self._to:
                return
            if increment.last <= self.reached:
                continue
            for change in increment.changes:
                if self.reached < change.revision <= self._to:
                    self._follow(change.revision)
                    yield change
            self.leases = increment.leases

    def _follow(self, revision: int) -> None:
        if revision != self.reached + 1:
            raise Corrupt(
                f"restoring revision {self._to}",
                f"the backup has no revision {self.reached + 1}; revision {revision} is the next one",
                f"restore --to {self.reached}, or use another backup",
            )
        self.reached = revision


def newest_of(file: BoltFile) -> int:
    """The newest revision of an open database."""
    last = file.last(KEYS)
    return revision_of(last[0]) if last is not None else 1


def _varint(value: int) -> bytes:
    value %= 2**64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(value: bytes, at: int) -> tuple[int, int]:
    """A number of 64 bits with its sign, and where what follows it begins."""
    number = shift = 0
    while at < len(value) and shift < 64:
        number |= (value[at] & 0x7F) << shift
        at += 1
        if value[at - 1] < 0x80:
            number %= 2**64
            return number - 2**64 if number >= 2**63 else number, at
        shift += 7
    raise _no_lease(value)


def _no_lease(value: bytes) -> Corrupt:
    return Corrupt("reading a database of etcd", f"{value[:32].hex()} is no lease", "use another backup")
