"""Keeps the backups of a plane small while they are recorded: joins and folds increments, and deletes what is old."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.backup.chain import FullBackup
from quarterdeck.backup.folding import fold, fold_due
from quarterdeck.backup.joining import join, joinable
from quarterdeck.backup.recording.policy import FullReason
from quarterdeck.backup.retention import Retention, droppable
from quarterdeck.backup.sweep import sweep
from quarterdeck.backup.writer import ChainWriter, Check, Now
from quarterdeck.engine.workspace.backups import OpenBackups
from quarterdeck.errors import Corrupt, PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.model.clusters import Cluster

#: Seconds between two rounds, and after one that a backup store has ended by not answering.
_PAUSE = 180.0
_RETRYING = 30.0
#: How often old backups are deleted.
_SWEEPING = timedelta(minutes=30)
#: How old increments are before they are joined: what is newer may still be on its way.
_JOINING_AFTER = timedelta(minutes=1)


class UpkeepEvents(Protocol):
    """The events of the upkeep. All methods return at once."""

    def full_taken(self, full: FullBackup, reason: FullReason) -> None:
        """A full backup of the main cluster is part of the backup."""
        ...

    def unreadable(self, errors: Sequence[QuarterdeckError]) -> None:
        """Objects of the backup cannot be read, each for one of these reasons. Each object is reported once."""
        ...


class BackupUpkeep:
    """The upkeep of one plane's backups. It ends with the lease."""

    def __init__(
        self,
        backups: OpenBackups,
        writer: ChainWriter,
        plane: Callable[[], ControlPlane],
        *,
        scratch: Path,
        check: Check,
        now: Now,
        events: UpkeepEvents,
    ) -> None:
        """``writer`` is shared by all that write the plane's chain; ``plane``: the plane as it is stored now;
        ``scratch``: a folder with room for the whole database.
        """
        self._backups, self._writer, self._plane = backups, writer, plane
        self._scratch, self._check, self._now, self._events = scratch, check, now, events
        self._swept_at: datetime | None = None
        self._unreadable: set[str] = set()

    async def run(self) -> None:
        """Go on until cancelled. Raises LeaseLost, Corrupt where the chain is damaged."""
        while True:
            try:
                await self._writer.read()
                await self._sweep()
                await self._join()
                await self._fold()
            except Unavailable:
                await asyncio.sleep(_RETRYING)  # the backup store does not answer, which the recorder reports
            else:
                await asyncio.sleep(_PAUSE)

    async def _sweep(self) -> None:
        now, policy = self._now(), self._plane().spec.backup.retention
        if self._swept_at is not None and now - self._swept_at < _SWEEPING:
            return
        kept = Retention(
            last=policy.last,
            hourly=policy.hourly,
            daily=policy.daily,
            weekly=policy.weekly,
            continuous=timedelta(seconds=policy.continuous),
        )
        backups, drop = self._backups, droppable(self._writer.chain, kept, now)
        await sweep(backups.store, backups.folder, self._writer, drop, self._check, self._now)
        self._swept_at = now

    async def _join(self) -> None:
        backups = self._backups
        before = self._now() - _JOINING_AFTER
        for run in joinable(self._writer.chain, before, without=self._unreadable):
            unreadable = await join(self._writer, backups.deposit, run, backups.keys.identities)
            if unreadable:
                self._unreadable |= unreadable.keys()
                self._events.unreadable([*unreadable.values()])

    async def _fold(self) -> None:
        """Fold the increments of the newest epoch of each cluster. What cannot be folded is left to the next full
        backup out of etcd; where the disk has no room, it is tried again.
        """
        backups, chain = self._backups, self._writer.chain
        epochs = {each.cluster: each.epoch for each in sorted(chain.fulls, key=lambda each: each.epoch)}
        for cluster, epoch in epochs.items():
            newest = fold_due(chain, cluster, epoch)
            if newest is None or newest.stored.name in self._unreadable:
                continue
            keys = backups.keys.identities
            try:
                full = await fold(self._writer, backups.deposit, cluster, epoch, keys, self._scratch)
            except (Corrupt, PreconditionFailed) as error:
                self._unreadable.add(newest.stored.name)
                self._events.unreadable([error])
            else:
                if full is not None and cluster == Cluster.MAIN.value:
                    self._events.full_taken(full, FullReason.FOLDED)
