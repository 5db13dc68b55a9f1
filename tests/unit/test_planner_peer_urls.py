"""Peer URLs of members that a person has changed: each member comes to have that of its replica, and no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes.etcd_cluster import Member
from model.stories import planned, whats
from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.actions.members import readdress_member
from quarterdeck.actions.plane import Plane
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.etcd.facts import ListedMember
from quarterdeck.etcd.faults import EtcdConflict
from quarterdeck.model.steps.members import ReaddressMember
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules.volume_moves import readdress
from quarterdeck.planner.view import view

EAST1, EAST2, WEST1 = (f"https://{host}:2380" for host in ("127.0.1.1", "127.0.1.2", "127.0.2.1"))
FREE = "https://10.99.0.9:2380"


@pytest.fixture
def fake() -> FakePlane:
    """A plane whose members' ids are noted, as they are once it was driven."""
    fake = FakePlane()
    ids = {node.peer_url: node.id for node in fake.etcd.cluster.nodes}
    replicas = (replace(each, member_id=ids[fake.address(each.name).peer_url]) for each in fake.memory.replicas)
    fake.memory = replace(fake.memory, replicas=tuple(replicas))
    return fake


def updated(fake: FakePlane, *urls: str) -> None:
    """A person gives the members these peer URLs."""
    for node, url in zip(fake.etcd.cluster.nodes, urls, strict=False):
        node.peer_url = url


async def seen(plane: Plane) -> World:
    membership = await EtcdObserver(plane=plane).observe(plane.memory)
    return World(
        slots=tuple(each.slot for each in plane.memory.replicas[:2]),
        memory=plane.memory,
        now=0.0,
        plane_name=plane.name,
        membership=membership,
        replicas=tuple(ReplicaFact(name=each, machine=MachineState.UP, units=()) for each in FakePlane.names),
    )


async def done(plane: Plane) -> RuleOutcome:
    """What is left to wait for once all that is to be done was done. Raises what etcd refuses."""
    for _ in range(10):
        world = await seen(plane)
        outcome = readdress(view(world))
        if not outcome.steps:
            return outcome
        for step in outcome.steps:
            assert isinstance(step, ReaddressMember)
            await readdress_member(plane, step, world)
    raise AssertionError("it does not end")


@pytest.mark.parametrize(
    "urls",
    [
        (FREE,),
        (EAST2, EAST1),
        (EAST2, WEST1, EAST1),
        (EAST2, FREE),
        (EAST2, WEST1, FREE),
        (EAST1, WEST1, EAST2),
        (WEST1, EAST1, EAST2),
    ],
)
async def test_every_member_gets_the_peer_url_of_its_replica_back(fake: FakePlane, urls: tuple[str, ...]) -> None:
    updated(fake, *urls)
    assert await done(await fake.open()) == RuleOutcome()
    assert [node.peer_url for node in fake.etcd.cluster.nodes] == [EAST1, EAST2, WEST1]


async def test_one_member_moves_at_a_time_where_they_displace_each_other(fake: FakePlane, golden: Golden) -> None:
    updated(fake, EAST2, EAST1)
    world = await seen(await fake.open())
    (step,) = planned(world, ReaddressMember).steps
    assert isinstance(step, ReaddressMember)
    assert step.replica == "east-1"
    golden(step.why)


async def test_a_member_that_has_another_ones_peer_url_besides_its_own_gives_it_up(
    fake: FakePlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    updated(fake, FREE)
    plane = await fake.open()
    listed = await fake.etcd.members([fake.url("east-1")])
    second = replace(listed[1], peer_urls=(EAST2, EAST1))

    async def members(_: Sequence[str]) -> tuple[ListedMember, ...]:
        return (listed[0], second, listed[2])

    monkeypatch.setattr(fake.etcd, "members", members)
    (step,) = planned(await seen(plane), ReaddressMember).steps
    assert isinstance(step, ReaddressMember)
    assert step.replica == "east-2"


@pytest.mark.parametrize("learner", [False, True])
async def test_a_stranger_that_has_the_peer_url_is_named_and_not_displaced(fake: FakePlane, *, learner: bool) -> None:
    stranger = Member(id=0x99, peer_url=EAST1, learner=learner)
    updated(fake, FREE)
    fake.etcd.cluster.nodes.append(stranger)
    plane = await fake.open()
    expected = "the peer URL of east-1, which member 99 (not started, https://127.0.1.1:2380) has"
    found = await done(plane)
    assert (found.steps, whats(found)) == ((), (expected,))
    assert (stranger.peer_url, fake.etcd.cluster.nodes[0].peer_url) == (EAST1, FREE)
    fake.etcd.cluster.nodes.remove(stranger)
    assert await done(plane) == RuleOutcome()
    assert fake.etcd.cluster.nodes[0].peer_url == EAST1


async def test_members_that_wait_for_one_another_and_at_last_for_a_stranger_move_once_it_is_gone(
    fake: FakePlane,
    golden: Golden,
) -> None:
    updated(fake, EAST2, FREE, EAST1)
    fake.etcd.cluster.nodes.append(Member(id=0x99, peer_url=WEST1, learner=False))
    outcome = await done(await fake.open())
    golden([each.split(",")[0] for each in whats(outcome)])
    fake.etcd.cluster.nodes.pop()
    assert await done(await fake.open()) == RuleOutcome()
    assert [node.peer_url for node in fake.etcd.cluster.nodes] == [EAST1, EAST2, WEST1]


async def test_a_peer_url_that_was_taken_since_the_look_is_refused_by_etcd(fake: FakePlane) -> None:
    updated(fake, FREE)
    plane = await fake.open()
    world = await seen(plane)
    fake.etcd.cluster.nodes.append(Member(id=0x99, peer_url=EAST1, learner=False))
    (step,) = planned(world, ReaddressMember).steps
    assert isinstance(step, ReaddressMember)
    with pytest.raises(EtcdConflict):
        await readdress_member(plane, step, world)
