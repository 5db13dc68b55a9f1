"""Databases out of a chain: whole and equal to what was stored, or one clear error and nothing."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import random
import resource
import struct
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.objects import MemoryObjects
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from pyrage import x25519
from support.databases import (
    IDENTITIES,
    RECIPIENTS,
    StoredMoment,
    database,
    history,
    parted,
    snapshot,
    stored,
    stored_moment,
)
from support.tiers import in_each_tier, sized
from typing_extensions import override

from quarterdeck.backup import making
from quarterdeck.backup.build import build
from quarterdeck.backup.chain import ObjectReference
from quarterdeck.backup.contents import keys_at
from quarterdeck.backup.database import newest_revision
from quarterdeck.backup.sealing import Identities, Recipients, unseal
from quarterdeck.errors import Conflict, Corrupt, PreconditionFailed, QuarterdeckError, Unavailable

WRITES = [{f"/registry/pods/default/p{number % 40}": b"v%d" % number * 50} for number in range(300)]
CHANGES = history(WRITES)
#: The last revision of the full backup, and the one that is restored.
FULL, TO = 120, 277


@pytest.fixture
async def made(tmp_path: Path) -> StoredMoment:
    return await chain(tmp_path)


async def chain(folder: Path, recipients: Recipients = RECIPIENTS) -> StoredMoment:
    full = database(folder / "full", [each for each in CHANGES if each.revision <= FULL])
    increments = parted([each for each in CHANGES if each.revision > FULL], 30)
    return await stored_moment(full, increments, revision=TO, begins=FULL, recipients=recipients)


def target(folder: Path) -> Path:
    (folder / "out").mkdir(exist_ok=True)
    return folder / "out" / "db"


def left(folder: Path) -> list[str]:
    return sorted(each.name for each in (folder / "out").iterdir())


async def built(made: StoredMoment, folder: Path, identities: Identities = IDENTITIES) -> Path:
    return (await build(made.store, made.moment, identities, target(folder))).path


async def refused(made: StoredMoment, folder: Path, identities: Identities = IDENTITIES) -> QuarterdeckError:
    """The error of a build, which leaves nothing."""
    with pytest.raises(QuarterdeckError) as seen:
        await built(made, folder, identities)
    assert left(folder) == []
    assert "\n" not in str(seen.value)
    return seen.value


async def test_a_database_is_built_for_its_owner_alone_and_nothing_is_left_beside_it(
    made: StoredMoment, tmp_path: Path
) -> None:
    result = await build(made.store, made.moment, IDENTITIES, target(tmp_path))
    assert (result.revision, newest_revision(result.path)) == (TO, TO)
    assert (result.objects, result.size_bytes) == (1 + len(made.moment.increments), result.path.stat().st_size)
    assert result.path.stat().st_mode & 0o777 == 0o600
    assert left(tmp_path) == ["db"]
    expected = {name: value for each in WRITES[: TO - 1] for name, value in each.items()}
    assert {each.key.decode(): each.value for each in keys_at(result.path)} == expected


async def test_a_full_backup_alone_is_a_moment(made: StoredMoment, tmp_path: Path) -> None:
    made.moment = replace(made.moment, increments=(), revision=FULL)
    path = await built(made, tmp_path)
    assert path.read_bytes() == (tmp_path / "full").read_bytes()


async def test_of_two_builds_at_the_same_place_the_second_is_refused(made: StoredMoment, tmp_path: Path) -> None:
    place = target(tmp_path).with_name(".db.made")
    with place.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Conflict, match="another process is at it"):
            await built(made, tmp_path)
    assert left(tmp_path) == [".db.made"]


async def test_what_a_killed_build_left_is_used_up(made: StoredMoment, tmp_path: Path) -> None:
    target(tmp_path).with_name(".db.made").write_bytes(b"half" * 100_000)
    assert newest_revision(await built(made, tmp_path)) == TO
    assert left(tmp_path) == ["db"]


def test_what_killed_processes_left_is_removed_and_what_others_have_is_not(tmp_path: Path) -> None:
    for name in (".db.made", ".db.etcd.made", ".other.made", "db"):
        (tmp_path / name).write_bytes(b"secret")
    (tmp_path / ".db.etcd" / "data").mkdir(parents=True)
    (tmp_path / ".db.etcd" / "data" / "db").write_bytes(b"secret")
    (tmp_path / ".elsewhere").mkdir()
    with (tmp_path / ".other.made").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        making.remove_left(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [".elsewhere", ".other.made", "db"]


class Slow(MemoryObjects):
    """A store that does not go on at one object until it is told."""

    def __init__(self, store: MemoryObjects, at: str) -> None:
        super().__init__()
        self.objects = store.objects
        self._at = at
        self.reached = asyncio.Event()

    @override
    async def stream(self, name: str) -> AsyncGenerator[bytes, None]:
        async with aclosing(super().stream(name)) as parts:
            async for part in parts:
                if name == self._at:
                    self.reached.set()
                    await asyncio.Event().wait()
                yield part


@pytest.mark.parametrize("number", [0, 1, 2, 5])
async def test_a_build_that_is_cancelled_leaves_nothing(made: StoredMoment, tmp_path: Path, number: int) -> None:
    store = Slow(made.store, [*made.store.objects][number])
    building = asyncio.ensure_future(build(store, made.moment, IDENTITIES, target(tmp_path)))
    await store.reached.wait()
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    assert left(tmp_path) == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


# --- damage


async def test_a_bit_that_flipped_in_any_object_is_found(made: StoredMoment, tmp_path: Path) -> None:
    lots = random.Random(1)
    for name, (content, at) in [*made.store.objects.items()]:
        changed = bytearray(content)
        changed[lots.randrange(len(changed))] ^= 1 << lots.randrange(8)
        made.store.objects[name] = (bytes(changed), at)
        assert name in str(await refused(made, tmp_path))
        made.store.objects[name] = (content, at)


@pytest.mark.parametrize("number", [0, 1, 3])
async def test_a_missing_object_is_named(made: StoredMoment, tmp_path: Path, number: int) -> None:
    name = [*made.store.objects][number]
    del made.store.objects[name]
    error = await refused(made, tmp_path)
    assert isinstance(error, Corrupt)
    assert f"reading {name}: it is missing" in str(error)


async def test_an_increment_that_the_chain_lost_is_a_gap(made: StoredMoment, tmp_path: Path) -> None:
    first, _, *rest = made.moment.increments
    made.moment = replace(made.moment, increments=(first, *rest))
    assert "the backup has no revision 151; revision 181 is the next one" in str(await refused(made, tmp_path))


async def test_objects_that_changed_places_are_found(made: StoredMoment, tmp_path: Path) -> None:
    first, second, *rest = made.moment.increments
    swapped = (
        first.model_copy(update={"stored": second.stored}),
        second.model_copy(update={"stored": first.stored}),
    )
    made.moment = replace(made.moment, increments=(*swapped, *rest))
    assert "it has revisions 151 to 180, and the chain names 121 to 150" in str(await refused(made, tmp_path))
    made.moment = replace(made.moment, increments=(second, first, *rest))
    assert "the backup has no revision 121" in str(await refused(made, tmp_path))


async def test_an_object_that_is_cut_is_never_half_restored(made: StoredMoment, tmp_path: Path) -> None:
    for name, (content, at) in [*made.store.objects.items()]:
        made.store.objects[name] = (content[: len(content) * 2 // 3], at)
        assert name in str(await refused(made, tmp_path))
        made.store.objects[name] = (content, at)


async def test_a_snapshot_that_was_not_whole_when_it_was_stored_is_found(made: StoredMoment, tmp_path: Path) -> None:
    whole = snapshot(tmp_path / "full")
    for content in (whole[:-1], whole[:-32], whole[:4096] + whole[8192:], b""):
        reference = await stored(made.store, "data/full", content)
        made.moment = replace(made.moment, full=made.moment.full.model_copy(update={"stored": reference}))
        assert "the hash that etcd put behind this snapshot" in str(await refused(made, tmp_path))


async def test_a_full_backup_of_another_revision_is_found(made: StoredMoment, tmp_path: Path) -> None:
    made.moment = replace(made.moment, full=made.moment.full.model_copy(update={"revision": FULL - 1}))
    assert f"it has revision {FULL}, and the chain names revision {FULL - 1}" in str(await refused(made, tmp_path))


async def test_a_wrong_key_and_none_are_said(made: StoredMoment, tmp_path: Path) -> None:
    other = Identities((str(x25519.Identity.generate()),))
    assert "without it the data is lost" in str(await refused(made, tmp_path, other))
    assert isinstance(await refused(made, tmp_path, Identities()), PreconditionFailed)


async def test_a_disk_without_room_is_said_before_anything_is_read(
    made: StoredMoment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "_SPARE", 1 << 60)
    made.store.objects.clear()
    assert "make room on that disk" in str(await refused(made, tmp_path))


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process gets larger: writing fails as on a full disk. Python ignores the signal."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("factor", [0.5, 1.1], ids=["in the full backup", "in the increments"])
async def test_a_disk_that_fills_up_leaves_nothing(made: StoredMoment, tmp_path: Path, factor: float) -> None:
    target(tmp_path)
    with largest_file(int((tmp_path / "full").stat().st_size * factor)):
        error = await refused(made, tmp_path)
    assert isinstance(error, Unavailable)
    assert isinstance(error.__cause__, OSError)
    assert error.__cause__.errno == errno.EFBIG


# --- objects that are damaged in any way, also those that were stored so


async def undamaged(folder: Path) -> StoredMoment:
    """The chain that is damaged, made once for all examples of a test. It is not encrypted, so that damage gets in."""
    if folder not in _CHAINS:
        _CHAINS.clear()
        _CHAINS[folder] = await chain(folder, Recipients())
    made = _CHAINS[folder]
    store = MemoryObjects()
    store.objects = dict(made.store.objects)
    return StoredMoment(store, made.moment)


_CHAINS: dict[Path, StoredMoment] = {}


@in_each_tier
@pytest.mark.timeout(sized(smoke=900, full=900, soak=7200))
@settings(
    max_examples=sized(smoke=20, full=60, soak=100_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(some.data())
def test_no_damage_is_anything_but_one_clear_error(tmp_path: Path, data: some.DataObject) -> None:
    """Where the hash of the chain fits the damage, so that what reads the content sees it, too."""

    async def one() -> None:
        made = await undamaged(tmp_path)
        name = data.draw(some.sampled_from([*made.store.objects]), label="object")
        content = bytearray(made.store.objects[name][0])
        for _ in range(data.draw(some.integers(1, 4))):
            _damage(content, data)
        made.store.objects[name] = (bytes(content), made.store.now)
        if data.draw(some.booleans(), label="with its hash"):
            _rehash(made, name)
        try:
            await built(made, tmp_path)
        except QuarterdeckError as error:
            assert "\n" not in str(error)
            assert left(tmp_path) == []
        else:
            target(tmp_path).unlink()

    asyncio.run(one())


@in_each_tier
@pytest.mark.timeout(sized(smoke=900, full=900, soak=7200))
@settings(
    max_examples=sized(smoke=20, full=80, soak=100_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(some.data())
def test_no_damaged_database_is_anything_but_one_clear_error(tmp_path: Path, data: some.DataObject) -> None:
    """Stored as it is, with all hashes that fit: as a broken disk of the plane may have had it."""

    async def one() -> None:
        made = await undamaged(tmp_path)
        content = bytearray((tmp_path / "full").read_bytes())
        for _ in range(data.draw(some.integers(1, 4))):
            _damage(content, data)
        (tmp_path / "damaged").write_bytes(content)
        reference = await stored(made.store, "data/full", snapshot(tmp_path / "damaged"), Recipients())
        made.moment = replace(made.moment, full=made.moment.full.model_copy(update={"stored": reference}))
        try:
            path = await built(made, tmp_path)
        except QuarterdeckError as error:
            assert "\n" not in str(error)
            assert left(tmp_path) == []
            return
        try:
            for _ in keys_at(path):
                pass
        except QuarterdeckError as error:
            assert "\n" not in str(error)
        path.unlink()

    asyncio.run(one())


def _damage(content: bytearray, data: some.DataObject) -> None:
    if not content:
        return
    at = data.draw(some.integers(0, len(content) - 1), label="at")
    match data.draw(some.sampled_from(["flip", "cut", "drop", "write", "page"]), label="kind"):
        case "flip":
            content[at] ^= 1 << data.draw(some.integers(0, 7), label="bit")
        case "cut":
            del content[at:]
        case "drop":
            del content[at : at + data.draw(some.integers(1, 5000), label="bytes")]
        case "page":  # the head of a page, where it says what it is
            at = at // 4096 * 4096 + data.draw(some.integers(0, 63), label="in the head")
            content[at : at + 1] = data.draw(some.binary(min_size=1, max_size=1), label="byte")
        case _:
            written = data.draw(some.binary(min_size=1, max_size=40), label="written")
            content[at : at + len(written)] = written


def _rehash(made: StoredMoment, name: str) -> None:
    content = made.store.objects[name][0]
    reference = ObjectReference(name=name, sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content))
    moment = made.moment
    if name == moment.full.stored.name:
        made.moment = replace(moment, full=moment.full.model_copy(update={"stored": reference}))
    else:
        steps = [
            each.model_copy(update={"stored": reference}) if each.stored.name == name else each
            for each in moment.increments
        ]
        made.moment = replace(moment, increments=tuple(steps))


def test_a_frame_that_claims_a_huge_size_takes_no_memory(tmp_path: Path) -> None:
    frame = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 40) + b"\x01\x00\x00"

    async def parts() -> AsyncGenerator[bytes, None]:
        yield b"quarterdeck object 1 plain\n" + struct.pack(">I", len(frame)) + frame + bytes(4)

    async def read() -> list[bytes]:
        return [each async for each in unseal(parts(), Identities(), "data/1")]

    with pytest.raises(Corrupt, match="claims to have 1099511627776 bytes"):
        asyncio.run(read())
