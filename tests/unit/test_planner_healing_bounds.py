"""The bounds of healing, to the moment and to the replica."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from model.stories import planned, step_words, with_fact, with_member, with_memory
from model.worlds import empty, settled

from quarterdeck.model.bounds import HealingBounds
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Condemned
from quarterdeck.model.steps.healing import Condemn, CordonMachine, NoteAiling, NoteDown, Pardon
from quarterdeck.model.steps.units import ReviveUnit
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner.simulated import observe

HEALING = HealingBounds(budget=9, window=100.0, after=5.0, later=60.0, hung=20.0)
SCHEDULER = Component.SCHEDULER
NOW = 1_000.0


@cache
def plane(replicas: int = 3) -> World:
    world = observe(settled(empty("east", replicas, sites=("east",))))
    return replace(world, settings=replace(world.settings, healing=HEALING), now=NOW)


def hanging(world: World, *names: str, seconds: float) -> World:
    """The scheduler of these replicas has hung for so long."""
    for name in names:
        hung = frozenset({SCHEDULER})
        world = with_fact(world, name, lambda fact: replace(fact, hung=hung, silent=hung))  # noqa: B023
    return with_memory(world, unhealthy=tuple((f"{SCHEDULER} of {name}", NOW - seconds) for name in names))


def dead(world: World, name: str, *, seconds: float) -> World:
    """The machine of a replica is off, and nobody hears of its member, for so long."""
    at = world.memory.replica(name).machine
    machines = tuple(replace(each, state=MachineState.DOWN) if each.name == at else each for each in world.machines)
    off = {"machine": MachineState.DOWN, "units": (), "has_data": None, "ready": None}
    world = with_fact(replace(world, machines=machines), name, lambda fact: replace(fact, **off))  # type: ignore[arg-type]
    world = with_member(world, name, lambda each: replace(each, health=Health.DOWN, lag=None))
    return with_memory(world, down=((name, NOW - seconds),))


def heals(world: World) -> list[str]:
    kinds = (ReviveUnit, Condemn, CordonMachine, NoteDown, NoteAiling, Pardon)
    return [step_words(step) for step in planned(world, *kinds).steps]


REVIVED = [f"ReviveUnit {SCHEDULER} of east-2"]


def test_a_program_is_restarted_when_its_time_is_over_and_again_when_the_window_is() -> None:
    assert heals(hanging(plane(), "east-2", seconds=19.9)) == []
    world = hanging(plane(), "east-2", seconds=20.0)
    assert heals(world) == REVIVED
    for ago, again in ((99.9, ["Condemn east-2"]), (100.0, REVIVED)):
        assert heals(with_memory(world, revived=((f"{SCHEDULER} of east-2", NOW - ago),))) == again


def test_what_hangs_and_is_not_noted_is_noted_first_and_what_is_well_again_is_forgotten() -> None:
    world = hanging(plane(), "east-2", seconds=20.0)
    assert heals(with_memory(world, unhealthy=())) == ["NoteAiling"]
    assert heals(with_memory(plane(), unhealthy=world.memory.unhealthy)) == ["NoteAiling"]


@pytest.mark.parametrize(
    ("replicas", "many", "half"), [(1, 1, False), (3, 1, False), (3, 2, True), (4, 2, True), (5, 2, False)]
)
def test_where_half_of_several_replicas_are_unhealthy_healing_starts_later(
    replicas: int, many: int, half: bool
) -> None:
    names = tuple(f"east-{number}" for number in range(1, many + 1))
    first = [f"ReviveUnit {SCHEDULER} of east-1"]
    assert heals(hanging(plane(replicas), *names, seconds=59.9)) == ([] if half else first)
    assert heals(hanging(plane(replicas), *names, seconds=60.0)) == first


def test_a_dead_replica_is_condemned_when_its_time_is_over() -> None:
    assert heals(dead(plane(), "east-2", seconds=4.9)) == []
    assert heals(dead(plane(), "east-2", seconds=5.0)) == ["Condemn east-2"]


def test_the_dead_are_noted_where_healing_is_on_and_the_plane_was_founded() -> None:
    world = with_memory(dead(plane(), "east-2", seconds=0.0), down=())
    assert heals(world) == ["NoteDown"]
    off = replace(world, settings=replace(world.settings, healing=replace(HEALING, budget=0)))
    assert heals(off) == []
    assert heals(with_memory(world, created=False)) == []


def test_a_machine_that_is_cordoned_already_is_not_cordoned_for_its_dead_replicas() -> None:
    world = with_memory(plane(), healed=(("east-b1", NOW - 1), ("east-b1", NOW - 2)))
    assert heals(world) == ["CordonMachine east"]
    machines = tuple(replace(each, cordoned=each.name == "east-b1") for each in world.machines)
    assert heals(replace(world, machines=machines)) == []


def test_one_that_is_condemned_is_pardoned_when_it_is_well_and_has_its_data() -> None:
    for program in ("", SCHEDULER, Component.ETCD):
        world = with_memory(plane(), condemned=(Condemned(replica="east-2", why="", since=0.0, program=program),))
        assert heals(world) == ["Pardon east-2"]
        assert "Pardon east-2" not in heals(with_fact(world, "east-2", lambda fact: replace(fact, has_data=False)))
        ill = with_member(world, "east-2", lambda each: replace(each, health=Health.SUSPECT))
        assert "Pardon east-2" not in heals(ill)
        lags = with_member(world, "east-2", lambda each: replace(each, lag=5_000))
        assert ("Pardon east-2" in heals(lags)) == (program != Component.ETCD)


def dark(world: World, *machines: str) -> World:
    """More machines are off: they have no replicas."""
    found = (replace(each, state=MachineState.DOWN) if each.name in machines else each for each in world.machines)
    return replace(world, machines=tuple(found))


def test_where_half_of_the_machines_of_its_site_are_off_a_dead_replica_is_condemned_later() -> None:
    early, late = (dead(plane(), "east-2", seconds=seconds) for seconds in (59.9, 60.0))
    assert heals(dark(early, "east-c2")) == ["Condemn east-2"], "two of six are less than half"
    assert heals(dark(early, "east-a2", "east-c2")) == []
    assert heals(dark(late, "east-a2", "east-c2")) == ["Condemn east-2"]
    elsewhere = tuple(replace(each, name=f"west-{each.name}", site="west") for each in early.machines)
    away = replace(early, machines=(*early.machines, *elsewhere))
    assert heals(dark(away, *(each.name for each in elsewhere))) == ["Condemn east-2"]


def test_one_dead_machine_of_two_is_no_half_of_its_site() -> None:
    world = dead(plane(), "east-2", seconds=5.0)
    assert heals(replace(world, machines=tuple(each for each in world.machines if "-b" in each.name))) == [
        "Condemn east-2"
    ]
