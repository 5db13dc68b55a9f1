"""Which backups are kept. Pure: from the chain, a policy and the time follow the names of objects to drop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from quarterdeck.backup.chain import Chain, FullBackup, Increments


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How many full backups are kept: the newest ones, and the newest of each of so many hours, days and weeks (UTC)
    that have one. Within ``continuous`` any moment can be restored.
    """

    last: int = 3
    hourly: int = 0
    daily: int = 7
    weekly: int = 4
    continuous: timedelta = timedelta(hours=24)


def droppable(chain: Chain, policy: Retention, now: datetime) -> tuple[str, ...]:
    """The objects that are no longer needed, in the order of the chain.

    Every full backup that is kept can be restored by itself. Kept are also the newest one, what continues it, and what
    leads to each moment within the window, also of epochs that have ended since. The belongings of the plane are kept
    as long as a backup that is kept needs them.
    """
    dropped: list[str] = []
    clusters = {each.cluster for each in chain.fulls} | {each.cluster for each in chain.increments}
    for cluster in sorted(clusters):
        fulls = [each for each in chain.fulls if each.cluster == cluster]
        increments = [each for each in chain.increments if each.cluster == cluster]
        continued = list(_continued(fulls, increments, now - policy.continuous))
        kept = {each.stored.name for each in (*_chosen(fulls, policy), *(full for base in continued for full in base))}
        kept |= {each.stored.name for each in increments if any(_continues(each, base[0]) for base in continued)}
        names = [each.stored.name for each in fulls] + [each.stored.name for each in increments]
        dropped += (name for name in names if name not in kept)
    gone = frozenset(dropped)
    left = replace(chain, fulls=tuple(each for each in chain.fulls if each.stored.name not in gone))
    return (*dropped, *left.outlived_belongings())


def _continued(
    fulls: Sequence[FullBackup], increments: Sequence[Increments], since: datetime
) -> Iterator[list[FullBackup]]:
    """Of each epoch that is in the window: the full backup behind which everything is kept, and the newer ones."""
    newest = max((each.epoch for each in fulls), default=0)
    for epoch in sorted({each.epoch for each in fulls}):
        its = sorted((each for each in fulls if each.epoch == epoch), key=lambda each: each.revision)
        ended = max(*(each.at for each in its), *(each.last_at for each in increments if each.epoch == epoch), since)
        if epoch != newest and ended == since:
            continue
        before = [at for at, each in enumerate(its) if each.at <= since]
        yield its[before[-1] if before else 0 :]


def _continues(increments: Increments, base: FullBackup) -> bool:
    return increments.epoch == base.epoch and increments.last > base.revision


def _chosen(fulls: Sequence[FullBackup], policy: Retention) -> Iterator[FullBackup]:
    newest_first = sorted(fulls, key=lambda each: (each.at, each.epoch, each.revision), reverse=True)
    yield from newest_first[: policy.last]
    yield from _newest_of_each(newest_first, policy.hourly, lambda at: (at.date(), at.hour))
    yield from _newest_of_each(newest_first, policy.daily, lambda at: at.date())
    yield from _newest_of_each(newest_first, policy.weekly, lambda at: at.isocalendar()[:2])


def _newest_of_each(
    newest_first: Sequence[FullBackup], count: int, period: Callable[[datetime], object]
) -> Iterator[FullBackup]:
    """The newest full backup of each of the newest periods that have one."""
    found: set[object] = set()
    for each in newest_first:
        its = period(each.at.astimezone(UTC))
        if its not in found and len(found) < count:
            found.add(its)
            yield each
