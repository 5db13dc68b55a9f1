"""Moments of a chain that people name: the newest one, a revision, or a time."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime

from quarterdeck.backup.build import read_increments
from quarterdeck.backup.chain import BackupMoment, Chain, Increments
from quarterdeck.backup.objects.port import ObjectStore
from quarterdeck.backup.sealing import Identities
from quarterdeck.errors import InvalidInput, NotFound


async def newest_moment_at(
    chain: Chain, cluster: str, at: datetime, *, now: datetime, store: ObjectStore, identities: Identities
) -> BackupMoment:
    """What ``moment_at`` finds in the newest epoch that had begun by then. Raises as that does."""
    failed = NotFound(f"looking for a moment of cluster {cluster}", "there is no full backup", "see 'backup list'")
    for epoch in chain.epochs(cluster):
        try:
            return await moment_at(chain, cluster, epoch, at, now=now, store=store, identities=identities)
        except NotFound as error:
            failed = error  # it begins later
    raise failed


async def moment_at(
    chain: Chain, cluster: str, epoch: int, at: datetime, *, now: datetime, store: ObjectStore, identities: Identities
) -> BackupMoment:
    """The last revision that the backup had seen at a time. Times are those at which revisions were seen by the process
    that backs up, not those of etcd, which keeps none.

    Raises InvalidInput for a time in the future, NotFound for one before the first backup.
    """
    doing = f"looking for {at:%Y-%m-%d %H:%M:%S %Z} in the backups of cluster {cluster}"
    if at > now:
        raise InvalidInput(doing, "it is in the future", "give an earlier time, or 'latest'")
    known, its = chain.fulls_of(cluster, epoch), chain.increments_of(cluster, epoch)
    fulls = [each for each in known if each.at <= at]
    if not fulls:
        oldest = min((each.at for each in known), default=None)
        seen = "there is no backup" if oldest is None else f"the first backup is of {oldest:%Y-%m-%d %H:%M:%S %Z}"
        raise NotFound(doing, seen, "see 'backup list'")
    revision = max((*(each.revision for each in fulls), *(each.last for each in its if each.last_at <= at)))
    for each in its:
        if each.first_at <= at < each.last_at and each.last > revision:
            revision = max(revision, await _within(each, at, store, identities))
    return chain.at_revision(cluster, revision, epoch)


async def _within(of: Increments, at: datetime, store: ObjectStore, identities: Identities) -> int:
    """The last revision of an increment that was seen by then, or of those that were joined to it: their times need
    not grow from one to the next, since clocks are set back.
    """
    found = [of.first - 1]
    at_ms = int(at.timestamp() * 1000)
    for each in await read_increments(store, of, identities):
        times = [change.at_ms for change in each.changes]
        if times[-1] <= at_ms:
            found.append(each.last)
        elif times[0] <= at_ms:
            found.append(each.changes[bisect_right(times, at_ms) - 1].revision)
    return max(found)


async def seen_at(moment: BackupMoment, store: ObjectStore, identities: Identities) -> datetime:
    """When the revision of a moment was seen. Raises as reading an increment does."""
    if not moment.increments or moment.increments[-1].last == moment.revision:
        return moment.at
    parts = await read_increments(store, moment.increments[-1], identities)
    changes = (change for each in parts for change in each.changes)
    at_ms = next(each.at_ms for each in changes if each.revision == moment.revision)
    return datetime.fromtimestamp(at_ms / 1000, UTC)
