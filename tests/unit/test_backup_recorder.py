"""The recording of a cluster: what is stored can be restored at every revision, whatever fails meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyrage import x25519
from support.recording_lab import QUICK, RecordingLab, until
from support.tiers import in_each_tier, sized

from quarterdeck.backup.recording.policy import FullReason, Side
from quarterdeck.backup.sealing import Identities, Recipients
from quarterdeck.errors import LeaseLost, PreconditionFailed, Unavailable


@pytest.fixture
def lab(tmp_path: Path) -> RecordingLab:
    return RecordingLab(tmp_path)


async def check_all(lab: RecordingLab, first: int) -> None:
    """Every revision from ``first`` to the newest one is restored as etcd had it."""
    newest = lab.cluster.revision
    chain = await lab.chain()
    assert chain.ranges("main", lab.epoch)[-1][1] == newest
    for revision in {first, newest, *random.Random(newest).sample(range(first, newest + 1), min(5, newest - first))}:
        rows, _ = await lab.restored(revision)
        assert rows == lab.rows(revision), f"revision {revision}"


async def test_every_revision_since_the_first_backup_can_be_restored(lab: RecordingLab) -> None:
    begins = lab.cluster.revision
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        for number in range(20):
            lab.cluster.put(b"/k/%d" % (number % 3), b"value %d" % number)
            lab.cluster.write(number)
            if number % 4 == 0:
                lab.cluster.delete(b"/k/%d" % (number % 3))
                await lab.all_stored(recorder)
        await lab.all_stored(recorder)
    assert lab.events.fulls == [(begins, FullReason.FIRST)]
    assert (lab.events.gaps, lab.events.failures) == ([], [])
    await check_all(lab, begins)


async def test_what_is_stored_is_encrypted_for_its_recipients(tmp_path: Path) -> None:
    key = x25519.Identity.generate()
    lab = RecordingLab(tmp_path, recipients=Recipients((str(key.to_public()),)), keys=Identities((str(key),)))
    async with lab.recording() as recorder:
        lab.cluster.put(b"/secret", b"a very secret value")
        await lab.all_stored(recorder)
        lab.cluster.put(b"/secret", b"a very secret value")
        await lab.all_stored(recorder)
        lab.store.away()
        lab.cluster.put(b"/secret", b"a very secret value")
        await until(lambda: lab.events.failures)
        await until(lambda: [*(tmp_path / "spool/main").iterdir()])
        spooled = b"".join(path.read_bytes() for path in (tmp_path / "spool/main").iterdir())
        assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "spool/main").iterdir())
        lab.store.back()
        await lab.all_stored(recorder)
    await check_all(lab, lab.cluster.revision - 1)
    assert b"secret" not in spooled
    data = [content for name, (content, _) in lab.store.objects.items() if "/data/" in name]
    assert len(data) == 3
    assert not any(b"secret" in each for each in data)


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("call", range(1, 13))
async def test_a_call_of_the_store_that_fails_is_made_again(lab: RecordingLab, call: int, done: bool) -> None:
    def fault(number: int, does: str, was_done: bool) -> None:
        if number == call and was_done is done:
            raise Unavailable(does, "no answer")

    lab.store.fault = fault
    begins = lab.cluster.revision
    async with lab.recording() as recorder:
        for _ in range(5):
            await lab.all_stored(recorder)
            lab.cluster.write(2)
        await lab.all_stored(recorder)
    assert lab.events.gaps == []
    assert [reason for _, reason in lab.events.fulls] == [FullReason.FIRST]
    await check_all(lab, begins)
    chain = await lab.chain()
    spans = [(each.first, each.last) for each in chain.increments]
    assert spans == sorted(spans)
    assert all(one[1] < other[0] for one, other in zip(spans, spans[1:], strict=False)), "nothing is stored twice"


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", range(1, 13))
async def test_a_recorder_that_is_killed_at_any_call_is_continued_without_a_gap(
    lab: RecordingLab, call: int, done: bool
) -> None:
    """A killed one makes no call more: what it had in memory is gone."""
    lab.cluster.write(3)
    begins = lab.cluster.revision
    recorder = lab.recorder()
    running = asyncio.ensure_future(recorder.run())

    def fault(number: int, does: str, was_done: bool) -> None:
        if number >= call and (was_done is done or number > call):
            running.cancel()
            raise Unavailable(does, "no answer")

    lab.store.fault = fault
    for _ in range(6):
        lab.cluster.write(2)
        if not running.done():
            waiting = asyncio.ensure_future(recorder.covered(lab.cluster.revision))
            await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED, timeout=20)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    lab.store.back()
    async with lab.recording() as second:
        await lab.all_stored(second)
    assert lab.events.gaps == []
    chain = await lab.chain()
    assert begins <= chain.fulls[0].revision <= lab.cluster.revision
    await check_all(lab, chain.fulls[0].revision)


async def test_while_the_store_is_away_changes_wait_on_the_disk_and_a_compaction_loses_nothing(
    lab: RecordingLab, tmp_path: Path
) -> None:
    begins = lab.cluster.revision
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        lab.store.away()
        await spool_pieces(lab, 5)
        assert recorder_failures(lab) == {Side.STORE}
        lab.cluster.compacted = lab.cluster.revision
    # It is killed, and the next one starts while the store is still away.
    async with lab.recording() as recorder:
        lab.cluster.write(4)
        await until(lambda: _spooled(lab) == lab.cluster.revision)
        lab.cluster.compacted = lab.cluster.revision
        lab.store.back()
        await lab.all_stored(recorder)
        assert Side.STORE in lab.events.back
        await until(lambda: not [*(tmp_path / "spool/main").iterdir()])
    assert (lab.events.gaps, len(lab.events.fulls)) == ([], 1)
    await check_all(lab, begins)


async def spool_pieces(lab: RecordingLab, count: int) -> None:
    """Write so many times, each time once what was written before is on the disk."""
    for _ in range(count):
        lab.cluster.write(3)
        reached = lab.cluster.revision
        await until(lambda: _spooled(lab) >= reached)  # noqa: B023


def recorder_failures(lab: RecordingLab) -> set[Side]:
    return {side for side, _, _ in lab.events.failures}


def _spooled(lab: RecordingLab) -> int:
    """The newest revision that is on the disk."""
    folder = lab.folder / "spool/main"
    return max((int(path.name[21:41]) for path in folder.glob("0*.increment")), default=0)


async def test_history_that_was_compacted_while_nobody_recorded_is_a_gap_and_a_new_full_backup(
    lab: RecordingLab,
) -> None:
    async with lab.recording() as recorder:
        lab.cluster.write(3)
        await lab.all_stored(recorder)
    ends = lab.cluster.revision
    lab.cluster.write(10)
    lab.cluster.compacted = ends + 5
    begins = lab.cluster.revision
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        lab.cluster.write(3)
        await lab.all_stored(recorder)
    assert lab.events.gaps == [(ends + 1, begins - 1)]
    assert lab.events.fulls[-1] == (begins, FullReason.HISTORY_LOST)
    assert (await lab.chain()).ranges("main", 0) == ((ends, ends), (begins, lab.cluster.revision))
    assert (await lab.chain()).fulls[-1].lost_from == ends + 1
    lab.events.gaps.clear()
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
    assert lab.events.gaps == [(ends + 1, begins - 1)], (
        "whoever was killed before telling it has it told by the next one"
    )
    await check_all(lab, begins)


async def test_a_full_spool_is_discarded_and_etcd_is_asked_again(lab: RecordingLab) -> None:
    begins = lab.cluster.revision
    lab.spool_bytes = 3000
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        lab.store.away()
        while not lab.events.discarded:
            lab.cluster.write(1)
            await asyncio.sleep(0.001)
        assert _spooled(lab) == 0
        lab.cluster.write(5)
        lab.store.back()
        await lab.all_stored(recorder)
    assert (lab.events.gaps, len(lab.events.fulls)) == ([], 1)
    assert "bytes wait for the store" in lab.events.discarded[0]
    await check_all(lab, begins)


async def test_a_full_spool_and_a_compaction_are_a_gap_and_a_new_full_backup(lab: RecordingLab) -> None:
    lab.spool_bytes = 3000
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        lab.store.away()
        while not lab.events.discarded:
            lab.cluster.write(1)
            await asyncio.sleep(0.001)
        lab.cluster.write(5)
        lab.cluster.compacted = begins = lab.cluster.revision
        lab.store.back()
        await lab.all_stored(recorder)
        lab.cluster.write(2)
        await lab.all_stored(recorder)
    assert lab.events.fulls[-1] == (begins, FullReason.HISTORY_LOST)
    ((first, last),) = lab.events.gaps
    assert first > 10
    assert last == begins - 1
    await check_all(lab, begins)


async def test_a_new_epoch_begins_with_a_full_backup_and_uses_nothing_of_the_one_before(lab: RecordingLab) -> None:
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        lab.store.away()
        lab.cluster.write(3)
        await until(lambda: _spooled(lab) == lab.cluster.revision)
    lab.epoch += 1
    lab.store.back()
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        lab.cluster.write(3)
        await lab.all_stored(recorder)
    assert [reason for _, reason in lab.events.fulls] == [FullReason.FIRST, FullReason.EPOCH]
    assert lab.events.gaps == []
    chain = await lab.chain()
    assert {each.epoch for each in chain.increments} == {1}
    await check_all(lab, lab.events.fulls[-1][0])


async def test_of_two_recorders_of_one_chain_one_ends_and_the_other_goes_on(lab: RecordingLab) -> None:
    begins = lab.cluster.revision
    recorders = [lab.recorder(), lab.recorder()]
    running = {asyncio.ensure_future(each.run()): each for each in recorders}
    ended: set[asyncio.Future[None]] = set()
    while not ended:
        lab.cluster.write(1)
        ended, _ = await asyncio.wait(running, timeout=0.01, return_when=asyncio.FIRST_COMPLETED)
    (loser,) = ended
    with pytest.raises(LeaseLost, match="another process has written link"):
        loser.result()
    with pytest.raises(Unavailable, match="the recording has ended"):
        await running.pop(loser).covered(lab.cluster.revision + 1)
    ((winner, recorder),) = running.items()
    lab.cluster.write(1)
    await lab.all_stored(recorder)
    winner.cancel()
    await asyncio.wait((winner,))
    await check_all(lab, max(begins, lab.events.fulls[0][0]))


async def test_without_the_lease_no_link_is_written(lab: RecordingLab) -> None:
    async def lost() -> None:
        raise LeaseLost("driving alpha", "another process has the lease")

    lab.checks = lost
    with pytest.raises(LeaseLost):
        async with asyncio.timeout(20):
            await lab.recorder().run()
    assert not any("/links/" in name for name in lab.store.objects)


async def test_a_cluster_that_is_behind_its_own_backup_is_not_recorded(lab: RecordingLab) -> None:
    async with lab.recording() as recorder:
        lab.cluster.write(10)
        await lab.all_stored(recorder)
    lab.cluster.index -= 5
    with pytest.raises(PreconditionFailed, match="by hand"):
        async with asyncio.timeout(20):
            await lab.recorder().run()


async def test_a_new_version_of_etcd_leads_to_a_full_backup_beside_the_increments(lab: RecordingLab) -> None:
    begins = lab.cluster.revision
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        for node in lab.cluster.nodes:
            node.version = "3.7.0"
        await until(lambda: len(lab.events.fulls) == 2)
        lab.cluster.write(3)
        await lab.all_stored(recorder)
    assert [reason for _, reason in lab.events.fulls] == [FullReason.FIRST, FullReason.VERSION]
    assert lab.events.gaps == []
    await check_all(lab, begins)


async def test_a_full_backup_is_due_after_a_time(lab: RecordingLab) -> None:
    lab.pace = replace(QUICK, full_after=timedelta(milliseconds=50))
    begins = lab.cluster.revision
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        while len(lab.events.fulls) < 4:
            lab.cluster.write(1)
            await lab.all_stored(recorder)
    assert {reason for _, reason in lab.events.fulls[1:]} == {FullReason.DUE}
    assert lab.events.gaps == []
    await check_all(lab, begins)


async def test_the_backup_of_a_quiet_cluster_stays_young_and_writes_nothing(lab: RecordingLab) -> None:
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        objects, before = len(lab.store.objects), len(lab.events.restorables)
        await until(lambda: len(lab.events.restorables) >= before + 5)
        assert len(lab.store.objects) == objects
    times = [at for _, at in lab.events.restorables]
    assert times == sorted(times)
    assert times[-1] > times[before - 1]
    assert {revision for revision, _ in lab.events.restorables} == {lab.cluster.revision}


async def test_what_is_not_stored_yet_is_not_told_to_be_restorable(lab: RecordingLab) -> None:
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        lab.store.away()
        lab.cluster.write(1)
        written_at = lab.now()
        await until(lambda: lab.events.failures)
        before = len(lab.events.restorables)
        assert all(at <= written_at for _, at in lab.events.restorables[before:])
        lab.store.back()
        await lab.all_stored(recorder)
        await until(lambda: lab.events.restorables[-1][1] > written_at)
    since = {since for _, since, _ in lab.events.failures}
    assert len(since) == 1


async def test_leases_are_stored_with_the_keys_that_have_them(lab: RecordingLab) -> None:
    old = lab.cluster.grant(600)
    lab.cluster.put(b"/old", b"", old)
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        new = lab.cluster.grant(300)
        lab.cluster.put(b"/new", b"", new)
        await lab.all_stored(recorder)
        assert {key: each.granted for key, each in (await lab.leases()).items()} == {old: 600, new: 300}
        attached = lab.cluster.revision
        lab.cluster.expire(old)
        lab.cluster.put(b"/more", b"")
        await lab.all_stored(recorder)
    _, leases = await lab.restored(attached)
    assert {int.from_bytes(each) for each in leases} == {old, new}


async def test_a_lease_that_has_ended_before_it_was_read_ends_where_it_is_restored(lab: RecordingLab) -> None:
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        short = lab.cluster.grant(5)
        attached = lab.cluster.put(b"/short", b"", short)
        lab.cluster.expire(short)
        await lab.all_stored(recorder)
    rows, leases = await lab.restored(attached)
    assert rows == lab.rows(attached)
    assert {int.from_bytes(each) for each in leases} == {short}


async def test_another_member_is_asked_when_one_is_gone_and_all_is_told_when_none_answers(lab: RecordingLab) -> None:
    begins = lab.cluster.revision
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        for gone in lab.addresses:
            lab.cluster.stop(gone.client_url)
            lab.cluster.write(2)
            await lab.all_stored(recorder)
            lab.cluster.start(gone)
        for gone in lab.addresses:
            lab.cluster.stop(gone.client_url)
        await until(lambda: any("members answer" in text for _, _, text in lab.events.failures))
        for gone in lab.addresses:
            lab.cluster.start(gone)
        lab.cluster.write(2)
        await lab.all_stored(recorder)
        await until(lambda: Side.CLUSTER in lab.events.back)
    assert recorder_failures(lab) == {Side.CLUSTER}
    await check_all(lab, begins)


async def test_two_clusters_of_a_plane_share_one_chain(lab: RecordingLab) -> None:
    writer = lab.writer()
    recorders = [lab.recorder(cluster, writer) for cluster in ("main", "events")]
    running = [asyncio.ensure_future(each.run()) for each in recorders]
    for _ in range(10):
        lab.cluster.write(1)
        for each in recorders:
            await lab.all_stored(each)
    for each in running:
        each.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert all(each.cancelled() for each in running)
    for cluster in ("main", "events"):
        rows, _ = await lab.restored(lab.cluster.revision, cluster)
        assert rows == lab.rows(lab.cluster.revision)


async def test_a_spooled_piece_that_is_damaged_is_read_from_etcd_again(lab: RecordingLab) -> None:
    begins = lab.cluster.revision
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        lab.store.away()
        await spool_pieces(lab, 4)
    path = sorted((lab.folder / "spool/main").iterdir())[1]
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    lab.store.back()
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
        lab.cluster.write(1)
        await lab.all_stored(recorder)
    assert lab.events.gaps == []
    await check_all(lab, begins)


@pytest.mark.parametrize("seed", range(sized(smoke=6, full=12, soak=400)))
@in_each_tier
async def test_whatever_happens_each_revision_is_restored_or_told_to_be_a_gap(lab: RecordingLab, seed: int) -> None:
    """Kills, a store that comes and goes, compactions, members that go, a small spool: in any order."""
    lots = random.Random(seed)
    lab.spool_bytes = lots.choice((4000, 1 << 20))
    lab.pace = replace(QUICK, full_after=timedelta(milliseconds=lots.choice((10**8, 30))))
    for _ in range(lots.randrange(2, 6)):
        async with lab.recording() as recorder:
            for _ in range(lots.randrange(1, 25)):
                _happens(lab, lots)
                await asyncio.sleep(lots.choice((0, 0.001, 0.004)))
            if lots.randrange(2):
                lab.store.back()
                await lab.all_stored(recorder)
        lab.cluster.write(lots.randrange(5))
    lab.store.back()
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
    chain = await lab.chain()
    ranges = chain.ranges("main", 0)
    missing = {each for one, other in zip(ranges, ranges[1:], strict=False) for each in range(one[1] + 1, other[0])}
    in_gaps = {each for one, last in lab.events.gaps for each in range(one, last + 1)}
    assert missing == in_gaps
    assert ranges[-1][1] == lab.cluster.revision
    covered = [each for one, last in ranges for each in range(one, last + 1)]
    for revision in {covered[0], covered[-1], *lots.sample(covered, min(8, len(covered)))}:
        rows, _ = await lab.restored(revision)
        assert rows == lab.rows(revision), f"revision {revision}"


def _happens(lab: RecordingLab, lots: random.Random) -> None:
    match lots.randrange(12):
        case 0:
            lab.store.away()
        case 1 | 2:
            lab.store.back()
        case 3 if lots.randrange(3) == 0:
            lab.cluster.compacted = max(lab.cluster.compacted, lab.cluster.revision - lots.randrange(6))
        case 4:
            lab.store.fault = _flaky(lots)
        case 5:
            gone = lots.choice(lab.addresses)
            lab.cluster.stop(gone.client_url)
            lab.cluster.start(gone)
        case 6:
            lab.cluster.put(b"/leased", lots.randbytes(100), lab.cluster.grant(60))
        case _:
            lab.cluster.write(lots.randrange(1, 6))


def _flaky(lots: random.Random) -> Callable[[int, str, bool], None]:
    def fault(number: int, does: str, done: bool) -> None:
        if lots.randrange(3) == 0:
            raise Unavailable(does, "no answer")

    return fault


async def test_who_waits_for_a_revision_learns_that_the_recording_has_ended(lab: RecordingLab) -> None:
    recorder = lab.recorder()
    running = asyncio.ensure_future(recorder.run())
    waiting = asyncio.ensure_future(recorder.covered(lab.cluster.revision + 100))
    await until(lambda: lab.events.fulls)
    running.cancel()
    with pytest.raises(Unavailable, match="the recording has ended"):
        await waiting
    await asyncio.wait((running,))
