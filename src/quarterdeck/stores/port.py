"""The store port: resources, journal, events and leases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from pydantic import JsonValue

from quarterdeck.api.base import R, Resource
from quarterdeck.errors import Conflict


class EntryOutcome(StrEnum):
    """The outcome of a journal entry."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    NOTED = "noted"  # no outcome was expected


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """A past event, for people; no decision depends on it.

    ``time`` is in seconds on the wall clock, ``kind`` the step's name, ``operation`` the Operation's. ``detail`` has
    further facts for reports. The store assigns ``id``: it grows with each entry.
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
    """Kubernetes' two types."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A statement about a plane, stored once however often it is repeated: ``count`` times from ``first`` to
    ``last``.
    """

    plane: str
    type: EventType
    reason: str
    message: str
    first: float
    last: float
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to act under ``name``, as it was when it was acquired or renewed.

    ``token`` grows with each new holder: a write with an older one is refused. ``holder`` describes the process.
    ``expires`` is on the store's wall clock, in seconds.
    """

    name: str
    holder: str
    token: int
    ttl: float
    expires: float


#: The version of each resource, by kind and name.
Versions = Mapping[tuple[str, str], str]


class Store(Protocol):
    """quarterdeck's recorded state. All calls are atomic and durable when they return.

    All raise Unavailable (busy, no space, read-only) and Corrupt. Writes that carry a lease raise LeaseLost when the
    lease was released or has a newer holder; that is checked in the transaction that writes.
    """

    async def get(self, kind: type[R], name: str) -> R:
        """Raises NotFound."""
        ...

    async def list(self, kind: type[R]) -> tuple[R, ...]:
        """All of a kind by name. Raises InvalidInput for secrets: these are only read by name."""
        ...

    async def watch(self, seen: Versions, *kinds: type[Resource]) -> Versions:
        """The versions of all resources of these kinds, as soon as they are not ``seen``, whichever process changed
        them. Several changes in a moment are reported once.
        """
        ...

    async def create(self, resource: R, *, lease: Lease | None = None, uid: str = "") -> R:
        """Store a new resource and give it uid, creation time, generation 1 and resource version. ``uid``: the one that
        it had in a home that was lost.

        Raises Conflict if it exists.
        """
        ...

    async def update(self, resource: R, *, lease: Lease | None = None) -> R:
        """Replace the resource if it still has the given ``metadata.resource_version``; gives it the next one.

        The generation grows when the spec differs. A resource that is being deleted is removed with its last finalizer.
        Raises NotFound; Conflict if another process has changed it since, or if no version is given; InvalidInput for a
        new finalizer of one that is being deleted.
        """
        ...

    async def delete(
        self, kind: type[Resource], name: str, *, version: str | None = None, lease: Lease | None = None
    ) -> None:
        """A resource without finalizers is removed at once. One with finalizers is only marked (``deletion_timestamp``,
        and the next generation): it is removed with the last of them.

        Raises NotFound; Conflict if ``version`` is given and not the stored one.
        """
        ...

    async def delete_together(
        self, *gone: tuple[type[Resource], str], finalizer: str = "", lease: Lease | None = None
    ) -> None:
        """Delete these, all at once or none of them; one that does not exist is deleted already. ``finalizer``: the one
        whose work is done by that. A resource with other finalizers is only marked.
        """
        ...

    async def append(self, entry: JournalEntry) -> JournalEntry:
        """Add to the plane's journal; returns the entry with its id.

        Now and then a few of the oldest rows are deleted: see ``quarterdeck.stores.rules.may_go``. With the first row
        of an operation its resource is deleted.
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
        """The plane's events, or all, the most recent one last."""
        ...

    async def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """Acquire a free lease, for ``ttl`` seconds, with a new token.

        Raises Conflict that names the holder, unless its process is known to have ended. A lease that ends later than
        its ttl from now was stamped before the clock was set back: it is shortened to its ttl from now, so that it ends
        at all.
        """
        ...

    async def renew(self, lease: Lease) -> Lease:
        """The lease for another ttl from now. Raises LeaseLost when it was released or has a newer holder.

        An expired lease without a newer holder is renewed.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Release the lease; nothing happens if it has a newer holder."""
        ...

    async def lease(self, name: str) -> Lease | None:
        """The current lease, if it has a holder."""
        ...

    async def close(self) -> None:
        """Close files and threads."""
        ...


# Changing one half of a resource while another process changes the other.

_ATTEMPTS = 20


async def amend(store: Store, kind: type[R], name: str, change: Callable[[R], R], *, lease: Lease | None = None) -> R:
    """Write ``change(stored)``, repeated from the new stored state if another process wrote in between.

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
