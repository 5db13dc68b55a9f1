"""Times to live and drains, and clocks that jump."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.fake_plane import Clocks, FakePlane

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import adopt, refresh, remember
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.memory import MemoryStatus, memory_from_status, memory_to_status
from quarterdeck.model.memory import Condemned, Lifetime, Memory, Timeline
from quarterdeck.model.remember import adopted
from quarterdeck.model.steps.traffic import NoteDraining, NoteRecord

HOUR = 3_600.0


@pytest.fixture
def fake() -> FakePlane:
    return FakePlane()


async def driving(fake: FakePlane) -> Plane:
    """What a driver does when it begins, and before each look."""
    plane = await fake.open()
    await refresh(plane)
    await adopt(plane)
    return plane


async def waiting(fake: FakePlane) -> Plane:
    """A plane whose name has just moved, and whose former apiserver begins to drain."""
    plane = await driving(fake)
    await remember(plane, (NoteRecord(site="", why="", to="west"),))
    await remember(plane, (NoteDraining(site="", why="", draining=("east-1",)),))
    return plane


def ages(plane: Plane) -> tuple[float, float]:
    """For how long an address has been held and a replica has drained, as the planner reckons it."""
    ((_, held),), ((_, draining),) = plane.memory.held, plane.memory.draining
    return round(plane.now() - held, 3), round(plane.now() - draining, 3)


async def test_time_is_counted_while_a_driver_lives(fake: FakePlane) -> None:
    plane = await waiting(fake)
    fake.clocks.pass_(5.0)
    assert ages(plane) == (5.0, 5.0)


@pytest.mark.parametrize("step", [-1000 * HOUR, -1.0, 1.0, 1000 * HOUR])
async def test_a_step_of_the_wall_clock_counts_for_nothing_while_a_driver_lives(fake: FakePlane, step: float) -> None:
    plane = await waiting(fake)
    fake.clocks.pass_(2.0)
    fake.clocks.step(step)
    fake.clocks.pass_(2.0)
    await adopt(plane)
    assert ages(plane) == (4.0, 4.0)


@pytest.mark.parametrize("step", [-1000 * HOUR, 1000 * HOUR])
async def test_what_begins_after_a_step_of_the_wall_clock_is_counted_as_well(fake: FakePlane, step: float) -> None:
    await driving(fake)
    fake.clocks.step(step)
    plane = await waiting(fake)
    assert ages(plane) == (0.0, 0.0)
    fake.clocks.pass_(3.0)
    assert ages(plane) == (3.0, 3.0)


@pytest.mark.parametrize("step", [-1000 * HOUR, -1.0, 0.0, 1.0, 1000 * HOUR])
async def test_a_driver_that_comes_after_one_that_was_killed_goes_on_counting(fake: FakePlane, step: float) -> None:
    await waiting(fake)
    fake.clocks.pass_(2.0)
    fake.clocks.step(step)
    fake.clocks.pass_(2.0)
    assert ages(await driving(fake)) == (4.0, 4.0)


@pytest.mark.parametrize("step", [-1000 * HOUR, -1.0, 0.0, 1.0, 1000 * HOUR])
async def test_after_a_boot_the_full_time_is_waited_once_more(fake: FakePlane, step: float) -> None:
    """Nobody can know how long the host was off: the wall clock may have been set meanwhile."""
    await waiting(fake)
    fake.clocks.pass_(2.0)
    fake.clocks.step(step)
    fake.clocks.reboot()
    plane = await driving(fake)
    assert ages(plane) == (0.0, 0.0)
    fake.clocks.pass_(2.0)
    assert ages(await driving(fake)) == (2.0, 2.0)  # and only once, however many drivers come


async def test_a_time_that_lies_ahead_counts_from_now(fake: FakePlane) -> None:
    """A virtual machine that was set back to an earlier state, with its disk elsewhere."""
    await waiting(fake)
    fake.clocks.steady -= 500.0
    assert ages(await driving(fake)) == (0.0, 0.0)


async def test_a_memory_of_before_there_were_timelines_waits_the_full_time_once_more(fake: FakePlane) -> None:
    old = MemoryStatus.model_validate_json(
        '{"servedSite": "west", "held": [{"name": "east", "time": 1799999000.0}], '
        '"draining": [{"name": "east-1", "time": 1900000000.0}]}'
    )
    fake.memory = replace(memory_from_status(old), replicas=fake.memory.replicas)
    assert fake.memory.timeline is None
    plane = await driving(fake)
    assert ages(plane) == (0.0, 0.0)
    fake.clocks.pass_(3.0)
    assert ages(await driving(fake)) == (3.0, 3.0)


async def test_whoever_only_looks_writes_nothing_and_reads_it_by_the_wall_clock(fake: FakePlane) -> None:
    await waiting(fake)
    fake.clocks.pass_(2.0)
    fake.clocks.reboot()
    fake.clocks.pass_(10.0)
    before = await fake.store.get(ControlPlane, "demo")
    assert ages(await fake.open()) == (12.0, 12.0)
    assert await fake.store.get(ControlPlane, "demo") == before


async def test_a_memory_of_this_boot_is_not_written_again(fake: FakePlane) -> None:
    plane = await waiting(fake)
    version = plane.resource.metadata.resource_version
    await adopt(plane)
    assert plane.resource.metadata.resource_version == version


def test_times_read_like_wall_times() -> None:
    clocks = Clocks()
    memory = adopted(Memory(held=(("east", 5.0),)), boot=clocks.boot, steady=clocks.steady, wall=clocks.wall)
    assert memory.held == (("east", clocks.wall),)


def test_a_timeline_is_written_down_and_read_again() -> None:
    memory = Memory(held=(("east", 5.0),), timeline=Timeline(boot="a", ahead=7.0))
    assert memory_from_status(memory_to_status(memory)) == memory


def test_what_healing_remembers_is_written_down_read_again_and_counts_again_after_a_boot() -> None:
    given_up = Condemned(replica="east-1", why="it is dead", since=3.0)
    memory = Memory(
        down=(("east-2", 5.0),),
        condemned=(given_up,),
        healed=(("m-1", 3.0),),
        timeline=Timeline(boot="a", ahead=7.0),
    )
    assert memory_from_status(memory_to_status(memory)) == memory
    booted = adopted(memory, boot="b", steady=1.0, wall=500.0)
    assert (booted.down, booted.healed) == ((("east-2", 500.0),), (("m-1", 500.0),))


def test_since_when_answers_are_shorter_is_a_time_like_the_others() -> None:
    before = Memory(timeline=Timeline(boot="b", ahead=100.0), longer=Lifetime(ttl=60.0, until=150.0))
    same = adopted(before, boot="b", steady=70.0, wall=999.0)
    assert same.longer == Lifetime(ttl=60.0, until=150.0)
    booted = adopted(before, boot="c", steady=1.0, wall=500.0)
    assert booted.longer == Lifetime(ttl=60.0, until=500.0), "the full time is waited once more"


def test_after_a_boot_a_quorum_has_only_just_been_lost() -> None:
    """Nothing is given up by itself because a host was off for long."""
    before = Memory(timeline=Timeline(boot="b", ahead=100.0), quorum_lost=150.0)
    assert adopted(before, boot="b", steady=70.0, wall=999.0).quorum_lost == 150.0
    assert adopted(before, boot="c", steady=1.0, wall=9_999.0).quorum_lost == 9_999.0
    assert adopted(Memory(), boot="c", steady=1.0, wall=9_999.0).quorum_lost is None
