"""The data of members is compared again and again, and who differs is written down."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.api.conditions import ConditionType
from quarterdeck.engine.background.upkeep import CompareData
from quarterdeck.engine.notices.conditions import judged
from quarterdeck.engine.notices.events import warnings
from quarterdeck.engine.observation import data_comparison
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.engine.workspace.leases import comparison_lease
from quarterdeck.errors import Corrupt
from quarterdeck.etcd.facts import Alarm, AlarmKind
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import ReplicaFact, World


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakePlane:
    monkeypatch.setattr(data_comparison, "_BETWEEN", 0.0)
    return FakePlane()


async def look(plane: Plane) -> World:
    records = plane.memory.replicas
    facts = tuple(ReplicaFact(name=each.name, machine=MachineState.UP, units=()) for each in records)
    seen = await EtcdObserver(plane=plane).observe(plane.memory)
    return World(slots=(), memory=plane.memory, now=0.0, membership=seen, replicas=facts)


def marked(plane: Plane) -> set[str]:
    return {each.name for each in plane.memory.replicas if each.differs}


async def test_the_data_of_a_member_that_differs_is_written_down(fake: FakePlane, golden: Golden) -> None:
    plane, at_once = await fake.open(), CompareData(every=0.0)
    await at_once.turn(plane, await look(plane))
    assert marked(plane) == set()
    fake.etcd.cluster.at(fake.url("east-2")).hash = 2
    await CompareData().turn(plane, await look(plane))
    assert marked(plane) == set(), "not so soon"
    await at_once.turn(plane, await look(plane))
    assert marked(plane) == {"east-2"}
    golden(warnings(await look(plane)))
    assert marked(await fake.open()) == {"east-2"}, "it is written down"


async def test_data_is_compared_once_for_each_who_asks_for_it(fake: FakePlane) -> None:
    plane, task = await fake.open(), CompareData()
    await task.turn(plane, await look(plane))
    asked = await plane.store.acquire(comparison_lease("demo"), "a drill", 60.0)
    await task.turn(plane, await look(plane))
    fake.etcd.cluster.at(fake.url("east-2")).hash = 2
    await task.turn(plane, await look(plane))
    assert marked(plane) == set(), "that was asked for before"
    await plane.store.release(asked)
    await plane.store.acquire(comparison_lease("demo"), "a drill", 60.0)
    await task.turn(plane, await look(plane))
    assert marked(plane) == {"east-2"}


async def test_where_no_majority_has_the_same_nothing_is_touched_and_a_person_is_told(
    fake: FakePlane, golden: Golden
) -> None:
    plane = await fake.open()
    for number, node in enumerate(fake.etcd.cluster.nodes):
        node.hash = number
    with golden.raises(Corrupt):
        await CompareData(every=0.0).turn(plane, await look(plane))
    assert marked(plane) == set()


async def test_nothing_is_compared_while_a_member_is_not_well(fake: FakePlane) -> None:
    plane = await fake.open()
    fake.etcd.cluster.at(fake.url("east-2")).hash = 2
    world = await look(plane)
    assert world.membership is not None
    one, *rest = world.membership.members
    for worse in (
        None,
        replace(world.membership, alarms=(str(Alarm(AlarmKind.NOSPACE, 1)),)),
        replace(world.membership, members=(replace(one, learner=True), *rest)),
        replace(world.membership, members=(one,)),
        replace(world.membership, members=(replace(one, replica="nobody"), *rest)),
    ):
        await CompareData(every=0.0).turn(plane, replace(world, membership=worse))
        assert marked(plane) == set()
    fake.etcd.cluster.stop(fake.url("west-1"))
    await CompareData(every=0.0).turn(plane, await look(plane))
    assert marked(plane) == set()


async def test_corrupt_without_members_that_differ_is_told_with_the_command_that_turns_it_off(
    fake: FakePlane, golden: Golden
) -> None:
    plane = await fake.open()
    fake.etcd.cluster.alarms.append(Alarm(AlarmKind.CORRUPT, fake.etcd.cluster.nodes[0].id))
    await CompareData().turn(plane, await look(plane))
    (event,) = [each for each in await fake.store.events("demo") if each.reason == "AlarmUnexplained"]
    golden(event.message)


async def test_when_etcd_says_that_members_disagree_who_differs_is_named_at_once_and_again_only_later(
    fake: FakePlane, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    plane, task = await fake.open(), CompareData()
    await task.turn(plane, await look(plane))
    fake.etcd.cluster.at(fake.url("east-2")).hash = 2
    fake.etcd.cluster.alarms.append(Alarm(AlarmKind.CORRUPT, fake.etcd.cluster.nodes[0].id))
    world = await look(plane)
    await task.turn(plane, world)
    assert marked(plane) == {"east-2"}
    conditions = judged(
        (), await look(plane), Plan(waiting=(Wait("a person", "see to it"),)), asked=(), generation=1, now=1.0
    )
    stalled = next(each for each in conditions if each.type == ConditionType.STALLED)
    assert (stalled.status, stalled.reason) == ("True", "AlarmRaised")
    golden(stalled.message)
    golden(str(warnings(await look(plane))))
    monkeypatch.setattr(fake.etcd, "hash_keys", None)
    await task.turn(plane, world)
