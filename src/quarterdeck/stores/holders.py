"""Whether the process that holds a lease still is: so that nobody waits for the lease of one that was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from urllib.parse import quote

from quarterdeck.stores.port import Lease


class Holders:
    """The holders of a store's leases. Each has a lock on a file of its own while it lives, which the kernel takes from
    it when its process ends in whatever way. A frozen process keeps it; a lease without such a file (the
    disk is full or knows no locks) is left to run out.
    """

    def __init__(self, folder: Path) -> None:
        """``folder`` is made when it is needed."""
        self._folder = folder
        self._held: dict[str, int] = {}

    def begins(self, lease: Lease, *, after: Lease | None) -> None:
        """Say that this process holds a lease, and that nobody asks for the one ``after`` which it comes any more:
        before anybody else can see that it is taken.
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
        """Whether the process that took a lease has ended, for sure."""
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
    """A descriptor of the file with a lock on it. Without the lock there is no file: it would say that we are gone."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        path.unlink()
        os.close(descriptor)
        raise
    return descriptor
