"""What a person does to etcd's members with etcdctl while a manager keeps the plane: it ends as wanted, or names what
the person has to remove, and ends as wanted after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from fakes.etcd_cluster import FakeCluster, Member

from loop.lives import WEST3, many
from loop.session import Session
from loop.test_manager import Kept, kept
from loop.units import PLANE
from quarterdeck.api.base import find_condition
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.operation import OperationPhase
from quarterdeck.app.etcd import strays
from quarterdeck.etcd.faults import EtcdFault
from quarterdeck.model.clusters import Cluster

FREE, OTHER = "https://10.99.0.9:2380", "https://10.99.0.8:2380"
ByHand = Callable[[Kept], Awaitable[None]]


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


def cluster_of(life: Kept) -> FakeCluster:
    return life.world.clusters[Cluster.MAIN].cluster


def urls_of(life: Kept) -> list[str]:
    return [each.address.client_url for each in cluster_of(life).nodes if each.address is not None and each.up]


def changed(life: Kept) -> None:
    """A look that is under way, and what follows from it, does not know of it."""
    life.world.strikes += 1
    life.world.touch()


async def add_voter(life: Kept) -> None:
    cluster = cluster_of(life)
    cluster.nodes.append(Member(id=next(cluster.ids), peer_url=FREE, learner=False))
    cluster.commit()


async def add_learner(life: Kept) -> None:
    await _until_admitted(lambda: life.world.etcd().add_learner(urls_of(life), FREE))


async def remove_member(life: Kept) -> None:
    cluster = cluster_of(life)
    follower = next(each.id for each in cluster.voters if each.id != cluster.leader)
    await _until_admitted(lambda: life.world.etcd().remove(urls_of(life), follower))


async def update_member(life: Kept) -> None:
    await life.world.etcd().readdress(urls_of(life), cluster_of(life).voters[-1].id, FREE)


async def swap_peer_urls(life: Kept) -> None:
    one, other, *_ = cluster_of(life).voters
    first, second = one.peer_url, other.peer_url
    for member, url in ((one, OTHER), (other, first), (one, second)):
        await life.world.etcd().readdress(urls_of(life), member.id, url)


async def take_peer_url(life: Kept) -> None:
    """A voter is added at the peer URL that a member had."""
    cluster = cluster_of(life)
    mine = cluster.voters[-1]
    url = mine.peer_url
    await life.world.etcd().readdress(urls_of(life), mine.id, OTHER)
    cluster.nodes.append(Member(id=next(cluster.ids), peer_url=url, learner=False))
    cluster.commit()


async def promote_learner(life: Kept) -> None:
    async def joins() -> bool:
        return any(each.learner and each.up for each in cluster_of(life).nodes)

    await life.until(joins, 60)
    learner = next(each.id for each in cluster_of(life).nodes if each.learner and each.up)
    await _until_admitted(lambda: life.world.etcd().promote(urls_of(life), learner))


async def _until_admitted(ask: Callable[[], Awaitable[object]]) -> None:
    """A person tries again what etcd refuses at the moment."""
    async with asyncio.timeout(120):
        while True:
            try:
                await ask()
            except EtcdFault:
                await asyncio.sleep(0.05)
            else:
                return


async def as_wanted(life: Kept) -> bool:
    ready = find_condition((await life.plane()).status.conditions, ConditionType.READY)
    over = life.operations()[-1].status.phase is OperationPhase.SUCCEEDED
    return over and ready is not None and ready.status == "True"


async def named(life: Kept) -> bool:
    stalled = find_condition((await life.plane()).status.conditions, ConditionType.STALLED)
    return stalled is not None and stalled.reason == "UnknownMember"


async def settles(life: Kept) -> None:
    """It ends as wanted: by itself, or once all that is named is removed as that says."""

    async def is_settled() -> bool:
        return await named(life) or await as_wanted(life)

    await asyncio.sleep(10)  # what it was before is not what it comes to
    await life.until(is_settled, 300)
    while await named(life):
        await remove_named(life)
        await asyncio.sleep(10)
    await life.until(lambda: as_wanted(life), 300)
    nodes = cluster_of(life).nodes
    truth = life.truths.now()
    assert truth is not None
    assert set(truth.members) == truth.recorded
    assert not any(each.misplaced for each in truth.members.values())
    assert len(nodes) == 3


async def remove_named(life: Kept) -> None:
    """A person runs the command that ``Stalled`` names."""
    stalled = find_condition((await life.plane()).status.conditions, ConditionType.STALLED)
    assert stalled is not None
    number = stalled.message.split(f"'quarterdeck etcd remove-member {PLANE} ")[1].split("'")[0]
    person = Session(name="a person", world=life.world, truths=life.truths, books=life.books, happens=life._happens)
    home = person.engine().home
    await strays.removed(home, await strays.planned(home, PLANE, number), person.requester())
    changed(life)


@pytest.mark.parametrize(
    "by_hand", [add_voter, add_learner, remove_member, update_member, swap_peer_urls, take_peer_url]
)
def test_a_plane_at_rest_ends_as_wanted_and_an_event_says_that_a_person_did_it(by_hand: ByHand) -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        await by_hand(life)
        changed(life)
        await settles(life)
        events = [each for each in await life.world.store.events(PLANE) if each.reason == "MembershipChanged"]
        assert events

    kept(lived)


@pytest.mark.parametrize(
    ("by_hand", "after"),
    [
        (add_voter, 3.0),
        (add_learner, 8.0),
        (remove_member, 3.0),
        (update_member, 8.0),
        (swap_peer_urls, 3.0),
        (take_peer_url, 0.5),
        (promote_learner, 0.0),
    ],
)
def test_a_migration_ends_as_wanted_whatever_a_person_does_to_members(by_hand: ByHand, after: float) -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        await life.ask(WEST3)
        await asyncio.sleep(after)
        await by_hand(life)
        changed(life)
        await settles(life)
        assert (await life.plane()).status.memory.served_site == "west"

    kept(lived)
