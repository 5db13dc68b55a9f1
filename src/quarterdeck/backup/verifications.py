"""What backups were verified, and how: a small object for each, beside the chain.

They are no links of the chain: a verification by a person must not fence the process that records the plane.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from pydantic import AwareDatetime, ValidationError

from quarterdeck.api.base import Model
from quarterdeck.backup.objects.port import ObjectHeld, ObjectStore, StoredObject
from quarterdeck.concurrency import together
from quarterdeck.errors import NotFound

_FOLDER = "verifications"
#: How many are kept.
_KEPT = 50
#: How long after the first full backup of an epoch the first verification is due.
_FIRST_AFTER = timedelta(minutes=10)


class VerifiedMoment(Model):
    """A moment that was restored in a scratch etcd, which had the revision and the hashes that it must have."""

    cluster: str
    epoch: int
    revision: int
    at: AwareDatetime
    keys: int
    database_bytes: int
    #: The number of hashes that members of the cluster had, and the restored database has too.
    hashes: int
    #: Whether one of them is that of a member which served at the time, at this very revision.
    live: bool
    duration_seconds: float


class VerificationStore:
    """The verifications of one plane in its backup store."""

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        """``prefix``: the folder of the plane in the store."""
        self._store = store
        self._prefix = f"{prefix}/{_FOLDER}"

    async def add(self, verification: VerifiedMoment) -> None:
        """Store one. Raises what the store raises."""
        number = f"{verification.epoch:06d}-{verification.revision:020d}-{secrets.token_hex(4)}"
        name = f"{self._prefix}/{verification.cluster}-{number}.json"
        await self._store.create(name, verification.model_dump_json().encode())

    async def list(self) -> tuple[VerifiedMoment, ...]:
        """All of them, the newest last. One that cannot be read counts as none."""
        found = await together(*(self._read(each.name) for each in await self._store.names(self._prefix)))
        return tuple(sorted((each for each in found if each is not None), key=lambda each: each.at))

    async def prune(self) -> None:
        """Delete all but the newest ones, and those that the store holds. Raises what the store raises."""
        stored = sorted(await self._store.names(self._prefix), key=_age)
        if old := [each.name for each in stored[:-_KEPT]]:
            with suppress(ObjectHeld):  # the newer ones are held for longer
                await self._store.delete(old)

    async def _read(self, name: str) -> VerifiedMoment | None:
        try:
            return VerifiedMoment.model_validate_json(await self._store.read(name))
        except (NotFound, ValidationError):
            return None


def due_at(verifications: Sequence[VerifiedMoment], backed_up_since: datetime, every: timedelta) -> datetime:
    """When the next verification of an epoch is due, after those that there were. The first one follows soon after the
    first full backup.
    """
    if not verifications:
        return backed_up_since + min(_FIRST_AFTER, every)
    return max(each.at for each in verifications) + every


def _age(stored: StoredObject) -> tuple[datetime, str]:
    return stored.stored_at, stored.name
