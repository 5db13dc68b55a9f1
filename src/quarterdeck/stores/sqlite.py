"""The store in one SQLite file: the default, for one host."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeVar

from typing_extensions import override

from quarterdeck.api.base import R, Resource
from quarterdeck.errors import NotFound
from quarterdeck.stores import rules
from quarterdeck.stores.key_seal import Key, unlocked
from quarterdeck.stores.lease import new_uid
from quarterdeck.stores.port import EntryOutcome, Event, EventType, JournalEntry, Lease, Store, Versions
from quarterdeck.stores.sqlite_file import MIGRATIONS, Migration, in_words, newest, opened, require_current, transaction
from quarterdeck.stores.sqlite_leases import SqliteLeases

T = TypeVar("T")

_JOURNAL = "plane, time, kind, text, outcome, operation, site, replica, detail"
_NEWEST = "SELECT newest FROM resource_version"
_DELETE = "DELETE FROM resources WHERE kind = ? AND name = ?"
#: Seconds between two checks for changes by any process: the modification time of the write-ahead log. Its resolution
#: depends on the file system, so the change counter is also read now and then.
_WATCH = 0.2
_ANYWAY = 2.0
_EVENT = "plane, type, reason, message, first, last, count"


class SqliteStore(Store):
    """A ``Store`` in an SQLite file, which many processes of a host may use at once.

    One connection, used by one thread of its own: a disk that syncs slowly or a busy store does not delay the event
    loop. The clock is read inside the transaction, so that a process that is frozen between request and write cannot
    acquire or renew a lease by an old time.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.time,
        uid: Callable[[], str] = new_uid,
        busy_timeout: float = 5.0,
        key: Key | None = None,
        migrations: Mapping[int, Migration] = MIGRATIONS,
    ) -> None:
        """Opens the file, and creates it if it does not exist. ``clock`` is the wall clock, all times are in seconds.
        ``key`` seals the keys of planes (see ``key_seal.unlocked``, and its errors). ``migrations`` bring a file of an
        older format to the newest one, all or nothing.

        Raises Corrupt, without any change, for a damaged file and one of an unknown format; Unavailable.
        """
        self._path = path
        self._log = Path(f"{path}-wal")
        self._clock = clock
        self._uid = uid
        self._format = newest(migrations)
        self._db = opened(path, busy_timeout=busy_timeout, migrations=migrations)
        try:
            with in_words("opening the store", path):
                self._seal = unlocked(self._db, path, key)
        except BaseException:
            self._db.close()
            raise
        self._leases = SqliteLeases(self._db, path, clock)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @override
    async def close(self) -> None:
        """Waits for calls in progress; no call is allowed afterwards."""
        self._thread.shutdown(wait=True)
        self._leases.close()
        self._db.close()

    @override
    async def get(self, kind: type[R], name: str) -> R:
        return await self._run("reading the store", lambda: self._resource("reading", kind, name))

    @override
    async def list(self, kind: type[R]) -> tuple[R, ...]:
        rules.check_listable(kind)
        query = "SELECT name, body FROM resources WHERE kind = ? ORDER BY name"

        def work() -> tuple[R, ...]:
            rows = self._db.execute(query, (kind.__name__,)).fetchall()
            plain = ((name, self._seal.open(self._db, kind.__name__, name, body)) for name, body in rows)
            return tuple(rules.decoded(kind, name, body) for name, body in plain)

        return await self._run("reading the store", work)

    @override
    async def watch(self, seen: Versions, *kinds: type[Resource]) -> Versions:
        for kind in kinds:
            rules.check_listable(kind)
        called = [kind.__name__ for kind in kinds]
        query = (
            "SELECT kind, name, json_extract(body, '$.metadata.resourceVersion') FROM resources"  # noqa: S608 - marks
            f" WHERE kind IN ({', '.join('?' * len(called))})"
        )

        def number() -> int:
            newest: int = self._db.execute(_NEWEST).fetchone()[0]
            return newest

        def work() -> tuple[int, Versions]:
            at = number()  # first: changes made in between are found by the next check
            return at, {(kind, name): version for kind, name, version in self._db.execute(query, called)}

        while True:
            at, now = await self._run("reading the store", work)
            if now != seen:
                return now
            written = self._written()  # first: later changes are found by the next check
            while await self._run("reading the store", number) == at:
                written = await self._until_written(written)

    async def _until_written(self, before: object) -> object:
        """Return when the store may have been written to, with the time of that."""
        clock = asyncio.get_running_loop().time
        end = clock() + _ANYWAY
        while (now := self._written()) == before and clock() < end:  # noqa: ASYNC110 - other processes write
            await asyncio.sleep(_WATCH)
        return now

    def _written(self) -> object:
        """A value that nearly always changes with a write to the store's log."""
        try:
            found = self._log.stat()
        except OSError:
            return None  # nothing was written yet
        return found.st_ino, found.st_size, found.st_mtime_ns

    @override
    async def create(self, resource: R, *, lease: Lease | None = None, uid: str = "") -> R:
        def work() -> R:
            self._leases.check(lease)
            key = (type(resource).__name__, resource.name)
            if self._db.execute("SELECT 1 FROM resources WHERE kind = ? AND name = ?", key).fetchone():
                rules.existing(resource)
            new = rules.created(resource, version=self._next(), now=self._clock(), uid=uid or self._uid())
            self._db.execute("INSERT INTO resources (kind, name, body) VALUES (?, ?, ?)", (*key, self._encoded(new)))
            return new

        return await self._write(work)

    @override
    async def update(self, resource: R, *, lease: Lease | None = None) -> R:
        def work() -> R:
            self._leases.check(lease)
            stored = self._resource("writing", type(resource), resource.name)
            new = rules.updated(stored, resource, version=self._next())
            key = (type(resource).__name__, resource.name)
            if rules.released_by(new):
                self._db.execute(_DELETE, key)  # its own version informs the watchers
            else:
                self._put_body(new)
            return new

        return await self._write(work)

    @override
    async def delete(
        self, kind: type[Resource], name: str, *, version: str | None = None, lease: Lease | None = None
    ) -> None:
        def work() -> None:
            self._leases.check(lease)
            rules.check_deletable(self._resource("deleting", kind, name), version)
            self._delete(kind, name)

        await self._write(work)

    @override
    async def delete_together(
        self, *gone: tuple[type[Resource], str], finalizer: str = "", lease: Lease | None = None
    ) -> None:
        def work() -> None:
            self._leases.check(lease)
            for kind, name in gone:
                with contextlib.suppress(NotFound):
                    self._delete(kind, name, finalizer)

        await self._write(work)

    @override
    async def append(self, entry: JournalEntry) -> JournalEntry:
        values = (
            entry.plane,
            entry.time,
            entry.kind,
            entry.text,
            entry.outcome.value,
            entry.operation,
            entry.site,
            entry.replica,
            json.dumps(dict(entry.detail)),
        )
        query = f"INSERT INTO journal ({_JOURNAL}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - a constant

        def work() -> JournalEntry:
            number = self._db.execute(query, values).lastrowid or 0
            if number % rules.JOURNAL_LOOK == 0:
                self._prune(entry.plane)
            return replace(entry, id=number)

        return await self._write(work)

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
        query = (
            f"SELECT id, {_JOURNAL} FROM journal WHERE plane = ? AND id > ?"  # noqa: S608 - a constant
            " AND (? IS NULL OR operation = ?) AND (? IS NULL OR kind = ?) ORDER BY id DESC LIMIT ?"
        )
        values = (plane, after, operation, operation, kind, kind, -1 if limit is None else limit)

        def work() -> tuple[JournalEntry, ...]:
            return tuple(_entry(row) for row in reversed(self._db.execute(query, values).fetchall()))

        return await self._run("reading the journal", work)

    @override
    async def record(self, event: Event) -> None:
        key = (event.plane, event.type.value, event.reason, event.message)
        find = f"SELECT {_EVENT} FROM events WHERE plane = ? AND type = ? AND reason = ? AND message = ?"  # noqa: S608
        prune = (
            "DELETE FROM events WHERE plane = ? AND rowid NOT IN (SELECT rowid FROM events WHERE plane = ?"
            " ORDER BY last DESC, type DESC, reason DESC, message DESC LIMIT ?)"
        )

        def work() -> None:
            row = self._db.execute(find, key).fetchone()
            new = rules.merged(event, _event(row) if row else None)
            self._db.execute(
                f"INSERT OR REPLACE INTO events ({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
                (*key, new.first, new.last, new.count),
            )
            self._db.execute(prune, (event.plane, event.plane, rules.EVENTS_KEPT))

        await self._write(work)

    @override
    async def events(self, plane: str | None = None) -> tuple[Event, ...]:
        query = (
            f"SELECT {_EVENT} FROM events WHERE ? IS NULL OR plane = ?"  # noqa: S608 - a constant
            " ORDER BY last, plane, type, reason, message"
        )

        def work() -> tuple[Event, ...]:
            return tuple(_event(row) for row in self._db.execute(query, (plane, plane)).fetchall())

        return await self._run("reading events", work)

    @override
    async def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        await self._write(
            lambda: self._leases.trim(name)
        )  # in its own transaction: it must stay when the lease cannot be acquired yet
        return await self._write(lambda: self._leases.take(name, holder, ttl))

    @override
    async def renew(self, lease: Lease) -> Lease:
        return await self._write(lambda: self._leases.renew(lease))

    @override
    async def release(self, lease: Lease) -> None:
        await self._write(lambda: self._leases.release(lease))

    @override
    async def lease(self, name: str) -> Lease | None:
        return await self._run("reading a lease", lambda: self._leases.held(name))

    async def _run(self, doing: str, work: Callable[[], T]) -> T:
        def call() -> T:
            with in_words(doing, self._path):
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def _write(self, work: Callable[[], T]) -> T:
        def whole() -> T:
            with transaction(self._db):
                require_current(self._db, self._path, self._format)
                return work()

        return await self._run("writing to the store", whole)

    def _resource(self, doing: str, kind: type[R], name: str) -> R:
        query = "SELECT body FROM resources WHERE kind = ? AND name = ?"
        row = self._db.execute(query, (kind.__name__, name)).fetchone()
        if row is None:
            rules.missing(doing, kind, name)
        return rules.decoded(kind, name, self._seal.open(self._db, kind.__name__, name, row[0]))

    def _delete(self, kind: type[Resource], name: str, finalizer: str = "") -> None:
        if rules.may_have_finalizers(kind):
            stored = self._resource("deleting", kind, name)
            left = rules.marked(stored, finalizer=finalizer, version=self._next, now=self._clock())
            if left is not None:
                self._put_body(left)
                return
        self._drop(kind.__name__, name)

    def _drop(self, kind: str, name: str) -> None:
        """Delete a resource, which uses up a version: watchers wait for the next one."""
        if self._db.execute(_DELETE, (kind, name)).rowcount:
            self._next()

    def _put_body(self, resource: Resource) -> None:
        query = "UPDATE resources SET body = ? WHERE kind = ? AND name = ?"
        self._db.execute(query, (self._encoded(resource), type(resource).__name__, resource.name))

    def _encoded(self, resource: Resource) -> str:
        return self._seal.close(self._db, type(resource).__name__, resource.name, rules.encoded(resource))

    def _prune(self, plane: str) -> None:
        """Delete a few of the oldest rows, if any may be deleted."""
        (rows,) = self._db.execute("SELECT count(*) FROM journal WHERE plane = ?", (plane,)).fetchone()
        oldest = "SELECT operation, time FROM journal WHERE plane = ? ORDER BY id LIMIT 1"
        operation, until = self._db.execute(oldest, (plane,)).fetchone()
        old = until < self._clock() - rules.JOURNAL_AGE
        if operation and old:  # otherwise it does not matter, and finding it takes a while
            newest = "SELECT time FROM journal WHERE plane = ? AND operation = ? ORDER BY id DESC LIMIT 1"
            (until,) = self._db.execute(newest, (plane, operation)).fetchone()
        last = "SELECT operation FROM journal WHERE plane = ? AND operation <> '' ORDER BY id DESC LIMIT 1"
        found = self._db.execute(last, (plane,)).fetchone()
        if rules.may_go(rules.JournalEnd(rows, operation, until, found[0] if found else ""), self._clock()):
            self._drop("Operation", operation)
            some = "SELECT id FROM journal WHERE plane = ? AND operation = ? ORDER BY id LIMIT ?"
            self._db.execute(f"DELETE FROM journal WHERE id IN ({some})", (plane, operation, rules.JOURNAL_STEP))  # noqa: S608 - a constant

    def _next(self) -> int:
        self._db.execute("UPDATE resource_version SET newest = newest + 1")
        newest: int = self._db.execute(_NEWEST).fetchone()[0]
        return newest


def _entry(row: sqlite3.Row) -> JournalEntry:
    number, plane, moment, kind, text, outcome, operation, site, replica, detail = row
    return JournalEntry(
        id=number,
        plane=plane,
        time=moment,
        kind=kind,
        text=text,
        outcome=EntryOutcome(outcome),
        operation=operation,
        site=site,
        replica=replica,
        detail=json.loads(detail),
    )


def _event(row: sqlite3.Row) -> Event:
    plane, kind, reason, message, first, last, count = row
    return Event(plane=plane, type=EventType(kind), reason=reason, message=message, first=first, last=last, count=count)
