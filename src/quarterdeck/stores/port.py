"""The store port: resources, journal, events and leases, wherever they are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from pydantic import JsonValue

from quarterdeck.api.base import R, Resource
from quarterdeck.errors import Conflict


class EntryOutcome(StrEnum):
    """What came of what a journal entry tells."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    NOTED = "noted"  # nothing was to come of it


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """What happened, for people; correctness never reads it.

    ``time`` is in seconds on the wall clock, ``kind`` the step's name, ``operation`` the Operation's. ``detail``
    is what reports show besides. The store gives ``id``: it grows with each entry.
    """

    plane: str
    time: float
    kind: str
    text: str
    outcome: EntryOutcome = EntryOutcome.NOTED
    operation: str = ""
    site: str = ""
    replica: str = ""
    detail: Mapping[str, JsonValue] = field(default_factory=dict)
    id: int = 0


class EventType(StrEnum):
    """Kubernetes' two."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What is so of a plane, said once however often it is seen: ``count`` times from ``first`` to ``last``."""

    plane: str
    type: EventType
    reason: str
    message: str
    first: float
    last: float
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to act under ``name``, as it was when it was taken or renewed.

    ``token`` grows with each new holder: a write that carries an older one is refused. ``holder`` says in words
    who it is. ``expires`` is on the store's wall clock, in seconds.
    """

    name: str
    holder: str
    token: int
    ttl: float
    expires: float


#: The version of each resource, by kind and name.
Versions = Mapping[tuple[str, str], str]


class Store(Protocol):
    """Where quarterdeck remembers. All calls are atomic and durable when they return.

    All raise Unavailable (busy, no space, read-only) and Corrupt. Writes that carry a lease raise LeaseLost when
    the lease was released or has a newer holder; that is looked up in the transaction that writes.
    """

    async def get(self, kind: type[R], name: str) -> R:
        """Raises NotFound."""
        ...

    async def list(self, kind: type[R]) -> tuple[R, ...]:
        """All of a kind by name. Raises InvalidInput for secrets: those are only read by name."""
        ...

    async def watch(self, seen: Versions, *kinds: type[Resource]) -> Versions:
        """The versions of all resources of these kinds, as soon as they are not ``seen``, whichever process changed
        them. What changes several times in a moment is told once.
        """
        ...

    async def create(self, resource: R, *, lease: Lease | None = None) -> R:
        """Store a new resource and give it uid, creation time, generation 1 and resource version.

        Raises Conflict if there is one of its kind and name.
        """
        ...

    async def update(self, resource: R, *, lease: Lease | None = None) -> R:
        """Replace the resource if it still has the given ``metadata.resource_version``; gives it the next one.

        The generation grows when the spec differs. A resource that is to be deleted goes when its last finalizer is
        taken away. Raises NotFound; Conflict if somebody wrote it since, or if no version is given; InvalidInput for a
        new finalizer of one that is to be deleted.
        """
        ...

    async def delete(
        self, kind: type[Resource], name: str, *, version: str | None = None, lease: Lease | None = None
    ) -> None:
        """A resource without finalizers goes at once. One that has some is only marked (``deletion_timestamp``, and a
        generation more): it goes with the last of them.

        Raises NotFound; Conflict if ``version`` is given and not the stored one.
        """
        ...

    async def delete_together(
        self, *gone: tuple[type[Resource], str], finalizer: str = "", lease: Lease | None = None
    ) -> None:
        """Delete these, all at once or none of them; one that is not there is gone already. ``finalizer``: the one
        whose work is done with that. What has others is only marked.
        """
        ...

    async def append(self, entry: JournalEntry) -> JournalEntry:
        """Add to the plane's journal; returns the entry with its id.

        Now and then a few of the oldest rows go: see ``quarterdeck.stores.rules.may_go``. With the first row of an
        operation its resource goes.
        """
        ...

    async def journal(
        self,
        plane: str,
        *,
        operation: str | None = None,
        kind: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> tuple[JournalEntry, ...]:
        """The plane's entries with ids over ``after`` by id, of one operation or kind if that is given; with a
        ``limit``, the last ones of them.
        """
        ...

    async def record(self, event: Event) -> None:
        """Add an event, or count it onto the one with the same plane, type, reason and message.

        Only the newest ``quarterdeck.stores.rules.EVENTS_KEPT`` of a plane are kept.
        """
        ...

    async def events(self, plane: str | None = None) -> tuple[Event, ...]:
        """The plane's events, or all, the one seen last at the end."""
        ...

    async def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """Take a lease that nobody holds, for ``ttl`` seconds, with a new token.

        Raises Conflict that names the holder, unless its process is known to have ended. A lease that ends later than
        its ttl from now was stamped before the clock was set back: it is cut to its ttl from now, so that it ends at
        all.
        """
        ...

    async def renew(self, lease: Lease) -> Lease:
        """The lease for another ttl from now. Raises LeaseLost when it was released or has a newer holder.

        One that ran out but that nobody took since is renewed.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give the lease back; nothing happens if it has a newer holder."""
        ...

    async def lease(self, name: str) -> Lease | None:
        """Who holds the lease now, if anybody does."""
        ...

    async def close(self) -> None:
        """Let go of files and threads."""
        ...


# Changing one half of a resource while somebody else changes the other.

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
