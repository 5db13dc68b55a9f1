"""How a cluster is recorded: the parameters, the events meanwhile, and when a new full backup is due."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from quarterdeck.backup.chain import Chain, FullBackup, Increments
from quarterdeck.errors import QuarterdeckError


class FullReason(StrEnum):
    """Why there is a new full backup: all but ``FOLDED`` are taken from etcd."""

    FIRST = "there is none yet"
    EPOCH = "the cluster was started again from a survivor or a backup"
    HISTORY_LOST = "etcd has compacted history that is not in the backup"
    VERSION = "the version of etcd has changed"
    DUE = "the newest one was taken from etcd long ago"
    FOLDED = "there were many increments behind the newest one"
    DAMAGED = "the newest backup did not pass its verification"


class Side(StrEnum):
    """What does not answer."""

    CLUSTER = "cluster"
    STORE = "store"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPace:
    """How often things are done. Seconds and bytes."""

    #: Changes are stored this long after the first of them was seen, or once they are that many bytes.
    flush_seconds: float = 1.0
    flush_bytes: int = 8 << 20
    #: How often a quorum is asked for the newest revision, so that the age of the backup of a quiet cluster is known.
    pulse_seconds: float = 3.0
    #: How often all leases are read at most. New ones are read at once.
    leases_seconds: float = 30.0
    #: When a new full backup is taken from etcd: it has no history that etcd has compacted.
    full_after: timedelta = timedelta(hours=24)
    #: How long a member may take to apply what a quorum has confirmed, before a full backup is taken from another one.
    apply_seconds: float = 5.0
    #: The pause after a failure, and the longest one after many.
    first_pause: float = 0.5
    longest_pause: float = 10.0


class RecorderEvents(Protocol):
    """The events of a recording. All methods return at once."""

    def restorable(self, revision: int, at: datetime) -> None:
        """Everything up to this revision can be restored, which is all that there was at that time."""
        ...

    def stored(self, increments: Increments) -> None:
        """Increments are part of the backup."""
        ...

    def full_taken(self, full: FullBackup, reason: FullReason) -> None:
        """A full backup is part of the backup."""
        ...

    def gap(self, first: int, last: int) -> None:
        """These revisions cannot be restored: etcd had discarded them before they were read or stored. Reported again
        when a recording begins.
        """
        ...

    def spool_discarded(self, why: str) -> None:
        """What was kept on the disk for a store that does not answer was discarded. etcd is asked for it again."""
        ...

    def failed(self, side: Side, since: datetime, error: QuarterdeckError) -> None:
        """The cluster or the store has not answered since this time. It is tried again."""
        ...

    def answers(self, side: Side) -> None:
        """It answers again."""
        ...


def why_full(
    chain: Chain, cluster: str, epoch: int, *, versions: Collection[str], now: datetime, pace: RecordingPace
) -> FullReason | None:
    """Why a new full backup is to be taken from etcd, as far as the chain tells. ``versions``: those of all members,
    where all are known: while they differ, nothing follows from them.
    """
    fulls = [each for each in chain.fulls if each.cluster == cluster]
    if not fulls:
        return FullReason.FIRST
    its = [each for each in fulls if each.epoch == epoch]
    if not its:
        return FullReason.EPOCH
    newest = max(its, key=lambda each: each.taken_at)
    if len(set(versions)) == 1 and newest.etcd_version not in versions:
        return FullReason.VERSION
    return FullReason.DUE if now - newest.taken_at >= pace.full_after else None
