"""Changing one half of a resource while somebody else changes the other."""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.api.base import R
from quarterdeck.errors import Conflict
from quarterdeck.stores.port import Lease, Store

_ATTEMPTS = 20


async def amend(store: Store, kind: type[R], name: str, change: Callable[[R], R], *, lease: Lease | None = None) -> R:
    """Write ``change(what is stored)``, again from what is stored then if somebody wrote in between.

    Nothing is written when ``change`` changes nothing. Raises NotFound, Conflict for a lost lease, and all that
    ``change`` raises; ``change`` may be called several times.
    """
    attempt = 0
    while True:
        attempt += 1
        stored = await store.get(kind, name)
        wanted = change(stored)
        if wanted == stored:
            return stored
        try:
            return await store.update(wanted, lease=lease)
        except Conflict:
            newest = await store.get(kind, name)
            raced = newest.metadata.resource_version != stored.metadata.resource_version
            if not raced or attempt == _ATTEMPTS:
                raise
