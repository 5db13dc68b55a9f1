"""A census by pages: of the cluster in memory and of real etcd processes alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import cast

import pytest
from support.etcd_cluster import (  # noqa: F401
    Lab,
    MemberAddress,
    etcd_binary,
    fake_lab,
    leader,
    real_lab,
    real_labs,
    urls,
)
from support.stored_values import protobuf
from support.tiers import smoke

from quarterdeck.census.census import census
from quarterdeck.census.result import Census
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.facts import RangeResult
from quarterdeck.etcd.kv import Get
from quarterdeck.etcd.port import EtcdCluster

POD = protobuf("v1", "Pod", b"")
#: More than the first page has.
MANY = 130


@pytest.fixture(params=smoke("fake_lab", "real_lab"))
def lab(request: pytest.FixtureRequest) -> Lab:
    return request.getfixturevalue(request.param)


class Reads:
    """The reads of a cluster, with something done before the second of them."""

    def __init__(self, lab: Lab, act: Callable[[], Awaitable[object]]) -> None:
        self._lab, self._act = lab, act
        self.revisions: list[int] = []

    async def read(self, url: str, what: Get) -> RangeResult:
        self.revisions.append(what.revision)
        if len(self.revisions) == 2:
            await self._act()
        return await self._lab.etcd.read(url, what)


async def counted(
    lab: Lab, act: Callable[[], Awaitable[object]], members: Sequence[MemberAddress] = ()
) -> tuple[Census, list[int]]:
    """A census by these members, or all, and the revisions that were read for it."""
    reads = Reads(lab, act)
    found = await census(cast("EtcdCluster", reads), urls(members or lab.founders), ())
    return found, reads.revisions


def pods(found: Census) -> int:
    return sum(each.number for each in found.types if each.resource == "pods")


async def put(lab: Lab, *names: str) -> None:
    for name in names:
        await lab.etcd.keep_for(urls(lab.founders), f"/registry/pods/ns/{name}".encode(), POD, 600)


async def clear(lab: Lab) -> None:
    """Remove what another test has left in the cluster that both use."""
    everywhere = urls(lab.founders)
    left = await lab.etcd.read(everywhere[0], Get(key=b"/registry/", range_end=b"/registry0", keys_only=True))
    for each in left.items:
        await lab.etcd.forget(everywhere, each.key)


async def test_what_is_written_and_deleted_meanwhile_does_not_matter(lab: Lab) -> None:
    everywhere = urls(lab.founders)
    await clear(lab)
    await put(lab, *(f"p{number:03}" for number in range(MANY)))
    then = await lab.etcd.revision(everywhere)

    async def change() -> None:
        await put(lab, "a", "z")
        await lab.etcd.forget(everywhere, f"/registry/pods/ns/p{MANY - 1}".encode())

    found, revisions = await counted(lab, change)
    assert (found.revision, pods(found), found.unreadable) == (then, MANY, ())
    assert revisions == [0, then]


async def test_it_begins_again_when_its_revision_is_compacted(lab: Lab) -> None:
    everywhere = urls(lab.founders)
    await clear(lab)
    await put(lab, *(f"p{number:03}" for number in range(MANY)))

    async def compact() -> None:
        await put(lab, "a", "z")
        await lab.etcd.compact(everywhere, await lab.etcd.revision(everywhere))

    found, revisions = await counted(lab, compact)
    assert pods(found) == MANY + 2
    assert revisions == [0, revisions[1], 0, found.revision]
    assert found.revision == revisions[1] + 2


async def test_it_goes_on_at_another_member_when_one_dies(lab: Lab) -> None:
    await clear(lab)
    await put(lab, *(f"p{number:03}" for number in range(MANY)))
    chief = await leader(lab)
    first, second = (each for each in lab.founders if each != chief)
    found, revisions = await counted(lab, lambda: lab.kill(first), (first, second))
    assert pods(found) == MANY
    assert revisions[1:] == [found.revision] * (len(revisions) - 1)
    for each in (second, chief):
        await lab.kill(each)
    with pytest.raises(Unavailable):
        await census(lab.etcd, urls(lab.founders), ())
