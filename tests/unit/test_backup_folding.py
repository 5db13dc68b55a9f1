"""Increments that are folded into a full backup: the same moments, fewer objects, and etcd is not asked."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from pyrage import x25519
from support.recording_lab import RecordingLab

from quarterdeck.backup import folding
from quarterdeck.backup.chain import Chain
from quarterdeck.backup.folding import fold, fold_due
from quarterdeck.backup.recording.policy import FullReason, RecordingPace, why_full
from quarterdeck.backup.retention import Retention, droppable
from quarterdeck.backup.sealing import Identities, Recipients
from quarterdeck.errors import Corrupt, NotFound, PreconditionFailed, Unavailable

KEY = x25519.Identity.generate()
KEYS = Identities((str(KEY),))


@pytest.fixture
def lab(tmp_path: Path) -> RecordingLab:
    return RecordingLab(tmp_path, recipients=Recipients((str(KEY.to_public()),)), keys=KEYS)


async def recorded(lab: RecordingLab, times: int = 5) -> None:
    async with lab.recording() as recorder:
        for number in range(times):
            await lab.all_stored(recorder)
            lab.cluster.put(b"/k/%d" % number, b"value", lab.cluster.grant(60))
            lab.cluster.write(2)
        await lab.all_stored(recorder)


async def folded(lab: RecordingLab, keys: Identities = KEYS) -> None:
    lab.cluster.stop(lab.urls[0])  # etcd is not asked: most of it is away
    lab.cluster.stop(lab.urls[1])
    await fold(lab.writer(), lab.deposit, "main", 0, keys, lab.folder / "scratch")
    lab.cluster.start(lab.addresses[0])
    lab.cluster.start(lab.addresses[1])


async def test_what_is_folded_is_restored_without_increments(lab: RecordingLab) -> None:
    await recorded(lab)
    newest = lab.cluster.revision
    before = await lab.restored(newest)
    await folded(lab)
    moment = (await lab.chain()).latest("main", 0)
    assert (moment.revision, moment.increments) == (newest, ())
    assert await lab.restored(newest) == before == (lab.rows(newest), before[1])
    original, new = (await lab.chain()).fulls
    assert (new.hash, new.folded_from) == (original.hash, original.revision)
    content = await lab.content(new.stored)
    assert content[-32:] == hashlib.sha256(content[:-32]).digest(), "as etcd's own snapshots end"


async def test_old_increments_can_be_dropped_after_it_and_recording_goes_on(lab: RecordingLab) -> None:
    await recorded(lab)
    await folded(lab)
    chain = await lab.chain()
    policy = Retention(last=1, daily=0, weekly=0, continuous=lab.now() - lab.now())
    dropped = droppable(chain, policy, lab.now())
    await lab.writer().append(dropped=dropped)
    assert len((await lab.chain()).names()) == 1
    await recorded(lab)
    await folded(lab)
    assert [reason for _, reason in lab.events.fulls] == [FullReason.FIRST]
    assert lab.events.gaps == []
    rows, _ = await lab.restored(lab.cluster.revision)
    assert rows == lab.rows(lab.cluster.revision)


async def test_a_moment_that_is_a_full_backup_already_is_not_folded(lab: RecordingLab) -> None:
    await recorded(lab, times=0)
    objects = dict(lab.store.objects)
    assert await fold(lab.writer(), lab.deposit, "main", 0, KEYS, lab.folder) is None
    assert lab.store.objects == objects
    with pytest.raises(NotFound):
        await fold(lab.writer(), lab.deposit, "events", 0, KEYS, lab.folder)


@pytest.mark.parametrize("what", ["full", "increment", "key", "store"])
async def test_what_cannot_be_read_is_one_error_and_adds_nothing(lab: RecordingLab, what: str) -> None:
    await recorded(lab)
    chain = await lab.chain()
    damaged = chain.fulls[0].stored.name if what == "full" else chain.increments[2].stored.name
    keys, expected = KEYS, Corrupt
    if what == "key":
        keys, expected = Identities((str(x25519.Identity.generate()),)), PreconditionFailed
    elif what == "store":
        expected = Unavailable

        async def read(name: str) -> bytes:
            raise Unavailable(f"reading {name}", "no answer")

        lab.store.stream = _failing  # type: ignore[method-assign]
    else:
        content, at = lab.store.objects[damaged]
        lab.store.objects[damaged] = (content[:-40] + bytes(3) + content[-37:], at)
    before = dict(lab.store.objects)
    with pytest.raises(expected) as error:
        await fold(lab.writer(), lab.deposit, "main", 0, keys, lab.folder / "scratch")
    assert "\n" not in str(error.value)
    assert lab.store.objects == before
    assert not [*(lab.folder / "scratch").iterdir()]


async def _failing(name: str):
    raise Unavailable(f"reading {name}", "no answer")
    yield b""


async def test_a_fold_that_is_cancelled_adds_nothing_and_leaves_nothing(lab: RecordingLab) -> None:
    await recorded(lab)
    reached = asyncio.Event()
    stream, reads = lab.store.stream, 0

    async def slow(name: str):
        nonlocal reads
        reads += 1
        if reads == 4:
            reached.set()
        async for part in stream(name):
            yield part

    lab.store.stream = slow  # type: ignore[method-assign]
    before = dict(lab.store.objects)
    folding = asyncio.ensure_future(fold(lab.writer(), lab.deposit, "main", 0, KEYS, lab.folder / "scratch"))
    await reached.wait()
    folding.cancel()
    await asyncio.wait((folding,))
    assert folding.cancelled()
    assert lab.store.objects == before
    assert not [*(lab.folder / "scratch").iterdir()]


async def test_a_folded_backup_does_not_delay_one_out_of_etcd(lab: RecordingLab) -> None:
    await recorded(lab)
    await folded(lab)
    chain = await lab.chain()
    pace = RecordingPace()
    assert chain.fulls[1].taken_at == chain.fulls[0].at
    alone = replace(chain, fulls=chain.fulls[1:])

    def why(of: Chain, later: float) -> FullReason | None:
        now = chain.fulls[0].at + pace.full_after * later
        return why_full(of, "main", 0, versions={chain.fulls[0].etcd_version}, now=now, pace=pace)

    for each in (chain, alone):
        assert (why(each, 0.9), why(each, 1)) == (None, FullReason.DUE)


async def test_increments_are_folded_once_they_are_larger_than_the_full_backup_behind_which_they_are(
    lab: RecordingLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await recorded(lab)
    chain = await lab.chain()
    assert fold_due(chain, "main", 0) is None
    size = sum(each.stored.size_bytes for each in chain.increments)
    monkeypatch.setattr(folding, "FOLDED_BYTES", size)
    assert size > chain.fulls[0].stored.size_bytes
    assert fold_due(chain, "main", 0) == chain.fulls[0]
    assert (fold_due(chain, "events", 0), fold_due(chain, "main", 1)) == (None, None)
    large = chain.fulls[0].stored.model_copy(update={"size_bytes": size + 1})
    fulls = (chain.fulls[0].model_copy(update={"stored": large}),)
    assert fold_due(replace(chain, fulls=fulls), "main", 0) is None
    await folded(lab)
    assert fold_due(await lab.chain(), "main", 0) is None


async def test_a_disk_without_room_is_said_before_anything_is_read(
    lab: RecordingLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await recorded(lab)
    monkeypatch.setattr(folding, "expected_bytes", lambda moment: 1 << 60)
    with pytest.raises(Unavailable, match="free on the disk"):
        await folded(lab)
    assert len((await lab.chain()).fulls) == 1
