"""The rules of etcd that the cluster in memory keeps, beyond what the contract shows."""

from __future__ import annotations

import pytest
from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster, MemberAddress

from quarterdeck.errors import NotFound, Unavailable
from quarterdeck.etcd.faults import EtcdFault, Reason


def address(name: str) -> MemberAddress:
    return MemberAddress(
        name=name,
        peer_url=f"https://{name}:2380",
        client_url=f"https://{name}:2379",
        metrics_url=f"http://{name}:2381",
    )


def client_urls(*names: str) -> list[str]:
    return [address(name).client_url for name in names]


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster.founded([address(name) for name in ("a", "b", "c")], max_learners=3)


async def learner(cluster: FakeCluster, name: str) -> int:
    member_id = await FakeEtcd(cluster).add_learner(client_urls("a"), address(name).peer_url)
    cluster.start(address(name))
    return member_id


async def test_a_learner_far_behind_passes_etcds_own_check(cluster: FakeCluster) -> None:
    etcd = FakeEtcd(cluster)
    member_id = await learner(cluster, "d")
    cluster.write(100_000)
    cluster.lag(address("d").client_url, 50_000)
    with pytest.raises(EtcdFault) as behind:
        await etcd.promote(client_urls("a"), member_id)
    assert behind.value.reason is Reason.LEARNER_BEHIND
    cluster.lag(address("d").client_url, 9_000)
    await etcd.promote(client_urls("a"), member_id)
    status = await etcd.status(address("d").client_url)
    assert status.raft_applied_index == cluster.index - 9_000


async def test_a_member_that_runs_only_now_does_not_count_as_connected(cluster: FakeCluster) -> None:
    etcd = FakeEtcd(cluster)
    cluster.stop(address("c").client_url)
    cluster.start(address("c"), settled=False)
    with pytest.raises(Unavailable):
        await etcd.add_learner(client_urls("a", "b"), address("d").peer_url)
    cluster.settle()
    await etcd.add_learner(client_urls("a", "b"), address("d").peer_url)


async def test_a_member_that_was_stopped_stays_where_it_was_until_it_runs_again(cluster: FakeCluster) -> None:
    etcd = FakeEtcd(cluster)
    cluster.stop(address("c").client_url)
    cluster.write(100)
    with pytest.raises(Unavailable):
        await etcd.applied_index(address("c").metrics_url)
    cluster.start(address("c"))
    assert await etcd.applied_index(address("c").metrics_url) == cluster.index


async def test_another_voter_leads_when_the_leader_goes(cluster: FakeCluster) -> None:
    etcd = FakeEtcd(cluster)
    first, term = cluster.leader, cluster.term
    cluster.stop(address("a").client_url)
    assert cluster.leader not in (0, first)
    assert cluster.term == term + 1
    cluster.stop(address("b").client_url)
    assert (await etcd.status(address("c").client_url)).leader_id == 0


async def test_a_removed_member_cannot_start_again(cluster: FakeCluster) -> None:
    member_id = await learner(cluster, "d")
    await FakeEtcd(cluster).remove(client_urls("a"), member_id)
    with pytest.raises(NotFound):
        cluster.start(address("d"))


async def test_voters_that_never_started_are_no_quorum(cluster: FakeCluster) -> None:
    """etcd: NOT_ENOUGH_STARTED; here a removal that would leave one voter that runs and one that never did."""
    etcd = FakeEtcd(cluster)
    never = await etcd.add_learner(client_urls("a"), address("d").peer_url)
    node = cluster.by_id(never)
    assert node is not None
    node.learner = False  # as --force-new-cluster or an operator could bring about
    await etcd.remove(client_urls("a"), cluster.at(address("c").client_url).id)
    with pytest.raises(EtcdFault) as refused:
        await etcd.remove(client_urls("a"), cluster.at(address("b").client_url).id)
    assert refused.value.reason is Reason.NOT_ENOUGH_STARTED
