"""Deletes what is no longer part of a backup: first from the chain, then from the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from quarterdeck.backup.chain import Chain, unused
from quarterdeck.backup.deposit import DATA
from quarterdeck.backup.objects.port import ObjectStore, StoredObject
from quarterdeck.backup.writer import ChainWriter, Check, Now
from quarterdeck.errors import Unavailable

#: How long an object stays that was dropped: a restore which has read the chain before may still read it. After it the
#: chain has its name for another hour, and then it is one that no link names.
_GRACE = timedelta(hours=1)
#: How old an object that no link names is before it is deleted: until then its writer may still add the link.
_STRANGE_FOR = timedelta(days=1)
#: How long after it is due the deletion of an object is late: a sweep comes every half hour.
_LATE = timedelta(hours=1)
#: After so many objects in a row that the store does not delete, it is not asked again.
_REFUSALS = 5


@dataclass(frozen=True, slots=True)
class Swept:
    """The result of a sweep. ``refused``: objects that the store did not delete, such as locked ones, with its errors.
    They are no longer part of the backup, and the next sweep tries again. ``links``: the number of deleted links.
    """

    dropped: int
    deleted: int
    deleted_bytes: int
    refused: tuple[tuple[str, str], ...]
    links: int


async def sweep(
    store: ObjectStore, prefix: str, writer: ChainWriter, drop: Sequence[str], check: Check, now: Now
) -> Swept:
    """Drop these objects from the chain, and delete what is not part of it: what was dropped an hour ago, and what no
    link names and is older than a day by the clock of the store. A crash leaves objects, never a link to none.

    Links that no reader needs any more are deleted as well, the oldest one first and none behind one that is left, so
    that a crash leaves no hole in the chain.

    Raises Unavailable where the store does not answer, LeaseLost, PreconditionFailed where the chain has not got an
    object that is to be dropped, and Corrupt where its newest checkpoint is damaged.
    """
    await writer.read()
    if drop:
        await writer.append(dropped=drop)
    listed = await store.names(f"{prefix}/{DATA}")
    newest = max((each.stored_at for each in (*listed, *await store.names(prefix))), default=now())
    # The chain as of after the listing: what was linked meanwhile is not a stranger.
    deleted, refused = await _delete(store, due(writer.chain, listed, now(), newest), check)
    links = await _delete_links(store, await writer.outlived_links(), check)
    return Swept(len(drop), len(deleted), sum(each.size for each in deleted), tuple(refused), links)


def due(chain: Chain, listed: Sequence[StoredObject], now: datetime, newest: datetime) -> list[StoredObject]:
    """The objects that are no part of a chain and can be deleted, the oldest first: where a store holds each object for
    a time, that of the others has not ended if that of the first one has not. ``now``: when links were written by;
    ``newest``: the same by the clock of the store.
    """
    loose = set(unused(chain, [each.name for each in listed]))
    dropped = {name: now - each.at for each in chain.dropped for name in each.names}
    old = (
        each
        for each in listed
        if each.name in loose
        and (dropped[each.name] >= _GRACE if each.name in dropped else newest - each.stored_at > _STRANGE_FOR)
    )
    return sorted(old, key=lambda each: each.stored_at)


async def overdue(store: ObjectStore, prefix: str, chain: Chain, now: datetime) -> list[StoredObject]:
    """The objects that sweeps should have deleted an hour ago, and that are still there. Raises what listing raises."""
    listed = await store.names(f"{prefix}/{DATA}")
    newest = max((each.stored_at for each in listed), default=now)
    return due(chain, listed, now - _LATE, newest - _LATE)


async def _delete_links(store: ObjectStore, names: Sequence[str], check: Check) -> int:
    """Delete links in this order, up to one that the store does not delete; how many it has deleted."""
    for count, name in enumerate(names):
        await check()
        try:
            await store.delete([name])
        except Unavailable:
            return count  # such as a locked one: the next sweep tries it again
    return len(names)


async def _delete(
    store: ObjectStore, objects: Sequence[StoredObject], check: Check
) -> tuple[list[StoredObject], list[tuple[str, str]]]:
    deleted: list[StoredObject] = []
    refused: list[tuple[str, str]] = []
    in_a_row = 0
    for each in objects:
        await check()
        try:
            await store.delete([each.name])
        except Unavailable as error:
            refused.append((each.name, error.seen))
            in_a_row += 1
            if in_a_row == _REFUSALS:
                break
        else:
            deleted.append(each)
            in_a_row = 0
    return deleted, refused
