"""A drill has one member of etcd have other data: the key for it comes before, and goes whatever happens."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.app.drill import corruption
from quarterdeck.app.drill.corruption import Corrupting
from quarterdeck.engine.workspace.leases import comparison_lease
from quarterdeck.errors import Conflict, NotFound, Unavailable
from quarterdeck.model.faults import Fault, FaultKind

KEY = b"quarterdeck.dev/drill"
FAULT = Fault(kind=FaultKind.CORRUPT, machine="east-a1", unit="etcd", volume="data", path="db", text="abc")


@dataclass
class Site:
    """A site where the key is in the member's database after so many tries; ``kept``: what etcd had at each."""

    fake: FakePlane
    tries: int = 0
    kept: list[dict[bytes, bytes]] = field(default_factory=list)

    async def make_fault(self, fault: Fault, seconds: float) -> None:
        self.kept.append(dict(self.fake.etcd.cluster.kept))
        if len(self.kept) <= self.tries:
            raise NotFound("having that", "that text is not in db")

    async def undo_fault(self, fault: Fault) -> str:
        raise AssertionError("there is nothing to undo at the site")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corruption, "_PACE", 0.001)
    monkeypatch.setattr(corruption, "_WRITTEN", 0.05)


@pytest.fixture
async def fake() -> FakePlane:
    made = FakePlane()
    await made.open()
    return made


def made(fake: FakePlane, site: Site) -> Corrupting:
    class Home:
        store = fake.store

        async def plane(self, resource: Any, stack: AsyncExitStack) -> Plane:
            return await fake.open()

    return Corrupting(home=Home(), plane="demo", site=site)  # type: ignore[arg-type]


async def test_the_key_is_there_before_it_is_altered_and_members_are_to_be_compared_until_the_end(
    fake: FakePlane,
) -> None:
    site = Site(fake, tries=2)
    drill = made(fake, site)
    await drill.make_fault(FAULT, 30.0)
    assert site.kept == [{KEY: b"abc"}] * 3, "it is tried until it is in the member's database"
    assert await fake.store.lease(comparison_lease("demo")) is not None
    assert await drill.undo_fault(FAULT) == ""
    assert await fake.store.lease(comparison_lease("demo")) is None
    assert fake.etcd.cluster.kept == {}


async def test_the_key_goes_also_when_it_never_came_to_be_altered(fake: FakePlane) -> None:
    drill = made(fake, Site(fake, tries=1000))
    with pytest.raises(NotFound):
        await drill.make_fault(FAULT, 30.0)
    assert await fake.store.lease(comparison_lease("demo")) is None
    assert await drill.undo_fault(FAULT) == ""
    assert fake.etcd.cluster.kept == {}


async def test_nothing_is_altered_that_a_comparison_for_another_might_have_missed(
    fake: FakePlane, golden: Golden
) -> None:
    site = Site(fake)
    await fake.store.acquire(comparison_lease("demo"), "another", 60.0)
    with golden.raises(Conflict):
        await made(fake, site).make_fault(FAULT, 30.0)
    assert (site.kept, fake.etcd.cluster.kept) == ([], {})


async def test_a_key_that_cannot_be_deleted_is_told_of(
    fake: FakePlane, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    drill = made(fake, Site(fake))
    await drill.make_fault(FAULT, 30.0)

    async def silent(*_: object) -> None:
        raise Unavailable("deleting the key", "no answer")

    monkeypatch.setattr(fake.etcd, "forget", silent)
    golden(await drill.undo_fault(FAULT))
