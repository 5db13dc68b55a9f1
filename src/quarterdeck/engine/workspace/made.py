"""What was made from a plane's spec and is named by its content: its revisions, the manifests of its add-ons."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from quarterdeck.api.base import R, Resource
from quarterdeck.errors import Conflict
from quarterdeck.stores.port import Lease, Store

#: So many of a kind are kept that nobody names any more: who goes back finds them.
_FORMER = 3


async def keep(store: Store, made: Resource, *, lease: Lease | None = None) -> None:
    """Store it, if it is not there yet: those of one name have one content."""
    with contextlib.suppress(Conflict):
        await store.create(made, lease=lease)


async def of_plane(store: Store, kind: type[R], name: str) -> tuple[R, ...]:
    """All of a kind that are stored of the plane of that name, the newest first."""
    found = [
        each
        for each in await store.list(kind)
        if any((owner.kind, owner.name) == ("ControlPlane", name) for owner in each.metadata.owner_references)
    ]
    return tuple(sorted(found, key=lambda each: (each.metadata.creation_timestamp, each.name), reverse=True))


async def forget_unused(
    store: Store, kind: type[Resource], plane: str, used: Collection[str], *, lease: Lease | None = None
) -> None:
    """Delete those of a kind that nobody names (``used``: that somebody does), but for the last few."""
    unused = [each for each in await of_plane(store, kind, plane) if each.name not in used]
    gone = tuple((kind, each.name) for each in unused[_FORMER:])
    if gone:
        await store.delete_together(*gone, lease=lease)
