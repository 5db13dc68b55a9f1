"""The leases of a store in an SQLite file, and which of their holders live. Called inside the store's transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from quarterdeck.stores import rules
from quarterdeck.stores.holders import Holders
from quarterdeck.stores.port import Lease


class SqliteLeases:
    """The table of leases. What each call raises is said by ``Store``. Not for more than one thread."""

    def __init__(self, db: sqlite3.Connection, path: Path, clock: Callable[[], float]) -> None:
        """``path`` is the store's; ``clock`` is the wall clock, in seconds."""
        self._db = db
        self._clock = clock
        self._holders = Holders(Path(f"{path}-holders"))

    def close(self) -> None:
        """This process holds none any more."""
        self._holders.close()

    def trim(self, name: str) -> None:
        """Cut a lease that was stamped before the clock was set back."""
        before = self._newest(name)
        trimmed = rules.cut(before, self._clock())
        if trimmed is not None and trimmed != before:
            self._put(trimmed)

    def take(self, name: str, holder: str, ttl: float) -> Lease:
        """See ``Store.acquire``."""
        before = self._newest(name)
        if before is not None and self._holders.is_gone(before):
            before = replace(before, holder="")
        lease = rules.taken(before, name, holder, ttl=ttl, now=self._clock())
        self._holders.begins(lease, after=before)
        return self._put(lease)

    def renew(self, lease: Lease) -> Lease:
        """See ``Store``."""
        return self._put(rules.renewed(lease, self._newest(lease.name), self._clock()))

    def release(self, lease: Lease) -> None:
        """See ``Store``."""
        rest = rules.released(lease, self._newest(lease.name))
        if rest is not None:
            self._put(rest)
            self._holders.ends(lease.name)

    def held(self, name: str) -> Lease | None:
        """See ``Store.lease``."""
        found = rules.holding(self._newest(name), self._clock())
        return None if found is None or self._holders.is_gone(found) else found

    def check(self, lease: Lease | None) -> None:
        """Raises LeaseLost for a lease that a write carries and that is its holder's no more."""
        if lease is not None:
            rules.check_fence(lease, self._newest(lease.name))

    def _newest(self, name: str) -> Lease | None:
        query = "SELECT name, holder, token, ttl, expires FROM leases WHERE name = ?"
        row = self._db.execute(query, (name,)).fetchone()
        return None if row is None else Lease(name=row[0], holder=row[1], token=row[2], ttl=row[3], expires=row[4])

    def _put(self, lease: Lease) -> Lease:
        self._db.execute(
            "INSERT OR REPLACE INTO leases (name, holder, token, ttl, expires) VALUES (?, ?, ?, ?, ?)",
            (lease.name, lease.holder, lease.token, lease.ttl, lease.expires),
        )
        return lease
