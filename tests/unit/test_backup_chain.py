"""The chain of backups: who may add to it, what can be restored from it, and how damage is found."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from fakes.objects import MemoryObjects
from support.chains import START, chain_of, full, link, steps, written

from quarterdeck.backup.chain import Chain, unused
from quarterdeck.backup.chain_store import ChainStore
from quarterdeck.errors import Corrupt, LeaseLost, NotFound, PreconditionFailed


async def test_what_was_added_is_read_by_another_process() -> None:
    store = MemoryObjects()
    chain = await written(store, link(full(10)), link(steps(11, 20)), link(steps(21, 30)))
    assert await ChainStore(store, "uid", "alpha").read() == chain
    moment = chain.at_revision("main", 25, 0)
    assert (moment.full.revision, [each.last for each in moment.increments], moment.revision) == (10, [20, 30], 25)


async def test_a_link_that_another_process_added_is_seen() -> None:
    store = MemoryObjects()
    begun = await written(store, link(full(10)))
    chains = ChainStore(store, "uid", "alpha")
    assert not await chains.continues(begun)
    longer = await chains.append(begun, link(steps(11, 20)))
    assert (await chains.continues(begun), await chains.continues(longer)) == (True, False)


async def test_of_two_writers_one_is_overtaken() -> None:
    store = MemoryObjects()
    chains = ChainStore(store, "uid", "alpha")
    begun = await written(store, link(full(10)))
    await chains.append(begun, link(steps(11, 20), writer="one"))
    with pytest.raises(LeaseLost, match="link 2"):
        await chains.append(begun, link(steps(11, 22), writer="two"))
    assert (await chains.read()).latest("main", 0).revision == 20


async def test_an_answer_that_was_lost_does_not_fence_its_own_writer() -> None:
    store = MemoryObjects()
    chains = ChainStore(store, "uid", "alpha")
    begun = await written(store, link(full(10)))
    again = link(steps(11, 20))
    assert await chains.append(begun, again) == await chains.append(begun, again)


def test_the_newest_full_backup_that_leads_there_is_used_and_a_gap_is_named() -> None:
    chain = chain_of(full(10), steps(11, 20), full(30), steps(31, 40), steps(35, 60))
    assert chain.ranges("main", 0) == ((10, 20), (30, 60))
    assert chain.at_revision("main", 33, 0).full.revision == 30
    assert chain.at_revision("main", 30, 0).increments == ()
    assert [each.first for each in chain.at_revision("main", 45, 0).increments] == [31, 35]
    with pytest.raises(NotFound, match="10 to 20, 30 to 60"):
        chain.at_revision("main", 25, 0)
    later = {revision: chain.at_or_after("main", revision, 0).revision for revision in (5, 15, 25, 45)}
    assert later == {5: 10, 15: 15, 25: 30, 45: 45}
    with pytest.raises(NotFound, match="10 to 20, 30 to 60"):
        chain.at_or_after("main", 61, 0)
    with pytest.raises(NotFound, match="none"):
        chain.latest("events", 0)


def test_epochs_are_not_mixed() -> None:
    chain = chain_of(full(10), steps(11, 20, epoch=1), full(15, epoch=1))
    assert chain.latest("main", 0).revision == 10
    assert chain.latest("main", 1).revision == 20


async def test_dropped_objects_are_no_longer_used_and_strangers_are_found() -> None:
    store = MemoryObjects()
    chain = await written(store, link(full(10), steps(11, 20)), link(full(20), dropped=("full-0-10", "steps-0-11-20")))
    assert chain.ranges("main", 0) == ((20, 20),)
    assert unused(chain, ["full-0-10", "full-0-20", "stranger"]) == ["full-0-10", "stranger"]
    with pytest.raises(PreconditionFailed, match="stranger"):
        await ChainStore(store, "uid", "alpha").append(chain, link(dropped=("stranger",)))


async def test_the_belongings_of_a_moment_are_the_newest_that_were_stored_until_then() -> None:
    store = MemoryObjects()
    chain = await written(
        store,
        link(full(10)),
        link(steps(11, 20), belongings="one"),
        link(steps(21, 30)),
        link(belongings="two"),
        link(belongings="three"),
        link(full(5, epoch=1), belongings="four"),
        link(steps(31, 40)),  # of the former epoch, from an increment that came late
    )
    assert await ChainStore(store, "uid", "alpha").read() == chain

    def names(epoch: int, *revisions: int) -> list[str]:
        found = [chain.belongings_at(each, epoch) for each in revisions]
        return [each.name if each is not None else "" for each in found]

    assert names(0, 10, 19, 20, 29, 30, 99) == ["", "", "one", "one", "three", "three"]
    assert names(1, 4, 5, 6) == ["three", "four", "four"]


async def test_a_full_backup_that_was_folded_later_keeps_the_belongings_of_its_own_time() -> None:
    store = MemoryObjects()
    chain = await written(
        store,
        link(full(10), belongings="one"),
        link(steps(11, 20)),
        link(steps(21, 30), belongings="two"),
        link(full(20), dropped=("full-0-10", "steps-0-11-20"), belongings="three"),
    )
    found = [chain.belongings_at(each, 0) for each in (20, 29, 30)]
    assert [each.name for each in found if each is not None] == ["one", "one", "three"]


async def test_belongings_that_a_kept_backup_needs_are_not_dropped() -> None:
    store = MemoryObjects()
    chain = await written(
        store,
        link(full(10), belongings="one"),
        link(steps(11, 20), belongings="two"),
        link(steps(21, 30), full(30), belongings="three"),
    )
    chains = ChainStore(store, "uid", "alpha")
    assert chain.outlived_belongings() == ()
    with pytest.raises(PreconditionFailed, match="needs the keys in one"):
        await chains.append(chain, link(dropped=("one",)))
    chain = await chains.append(chain, link(dropped=("full-0-10", "steps-0-11-20", "one")))
    assert chain.outlived_belongings() == ("two",)
    chain = await chains.append(chain, link(dropped=("two",)))
    assert [each.stored.name for each in chain.belongings] == ["three"]
    with pytest.raises(PreconditionFailed, match="needs the keys in three"):
        await chains.append(chain, link(dropped=("three",)))
    assert unused(chain, ["one", "three"]) == ["one"]


@pytest.mark.parametrize("damage", ["missing", "changed", "cut off", "of another plane", "swapped"])
async def test_a_damaged_chain_is_one_clear_error(damage: str) -> None:
    store = MemoryObjects()
    await written(store, link(full(10)), link(steps(11, 20)), link(steps(21, 30)))
    first, second, third = sorted(store.objects)
    plane = "uid"
    match damage:
        case "missing":
            del store.objects[second]
        case "changed":
            content, when = store.objects[first]
            store.objects[first] = (content.replace(b"3.6.16", b"3.6.15"), when)
        case "cut off":
            content, when = store.objects[second]
            store.objects[second] = (content[: len(content) // 2], when)
        case "of another plane":
            plane = "other"
        case _:
            store.objects[second], store.objects[third] = store.objects[third], store.objects[second]
    with pytest.raises(Corrupt) as seen:
        await ChainStore(store, plane, "alpha").read()
    assert "\n" not in str(seen.value)


def test_what_was_dropped_is_remembered_for_as_long_as_it_may_be_read() -> None:
    chain = chain_of(full(10), steps(11, 20), steps(21, 30))
    for minutes, name in ((0, "steps-0-21-30"), (119, "steps-0-11-20")):
        dropping = link(dropped=(name,)).model_copy(update={"at": START + timedelta(minutes=minutes)})
        chain = chain.with_link(dropping, "")
    assert [each.names for each in chain.dropped] == [("steps-0-21-30",), ("steps-0-11-20",)]
    chain = chain.with_link(link(full(40)).model_copy(update={"at": START + timedelta(minutes=120)}), "")
    assert [each.names for each in chain.dropped] == [("steps-0-11-20",)]


def test_a_chain_of_a_day_is_joined_and_searched_in_little_time() -> None:
    """One link each second: what grows with the square of that takes hours."""
    whole = Chain("uid").with_link(link(full(0)), "")
    began = time.process_time()
    for number in range(20_000):
        whole = whole.with_link(link(steps(number + 1, number + 1)), "")
    assert whole.latest("main", 0).revision == 20_000
    assert whole.ranges("main", 0) == ((0, 20_000),)
    assert time.process_time() - began < 30
