"""The port to whatever keeps locks, and locks that are gone with their process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Protocol

from typing_extensions import override

from quarterdeck.errors import Conflict
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


class MemoryLocks(LockStore):
    """A ``LockStore`` in memory."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._version = 0
        self._news = asyncio.Event()

    @override
    async def read(self, name: str) -> Record | None:
        return self._records.get(name)

    @override
    async def create(self, name: str, record: Record) -> Record:
        if name in self._records:
            raise Conflict(f"creating lock {name!r}", "it is there already")
        return self._put(name, record)

    @override
    async def update(self, name: str, record: Record) -> Record:
        stored = self._records.get(name)
        if stored is None or stored.version != record.version:
            raise Conflict(f"writing lock {name!r}", "somebody else wrote it first" if stored else "it was deleted")
        return self._put(name, record)

    @override
    async def changed(self, name: str, version: str) -> Record | None:
        while True:
            news, stored = self._news, self._records.get(name)
            if (stored.version if stored is not None else "") != version:
                return stored
            await news.wait()

    async def delete(self, name: str) -> None:
        """What a person may do."""
        self._records.pop(name, None)
        self._tell()

    def _put(self, name: str, record: Record) -> Record:
        self._version += 1
        self._records[name] = replace(record, version=str(self._version))
        self._tell()
        return self._records[name]

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
