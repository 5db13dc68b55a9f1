"""What is told of disks and links, who leads where one is slow, and when free room is given back without need."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from model import stories
from model.stories import joined_by
from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.api.base import Condition, find_condition
from quarterdeck.api.conditions import ConditionType
from quarterdeck.engine.background import disk_watch
from quarterdeck.engine.background.disk_watch import LITTLE, WatchMembers
from quarterdeck.engine.background.upkeep import MOST, Tidy, tidied
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.engine.observation.slowness import DISK, answered, eased
from quarterdeck.etcd.facts import Durations, MemberTimes
from quarterdeck.model.membership import Health, Space
from quarterdeck.model.steps.members import Defragment, TransferLeadership
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner.view import view

WELL = stories.serving()
NAMES = tuple(each.name for each in WELL.memory.replicas)
assert WELL.membership is not None
LEADER = str(WELL.membership.leader)
FIRST, SECOND = (each for each in NAMES if each != LEADER)
MIB = 2**20


def with_member(world: World, name: str, **changes: Any) -> World:
    return stories.with_member(world, name, lambda member: replace(member, **changes))


async def look(plane: Plane) -> World:
    facts = tuple(
        ReplicaFact(name=each.name, machine=MachineState.UP, units=(), ready=True) for each in plane.memory.replicas
    )
    seen = await EtcdObserver(plane=plane).observe(plane.memory)
    return World(
        slots=tuple(each.slot for each in plane.memory.replicas),
        memory=plane.memory,
        now=0.0,
        membership=seen,
        replicas=facts,
    )


@dataclass
class Disks:
    """Each member's: ``took`` is what each of its syncs takes from now on, ``free`` the bytes left, by machine; and
    ``far`` are those whose link is slow.
    """

    fake: FakePlane
    took: dict[str, float]
    free: dict[str, int]
    far: frozenset[str] = frozenset()

    async def times(self, url: str) -> MemberTimes:
        name = next(each for each in self.fake.names if self.fake.address(each).metrics_url == url)
        slow = self.took.get(name, 0.001)
        was = self._was.setdefault(name, [0, 0])
        was[slow > 0.5] += 100
        found = Durations(((0.01, was[0]), (0.8, was[0]), (1.6, sum(was)), (math.inf, sum(was))))
        trips = {node.id: self._trip(name, node.id) for node in self.fake.etcd.cluster.nodes}
        return MemberTimes(fsync=found, commit=found, trips=trips)

    def _trip(self, name: str, to: int) -> Durations:
        there = next(each for each in self.fake.names if self.fake.etcd.cluster.at(self.fake.url(each)).id == to)
        was = self._trips.setdefault((name, to), [0, 0])
        was[bool(self.far & {name, there})] += 1
        return Durations(((0.001, was[0]), (0.1, was[0]), (0.2, sum(was)), (math.inf, sum(was))))

    def __post_init__(self) -> None:
        self._was: dict[str, list[int]] = {}
        self._trips: dict[tuple[str, int], list[int]] = {}

    async def free_bytes(self, machine: str, _: str) -> int:
        return self.free.get(machine, 10**12)


@pytest.fixture
def fake() -> FakePlane:
    made = FakePlane()
    records = tuple(replace(each, storage_class="fast") for each in made.memory.replicas)
    made.memory = replace(made.memory, replicas=records)
    return made


async def plane_on(fake: FakePlane, found: Disks) -> Plane:
    plane = await fake.open()
    fake.etcd.times = found.times  # type: ignore[method-assign]
    site = cast("Any", SimpleNamespace(free_bytes=found.free_bytes))
    plane.sites = {"east": site, "west": site}
    return plane


def condition_of(plane: Plane, kind: str = ConditionType.DISKS_HEALTHY) -> Condition:
    found = find_condition(plane.resource.status.conditions, kind)
    assert found is not None
    return found


async def test_a_disk_that_is_slow_in_two_readings_is_told_and_a_fast_member_leads_once_in_ten_minutes(
    fake: FakePlane, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    found = Disks(fake, {"east-1": 1.2}, {})
    plane, task = await plane_on(fake, found), WatchMembers(every=0.0)
    leader = fake.etcd.cluster.leader
    for _ in range(2):
        await task.turn(plane, await look(plane))
        assert (condition_of(plane).status, condition_of(plane).reason) == ("True", "Healthy")
    await task.turn(plane, await look(plane))
    assert (condition_of(plane).status, condition_of(plane).reason) == ("False", "DiskSlow")
    golden(condition_of(plane).message)
    assert fake.etcd.cluster.leader != leader
    (entry,) = [each for each in await fake.store.journal("demo") if each.kind == "transfer-leadership"]
    golden(str(entry.detail["why"]))
    second = fake.etcd.cluster.leader
    fast = next(each for each in fake.names if fake.etcd.cluster.at(fake.url(each)).id == second)
    found.took = {fast: 1.2}
    for _ in range(3):
        await task.turn(plane, await look(plane))
    assert fake.etcd.cluster.leader == second, "not so soon"
    assert fast in condition_of(plane).message
    assert "east-1" not in condition_of(plane).message
    monkeypatch.setattr(disk_watch, "_APART", 0.0)
    await task.turn(plane, await look(plane))
    assert fake.etcd.cluster.leader != second


async def test_a_leader_behind_a_slow_link_is_told_and_one_of_the_others_leads(fake: FakePlane, golden: Golden) -> None:
    found = Disks(fake, {}, {}, far=frozenset({"east-1"}))
    plane, task = await plane_on(fake, found), WatchMembers(every=0.0)
    leader = fake.etcd.cluster.leader
    for _ in range(2):
        await task.turn(plane, await look(plane))
        assert (condition_of(plane, ConditionType.LINKS_HEALTHY).status, fake.etcd.cluster.leader) == ("True", leader)
    await task.turn(plane, await look(plane))
    condition = condition_of(plane, ConditionType.LINKS_HEALTHY)
    assert (condition.status, condition.reason) == ("False", "LinkSlow")
    golden(condition.message)
    assert condition_of(plane).status == "True", "its disk is not"
    assert fake.etcd.cluster.leader != leader
    found.far = frozenset()
    await task.turn(plane, await look(plane))
    assert condition_of(plane, ConditionType.LINKS_HEALTHY).status == "True"


async def test_no_member_is_better_where_all_links_are_slow(fake: FakePlane) -> None:
    found = Disks(fake, {}, {}, far=frozenset(fake.names))
    plane, task = await plane_on(fake, found), WatchMembers(every=0.0)
    leader = fake.etcd.cluster.leader
    for _ in range(4):
        await task.turn(plane, await look(plane))
    assert condition_of(plane, ConditionType.LINKS_HEALTHY).reason == "LinkSlow"
    assert fake.etcd.cluster.leader == leader


def trips(**seconds: float) -> MemberTimes:
    none = Durations(((math.inf, 0),))
    found = {
        int(each[1:]): Durations(((took / 2, 0), (took * 1.5, 4), (math.inf, 4))) for each, took in seconds.items()
    }
    return MemberTimes(fsync=none, commit=none, trips=found)


def test_a_write_waits_for_the_fastest_of_the_others_that_make_a_quorum() -> None:
    before = trips()
    assert answered(trips(m2=0.001, m3=0.2), before, (1, 2, 3)) == pytest.approx(0.001)
    five = trips(m2=0.001, m3=0.2, m4=0.1, m5=0.3)
    assert answered(five, before, (1, 2, 3, 4, 5)) == pytest.approx(0.1)
    assert answered(trips(m2=0.001, m9=0.001), before, (1, 2, 3, 4, 5)) is None, "too few of the voters are known"
    assert answered(trips(m2=0.001), trips(m2=0.001), (1, 2, 3)) is None, "nothing was measured since"
    assert answered(trips(), before, (1,)) is None, "it waits for nobody"


async def test_a_disk_with_little_room_is_told_with_its_machine(fake: FakePlane, golden: Golden) -> None:
    found = Disks(fake, {}, {"m-east-2": LITTLE - 1})
    plane, task = await plane_on(fake, found), WatchMembers(every=0.0)
    await task.turn(plane, await look(plane))
    assert condition_of(plane).reason == "DiskNearlyFull"
    golden(condition_of(plane).message)
    found.free["m-east-2"] = 0
    await task.turn(plane, await look(plane))
    assert (condition_of(plane).status, condition_of(plane).reason) == ("False", "DiskFull")
    found.free.clear()
    await task.turn(plane, await look(plane))
    assert (condition_of(plane).status, condition_of(plane).message) == ("True", "")


def test_leadership_is_handed_over_only_from_a_slow_disk_to_a_fast_one_while_all_is_well() -> None:
    took = {LEADER: 1.0, FIRST: 0.15, SECOND: 0.01}
    step = eased(view(WELL), DISK, took, {LEADER})
    assert isinstance(step, TransferLeadership)
    assert step.to == SECOND, "the fastest"
    assert eased(view(WELL), DISK, took, set()) is None
    assert eased(view(WELL), DISK, took, {FIRST}) is None, "who is slow does not lead"
    assert eased(view(WELL), DISK, took | {SECOND: 0.3, FIRST: 0.3}, {LEADER}) is None, "no other is fast"
    assert eased(view(WELL), DISK, {LEADER: 1.0}, {LEADER}) is None, "nothing is known of others"
    behind = with_member(WELL, SECOND, lag=10**6)
    step = eased(view(behind), DISK, took, {LEADER})
    assert step is not None
    assert step.to == FIRST, "who lags does not lead"
    assert eased(view(with_member(WELL, FIRST, health=Health.SUSPECT)), DISK, took, {LEADER}) is None


def loose(world: World, *names: str, size: int = 400 * MIB, in_use: int = 100 * MIB) -> World:
    for name in NAMES:
        space = Space(size=size if name in names else in_use, in_use=in_use, quota=2048 * MIB)
        world = with_member(world, name, space=space)
    return world


def test_free_room_is_given_back_one_by_one_the_leader_last_and_not_before_it_has_handed_over() -> None:
    step = tidied(view(loose(WELL, *NAMES)))
    assert isinstance(step, Defragment)
    assert step.replica != LEADER
    assert isinstance(tidied(view(loose(WELL, FIRST))), Defragment)
    assert isinstance(tidied(view(loose(WELL, LEADER))), TransferLeadership)
    assert tidied(view(loose(WELL))) is None


def joined(world: World) -> World:
    assert world.membership is not None
    one, *_ = world.membership.members
    learner = replace(one, id=99, replica="east-9", learner=True)
    return joined_by(world, learner)


@pytest.mark.parametrize(
    "disturbed",
    [
        pytest.param(loose(WELL, *NAMES, size=199 * MIB, in_use=100 * MIB), id="little is free"),
        pytest.param(loose(WELL, *NAMES, size=4 * MOST, in_use=MOST + 1), id="it would take long"),
        pytest.param(with_member(loose(WELL, FIRST), SECOND, health=Health.SUSPECT), id="one is not well"),
        pytest.param(with_member(loose(WELL, FIRST), SECOND, learner=True), id="two members are not enough"),
        pytest.param(joined(loose(WELL, FIRST)), id="one is joining"),
        pytest.param(with_member(loose(WELL, FIRST), SECOND, lag=10**6), id="one lags"),
        pytest.param(
            replace(
                loose(WELL, FIRST),
                replicas=tuple(replace(each, ready=each.name != SECOND) for each in loose(WELL, FIRST).replicas),
            ),
            id="an apiserver is not ready",
        ),
        pytest.param(
            replace(
                loose(WELL, FIRST),
                memory=replace(
                    WELL.memory,
                    replicas=tuple(replace(each, differs=each.name == SECOND) for each in WELL.memory.replicas),
                ),
            ),
            id="one has other data",
        ),
    ],
)
def test_nobody_is_defragmented_without_need_while_anything_else_is_disturbed(disturbed: World) -> None:
    assert tidied(view(disturbed)) is None


async def test_one_member_of_a_plane_is_defragmented_in_an_hour(fake: FakePlane) -> None:
    plane, task = await fake.open(), Tidy(every=0.0)
    fake.etcd.cluster.quota = 2048 * MIB
    for node in fake.etcd.cluster.nodes:
        node.size = 400 * MIB
    await task.turn(plane, await look(plane))
    sizes = [node.size for node in fake.etcd.cluster.nodes]
    assert sorted(size > MIB for size in sizes) == [False, True, True]
    task.every, task._tried = 3600.0, -math.inf
    await task.turn(plane, await look(plane))
    assert [node.size for node in fake.etcd.cluster.nodes] == sizes
    (entry,) = [each for each in await fake.store.journal("demo") if each.kind == "defragment"]
    assert entry.detail["before"] == 400 * MIB
