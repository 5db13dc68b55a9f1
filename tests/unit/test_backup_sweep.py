"""What is deleted from a store: only what is no part of a backup, and the chain says so first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from support.recording_lab import PLANE, PREFIX, RecordingLab

from quarterdeck.backup.chain import ObjectReference
from quarterdeck.backup.chain_store import ChainStore
from quarterdeck.backup.sweep import Swept, overdue, sweep
from quarterdeck.errors import LeaseLost, Unavailable

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def lab(tmp_path: Path) -> RecordingLab:
    return RecordingLab(tmp_path)


async def recorded(lab: RecordingLab) -> None:
    async with lab.recording() as recorder:
        for _ in range(3):
            await lab.all_stored(recorder)
            lab.cluster.write(2)
        await lab.all_stored(recorder)


async def swept(lab: RecordingLab, drop: Sequence[str] = (), later: timedelta = timedelta(0)) -> Swept:
    return await sweep(lab.store, PREFIX, lab.writer(), drop, lab.checks, lambda: lab.now() + later)


async def test_what_a_writer_has_left_is_deleted_after_a_day_and_nothing_else(lab: RecordingLab) -> None:
    await lab.store.create(f"{PREFIX}/data/old", b"left by a writer that died")
    lab.store.now += DAY + timedelta(seconds=1)
    await lab.store.create(f"{PREFIX}/data/new", b"its link is about to be written")
    await recorded(lab)
    before = dict(lab.store.objects)
    done = await swept(lab)
    assert (done.deleted, done.deleted_bytes, done.refused) == (1, 26, ())
    assert before.keys() - lab.store.objects.keys() == {f"{PREFIX}/data/old"}
    await lab.restored(lab.cluster.revision)


async def test_dropped_objects_leave_the_chain_before_they_leave_the_store(lab: RecordingLab) -> None:
    await recorded(lab)
    (first, *_) = (await lab.chain()).increments
    deletions: list[bool] = []

    class Watched:
        def __init__(self) -> None:
            self.delete_ = lab.store.delete

        async def delete(self, names: Sequence[str]) -> None:
            deletions.append(first.stored.name not in (await lab.chain()).names())
            await self.delete_(names)

    lab.store.delete = Watched().delete  # type: ignore[method-assign]
    done = await swept(lab, [first.stored.name])
    assert (done.dropped, done.deleted, deletions) == (1, 0, [])
    assert (await swept(lab, later=HOUR)).deleted == 1
    assert deletions == [True]
    assert first.stored.name not in lab.store.objects


async def test_what_was_dropped_can_be_read_for_an_hour_and_is_deleted_then_or_when_it_is_a_stranger(
    lab: RecordingLab,
) -> None:
    """A restore that has read the chain before goes on, however old the object is."""
    await recorded(lab)
    one, other, *_ = [each.stored.name for each in (await lab.chain()).increments]
    lab.store.now += 2 * DAY
    await lab.store.create(f"{PREFIX}/data/new", b"as old as the store says it is now")
    await lab.writer().append(dropped=[one])
    assert (await swept(lab, later=HOUR - timedelta(minutes=1))).deleted == 0
    assert (await swept(lab, later=HOUR)).deleted == 1
    await lab.writer().append(dropped=[other])
    later = lab.now() + 3 * HOUR
    lab.now = lambda: later  # type: ignore[method-assign]
    await lab.writer().append(belongings=ObjectReference(name=f"{PREFIX}/data/new", sha256="", size_bytes=0))
    assert (await lab.chain()).dropped == ()
    assert other in lab.store.objects
    assert (await swept(lab)).deleted == 1
    assert other not in lab.store.objects


async def test_a_sweep_that_died_after_its_link_is_finished_by_the_next_one(lab: RecordingLab) -> None:
    await recorded(lab)
    (first, *_) = (await lab.chain()).increments
    await lab.writer().append(dropped=[first.stored.name])
    done = await swept(lab, later=HOUR)
    assert (done.dropped, done.deleted) == (0, 1)
    assert first.stored.name not in lab.store.objects


async def test_locked_objects_are_left_and_told(lab: RecordingLab) -> None:
    await recorded(lab)
    one, other, *_ = [each.stored.name for each in (await lab.chain()).increments]
    deleted = lab.store.delete

    async def delete(names: Sequence[str]) -> None:
        if one in names:
            raise Unavailable(f"deleting {one}", "access is denied: the object is locked")
        await deleted(names)

    lab.store.delete = delete  # type: ignore[method-assign]
    await swept(lab, [one, other])
    done = await swept(lab, later=HOUR)
    assert done.refused == ((one, "access is denied: the object is locked"),)
    assert (one in lab.store.objects, other in lab.store.objects) == (True, False)


async def test_without_the_lease_nothing_is_deleted(lab: RecordingLab) -> None:
    await recorded(lab)
    await lab.store.create(f"{PREFIX}/data/old", b"")
    lab.store.now += 2 * DAY
    await lab.store.create(f"{PREFIX}/data/new", b"")

    async def lost() -> None:
        raise LeaseLost("driving alpha", "another process has the lease")

    lab.checks = lost
    with pytest.raises(LeaseLost):
        await swept(lab)
    assert f"{PREFIX}/data/old" in lab.store.objects


async def test_a_store_that_refuses_everything_is_not_asked_for_ever(lab: RecordingLab) -> None:
    for number in range(20):
        await lab.store.create(f"{PREFIX}/data/{number}", b"")
    lab.store.now += 2 * DAY
    await recorded(lab)
    asked = 0

    async def delete(names: Sequence[str]) -> None:
        nonlocal asked
        asked += 1
        raise Unavailable("deleting", "no answer")

    lab.store.delete = delete  # type: ignore[method-assign]
    done = await swept(lab)
    assert asked == len(done.refused) == 5


async def test_a_store_that_holds_each_object_for_a_time_is_swept_as_soon_as_it_lets_go(lab: RecordingLab) -> None:
    """The oldest ones come first: however many are held, those that the store lets go are deleted."""
    lab.store.held_for = 14 * DAY
    for number in (3, 1, 2):
        await lab.store.create(f"{PREFIX}/data/{9 - number}", b"left by a writer that died")
        lab.store.now += DAY
    for number in range(20):
        await lab.store.create(f"{PREFIX}/data/0{number}", b"left later")
    lab.store.now += 2 * DAY
    await recorded(lab)
    chain = await lab.chain()
    held = await overdue(lab.store, PREFIX, chain, lab.now())
    assert (len(held), (await swept(lab)).deleted) == (23, 0)
    lab.store.now += 10 * DAY
    await lab.store.create(f"{PREFIX}/data/clock", b"what time is it")
    done = await swept(lab)
    assert (done.deleted, len(done.refused)) == (2, 5)
    assert f"{PREFIX}/data/6" not in lab.store.objects
    assert f"{PREFIX}/data/8" not in lab.store.objects
    await lab.restored(lab.cluster.revision)


async def test_held_links_are_read_and_deleted_later(lab: RecordingLab) -> None:
    lab.store.held_for = DAY
    chains = ChainStore(lab.store, PLANE, PREFIX, checkpoint_links=4)
    writer = lab.writer(chains)
    for number in range(14):
        await writer.append(belongings=ObjectReference(name=f"{PREFIX}/data/{number}", sha256="", size_bytes=0))
    assert (await sweep(lab.store, PREFIX, writer, (), lab.checks, lab.now)).links == 0
    assert (await chains.read()).length == 14
    lab.store.now += DAY
    assert (await sweep(lab.store, PREFIX, writer, (), lab.checks, lab.now)).links == 7
    assert (await chains.read()).length == 14
