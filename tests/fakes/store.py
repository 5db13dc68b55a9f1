"""The store that is gone with its process: for tests and dry runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from typing_extensions import override

from quarterdeck.api.base import R, Resource
from quarterdeck.stores import rules
from quarterdeck.stores.lease import new_uid
from quarterdeck.stores.port import Event, JournalEntry, Lease, Store, Versions


class MemoryStore(Store):
    """A ``Store`` in memory. ``clock`` is the wall clock in seconds. Keeps what the real one keeps: JSON text."""

    def __init__(self, *, clock: Callable[[], float] = time.time, uid: Callable[[], str] = new_uid) -> None:
        self._clock = clock
        self._uid = uid
        self._version = 0
        self._bodies: dict[tuple[str, str], str] = {}
        self._versions: dict[tuple[str, str], str] = {}
        self._changed = asyncio.Event()
        self._entries = 0
        self._journal: list[JournalEntry] = []
        self._events: dict[tuple[str, str, str, str], Event] = {}
        self._leases: dict[str, Lease] = {}

    @override
    async def get(self, kind: type[R], name: str) -> R:
        return self._read("reading", kind, name)

    @override
    async def list(self, kind: type[R]) -> tuple[R, ...]:
        rules.check_listable(kind)
        names = sorted(name for stored, name in self._bodies if stored == kind.__name__)
        return tuple(self._read("listing", kind, name) for name in names)

    @override
    async def watch(self, seen: Versions, *kinds: type[Resource]) -> Versions:
        for kind in kinds:
            rules.check_listable(kind)
        called = {kind.__name__ for kind in kinds}
        while True:
            changed = self._changed
            now = {key: version for key, version in self._versions.items() if key[0] in called}
            if now != seen:
                return now
            await changed.wait()

    @override
    async def create(self, resource: R, *, lease: Lease | None = None, uid: str = "") -> R:
        self._check(lease)
        if (type(resource).__name__, resource.name) in self._bodies:
            rules.existing(resource)
        return self._write(
            rules.created(resource, version=self._version + 1, now=self._clock(), uid=uid or self._uid())
        )

    @override
    async def update(self, resource: R, *, lease: Lease | None = None) -> R:
        self._check(lease)
        stored = self._read("writing", type(resource), resource.name)
        new = self._write(rules.updated(stored, resource, version=self._version + 1))
        if rules.released_by(new):
            self._drop(type(resource).__name__, resource.name)
        return new

    @override
    async def delete(
        self, kind: type[Resource], name: str, *, version: str | None = None, lease: Lease | None = None
    ) -> None:
        self._check(lease)
        rules.check_deletable(self._read("deleting", kind, name), version)
        self._delete(kind, name)

    @override
    async def delete_together(
        self, *gone: tuple[type[Resource], str], finalizer: str = "", lease: Lease | None = None
    ) -> None:
        self._check(lease)
        for kind, name in gone:
            if (kind.__name__, name) in self._bodies:
                self._delete(kind, name, finalizer)

    def _delete(self, kind: type[Resource], name: str, finalizer: str = "") -> None:
        if rules.may_have_finalizers(kind):
            stored = self._read("deleting", kind, name)
            left = rules.marked(stored, finalizer=finalizer, version=lambda: self._version + 1, now=self._clock())
            if left is not None:
                self._write(left)
                return
        self._version += 1
        self._drop(kind.__name__, name)

    @override
    async def append(self, entry: JournalEntry) -> JournalEntry:
        self._entries += 1
        numbered = replace(entry, id=self._entries)
        self._journal.append(numbered)
        if self._entries % rules.JOURNAL_LOOK == 0:
            self._prune(entry.plane)
        return numbered

    def _prune(self, plane: str) -> None:
        rows = [each for each in self._journal if each.plane == plane]
        operation = rows[0].operation
        of_it = [each for each in rows if each.operation == operation]
        until = of_it[-1].time if operation else of_it[0].time
        last = next((each.operation for each in reversed(rows) if each.operation), "")
        if rules.may_go(rules.JournalEnd(len(rows), operation, until, last), self._clock()):
            if ("Operation", operation) in self._bodies:
                self._version += 1
                self._drop("Operation", operation)
            gone = {each.id for each in of_it[: rules.JOURNAL_STEP]}
            self._journal = [each for each in self._journal if each.id not in gone]

    @override
    async def journal(
        self,
        plane: str,
        *,
        operation: str | None = None,
        kind: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> tuple[JournalEntry, ...]:
        found = [
            entry
            for entry in self._journal
            if entry.plane == plane
            and entry.id > after
            and operation in (None, entry.operation)
            and kind in (None, entry.kind)
        ]
        return tuple(found[max(0, len(found) - limit) :] if limit is not None else found)

    @override
    async def record(self, event: Event) -> None:
        key = (event.plane, event.type.value, event.reason, event.message)
        self._events[key] = rules.merged(event, self._events.get(key))
        of_plane = [key for key, _ in self._by_time() if key[0] == event.plane]
        for old in of_plane[: -rules.EVENTS_KEPT]:
            del self._events[old]

    @override
    async def events(self, plane: str | None = None) -> tuple[Event, ...]:
        return tuple(event for _, event in self._by_time() if plane in (None, event.plane))

    @override
    async def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        now = self._clock()
        before = rules.cut(self._leases.get(name), now)
        if before is not None:
            self._leases[name] = before
        self._leases[name] = rules.taken(before, name, holder, ttl=ttl, now=now)
        return self._leases[name]

    @override
    async def renew(self, lease: Lease) -> Lease:
        self._leases[lease.name] = rules.renewed(lease, self._leases.get(lease.name), self._clock())
        return self._leases[lease.name]

    @override
    async def release(self, lease: Lease) -> None:
        rest = rules.released(lease, self._leases.get(lease.name))
        if rest is not None:
            self._leases[lease.name] = rest

    @override
    async def lease(self, name: str) -> Lease | None:
        return rules.holding(self._leases.get(name), self._clock())

    @override
    async def close(self) -> None:
        """Nothing to let go of."""

    def _check(self, lease: Lease | None) -> None:
        if lease is not None:
            rules.check_fence(lease, self._leases.get(lease.name))

    def _read(self, doing: str, kind: type[R], name: str) -> R:
        body = self._bodies.get((kind.__name__, name))
        if body is None:
            rules.missing(doing, kind, name)
        return rules.decoded(kind, name, body)

    def _write(self, resource: R) -> R:
        self._version += 1
        key = (type(resource).__name__, resource.name)
        self._bodies[key] = rules.encoded(resource)
        self._versions[key] = resource.metadata.resource_version or ""
        self._wake()
        return resource

    def _drop(self, kind: str, name: str) -> None:
        self._bodies.pop((kind, name), None)
        self._versions.pop((kind, name), None)
        self._wake()

    def _wake(self) -> None:
        """Wake all who watch; who comes later waits for the next change."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _by_time(self) -> tuple[tuple[tuple[str, str, str, str], Event], ...]:
        return tuple(sorted(self._events.items(), key=lambda item: (item[1].last, item[0])))
