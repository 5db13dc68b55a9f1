"""Moments of a backup that are looked at: their databases exist in a scratch folder for as long as that takes."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from quarterdeck.backup.build import build
from quarterdeck.backup.chain import BackupMoment
from quarterdeck.backup.contents import DatabaseMoment
from quarterdeck.backup.kubernetes.object_changes import MomentDifference, ObjectChange, compared, object_changes
from quarterdeck.backup.making import made_beside, remove_left
from quarterdeck.concurrency import in_thread, whole
from quarterdeck.engine.workspace.backups import OpenBackups, scratch_folder
from quarterdeck.engine.workspace.home import Home
from quarterdeck.files import file_errors, remove_folder


@asynccontextmanager
async def scratch_space(home: Home, plane: str, doing: str) -> AsyncIterator[Path]:
    """A folder (0700) for the block. What a killed process left is removed by the next one. Raises Unavailable."""
    parent, name = scratch_folder(home.folder, plane), f"objects-{secrets.token_hex(4)}"
    with file_errors(doing):
        await asyncio.to_thread(parent.mkdir, mode=0o700, parents=True, exist_ok=True)
        await in_thread(remove_left, parent)
        with made_beside(parent / name, doing):
            folder = parent / f".{name}"
            folder.mkdir(mode=0o700)
            try:
                yield folder
            finally:
                await whole(asyncio.to_thread(remove_folder, folder))


async def moment_difference(
    home: Home, plane: str, backups: OpenBackups, before: BackupMoment, after: BackupMoment
) -> MomentDifference:
    """What happened to the objects of a plane between two moments of its backup. Raises what ``build`` raises."""
    changes: tuple[ObjectChange, ...] = ()
    if (before.full.epoch, before.revision) != (after.full.epoch, after.revision):
        async with scratch_space(home, plane, f"comparing two moments of the backup of plane {plane}") as folder:
            databases = await _databases(backups, before, after, folder)
            changes = await in_thread(object_changes, *databases)
    return MomentDifference(compared(before), compared(after), changes)


async def _databases(
    backups: OpenBackups, before: BackupMoment, after: BackupMoment, folder: Path
) -> tuple[DatabaseMoment, DatabaseMoment]:
    """The databases of two moments: where one continues the other it has both."""
    moments, identities = (before, after), backups.keys.identities
    if before.full.stored == after.full.stored:
        later = max(moments, key=lambda each: each.revision)
        path = (await build(backups.store, later, identities, folder / "both.db")).path
        return DatabaseMoment(path, before.revision), DatabaseMoment(path, after.revision)
    first = await build(backups.store, before, identities, folder / "before.db")
    second = await build(backups.store, after, identities, folder / "after.db")
    return DatabaseMoment(first.path), DatabaseMoment(second.path)
