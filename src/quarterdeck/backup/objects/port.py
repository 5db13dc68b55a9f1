"""The store of objects that a backup consists of."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from quarterdeck.errors import Conflict, Unavailable


class ObjectExists(Conflict):
    """An object of that name exists: another writer was first."""

    kind = "object-exists"


class ObjectHeld(Unavailable):
    """The store refuses to delete an object now: a lock or a retention policy holds it, or the credentials may not."""

    kind = "object-held"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as a listing reports it. Bytes; the time by the clock of the store."""

    name: str
    size: int
    stored_at: datetime


class ObjectStore(Protocol):
    """Immutable objects by name. A name is made of parts with slashes between them.

    All methods raise Unavailable where the store does not answer or refuses the credentials, and InvalidInput where
    there is no such bucket.
    """

    @property
    def address(self) -> str:
        """Where it is, for people, without credentials."""
        ...

    async def create(self, name: str, content: bytes) -> None:
        """Store an object, whole or not at all, on the disk when this returns. Raises ObjectExists where there is one,
        and then leaves it as it is. Of several writers at once one succeeds.
        """
        ...

    async def write(self, name: str, content: AsyncIterable[bytes]) -> int:
        """Store an object of any size without having all of it in memory; its size in bytes. It is there once this
        returns, and not before. The name must be new: it is not checked.
        """
        ...

    async def read(self, name: str) -> bytes:
        """The content of an object. Raises NotFound."""
        ...

    def stream(self, name: str) -> AsyncGenerator[bytes, None]:
        """The content of an object in parts. Raises NotFound, and Unavailable also in the middle."""
        ...

    async def exists(self, name: str) -> bool:
        """Whether there is an object of this name, by asking for it: listings may be stale."""
        ...

    async def names(self, prefix: str) -> Sequence[StoredObject]:
        """The objects below a prefix, in the order of their names. New and deleted ones may be missing or listed."""
        ...

    async def delete(self, names: Sequence[str]) -> None:
        """Delete objects, one after the other. Fine where one is gone already. Raises ObjectHeld at the first one that
        the store refuses to delete.
        """
        ...
