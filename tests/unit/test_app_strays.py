"""The removal of members that belong to no replica, on a cluster in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from fakes.etcd_cluster import Member
from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.app import Requester
from quarterdeck.app.etcd import strays
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import InvalidInput, NotFound, PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.model.world import World

ASKER = Requester(name="a test")
URL = "https://10.99.0.9:2380"


@pytest.fixture
def fake() -> FakePlane:
    return FakePlane()


@pytest.fixture
async def home(fake: FakePlane, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home with one plane, of which only etcd is looked at."""
    opened = await fake.open()

    async def plane(*_: object) -> Plane:
        return opened

    async def observer_of(plane: Plane) -> object:
        async def observe() -> World:
            membership = await EtcdObserver(plane=plane).observe(plane.memory)
            return World(slots=(), memory=plane.memory, now=0.0, plane_name=plane.name, membership=membership)

        return SimpleNamespace(observe=observe)

    monkeypatch.setattr(strays, "observer_of", observer_of)
    return cast("Home", SimpleNamespace(store=fake.store, plane=plane))


def stray(fake: FakePlane, *, learner: bool = False) -> Member:
    member = Member(id=0x8E9E05C52164694D, peer_url=URL, learner=learner)
    fake.etcd.cluster.nodes.append(member)
    return member


@pytest.mark.parametrize("written", ["8e9e05c52164694d", "8E9E05C52164694D", "0x8e9e05c52164694d"])
async def test_it_is_removed_and_an_event_says_by_whom(
    fake: FakePlane, home: Home, written: str, golden: Golden
) -> None:
    member = stray(fake)
    removal = await strays.planned(home, "demo", written)
    golden(removal.description)
    assert (removal.voters, removal.healthy) == (3, 3)
    assert member in fake.etcd.cluster.nodes, "a plan changes nothing"
    await strays.removed(home, removal, ASKER)
    assert member not in fake.etcd.cluster.nodes
    (event,) = [each for each in await fake.store.events("demo") if each.reason == "MemberRemoved"]
    golden(event.message)


@pytest.mark.parametrize(
    ("member", "error"),
    [
        ("east-1", InvalidInput),
        ("", InvalidInput),
        ("99", NotFound),
        ("1001", PreconditionFailed),
    ],
)
async def test_what_is_no_stray_is_refused_and_says_why(
    fake: FakePlane, home: Home, member: str, error: type[QuarterdeckError], golden: Golden
) -> None:
    stray(fake)
    with golden.raises(error):
        await strays.planned(home, "demo", member)
    assert len(fake.etcd.cluster.nodes) == 4


async def test_one_that_has_the_name_and_url_of_a_replica_is_told_by_its_id(fake: FakePlane, home: Home) -> None:
    fake.etcd.cluster.nodes[0].address = fake.address("east-1")
    member = stray(fake)
    member.address = fake.address("east-1")
    removal = await strays.planned(home, "demo", f"{member.id:x}")
    assert "name east-1" in removal.description
    await strays.removed(home, removal, ASKER)
    assert [each.id for each in fake.etcd.cluster.nodes] == [0x1001, 0x1002, 0x1003]


async def test_without_a_healthy_quorum_of_the_others_nothing_is_removed(
    fake: FakePlane, home: Home, golden: Golden
) -> None:
    """Of five voters three run, so that etcd answers; without one that runs two of four would be left."""
    stray(fake)
    other = Member(id=0x77, peer_url="https://10.99.0.8:2380", learner=False, up=True, settled=True)
    fake.etcd.cluster.nodes.append(other)
    fake.etcd.cluster.stop(fake.url("west-1"))
    with golden.raises(PreconditionFailed):
        await strays.planned(home, "demo", "77")


async def test_what_changed_since_the_plan_is_looked_at_again(fake: FakePlane, home: Home, golden: Golden) -> None:
    member = stray(fake)
    removal = await strays.planned(home, "demo", f"{member.id:x}")
    fake.etcd.cluster.nodes.remove(member)
    with golden.raises(NotFound):
        await strays.removed(home, removal, ASKER)


async def test_without_a_quorum_that_is_said(fake: FakePlane, home: Home, golden: Golden) -> None:
    stray(fake)
    for name in ("east-2", "west-1"):
        fake.etcd.cluster.stop(fake.url(name))
    with golden.raises(Unavailable):
        await strays.planned(home, "demo", "8e9e05c52164694d")


async def test_one_that_leads_is_left_until_another_member_does(fake: FakePlane, home: Home, golden: Golden) -> None:
    member = stray(fake)
    member.address, member.up, member.settled = fake.address("west-1"), True, True
    fake.etcd.cluster.leader = member.id
    with pytest.raises(PreconditionFailed, match="it is the leader, and clients' writes would fail") as refused:
        await strays.planned(home, "demo", f"{member.id:x}")
    golden(refused.value)
    fake.etcd.cluster.leader = 0x1001
    removal = await strays.planned(home, "demo", f"{member.id:x}")
    fake.etcd.cluster.leader = member.id
    with pytest.raises(PreconditionFailed, match="it is the leader"):
        await strays.removed(home, removal, ASKER)
    assert member in fake.etcd.cluster.nodes
