"""Data objects of a backup: where they are put, and what their reference says."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from quarterdeck.backup.chain import ObjectReference
from quarterdeck.backup.objects.port import ObjectExists, ObjectStore
from quarterdeck.backup.sealing import Recipients, seal
from quarterdeck.concurrency import ahead

#: The folder of data objects, below that of their plane.
DATA = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deposit:
    """Where the data of a plane's backups is put, and its recipients. ``new_id``: a name that is never used
    again, and that nobody else makes.
    """

    store: ObjectStore
    prefix: str
    recipients: Recipients
    new_id: Callable[[], str] = lambda: secrets.token_hex(16)

    async def put(self, content: AsyncIterable[bytes]) -> ObjectReference:
        """Store content of any size, sealed, part by part. Raises as the store does."""
        name, digest = self.new_name(), hashlib.sha256()
        async with aclosing(ahead(seal(content, self.recipients))) as sealed:
            size = await self.store.write(name, _hashed(sealed, digest.update))
        return ObjectReference(name=name, sha256=digest.hexdigest(), size_bytes=size)

    async def put_sealed(self, name: str, content: bytes) -> None:
        """Store a sealed object under a new name. May be called again where the answer was lost."""
        try:
            await self.store.create(name, content)
        except ObjectExists:
            return  # nobody else makes this name: it was stored by a call before

    def new_name(self) -> str:
        """A name for an object."""
        return f"{self.prefix}/{DATA}/{self.new_id()}"


async def _hashed(parts: AsyncIterable[bytes], update: Callable[[bytes], None]) -> AsyncGenerator[bytes, None]:
    async for part in parts:
        update(part)
        yield part
