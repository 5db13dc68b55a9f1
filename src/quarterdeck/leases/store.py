"""The port to whatever keeps locks."""

from __future__ import annotations

from typing import Protocol

from quarterdeck.leases.record import Record


class LockStore(Protocol):
    """Where records are kept, by the name of their lock. It compares and swaps: that is all that is asked of it.

    All calls raise Unavailable when nobody knows what came of them: what was written may be stored, or may be yet. What
    one process has seen stored, another one does not read without.
    """

    async def read(self, name: str) -> Record | None:
        """What is stored now, or was at some moment since the call was made; None if there is nothing."""
        ...

    async def create(self, name: str, record: Record) -> Record:
        """Store the first record of a lock; returns it with its version. Raises Conflict if there is one."""
        ...

    async def update(self, name: str, record: Record) -> Record:
        """Store a record in the place of the one of its ``version``; returns it with its new version, which no other
        record has ever had.

        Raises Conflict if another one is stored by now, or none.
        """
        ...

    async def changed(self, name: str, version: str) -> Record | None:
        """What is stored, as soon as that is not of this ``version`` ("": none); never anything older than that."""
        ...
