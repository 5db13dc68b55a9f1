"""The keys of an etcd cluster in memory: what each revision changed, the leases, and the database of all that."""

from __future__ import annotations

import asyncio
import hashlib
import struct
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.bolt.pages import BoltMeta, Element, leaf
from quarterdeck.backup.database import lease_value
from quarterdeck.backup.records import LeaseTimes, change_of
from quarterdeck.etcd.facts import KeyEvent, KeyValue, LeaseLife, RangeResult, WatchKind
from quarterdeck.etcd.kv import Get

_PAGE = 4096


@dataclass(slots=True)
class KeyHistory:
    """What was written. Tests that only say how much was written get a key of its own for each revision."""

    by_revision: dict[int, tuple[KeyEvent, ...]] = field(default_factory=dict)
    current: dict[bytes, KeyValue] = field(default_factory=dict)
    leases: dict[int, LeaseLife] = field(default_factory=dict)
    #: Set at each change of the cluster, for those that watch.
    watchers: set[asyncio.Event] = field(default_factory=set)

    def put(self, revision: int, key: bytes, value: bytes, lease: int) -> None:
        """Note a write."""
        before = self.current.get(key)
        now = KeyValue(
            key=key,
            value=value,
            create_revision=before.create_revision if before else revision,
            mod_revision=revision,
            version=before.version + 1 if before else 1,
            lease=lease,
        )
        self.current[key] = now
        self.by_revision[revision] = (KeyEvent(kind=WatchKind.PUT, now=now, before=None),)

    def delete(self, revision: int, keys: Sequence[bytes]) -> None:
        """Note the deletion of keys that exist."""
        for key in keys:
            del self.current[key]
        self.by_revision[revision] = tuple(
            KeyEvent(kind=WatchKind.DELETE, now=_gone(key, revision), before=None) for key in keys
        )

    def events(self, revision: int) -> tuple[KeyEvent, ...]:
        """What a revision changed."""
        written = KeyValue(
            key=b"/written/%d" % revision,
            value=b"%d" % revision,
            create_revision=revision,
            mod_revision=revision,
            version=1,
            lease=0,
        )
        return self.by_revision.get(revision) or (KeyEvent(kind=WatchKind.PUT, now=written, before=None),)

    def read(self, what: Get, newest: int) -> RangeResult:
        """What a member answers that has applied the revision ``newest``."""
        found: dict[bytes, KeyValue] = {}
        for revision in range(2, (what.revision or newest) + 1):
            for event in self.events(revision):
                found.pop(event.now.key, None)
                if event.kind is WatchKind.PUT:
                    found[event.now.key] = event.now
        items = [found[key] for key in sorted(found) if _within(key, what)]
        shown = [] if what.count_only else items[: what.limit or None]
        if what.keys_only:
            shown = [replace(each, value=b"") for each in shown]
        more = not what.count_only and len(shown) < len(items)
        return RangeResult(revision=newest, items=tuple(shown), count=len(items), more=more)

    def wake(self) -> None:
        """Let those that watch look again."""
        for each in self.watchers:
            each.set()

    def snapshot(self, newest: int) -> bytes:
        """The database as of a revision, with its SHA-256 behind it. It has all history: etcd discards what is
        compacted bit by bit.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "db")
            path.write_bytes(_empty())
            with BoltFile(path) as file:
                file.replace(b"key", self._rows(newest))
                file.replace(b"lease", self._lease_rows())
                file.commit()
            content = path.read_bytes()
        return content + hashlib.sha256(content).digest()

    def _rows(self, newest: int) -> Iterator[tuple[bytes, bytes]]:
        for revision in range(2, newest + 1):
            yield from change_of(self.events(revision), 0).rows()

    def _lease_rows(self) -> Iterator[tuple[bytes, bytes]]:
        for each in sorted(self.leases.values(), key=lambda one: one.id):
            yield struct.pack(">q", each.id), lease_value(LeaseTimes(each.id, each.granted_ttl, each.ttl))


def _within(key: bytes, what: Get) -> bool:
    if not what.range_end:
        return key == what.key
    return what.key <= key and (what.range_end == b"\0" or key < what.range_end)


def _gone(key: bytes, revision: int) -> KeyValue:
    return KeyValue(key=key, value=b"", create_revision=0, mod_revision=revision, version=0, lease=0)


def _empty() -> bytes:
    """A database of bbolt without buckets."""
    metas = [BoltMeta(page_size=_PAGE, flags=0, root=3, sequence=0, pages=4, transaction=number) for number in (0, 1)]
    nothing: tuple[Element, ...] = ()
    return b"".join((*(each.to_page() for each in metas), bytes(_PAGE), leaf(3, nothing, _PAGE)))
