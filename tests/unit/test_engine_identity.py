"""Whether what etcd answers with is the plane's own data: on clusters in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster
from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.engine.observation.identity import note_cluster
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.etcd.facts import ListedMember, MemberReport
from quarterdeck.etcd.faults import Reason, fault
from quarterdeck.model.membership import Membership, WrongData

OURS, THEIRS = 1, 0x1F


class Astray(FakeEtcd):
    """One member's etcd has another cluster's data: it is that cluster's only member, and answers everything."""

    def __init__(self, cluster: FakeCluster, other: FakeEtcd, url: str) -> None:
        super().__init__(cluster)
        self.other, self.url = other, url
        cluster.stop(url)

    async def status(self, url: str, *, within: float | None = None) -> MemberReport:
        if url == self.url:
            return replace(await self.other.status(url), cluster_id=THEIRS)
        return await super().status(url)

    async def members(self, urls: object) -> tuple[ListedMember, ...]:
        given = tuple(urls)  # type: ignore[call-overload]
        # The first that answers is believed: it is this one.
        return await (self.other if self.url in given else super()).members(given)


@pytest.fixture
def fake() -> FakePlane:
    return FakePlane()


async def opened(fake: FakePlane, *, cluster: int = OURS, revision: int = 0) -> Plane:
    fake.memory = replace(fake.memory, cluster_id=cluster, revision=revision)
    return await fake.open()


async def look(plane: Plane) -> tuple[Membership | None, tuple[WrongData, ...]]:
    observer = EtcdObserver(plane=plane)
    return await observer.observe(plane.memory), observer.wrong


async def test_a_cluster_says_who_it_is_and_how_far_it_has_come(fake: FakePlane) -> None:
    seen, wrong = await look(await opened(fake, cluster=0))
    assert seen is not None
    assert (seen.cluster_id, seen.revision, wrong) == (OURS, fake.etcd.cluster.index, ())


async def test_a_cluster_of_another_id_is_no_cluster_of_the_plane(fake: FakePlane, golden: Golden) -> None:
    seen, wrong = await look(await opened(fake, cluster=THEIRS))
    assert seen is None
    assert {each.replica for each in wrong} == {"east-1", "east-2", "west-1"}
    golden(wrong[0].seen)


async def test_a_cluster_that_was_founded_again_has_the_same_id_and_is_known_by_its_revision(
    fake: FakePlane, golden: Golden
) -> None:
    seen, wrong = await look(await opened(fake, revision=5_000))
    assert seen is None
    assert {each.replica for each in wrong} == {"east-1", "east-2", "west-1"}
    golden(wrong[0].seen)


async def test_members_that_lag_are_no_cluster_that_was_set_back(fake: FakePlane) -> None:
    plane = await opened(fake, revision=fake.etcd.cluster.index)
    for name in ("east-1", "east-2", "west-1"):
        fake.etcd.cluster.lag(fake.url(name), 3)
    seen, wrong = await look(plane)
    assert seen is not None
    assert wrong == ()


async def test_where_no_quorum_confirms_it_nobody_is_wrong_and_nothing_is_known(
    fake: FakePlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(_: object) -> int:
        raise fault("reading etcd's revision", Reason.UNREACHABLE, "no answer")

    plane = await opened(fake, revision=5_000)
    monkeypatch.setattr(fake.etcd, "revision", silent)
    assert await look(plane) == (None, ())


async def test_one_member_with_another_clusters_data_does_not_hide_the_planes_own_cluster(fake: FakePlane) -> None:
    url = fake.url("west-1")
    fake.etcd = Astray(fake.etcd.cluster, FakeEtcd(FakeCluster.founded([fake.address("west-1")])), url)
    fake.memory = replace(
        fake.memory, replicas=tuple(replace(each, listed=True, started=True) for each in fake.memory.replicas)
    )
    seen, wrong = await look(await opened(fake))
    assert seen is not None
    assert {member.replica for member in seen.members} == {"east-1", "east-2", "west-1"}
    assert [each.replica for each in wrong] == ["west-1"]
    astray = seen.of("west-1")
    assert astray is not None
    assert astray.health.value != "healthy"


async def test_the_only_member_with_another_clusters_data_is_found_though_it_lists_nobody_that_is_known(
    fake: FakePlane,
) -> None:
    stranger = replace(fake.address("east-1"), peer_url="https://10.9.9.9:2380")
    url = fake.url("east-1")
    fake.etcd = Astray(fake.etcd.cluster, FakeEtcd(FakeCluster.founded([stranger])), url)
    for name in ("east-2", "west-1"):
        fake.etcd.cluster.stop(fake.url(name))
    seen, wrong = await look(await opened(fake))
    assert seen is None
    assert [each.replica for each in wrong] == ["east-1"]


@pytest.mark.parametrize("known", [0, OURS])
async def test_at_the_end_of_a_drive_it_is_written_down_how_far_the_cluster_has_come(
    fake: FakePlane, known: int
) -> None:
    plane = await opened(fake, cluster=known, revision=2)
    await note_cluster(plane)
    assert (plane.memory.cluster_id, plane.memory.revision) == (OURS, fake.etcd.cluster.index)


async def test_nothing_is_written_down_of_a_cluster_that_was_never_seen(fake: FakePlane) -> None:
    fake.memory = replace(fake.memory, created=False)
    plane = await opened(fake, cluster=0)
    await note_cluster(plane)
    assert plane.memory.cluster_id == 0


async def test_nothing_is_written_down_of_a_cluster_without_a_quorum(fake: FakePlane) -> None:
    plane = await opened(fake, revision=2)
    for name in ("east-1", "east-2"):
        fake.etcd.cluster.stop(fake.url(name))
    await note_cluster(plane)
    assert plane.memory.revision == 2
