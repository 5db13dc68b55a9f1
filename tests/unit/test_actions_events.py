"""A replica's member of the events' cluster: what it starts as, where its data is, and what is left when it goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from support.golden import Golden
from support.small_plane import NAME, SmallPlane, small_plane

from quarterdeck.actions.addresses import candidates, client_urls
from quarterdeck.actions.clusters import release_member
from quarterdeck.actions.seats import settle_seats
from quarterdeck.actions.status import write_memory
from quarterdeck.actions.units import _initial_cluster
from quarterdeck.actions.volumes import replica_settings, volume_name
from quarterdeck.components.settings import ClusterState
from quarterdeck.engine.notices.conditions import judged
from quarterdeck.engine.notices.events import warnings
from quarterdeck.errors import Unavailable
from quarterdeck.model.clusters import Cluster, ClusterMemory, MemberMemory
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health, MemberData, MemberFact, Membership
from quarterdeck.model.memory import Memory
from quarterdeck.model.steps.clusters import ReleaseMember
from quarterdeck.model.steps.members import AddLearner, Swap
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.world import World

A1 = "east-a1"
EVENTS = Cluster.EVENTS
NOT_LOOKED_AT = World(slots=(), memory=Memory(), now=0.0)
RELEASE = ReleaseMember(site="east", why="", replica="east-1", cluster=EVENTS)


async def apart(*, epoch: int = 1, created: bool = True, started: bool = True) -> SmallPlane:
    """A plane of three replicas, each with a member of an events' cluster, on seats that have room for it."""
    small = await small_plane()
    await settle_seats(small.plane)
    member = MemberMemory(epoch=epoch, storage_class="standard", listed=created, started=started)
    memory = small.plane.memory
    replicas = tuple(replace(each, events=member, storage_class="standard") for each in memory.replicas)
    events = ClusterMemory(epoch=epoch, bootstrap=("east-1", "east-2", "east-3"), created=created)
    await write_memory(small.plane, replace(memory, replicas=replicas, events=events))
    return replace(small, world=replace(small.world, memory=small.plane.memory))


async def test_founders_of_the_events_cluster_found_one_of_its_own() -> None:
    small = await apart(created=False, started=False)
    initial = _initial_cluster(small.plane, small.record("east-1"), small.world, EVENTS)
    assert initial.state is ClusterState.NEW
    assert [url.rpartition(":")[2] for _, url in initial.members] == ["2383"] * 3
    uid = small.plane.resource.metadata.uid
    assert initial.token == f"{NAME}-{uid}-events-1"
    main = _initial_cluster(small.plane, small.record("east-1"), None)
    assert (main.state, main.token) == (ClusterState.EXISTING, f"{NAME}-{uid}")
    again = await apart(epoch=2, created=False, started=False)
    assert _initial_cluster(again.plane, again.record("east-1"), None, EVENTS).token.endswith("-events-2")


async def test_a_member_of_a_former_events_cluster_is_none_of_this_one() -> None:
    small = await apart(epoch=2)
    memory, old = small.plane.memory, MemberMemory(epoch=1, listed=True, started=True)
    records = (replace(memory.replicas[0], events=old), *memory.replicas[1:])
    events = replace(memory.events, bootstrap=("east-2",))
    await write_memory(small.plane, replace(memory, replicas=records, events=events))
    assert [each.name for each in candidates(small.plane, EVENTS)] == ["east-2", "east-3"]
    assert len(client_urls(small.plane)) == 3


async def test_each_member_has_a_volume_of_its_own() -> None:
    small = await apart(started=False)
    record = small.record("east-1")
    for component, name in ((Component.ETCD, "alpha-east-1"), (Component.EVENTS_ETCD, "alpha-east-1-events-1")):
        await small.sites["east"].create_volume(A1, "alpha-east-1", "standard")
        settings = await replica_settings(small.plane, record, component)
        assert settings.volume.name == name
    assert volume_name(small.plane, record) == "alpha-east-1"


async def test_the_data_of_a_member_that_has_started_is_put_back_and_never_made_again(golden: Golden) -> None:
    small = await apart()
    with golden.raises(Unavailable):
        await replica_settings(small.plane, small.record("east-1"), Component.EVENTS_ETCD)


async def test_what_a_replica_has_of_any_events_cluster_goes_and_nothing_else() -> None:
    small = await apart(epoch=3)
    site = small.sites["east"]
    names = ("alpha-east-1", "alpha-east-1-events-1", "alpha-east-1-events-3", "alpha-east-10-events-3")
    for name in names:
        await site.create_volume(A1, name, "standard")
    await release_member(small.plane, RELEASE, NOT_LOOKED_AT)
    await release_member(small.plane, RELEASE, NOT_LOOKED_AT)
    assert [each.name for each in await site.volumes(A1)] == ["alpha-east-1", "alpha-east-10-events-3"]


def ill(world: World) -> World:
    """One member of the events' cluster is down, its data is lost, and members disagree."""
    members = tuple(
        MemberFact(id=number, replica=f"east-{number}", learner=False, health=health, lag=0)
        for number, health in ((1, Health.DOWN), (2, Health.HEALTHY), (3, Health.HEALTHY))
    )
    alarms = ("memberID:2 alarm:CORRUPT ",)
    lost = replace(world.replica("east-1"), events=MemberData(has_data=False))
    return replace(
        world,
        events_membership=Membership(members=members, leader="east-2", alarms=alarms),
        replicas=(lost, *world.replicas[1:]),
    )


async def test_what_is_not_well_is_said_of_the_cluster_that_it_is_in(golden: Golden) -> None:
    small = await apart()
    golden(warnings(replace(small.world, events_membership=None)))
    world = ill(small.world)
    golden(warnings(world))
    found = {each.type: each for each in judged((), world, Plan(now=()), asked=(), generation=1, now=0.0)}
    golden(found["Stalled"].message)


def test_a_step_says_when_it_is_about_the_events_etcd(golden: Golden) -> None:
    here: dict[str, Any] = {"site": "east", "why": ""}
    golden(AddLearner(**here, replica="east-1").words)
    golden(AddLearner(**here, replica="east-1", cluster=EVENTS).words)
    golden(Swap(**here, changes=(), cluster=EVENTS).words)
    golden(RELEASE.words)
    golden(StartUnit(**here, replica="east-1", component=Component.EVENTS_ETCD).words)
