"""Increments that are joined: few objects, each byte stored again a few times, and the same moments to the byte."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyrage import x25519
from support.chains import START, chain_of, full, steps
from support.databases import AT, IDENTITIES, RECIPIENTS, database, history, snapshot
from support.recording_lab import FaultyObjects, one

from quarterdeck.backup.build import build, read_increments
from quarterdeck.backup.chain import Chain, FullBackup, Increments
from quarterdeck.backup.chain_store import ChainStore
from quarterdeck.backup.deposit import Deposit
from quarterdeck.backup.joining import JOINED_BYTES, join, joinable
from quarterdeck.backup.moments import moment_at, seen_at
from quarterdeck.backup.records import Increment, LeaseTimes, RevisionChange, encode
from quarterdeck.backup.sealing import Identities
from quarterdeck.backup.writer import ChainWriter
from quarterdeck.errors import Corrupt, NotFound, PreconditionFailed, QuarterdeckError, Unavailable

LATER = START + timedelta(days=30)
FIRST = 6


def sized(first: int, last: int, size: int, epoch: int = 0) -> Increments:
    return steps(first, last, epoch).model_copy(update={"raw_bytes": size})


def joined(chain: Chain, run: Sequence[Increments]) -> Chain:
    """The chain after a run was joined, without objects."""
    names = {each.stored.name for each in run}
    kept = tuple(each for each in chain.increments if each.stored.name not in names)
    made = sized(run[0].first, run[-1].last, sum(each.raw_bytes for each in run), run[0].epoch)
    return replace(chain, increments=(*kept, made))


@pytest.mark.parametrize("seed", range(6))
def test_few_objects_are_left_and_each_byte_is_stored_again_a_few_times(seed: int) -> None:
    """A day of increments, one each second or so, which are joined every few minutes."""
    lots = random.Random(seed)
    usual = 10 ** lots.uniform(2.5, 5)
    chain, written, times = chain_of(full(0)), 0, Counter[int]()
    for number in range(1, 5_001):
        size = int(usual * lots.uniform(0.5, 2)) if lots.random() < 0.99 else lots.randint(1, 9 << 20)
        written += size
        chain = replace(chain, increments=(*chain.increments, sized(number, number, size)))
        if number % 180 == 0 or number == 5_000:
            for run in joinable(chain, LATER):
                assert sum(each.raw_bytes for each in run) <= JOINED_BYTES
                assert all(each.first == before.last + 1 for before, each in zip(run, run[1:], strict=False))
                times.update(revision for each in run for revision in range(each.first, each.last + 1))
                chain = joined(chain, run)
    while runs := joinable(chain, LATER):
        chain = joined(chain, runs[0])
    assert max(times.values()) <= math.log(JOINED_BYTES / (usual / 2), 4) + 1
    assert sum(each.raw_bytes for each in chain.increments) == written
    assert chain.at_revision("main", 5_000, 0).revision == 5_000
    assert len(chain.increments) < 8 * written / JOINED_BYTES + 150


def test_only_what_continues_each_other_is_joined_and_is_old_enough() -> None:
    parts = [sized(each, each, 1000) for each in range(1, 21)]
    others = [sized(each, each, 1000, epoch=1) for each in range(8, 13)]
    gap, huge, unknown = [parts.pop(6)], sized(21, 21, JOINED_BYTES), sized(22, 22, 0)
    chain = chain_of(*random.Random(1).sample([*parts, *others, huge, unknown], 26))

    def runs(before: datetime, without: frozenset[str] = frozenset()) -> list[tuple[int, int, int]]:
        return sorted((run[0].epoch, run[0].first, run[-1].last) for run in joinable(chain, before, without=without))

    assert gap[0].first == 7
    assert runs(LATER) == [(0, 1, 6), (0, 8, 20), (1, 8, 12)]
    assert runs(LATER, frozenset((parts[10].stored.name,))) == [(0, 1, 6), (0, 8, 11), (0, 13, 20), (1, 8, 12)]
    assert runs(START + timedelta(seconds=13)) == [(0, 1, 6), (0, 8, 12), (1, 8, 12)]
    assert runs(START) == []


# With objects.


class JoiningLab:
    """The backup of a cluster that never was, with one revision after the other."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.folder, self.lots = folder, random.Random(seed)
        self.store = FaultyObjects()
        self.deposit = Deposit(store=self.store, prefix="alpha", recipients=RECIPIENTS)
        self.revision, self.at = FIRST, AT
        self._writers = 0

    def writer(self) -> ChainWriter:
        self._writers += 1
        return ChainWriter(ChainStore(self.store, "uid", "alpha"), f"run-{self._writers}", _held, lambda: self.at)

    async def chain(self) -> Chain:
        return await ChainStore(self.store, "uid", "alpha").read()

    async def record(self, count: int) -> None:
        """A full backup first, and so many increments behind it: the clock is set back at times."""
        lots, writer = self.lots, self.writer()
        if not (await writer.read()).fulls:
            await writer.append(fulls=[await self._full()])
        for _ in range(count):
            changes = []
            for _ in range(lots.randint(1, 4)):
                self.revision += 1
                self.at += timedelta(milliseconds=lots.choice((0, 300, 700, 5000, -2000)))
                (change,) = history([{lots.choice("abcd"): lots.choice((None, b"%d" % self.revision))}], self.revision)
                changes.append(replace(change, at_ms=int(self.at.timestamp() * 1000)))
            leases = tuple(LeaseTimes(each, 60, lots.randint(1, 60)) for each in sorted(lots.sample(range(9), 2)))
            await writer.append(increments=[await self._stored(changes, leases if lots.random() < 0.7 else ())])

    async def _full(self) -> FullBackup:
        path = database(self.folder / "full", history([{"a": b"%d" % each} for each in range(FIRST - 1)]))
        reference = await self.deposit.put(one(snapshot(path)))
        return full(FIRST).model_copy(update={"stored": reference, "at": AT})

    async def _stored(self, changes: Sequence[RevisionChange], leases: tuple[LeaseTimes, ...]) -> Increments:
        content = encode(Increment(tuple(changes), leases))
        times = [AT + timedelta(milliseconds=each.at_ms - int(AT.timestamp() * 1000)) for each in changes]
        update = {"first_at": times[0], "last_at": times[-1], "raw_bytes": len(content)}
        return steps(changes[0].revision, changes[-1].revision).model_copy(
            update={**update, "stored": await self.deposit.put(one(content))}
        )

    async def join(self, run: Sequence[Increments]) -> object:
        return await join(self.writer(), self.deposit, run, IDENTITIES)

    async def any_run(self) -> list[Increments]:
        """Some increments that continue each other."""
        its = sorted((await self.chain()).increments, key=lambda each: each.first)
        begin = self.lots.randrange(len(its) - 1)
        return its[begin : self.lots.randint(begin + 2, len(its))]

    async def restored(self) -> dict[int, bytes]:
        """The database of each revision."""
        chain, found = await self.chain(), {}
        for revision in range(FIRST, self.revision + 1):
            await build(self.store, chain.at_revision("main", revision, 0), IDENTITIES, self.folder / "built")
            found[revision] = (self.folder / "built").read_bytes()
        return found

    async def times(self) -> dict[timedelta, int | None]:
        """The revision that a time means, for times around everything that happened."""
        chain, found = await self.chain(), dict[timedelta, int | None]()
        for tenths in range(-5, int((self.at - AT).total_seconds() * 10) + 80):
            after = timedelta(milliseconds=100 * tenths)
            try:
                moment = await moment_at(
                    chain, "main", 0, AT + after, now=LATER, store=self.store, identities=IDENTITIES
                )
            except NotFound:
                found[after] = None
            else:
                found[after] = moment.revision
        return found


async def _held() -> None:
    return None


@pytest.fixture
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> JoiningLab:
    return JoiningLab(tmp_path, getattr(request, "param", 0))


@pytest.mark.parametrize("lab", range(5), indirect=True)
async def test_each_revision_and_time_is_restored_as_before_to_the_byte(lab: JoiningLab) -> None:
    await lab.record(12)
    databases, times = await lab.restored(), await lab.times()
    before, at = await lab.chain(), [lab.at]
    seen = {each: await seen_at(before.at_revision("main", each, 0), lab.store, IDENTITIES) for each in databases}
    for _ in range(3):
        count = len((await lab.chain()).increments)
        run = await lab.any_run()
        assert await lab.join(run) == {}
        after = await lab.chain()
        assert len(after.increments) == count - len(run) + 1
        assert (await lab.restored(), await lab.times()) == (databases, times)
        for revision, when in seen.items():
            assert await seen_at(after.at_revision("main", revision, 0), lab.store, IDENTITIES) == when
        if count - len(run) < 3:
            break
    assert (after.ranges("main", 0), after.reached, [lab.at]) == (before.ranges("main", 0), before.reached, at)
    await lab.record(3)
    await lab.join(sorted((await lab.chain()).increments, key=lambda each: each.first))
    again = await lab.restored()
    assert {each: again[each] for each in databases} == databases
    assert len((await lab.chain()).increments) == 1


async def test_what_was_joined_is_as_large_as_its_parts_and_says_when_they_were(lab: JoiningLab) -> None:
    await lab.record(6)
    parts = (await lab.chain()).increments
    await lab.join(parts)
    (whole,) = (await lab.chain()).increments
    assert whole.raw_bytes == sum(each.raw_bytes for each in parts)
    assert (whole.first, whole.last, whole.last_at) == (parts[0].first, parts[-1].last, parts[-1].last_at)
    assert whole.first_at == min(each for part in parts for each in (part.first_at, part.last_at))
    assert len(await read_increments(lab.store, whole, IDENTITIES)) == 6
    dropped = {name for each in (await lab.chain()).dropped for name in each.names}
    assert dropped == {each.stored.name for each in parts}
    assert dropped <= lab.store.objects.keys(), "a restore may read them"


@pytest.mark.parametrize("restarted", [True, False], ids=["another process", "the same process"])
async def test_a_join_that_is_killed_between_any_two_calls_to_the_store_changes_nothing(
    tmp_path: Path, restarted: bool
) -> None:
    """It is done again: by the same process an answer may have been lost, and it knows the chain as of before."""
    databases: dict[int, bytes] = {}
    for killed in range(100):
        lab = JoiningLab(tmp_path)
        await lab.record(3)
        databases = databases or await lab.restored()
        writer = lab.writer()
        run = (await writer.read()).increments
        lab.store.fault = failing_from(killed)
        try:
            await join(writer, lab.deposit, run, IDENTITIES)
        except Unavailable:
            lab.store.back()
        else:
            assert killed > len(run), "it was never interrupted"
            return
        assert await lab.restored() == databases
        writer = lab.writer() if restarted else writer
        chain = await writer.read()
        if len(chain.increments) > 1:
            await join(writer, lab.deposit, chain.increments, IDENTITIES)
        assert len((await lab.chain()).increments) == 1
        assert writer.chain == await lab.chain()
        assert await lab.restored() == databases
    raise AssertionError("it never ends")


def failing_from(count: int) -> Callable[[int, str, bool], None]:
    """The store does not answer any more after so many steps: a call has two, before and after it was done."""
    done = 0

    def fault(number: int, does: str, was_done: bool) -> None:
        nonlocal done
        done += 1
        if done > count:
            raise Unavailable(does, "no answer")

    return fault


@pytest.mark.parametrize("damage", ["missing", "changed", "wrong key"])
async def test_parts_that_cannot_be_read_are_named_and_nothing_is_joined(lab: JoiningLab, damage: str) -> None:
    await lab.record(6)
    before = await lab.chain()
    name, keys = before.increments[2].stored.name, IDENTITIES
    expected: type[QuarterdeckError] = Corrupt
    match damage:
        case "missing":
            del lab.store.objects[name]
        case "changed":
            content, at = lab.store.objects[name]
            lab.store.objects[name] = (content[:-9] + bytes(9), at)
        case _:
            keys, expected = Identities((str(x25519.Identity.generate()),)), PreconditionFailed
    found = await join(lab.writer(), lab.deposit, before.increments, keys)
    assert {type(each) for each in found.values()} == {expected}
    assert name in found
    assert (len(found) == 6) is (damage == "wrong key")
    assert await lab.chain() == before
