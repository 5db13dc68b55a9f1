"""Moments that people name by a time: what the backup had seen by then, to the revision."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from fakes.objects import MemoryObjects
from support.databases import AT, IDENTITIES, put, stored
from support.golden import Golden

from quarterdeck.backup.chain import BackupMoment, Chain, FullBackup, Increments
from quarterdeck.backup.moments import moment_at
from quarterdeck.backup.records import Increment, RevisionChange, encode
from quarterdeck.errors import InvalidInput, NotFound


def second(number: float) -> datetime:
    return AT + timedelta(seconds=number)


async def chain(store: MemoryObjects) -> Chain:
    """A full backup of revision 10 after 10 s, and one increment: revision 11 to 15, each 2 s later than the last one.
    The other epoch, and the other cluster, have backups at other times.
    """
    changes = tuple(
        RevisionChange(each, int(second(10 + 2 * (each - 10)).timestamp() * 1000), (put("/a", b"v", each),))
        for each in range(11, 16)
    )
    increment = Increments(
        cluster="main",
        epoch=1,
        first=11,
        last=15,
        first_at=second(12),
        last_at=second(20),
        stored=await stored(store, "data/11", encode(Increment(changes, ()))),
    )
    fulls = [
        FullBackup(
            cluster=cluster,
            epoch=epoch,
            revision=revision,
            at=second(at),
            etcd_version="3.6.16",
            stored=await stored(store, f"data/{cluster}-{epoch}", b""),
        )
        for cluster, epoch, revision, at in (("main", 1, 10, 10), ("main", 0, 90, 1), ("events", 1, 70, 2))
    ]
    return Chain("uid", fulls=tuple(fulls), increments=(increment,))


async def at(number: float, *, epoch: int = 1) -> BackupMoment:
    store = MemoryObjects()
    made = await chain(store)
    return await moment_at(made, "main", epoch, second(number), now=second(100), store=store, identities=IDENTITIES)


@pytest.mark.parametrize(
    ("number", "revision"),
    [(10, 10), (11.9, 10), (12, 11), (13.9, 11), (14, 12), (19.999, 14), (20, 15), (99, 15)],
)
async def test_a_time_means_the_last_revision_that_had_been_seen_by_then(number: float, revision: int) -> None:
    moment = await at(number)
    assert (moment.revision, moment.full.epoch) == (revision, 1)


async def test_other_epochs_and_clusters_do_not_count() -> None:
    assert (await at(50, epoch=0)).revision == 90


async def test_a_time_in_the_future_or_before_the_first_backup_is_refused(golden: Golden) -> None:
    with golden.raises(InvalidInput):
        await at(101)
    with golden.raises(NotFound):
        await at(9.9)
    with golden.raises(NotFound):
        await at(50, epoch=7)
