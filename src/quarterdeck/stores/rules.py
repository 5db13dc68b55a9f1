"""The rules of all stores, as pure functions: the stored result of a write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NoReturn

from pydantic import ValidationError
from pydantic.config import ExtraValues

from quarterdeck.api.base import R, Resource, instant
from quarterdeck.api.belongings import REVEAL, AddonManifests, PlaneSecrets
from quarterdeck.api.errors import problems_in
from quarterdeck.api.revision import ReplicaRevision
from quarterdeck.errors import Conflict, Corrupt, InvalidInput, LeaseLost, NotFound
from quarterdeck.stores.port import Event, Lease

#: Events describe the present, not history: the number kept per plane.
EVENTS_KEPT = 200
#: How long the journal of completed operations is kept (seconds), the most rows per plane, the number of new rows
#: between two prunings, and the most rows deleted at once, so that no writer has to wait long.
JOURNAL_AGE = 90 * 86_400.0
JOURNAL_ROWS = 100_000
JOURNAL_LOOK = 100
JOURNAL_STEP = 500
#: Number of parsed resources that are cached while unchanged: a plane is read in every observation.
_PARSED_KEPT = 64


def encoded(resource: Resource) -> str:
    """The resource in stored form, with its secrets."""
    return resource.model_dump_json(exclude_none=True, context=REVEAL)


def decoded(kind: type[R], name: str, body: str) -> R:
    """The resource from its stored ``body``. Raises Corrupt."""
    try:
        found = _parsed_body(kind, body) if _holds_secrets(kind) else _parsed(kind, body)
    except ValidationError as error:
        raise Corrupt(
            f"reading {kind.__name__} {name!r} from the store",
            "; ".join(problems_in(error, kind)),
            "use the quarterdeck version that wrote it",
        ) from None  # the original contains the stored text, which may be a secret
    assert isinstance(found, kind)
    return found


def _holds_secrets(kind: type[Resource]) -> bool:
    return issubclass(kind, _SECRET)


def _parsed_body(kind: type[Resource], body: str) -> Resource:
    # Units are rendered from all of a revision: its unknown fields cannot be ignored.
    extra: ExtraValues = "forbid" if issubclass(kind, ReplicaRevision) else "allow"
    return kind.model_validate_json(body, by_alias=True, by_name=False, extra=extra)


#: Kinds with secrets are never cached.
_SECRET = (PlaneSecrets, AddonManifests)
#: Kinds that are named by a hash of their content.
_UNCHANGING = (ReplicaRevision, AddonManifests)

#: Resources that were read are immutable. Secrets are kept only by the caller.
_parsed = lru_cache(maxsize=_PARSED_KEPT)(_parsed_body)


def check_listable(kind: type[Resource]) -> None:
    """Raises InvalidInput for kinds that are never listed."""
    if issubclass(kind, PlaneSecrets):
        raise InvalidInput(f"listing {kind.__name__}", "secrets are only read one by one", "read one by its name")


def created(resource: R, *, version: int, now: float, uid: str) -> R:
    """The resource as it is first stored."""
    metadata = resource.metadata.model_copy(
        update={
            "resource_version": str(version),
            "generation": 1,
            "uid": uid,
            "creation_timestamp": instant(now),
            "deletion_timestamp": None,
        }
    )
    return resource.model_copy(update={"metadata": metadata})


def updated(stored: R, resource: R, *, version: int) -> R:
    """The resource that replaces ``stored``. Raises Conflict, InvalidInput."""
    old, new = stored.metadata, resource.metadata
    doing = f"writing {_called(stored)}"
    _check_version(doing, old.resource_version, new.resource_version)
    if old.deletion_timestamp is not None and (added := sorted(set(new.finalizers) - set(old.finalizers))):
        raise InvalidInput(doing, f"metadata.finalizers: it is being deleted, and {', '.join(added)} would be new")
    same = _wish(stored) == _wish(resource)
    if isinstance(stored, _UNCHANGING) and not same:
        raise Conflict(doing, "its spec is never changed", "make another revision")
    metadata = new.model_copy(
        update={
            "resource_version": str(version),
            "generation": old.generation + (0 if same else 1),
            "uid": old.uid,
            "creation_timestamp": old.creation_timestamp,
            "deletion_timestamp": old.deletion_timestamp,
        }
    )
    return resource.model_copy(update={"metadata": metadata})


def released_by(updated: Resource) -> bool:
    """Whether an update removes the last finalizer of a resource that is being deleted: it is deleted then."""
    metadata = updated.metadata
    return metadata.deletion_timestamp is not None and not metadata.finalizers


def check_deletable(stored: Resource, version: str | None) -> None:
    """Raises Conflict if ``version`` is given and is not the stored one."""
    if version is not None:
        _check_version(f"deleting {_called(stored)}", stored.metadata.resource_version, version)


def marked(stored: Resource, *, finalizer: str = "", version: Callable[[], int], now: float) -> Resource | None:
    """The rest of a resource that is being deleted, now that the work of ``finalizer`` is done; ``version`` gives it
    the next one. None: nothing.
    """
    old = stored.metadata
    left = tuple(each for each in old.finalizers if each != finalizer)
    if not left:
        return None
    changes = {
        "resource_version": str(version()),
        "generation": old.generation + (0 if old.deletion_timestamp else 1),
        "deletion_timestamp": old.deletion_timestamp or instant(now),
        "finalizers": left,
    }
    return stored.model_copy(update={"metadata": old.model_copy(update=changes)})


def may_have_finalizers(kind: type[Resource]) -> bool:
    """Whether a resource must be read before it is deleted. Keys need not be: they can be deleted even if they cannot
    be read.
    """
    return not issubclass(kind, PlaneSecrets)


def missing(doing: str, kind: type[Resource], name: str) -> NoReturn:
    """Raises NotFound."""
    raise NotFound(f"{doing} {kind.__name__} {name!r}", "it does not exist")


def existing(resource: Resource) -> NoReturn:
    """Raises Conflict."""
    raise Conflict(
        f"creating {_called(resource)}", "it exists already", "choose another name, or change the existing one"
    )


def merged(event: Event, before: Event | None) -> Event:
    """``event``, counted onto an earlier identical one."""
    if before is None:
        return event
    return replace(
        event,
        first=min(before.first, event.first),
        last=max(before.last, event.last),
        count=before.count + event.count,
    )


@dataclass(frozen=True, slots=True)
class JournalEnd:
    """The oldest part of a plane's journal."""

    #: The number of all rows.
    rows: int
    #: The operation of its oldest row; "": none.
    operation: str
    #: The time of that operation's last row.
    until: float
    #: The last operation with rows.
    last: str


def may_go(end: JournalEnd, now: float) -> bool:
    """Whether the operation of a journal's oldest row may be deleted. Operations are deleted as a whole, with their
    rows, so that the report of each remaining one is complete; the last one stays.
    """
    if end.operation and end.operation == end.last:
        return False
    return end.rows > JOURNAL_ROWS or end.until < now - JOURNAL_AGE


def check_fence(lease: Lease, newest: Lease | None) -> None:
    """Raises LeaseLost unless ``lease`` is the newest of its name and was not released.

    An expired lease without a newer holder still counts: no other process can have acted under it.
    """
    if newest is None or newest.token != lease.token or not newest.holder:
        raise LeaseLost(
            f"acting under lease {lease.name!r} as {lease.holder}",
            f"it has passed on to {newest.holder}" if newest and newest.holder else "it was released",
            "nothing was written; run the command again to continue",
        )


def taken(before: Lease | None, name: str, holder: str, *, ttl: float, now: float) -> Lease:
    """The lease for a new holder. Raises Conflict while another's is valid; see ``cut`` for clocks that went back."""
    if before is not None and before.holder and now < before.expires:
        raise Conflict(
            f"taking lease {name!r}",
            f"{before.holder} holds it for another {before.expires - now:.1f} s",
            "wait until it ends; if it died, its lease expires by itself",
        )
    # Not less than the time: a store that was restored from a copy must not repeat tokens.
    token = max(before.token + 1 if before else 1, int(now))
    return Lease(name=name, holder=holder, token=token, ttl=ttl, expires=now + ttl)


def cut(lease: Lease | None, now: float) -> Lease | None:
    """The lease, ending at the latest its ttl from now: later ends were stamped before the clock was set back.

    Its holder is not harmed: it counts from its last renewal, which was before now.
    """
    if lease is None or lease.expires <= now + lease.ttl:
        return lease
    return replace(lease, expires=now + lease.ttl)


def renewed(lease: Lease, newest: Lease | None, now: float) -> Lease:
    """The lease for another ttl. Raises LeaseLost."""
    check_fence(lease, newest)
    return replace(lease, expires=now + lease.ttl)


def holding(lease: Lease | None, now: float) -> Lease | None:
    """The lease if it has a holder now."""
    return lease if lease is not None and lease.holder and now < lease.expires else None


def released(lease: Lease, newest: Lease | None) -> Lease | None:
    """The rest of a released lease: its token, so that the next is higher. None: this process did not hold it
    any more.
    """
    if newest is None or newest.token != lease.token:
        return None
    return replace(newest, holder="")


def _check_version(doing: str, stored: str | None, given: str | None) -> None:
    if given is None:
        raise Conflict(doing, "no resourceVersion was given", "read it from the store before changing it")
    if given != stored:
        raise Conflict(doing, f"it was changed since (version {stored}, not {given})", "read it again and retry")


def _wish(resource: Resource) -> object:
    return resource.model_dump(include={"spec"})


def _called(resource: Resource) -> str:
    return f"{type(resource).__name__} {resource.name!r}"
