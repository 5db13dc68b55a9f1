"""The members that an etcd is started with, beside one that belongs to no replica."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import joined_by
from support.golden import Golden
from support.small_plane import SmallPlane, small_plane

from quarterdeck.actions.status import write_memory
from quarterdeck.actions.units import _initial_cluster
from quarterdeck.components.settings import ClusterState
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.world import World

STRANGER = MemberFact(
    id=0x99, replica="", learner=False, health=Health.DOWN, name="east-1", peer_urls=("https://10.99.0.9:2380",)
)


def beside(small: SmallPlane) -> World:
    """The plane's world, whose etcd a person has added a voter to, with the name of a replica."""
    return joined_by(small.world, STRANGER)


async def test_a_member_that_has_data_starts_with_the_members_of_replicas() -> None:
    small = await small_plane()
    initial = _initial_cluster(small.plane, small.record("east-1"), beside(small))
    assert (initial.state, initial.compares) == (ClusterState.EXISTING, True)
    assert initial == _initial_cluster(small.plane, small.record("east-1"), small.world)
    assert [name for name, _ in initial.members] == ["east-1", "east-2", "east-3"]


async def test_a_member_that_joins_is_not_started_and_the_stranger_is_named(golden: Golden) -> None:
    small = await small_plane()
    memory = small.plane.memory
    records = (*memory.replicas[:2], replace(memory.replicas[2], started=False))
    await write_memory(small.plane, replace(memory, replicas=records))
    assert _initial_cluster(small.plane, small.record("east-3"), small.world).state is ClusterState.EXISTING
    with pytest.raises(PreconditionFailed) as refused:
        _initial_cluster(small.plane, small.record("east-3"), beside(small))
    golden(refused.value)
