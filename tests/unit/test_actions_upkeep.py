"""Room is made in a cluster in memory that has none: what is seen of it, and what the steps do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.fake_plane import FakePlane

from quarterdeck.actions.members import HANDLERS, defragment
from quarterdeck.actions.plane import Plane
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.etcd.facts import Alarm, AlarmKind
from quarterdeck.model.membership import MemberFact, Space
from quarterdeck.model.remember import remember
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.members import Compact, Defragment, Disarm, TransferLeadership
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner.rules.upkeep import make_room
from quarterdeck.planner.view import view

QUOTA = 64 << 20
#: How large a database becomes that is written to until it takes no more: half a MiB of it are keys.
SIZE = QUOTA + (1 << 19)


@pytest.fixture
def fake() -> FakePlane:
    fake = FakePlane()
    fake.etcd.cluster.quota = QUOTA
    with pytest.raises(PreconditionFailed, match="no space"):
        for _ in range(100):
            fake.etcd.cluster.overwrite(1 << 20)
    return fake


async def seen(plane: Plane, world: World | None = None) -> World:
    """The plane as it is now, some seconds later."""
    if world is None:
        records = plane.memory.replicas
        facts = tuple(ReplicaFact(name=each.name, machine=MachineState.UP, units=()) for each in records)
        slots = tuple(each.slot for each in records)
        world = World(slots=slots, memory=plane.memory, now=0.0, replicas=facts)
    return replace(world, membership=await EtcdObserver(plane=plane).observe(world.memory), now=world.now + 10.0)


async def carried_out(fake: FakePlane, plane: Plane, step: Step, world: World) -> None:
    """What a step does; that leadership goes over is told elsewhere."""
    if isinstance(step, TransferLeadership):
        fake.etcd.cluster.leader = step.member
    elif type(step) in HANDLERS:
        await HANDLERS[type(step)](plane, step, world)


def member(world: World, name: str) -> MemberFact:
    assert world.membership is not None
    found = world.membership.of(name)
    assert found is not None
    return found


async def test_a_cluster_without_room_takes_writes_again_when_all_steps_are_carried_out(fake: FakePlane) -> None:
    plane, world, done = await fake.open(), None, []
    while fake.etcd.cluster.alarms:
        world = await seen(plane, world)
        (step,) = make_room(view(world)).steps
        done.append(type(step).__name__)
        await carried_out(fake, plane, step, world)
        world = replace(world, memory=remember(world.memory, step, world.now))
    assert done == ["NoteFull", "Compact", *["Defragment"] * 2, "TransferLeadership", "Defragment", "Disarm"]
    fake.etcd.cluster.overwrite(1 << 20)
    assert fake.etcd.cluster.alarms == []


async def test_members_say_how_full_they_are_and_how_far(fake: FakePlane) -> None:
    plane = await fake.open()
    fake.etcd.cluster.stop(fake.url("east-2"))
    world = await seen(plane)
    one = member(world, "east-1")
    assert one.space == Space(size=SIZE, in_use=SIZE, quota=QUOTA)
    assert one.revision is not None
    assert (member(world, "east-2").space, member(world, "east-2").revision) == (None, None)


async def test_a_member_that_does_not_tell_its_quota_has_the_one_that_is_wanted(fake: FakePlane) -> None:
    plane = await fake.open()
    fake.etcd.cluster.quota = 0  # as etcd 3.5 says
    space = member(await seen(plane), "east-1").space
    assert space is not None
    assert space.quota == plane.wanted.etcd.quota_bytes


async def test_a_step_that_was_taken_already_does_no_harm(fake: FakePlane) -> None:
    plane = await fake.open()
    fake.etcd.cluster.alarms.append(Alarm(AlarmKind.CORRUPT, 1))
    world, revision = await seen(plane), await plane.etcd.revision((fake.url("east-1"),))
    for step in (
        Compact(site="", why="", revision=revision),
        Defragment(site="east", why="", replica="east-2"),
        Disarm(site="", why=""),
    ):
        await carried_out(fake, plane, step, world)
        await carried_out(fake, plane, step, world)
    assert {alarm.kind for alarm in fake.etcd.cluster.alarms} == {AlarmKind.CORRUPT}


async def test_reports_tell_how_large_a_database_was_and_is(fake: FakePlane) -> None:
    plane = await fake.open()
    world, step = await seen(plane), Defragment(site="east", why="", replica="east-2")
    fake.etcd.cluster.history = 0
    assert await defragment(plane, step, world) == {"before": SIZE, "after": fake.etcd.cluster.keys}
    fake.etcd.cluster.stop(fake.url("east-2"))
    with pytest.raises(Unavailable):
        await defragment(plane, step, world)
