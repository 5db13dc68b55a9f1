"""Deletes the backups of a plane that is deleted. They outlive it otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quarterdeck.backup.objects.port import ObjectHeld
from quarterdeck.drivers.backup_stores import open_backup_store
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.backups import open_backups, store_options
from quarterdeck.engine.workspace.home import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneBackups:
    """All that the backup store has of one plane. A later plane of the same name has another folder."""

    url: str
    folder: str
    options: Mapping[str, str] = field(repr=False)
    objects: int
    size_bytes: int


async def stored_backups(home: Home, name: str) -> PlaneBackups:
    """The backups of a plane that is not deleted yet. Raises NotFound, and what the backup store raises."""
    plane = await recorded.existing(home.store, name)
    backups = await open_backups(home, plane)
    listed = await backups.store.names(backups.folder)
    return PlaneBackups(
        url=backups.url,
        folder=backups.folder,
        options=store_options(plane),
        objects=len(listed),
        size_bytes=sum(each.size for each in listed),
    )


async def delete_backups(found: PlaneBackups) -> None:
    """Delete the backups of a plane that is gone: the last link first, so that what is left of an interrupted deletion
    is no backup. Raises what the backup store raises, ObjectHeld also where it holds objects for a time.
    """
    store = open_backup_store(found.url, found.options)
    names = sorted((each.name for each in await store.names(found.folder)), reverse=True)
    try:
        await store.delete(names)
    except ObjectHeld as error:
        seen = f"the plane is gone, but its backups are not: {error.seen}"
        then = f"delete the folder {found.folder} in {found.url} once the store allows it"
        raise ObjectHeld(error.doing, seen, then) from error
