"""The leases of a store in an SQLite file, and which of their holders are alive. Called inside the store's
transactions.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from quarterdeck.stores import rules
from quarterdeck.stores.port import Lease


class SqliteLeases:
    """The table of leases. See ``Store`` for the errors of each call. For a single thread."""

    def __init__(self, db: sqlite3.Connection, path: Path, clock: Callable[[], float]) -> None:
        """``path`` is the store's; ``clock`` is the wall clock, in seconds."""
        self._db = db
        self._clock = clock
        self._holders = Holders(Path(f"{path}-holders"))

    def close(self) -> None:
        """This process holds none any more."""
        self._holders.close()

    def trim(self, name: str) -> None:
        """Shorten a lease that was stamped before the clock was set back."""
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
        """Raises LeaseLost for a lease of a write that its holder no longer has."""
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


# Whether the process that holds a lease is still alive: so that no process waits for the lease of a killed one.


class Holders:
    """The holders of a store's leases. Each holds a lock on its own file while it is alive, which the kernel releases
    when its process ends in whatever way. A frozen process keeps it; a lease without such a file (the disk is full or
    supports no locks) simply expires.
    """

    def __init__(self, folder: Path) -> None:
        """``folder`` is created when it is needed."""
        self._folder = folder
        self._held: dict[str, int] = {}

    def begins(self, lease: Lease, *, after: Lease | None) -> None:
        """Mark this process as the holder of a lease, and the earlier lease ``after`` as obsolete: before any other
        process can see that it is taken.
        """
        self.ends(lease.name)
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            if after is not None:
                self._file(after).unlink(missing_ok=True)
            self._held[lease.name] = _locked(self._file(lease))

    def ends(self, name: str) -> None:
        """It does not hold that lease any more."""
        descriptor = self._held.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def close(self) -> None:
        """It holds none any more."""
        for name in [*self._held]:
            self.ends(name)

    def is_gone(self, lease: Lease) -> bool:
        """Whether the process that acquired a lease has certainly ended."""
        try:
            descriptor = os.open(self._file(lease), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(descriptor)

    def _file(self, lease: Lease) -> Path:
        return self._folder / f"{quote(lease.name, safe='')}.{lease.token}"


def _locked(path: Path) -> int:
    """A descriptor of the file with a lock on it. Without the lock there is no file: it would mean that this process
    has ended.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        path.unlink()
        os.close(descriptor)
        raise
    return descriptor
