"""The port to the store of locks, and locks in memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Protocol

from typing_extensions import override

from quarterdeck.errors import Conflict
from quarterdeck.leases.record import Record


class LockStore(Protocol):
    """The store of records, by the name of their lock. It compares and swaps: nothing else is needed.

    All calls raise Unavailable when their outcome is unknown: a write may be stored, or may be stored later. What one
    process has read, every other one reads too.
    """

    async def read(self, name: str) -> Record | None:
        """The record that is stored now, or was at some moment since the call was made; None if there is none."""
        ...

    async def create(self, name: str, record: Record) -> Record:
        """Store the first record of a lock; returns it with its version. Raises Conflict if it exists."""
        ...

    async def update(self, name: str, record: Record) -> Record:
        """Replace the record of its ``version``; returns it with its new version, which no other record has ever had.

        Raises Conflict if it was changed or deleted.
        """
        ...

    async def changed(self, name: str, version: str) -> Record | None:
        """The stored record, as soon as it is not of this ``version`` ("": none); never an older one."""
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
            raise Conflict(f"creating lock {name!r}", "it exists already")
        return self._put(name, record)

    @override
    async def update(self, name: str, record: Record) -> Record:
        stored = self._records.get(name)
        if stored is None or stored.version != record.version:
            raise Conflict(f"writing lock {name!r}", "another process wrote it first" if stored else "it was deleted")
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
