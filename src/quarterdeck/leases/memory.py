"""Locks that are gone with their process: for tests, and for programs that run alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from typing_extensions import override

from quarterdeck.errors import Conflict
from quarterdeck.leases.record import Record
from quarterdeck.leases.store import LockStore


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
