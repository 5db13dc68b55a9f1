"""A backup store in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from datetime import UTC, datetime, timedelta

from typing_extensions import override

from quarterdeck.backup.objects.port import ObjectExists, ObjectHeld, ObjectStore, StoredObject
from quarterdeck.errors import NotFound


class MemoryObjects(ObjectStore):
    """Objects in memory. ``now`` is the clock of the store; ``held_for``: how long it keeps each object at least, as a
    bucket with a retention policy does.
    """

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.held_for = timedelta(0)
        self.objects: dict[str, tuple[bytes, datetime]] = {}

    @property
    @override
    def address(self) -> str:
        return "memory://"

    @override
    async def create(self, name: str, content: bytes) -> None:
        if name in self.objects:
            raise ObjectExists(f"storing {name} at {self.address}", "it exists already")
        self.objects[name] = (content, self.now)

    @override
    async def write(self, name: str, content: AsyncIterable[bytes]) -> int:
        whole = b"".join([part async for part in content])
        self.objects[name] = (whole, self.now)
        return len(whole)

    @override
    async def read(self, name: str) -> bytes:
        if name not in self.objects:
            raise NotFound(f"reading {name} at {self.address}", "there is no such object")
        return self.objects[name][0]

    @override
    async def stream(self, name: str) -> AsyncGenerator[bytes, None]:
        whole = await self.read(name)
        for at in range(0, len(whole), 1 << 16):
            yield whole[at : at + (1 << 16)]

    @override
    async def exists(self, name: str) -> bool:
        return name in self.objects

    @override
    async def names(self, prefix: str) -> Sequence[StoredObject]:
        below = f"{prefix.rstrip('/')}/" if prefix else ""
        return [
            StoredObject(name, len(content), at)
            for name, (content, at) in sorted(self.objects.items())
            if name.startswith(below)
        ]

    @override
    async def delete(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self.objects and self.now < self.objects[name][1] + self.held_for:
                raise ObjectHeld(f"deleting {name} at {self.address}", "the store refuses: it is retained")
            self.objects.pop(name, None)
