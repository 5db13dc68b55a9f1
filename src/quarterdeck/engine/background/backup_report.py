"""What is reported of the backups of a plane: its condition, its status and its events."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import tell_condition, write_status
from quarterdeck.api.base import ConditionStatus
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.events import EventReason
from quarterdeck.api.plane.backup import BackupStatus
from quarterdeck.backup.chain import FullBackup, Increments
from quarterdeck.backup.recording.policy import FullReason, Side
from quarterdeck.backup.verifications import VerifiedMoment
from quarterdeck.engine.notices.events import Happening
from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.world import World
from quarterdeck.stores.port import EventType

#: Seconds between two writes of the status of backups.
_WRITING_S = 60.0


@dataclass(kw_only=True)
class BackupState:
    """How the backups of a plane go, as its task last reported it: ``RecorderEvents``, ``UpkeepEvents`` and
    ``VerificationEvents``.
    """

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    #: Everything up to this revision of the main cluster can be restored, which was all there was ``at`` that time.
    revision: int = 0
    at: datetime | None = None
    #: Since when something does not answer, and its error.
    failing: dict[Side, tuple[datetime, QuarterdeckError]] = field(default_factory=dict)
    #: The error with which the task ended; it is started again after a while.
    ended: QuarterdeckError | None = None
    #: The newest verification, and the error of the newest one that did not pass; at most one of both is of now.
    verification: VerifiedMoment | None = None
    damage: QuarterdeckError | None = None
    #: Why a verification could not be carried out; reported once.
    unverified: QuarterdeckError | None = None
    fulls: int = 0
    size_bytes: int = 0
    happened: list[Happening] = field(default_factory=list)

    def begin(self) -> None:
        """A task begins, perhaps with another cluster or another store: what the last one reported is void."""
        self.revision, self.at, self.ended = 0, None, None
        self.verification = self.damage = self.unverified = None
        self.fulls = self.size_bytes = 0
        self.failing.clear()

    def status(self) -> BackupStatus | None:
        """What is known of the stored backups; None before there is one."""
        if self.at is None or not self.fulls:
            return None
        done = self.verification
        return BackupStatus(
            revision=self.revision,
            restorable_at=self.at,
            fulls=self.fulls,
            size_bytes=self.size_bytes,
            verified_revision=done.revision if done is not None else None,
            verified_at=done.at if done is not None else None,
        )

    def restorable(self, revision: int, at: datetime) -> None:
        """See ``RecorderEvents``."""
        self.revision, self.at = revision, at

    def stored(self, increments: Increments) -> None:
        """See ``RecorderEvents``."""

    def full_taken(self, full: FullBackup, reason: FullReason) -> None:
        """See ``RecorderEvents``."""
        size = full.stored.size_bytes
        words = f"a full backup of etcd revision {full.revision:,} is complete ({size:,} bytes): {reason.value}"
        self.happened.append(Happening(EventReason.FULL_BACKUP, words, EventType.NORMAL))

    def gap(self, first: int, last: int) -> None:
        """See ``RecorderEvents``."""
        words = f"etcd revisions {first:,} to {last:,} cannot be restored: etcd discarded them before they were stored"
        self.happened.append(Happening(EventReason.BACKUP_GAP, words))

    def spool_discarded(self, why: str) -> None:
        """See ``RecorderEvents``."""
        words = f"changes that waited for the backup store were discarded, and are read from etcd again: {why}"
        self.happened.append(Happening(EventReason.BACKUP_SPOOL_DISCARDED, words))

    def unreadable(self, errors: Sequence[QuarterdeckError]) -> None:
        """See ``UpkeepEvents``."""
        others = f"; so are {len(errors) - 1} other objects" if len(errors) > 1 else ""
        words = f"some moments of the backup cannot be restored: {errors[0].doing}: {errors[0].seen}{others}"
        self.happened.append(Happening(EventReason.BACKUP_UNREADABLE, words))

    def failed(self, side: Side, since: datetime, error: QuarterdeckError) -> None:
        """See ``RecorderEvents``."""
        self.failing[side] = since, error

    def answers(self, side: Side) -> None:
        """See ``RecorderEvents``."""
        self.failing.pop(side, None)

    def stored_now(self, fulls: int, size_bytes: int) -> None:
        """See ``VerificationEvents``."""
        self.fulls, self.size_bytes = fulls, size_bytes

    def verified(self, verification: VerifiedMoment) -> None:
        """See ``VerificationEvents``."""
        self.verification, self.unverified = verification, None
        if self.damage is not None:
            self.damage = None
            words = f"the backup of etcd revision {verification.revision:,} passed its verification"
            self.happened.append(Happening(EventReason.BACKUP_VERIFIED, words, EventType.NORMAL))

    def damaged(self, error: QuarterdeckError) -> None:
        """See ``VerificationEvents``."""
        self.damage = error
        words = f"the newest backup did not pass its verification, and a new full backup is taken: {error}"
        self.happened.append(Happening(EventReason.BACKUP_DAMAGED, words))

    def not_verified(self, error: QuarterdeckError) -> None:
        """See ``VerificationEvents``."""
        if self.unverified is None:
            words = f"the newest backup could not be verified, and is verified again later: {error}"
            self.happened.append(Happening(EventReason.BACKUP_NOT_VERIFIED, words))
        self.unverified = error


#: How long something may not answer before the condition says so: shorter failures are retried without notice.
_TOLERATED = timedelta(seconds=15)
_UNAVAILABLE = {
    Side.STORE: ConditionReason.STORE_UNAVAILABLE,
    Side.CLUSTER: ConditionReason.CLUSTER_UNAVAILABLE,
}


@dataclass(kw_only=True)
class ReportBackups:
    """Writes the condition of backups and their status, and records their events."""

    state: BackupState
    #: When the status was last written, on the clock of ``Plane.steady``.
    _written: float = -math.inf

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``."""
        while self.state.happened:
            await plane.store.record(self.state.happened[0].event(plane.name, plane.clock()))
            self.state.happened.pop(0)
        await tell_condition(plane, ConditionType.BACKED_UP, self._condition(plane))
        await self._write_status(plane)

    async def _write_status(self, plane: Plane) -> None:
        """The time of the newest moment changes all the time: it is written once a minute."""
        before, after = plane.resource.status.backup, self.state.status()
        if not plane.resource.spec.backup.enabled:
            after = None
        elif after is None:
            return  # what was written holds until more is known
        news = (before is None) != (after is None) or (
            before is not None and after is not None and before.verified_at != after.verified_at
        )
        if before == after or not (news or plane.steady() - self._written >= _WRITING_S):
            return
        async with plane.writing:
            await write_status(plane, backup=after)
        self._written = plane.steady()

    def _condition(self, plane: Plane) -> tuple[ConditionStatus, ConditionReason, str] | None:
        if not plane.resource.spec.backup.enabled:
            return None
        if self.state.ended is not None:
            return ConditionStatus.FALSE, ConditionReason.BACKUP_FAILED, str(self.state.ended)
        for side, (since, error) in self.state.failing.items():
            if self.state.now() - since > _TOLERATED:
                words = f"the {side.value} has not answered since {since:%Y-%m-%d %H:%M:%S} UTC: {error.seen}"
                return ConditionStatus.FALSE, _UNAVAILABLE[side], words
        if self.state.damage is not None:
            return ConditionStatus.FALSE, ConditionReason.BACKUP_DAMAGED, str(self.state.damage)
        if self.state.at is None:
            return ConditionStatus.UNKNOWN, ConditionReason.FIRST_BACKUP, "the first backup is not complete yet"
        return ConditionStatus.TRUE, ConditionReason.CONTINUOUS, "each change of etcd is stored within seconds"
