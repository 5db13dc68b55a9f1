"""Keeps the backups of a plane small while they are recorded: joins increments, and deletes what is not needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Protocol

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.backup.joining import join, joinable
from quarterdeck.backup.recording import Check, Now
from quarterdeck.backup.retention import Retention, droppable
from quarterdeck.backup.sweep import sweep
from quarterdeck.backup.writer import ChainWriter
from quarterdeck.engine.workspace.backups import OpenBackups
from quarterdeck.errors import QuarterdeckError, Unavailable

#: Seconds between two rounds, and after one that a backup store has ended by not answering.
_PAUSE = 180.0
_RETRYING = 30.0
#: How often old backups are deleted.
_SWEEPING = timedelta(minutes=30)
#: How old increments are before they are joined: what is newer may still be on its way.
_JOINING_AFTER = timedelta(minutes=1)


class UpkeepEvents(Protocol):
    """What is told meanwhile. All return at once."""

    def unreadable(self, errors: Mapping[str, QuarterdeckError]) -> None:
        """Objects of the backup that cannot be read, by their names. Told once of each."""
        ...


class BackupUpkeep:
    """The upkeep of one plane's backups. It ends with the lease."""

    def __init__(
        self,
        backups: OpenBackups,
        writer: ChainWriter,
        plane: Callable[[], ControlPlane],
        *,
        check: Check,
        now: Now,
        told: UpkeepEvents,
    ) -> None:
        """``writer`` is shared by all that write the plane's chain; ``plane``: the plane as it is stored now."""
        self._backups, self._writer, self._plane = backups, writer, plane
        self._check, self._now, self._told = check, now, told
        self._swept_at: datetime | None = None
        self._unreadable: set[str] = set()

    async def run(self) -> None:
        """Go on until cancelled. Raises LeaseLost, Corrupt where the chain is damaged."""
        while True:
            try:
                await self._writer.read()
                await self._sweep()
                await self._join()
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
                self._told.unreadable(unreadable)
