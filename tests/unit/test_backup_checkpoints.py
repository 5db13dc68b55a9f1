"""Checkpoints of a chain: a reader that begins at one reads what all links say, and old links can be deleted."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from fakes.objects import MemoryObjects
from support.chains import START, full, link, steps
from support.recording_lab import PREFIX, RecordingLab
from typing_extensions import override

from quarterdeck.backup.chain import Chain, ChainLink, FullBackup, Increments, Reached
from quarterdeck.backup.chain_store import CHECKPOINT_LINKS, ChainStore
from quarterdeck.backup.objects.port import StoredObject
from quarterdeck.backup.sweep import sweep
from quarterdeck.errors import Corrupt, LeaseLost, Unavailable

EACH = 4
NEVER = 10**9


async def nothing(does: str) -> None:
    """What happens before a call to a store that nothing else uses."""


class SteppedObjects(MemoryObjects):
    """A store with something else that happens ``before`` each call. ``stale``: so many of the last changes are missing
    in listings.
    """

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[str], Awaitable[None]] = nothing
        self.stale = 0
        self._listings: list[dict[str, tuple[bytes, datetime]]] = [{}]

    @override
    async def create(self, name: str, content: bytes) -> None:
        await self.before(f"creating {name}")
        await super().create(name, content)
        self._listings.append(dict(self.objects))

    @override
    async def delete(self, names: Sequence[str]) -> None:
        await self.before(f"deleting {names[0]}")
        await super().delete(names)
        self._listings.append(dict(self.objects))

    @override
    async def read(self, name: str) -> bytes:
        await self.before(f"reading {name}")
        return await super().read(name)

    @override
    async def exists(self, name: str) -> bool:
        await self.before(f"looking for {name}")
        return await super().exists(name)

    @override
    async def names(self, prefix: str) -> Sequence[StoredObject]:
        await self.before(f"listing {prefix}")
        listed = MemoryObjects()
        listed.objects = self._listings[max(0, len(self._listings) - 1 - self.stale)]
        return await listed.names(prefix)


class Links:
    """A chain that grows by links of all kinds, and what it was after each."""

    def __init__(self, store: MemoryObjects, seed: int = 0, *, each: int = EACH) -> None:
        self.store = store
        self.chains = ChainStore(store, "uid", "alpha", checkpoint_links=each)
        self._lots = random.Random(seed)
        self._number = self._revision = self._epoch = 0
        self.known: list[Chain] = [Chain("uid")]

    @property
    def chain(self) -> Chain:
        return self.known[-1]

    async def grow(self, count: int) -> None:
        """Add so many links."""
        for _ in range(count):
            self.known.append(await self.chains.append(self.chain, self._link()))

    async def delete(self, count: int = NEVER) -> None:
        """Delete the first so many links that nobody needs."""
        for name in (await self.chains.outlived(self.chain))[:count]:
            await self.store.delete([name])

    def _link(self) -> ChainLink:
        lots, self._number = self._lots, self._number + 1
        parts: list[FullBackup | Increments] = []
        for _ in range(lots.randrange(3)):
            first, self._revision = self._revision + 1, self._revision + lots.randint(1, 9)
            parts.append(steps(first, self._revision, self._epoch))
        if lots.random() < 0.2:
            self._epoch += lots.random() < 0.3
            parts.append(full(self._revision, self._epoch))
        names = sorted(self.chain.names() - {each.stored.name for each in self.chain.belongings})
        dropped = lots.sample(names, min(len(names), 2)) if lots.random() < 0.2 else []
        belongings = f"belongings-{self._number}" if lots.random() < 0.2 else ""
        made = link(*parts, dropped=tuple(dropped), belongings=belongings, writer=lots.choice("ab"))
        at = START + timedelta(minutes=20 * self._number)
        return made.model_copy(update={"at": at, "belongings_digest": f"digest-{self._number}"})


@pytest.mark.parametrize("seed", range(10))
async def test_a_chain_that_is_read_from_any_checkpoint_is_the_one_that_all_links_make(seed: int) -> None:
    links = Links(MemoryObjects(), seed)
    await links.grow(30)
    for whole in links.known[1:]:
        part = MemoryObjects()
        part.objects = dict([*sorted(links.store.objects.items())][: whole.length])
        read = await ChainStore(part, "uid", "alpha", checkpoint_links=NEVER).read()
        assert read == whole == await ChainStore(part, "uid", "alpha", checkpoint_links=EACH).read()
        for checkpoint in range(EACH, whole.length + 1, EACH):
            part.objects = {each: part.objects[each] for each in sorted(part.objects) if number(each) >= checkpoint}
            again = await ChainStore(part, "uid", "alpha", checkpoint_links=EACH).read()
            assert again == whole
            assert spoken(again) == spoken(whole)
    for known in links.known:
        assert await links.chains.read(known) == links.chain


def number(name: str) -> int:
    return int(name.rpartition("/")[2].removesuffix(".json"))


def spoken(chain: Chain) -> object:
    """What people ask of a chain."""
    epochs = {each.epoch for each in chain.fulls}
    ranges = {epoch: chain.ranges("main", epoch) for epoch in epochs}
    moments = [
        chain.at_revision("main", each, epoch) for epoch in epochs for stretch in ranges[epoch] for each in stretch
    ]
    belongings = [chain.belongings_at(each.revision, each.full.epoch) for each in moments]
    return ranges, moments, belongings, chain.outlived_belongings(), chain.length, chain.head, chain.writer


async def test_of_all_links_one_in_many_has_the_state_of_the_chain() -> None:
    links = Links(MemoryObjects(), each=CHECKPOINT_LINKS)
    await links.grow(3)
    links.known.append(Chain("uid", length=CHECKPOINT_LINKS - 1, reached=Reached(3, 17)))
    links.store.objects[f"alpha/links/{CHECKPOINT_LINKS - 1:020d}.json"] = (b"", START)
    await links.grow(2)
    states = [ChainLink.model_validate_json(content).state for content, _ in [*links.store.objects.values()] if content]
    assert [each is None for each in states] == [True, True, True, False, True]
    assert await ChainStore(links.store, "uid", "alpha").read() == links.chain


async def test_a_reader_asks_for_no_link_before_the_newest_checkpoint() -> None:
    links, asked = Links(SteppedObjects()), list[str]()
    await links.grow(11)

    async def noted(does: str) -> None:
        asked.append(does)

    assert isinstance(links.store, SteppedObjects)
    links.store.before = noted
    assert await links.chains.read() == links.chain
    assert sorted(number(each) for each in asked if each.startswith("reading")) == [8, 9, 10, 11, 12]


# Deleting.


async def test_only_links_before_the_checkpoint_before_the_newest_one_are_deleted() -> None:
    links = Links(MemoryObjects())
    for length in range(1, 30):
        await links.grow(1)
        await links.delete()
        left = [number(each) for each in sorted(links.store.objects)]
        assert left == [*range(max(1, length // EACH * EACH - EACH), length + 1)]
        assert await links.chains.read() == links.chain


async def test_a_sweep_deletes_old_links_as_well_and_stops_at_one_that_is_locked(tmp_path: Path) -> None:
    lab = RecordingLab(tmp_path)
    async with lab.recording() as recorder:
        await lab.all_stored(recorder)
    lab.store.objects = {name: each for name, each in lab.store.objects.items() if "/links/" not in name}
    links = Links(lab.store, each=EACH)
    links.chains = ChainStore(lab.store, "uid", PREFIX, checkpoint_links=EACH)
    await links.grow(30)
    writer = lab.writer(links.chains)
    delete = lab.store.delete

    async def locked(names: Sequence[str]) -> None:
        if names[0].endswith("7.json"):
            raise Unavailable(f"deleting {names[0]}", "it is locked")
        await delete(names)

    lab.store.delete = locked  # type: ignore[method-assign]
    assert (await sweep(lab.store, PREFIX, writer, (), lab.checks, lab.now)).links == 6
    assert await links.chains.read() == links.chain
    lab.store.delete = delete  # type: ignore[method-assign]
    assert (await sweep(lab.store, PREFIX, writer, (), lab.checks, lab.now)).links == 17
    assert await links.chains.read() == links.chain


@pytest.mark.parametrize("seed", range(5))
async def test_a_deletion_that_is_killed_anywhere_leaves_a_chain_that_is_read(seed: int) -> None:
    for killed in range(12):
        links = Links(MemoryObjects(), seed)
        await links.grow(17)
        await links.delete(killed)
        assert await links.chains.read() == links.chain
        for known in links.known:
            assert await links.chains.read(known) == links.chain
        await links.delete()
        assert len(links.store.objects) == 6


@pytest.mark.parametrize("seed", range(40))
async def test_a_reader_beside_a_writer_that_deletes_reads_a_chain_that_there_was(seed: int) -> None:
    """Before each of its calls the chain may grow, by more links than a reader has time for, and old ones go."""
    lots, store = random.Random(seed), SteppedObjects()
    links = Links(store, seed)
    await links.grow(lots.randint(1, 20))
    known = lots.choice([None, *links.known[1:]])
    began, left = links.chain.length, lots.randint(1, 4)

    async def happens(does: str) -> None:
        nonlocal left
        if left and lots.random() < 0.5:
            left -= 1
            store.before = nothing
            await links.grow(lots.choice((1, 5, 20)))
            await links.delete(lots.choice((1, 5, NEVER)))
            store.before = happens

    store.before = happens
    reader = ChainStore(store, "uid", "alpha", checkpoint_links=EACH)
    read = await reader.read(known)
    store.before = nothing
    assert read.length >= began
    assert read == links.known[read.length]
    await links.grow(1)
    assert await reader.continues(read)


@pytest.mark.parametrize("length", [1, 3, 4, 6, 9])
async def test_a_reader_that_is_overtaken_at_the_end_of_the_chain_notices(length: int) -> None:
    """The link that it asks for last was written and deleted meanwhile, as if there had never been one."""
    store = SteppedObjects()
    links = Links(store)
    await links.grow(length)

    async def happens(does: str) -> None:
        if does == f"reading alpha/links/{length + 1:020d}.json":
            store.before = nothing
            await links.grow(20)
            await links.delete()

    store.before = happens
    assert await links.chains.read() == links.chain


@pytest.mark.parametrize("seed", range(20))
async def test_listings_that_are_stale_hide_nothing(seed: int) -> None:
    lots, store = random.Random(seed), SteppedObjects()
    links = Links(store, seed)
    for _ in range(12):
        await links.grow(lots.randint(1, 6))
        await links.delete(lots.randint(0, 3))
        store.stale = lots.randint(0, EACH)
        assert await links.chains.read(lots.choice([None, *links.known])) == links.chain
        store.stale = 0


async def test_a_link_that_is_gone_behind_the_newest_checkpoint_is_one_clear_error() -> None:
    links = Links(MemoryObjects())
    await links.grow(11)
    del links.store.objects[f"alpha/links/{9:020d}.json"]
    for known in (None, links.known[3], links.known[8]):
        with pytest.raises(Corrupt, match=r"0009\.json .*missing, and link 11 exists") as seen:
            await links.chains.read(known)
        assert "\n" not in str(seen.value)


async def test_a_checkpoint_that_is_damaged_is_one_clear_error_and_nothing_is_deleted() -> None:
    links = Links(MemoryObjects())
    await links.grow(16)
    name = f"alpha/links/{16:020d}.json"
    content = ChainLink.model_validate_json(links.store.objects[name][0]).model_copy(update={"state": None})
    links.store.objects[name] = (content.model_dump_json().encode(), START)
    for call in (links.chains.read(), links.chains.outlived(links.chain)):
        with pytest.raises(Corrupt, match="no checkpoint"):
            await call


# Fencing.


async def test_of_two_writers_that_are_at_a_checkpoint_one_is_overtaken() -> None:
    links = Links(MemoryObjects())
    await links.grow(EACH - 1)
    before = links.chain
    await links.grow(1)
    other = ChainStore(links.store, "uid", "alpha", checkpoint_links=EACH)
    with pytest.raises(LeaseLost, match=f"link {EACH}"):
        await other.append(before, link(full(99), writer="other"))
    assert await other.read() == links.chain


@pytest.mark.parametrize("length", [0, 1, EACH - 1, EACH, 6])
async def test_a_writer_that_slept_until_its_links_were_deleted_is_overtaken(length: int) -> None:
    """The number of its link is free again: that link is no part of the chain, and nobody is told that it is."""
    links = Links(MemoryObjects())
    await links.grow(30)
    await links.delete()
    slept = links.known[length]
    with pytest.raises(LeaseLost):
        await links.chains.append(slept, link(full(99), writer="other"))
    for known in (None, slept, links.known[29]):
        assert await links.chains.read(known) == links.chain
    await links.grow(10)
    await links.delete()
    assert number(min(links.store.objects)) == 36


async def test_a_writer_that_slept_is_fenced_by_its_own_chain_too(tmp_path: Path) -> None:
    lab = RecordingLab(tmp_path)
    links = Links(lab.store)
    links.chains = ChainStore(lab.store, "uid", PREFIX, checkpoint_links=EACH)
    await links.grow(5)
    slept = lab.writer(links.chains)
    await slept.read()
    await links.grow(20)
    await links.delete()
    with pytest.raises(LeaseLost):
        await slept.append(fulls=[full(99)])
    with pytest.raises(LeaseLost):
        await slept.read()
