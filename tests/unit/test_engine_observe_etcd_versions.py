"""What is read of the versions of a cluster, and of whom: on a cluster in memory."""

from __future__ import annotations

import pytest
from fakes.etcd import FakeEtcd
from support.fake_plane import FakePlane

from quarterdeck.actions.plane import Plane
from quarterdeck.components.template import Revisions
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.etcd.faults import Reason, fault
from quarterdeck.model.membership import EtcdMinor, Membership

OLDER = "older"


@pytest.fixture
def fake() -> FakePlane:
    return FakePlane()


@pytest.fixture
async def plane(fake: FakePlane) -> Plane:
    """One of which an older version of etcd is wanted."""
    made = await fake.open()
    template = made.wanted
    etcd = template.etcd.model_copy(update={"version": "3.6.16"})
    older = template.model_copy(update={"etcd": etcd})
    made.revisions = Revisions(goal=OLDER, templates={**made.revisions.templates, OLDER: older})
    return made


async def seen(plane: Plane) -> Membership:
    found = await EtcdObserver(plane=plane).observe(plane.memory)
    assert found is not None
    return found


async def test_the_cluster_version_is_read_while_revisions_differ_in_their_minor_versions(
    fake: FakePlane, plane: Plane
) -> None:
    assert (await seen(plane)).works_as == (3, 7)
    plane.revisions = Revisions(goal=OLDER, templates={OLDER: plane.wanted})
    assert (await seen(plane)).works_as is None


async def test_it_is_that_of_the_leader_alone(fake: FakePlane, plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = FakeEtcd.works_as

    async def works_as(self: FakeEtcd, url: str, *, within: float | None = None) -> EtcdMinor:
        asked.append(url)
        return await real(self, url, within=within)

    monkeypatch.setattr(FakeEtcd, "works_as", works_as)
    await seen(plane)
    assert asked == [fake.url("east-1")]


async def test_a_leader_that_does_not_tell_it_leaves_it_unknown(
    fake: FakePlane, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def works_as(self: FakeEtcd, url: str, *, within: float | None = None) -> EtcdMinor:
        raise fault("reading the version", Reason.OTHER, "it is not known yet")

    monkeypatch.setattr(FakeEtcd, "works_as", works_as)
    assert (await seen(plane)).works_as is None


async def test_a_downgrade_and_what_members_store_is_reported_since_3_6(fake: FakePlane, plane: Plane) -> None:
    cluster = fake.etcd.cluster
    cluster.downgrade = (3, 6)
    cluster.agree()
    found = await seen(plane)
    assert (found.works_as, found.downgrade) == ((3, 6), (3, 6))
    assert {each.storage for each in found.members} == {(3, 6)}
    for node in cluster.nodes:
        node.version = "3.5.35"
    found = await seen(plane)
    assert found.downgrade is None
    assert {each.storage for each in found.members} == {None}
