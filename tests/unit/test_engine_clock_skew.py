"""Clocks of machines that differ are told of whoever is kept, and nothing is done about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.api.base import find_condition
from quarterdeck.api.conditions import ConditionType
from quarterdeck.engine.observation.clock_skew import MOST_SKEW, WatchClocks
from quarterdeck.errors import Unavailable
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import ReplicaFact, World


@dataclass
class Clocks:
    """What machines' clocks are ahead by (None: it gives no answer), and how often anybody asked."""

    ahead: dict[str, float | None] = field(default_factory=dict)
    asked: int = 0

    async def measure(self, machine: str, _: object) -> float:
        self.asked += 1
        found = self.ahead.get(machine, 0.0)
        if found is None:
            raise Unavailable("measuring", "no answer")
        return found


def seen(plane: Plane, *silent: str) -> World:
    facts = tuple(
        ReplicaFact(name=each.name, machine=MachineState.DOWN if each.name in silent else MachineState.UP, units=())
        for each in plane.memory.replicas
    )
    return World(slots=(), memory=plane.memory, now=0.0, replicas=facts)


def condition(plane: Plane) -> tuple[str, str, str]:
    found = find_condition(plane.resource.status.conditions, ConditionType.CLOCKS_SYNCHRONIZED)
    assert found is not None
    return found.status, found.reason, found.message


async def test_a_clock_that_is_off_is_told_with_its_machine_until_it_is_set(golden: Golden) -> None:
    clocks = Clocks({"m-east-2": -MOST_SKEW - 1, "m-west-1": MOST_SKEW})
    plane, task = await opened(clocks), WatchClocks(every=0.0)
    await task.turn(plane, seen(plane))
    golden(condition(plane))
    clocks.ahead.clear()
    await task.turn(plane, seen(plane))
    assert condition(plane) == ("True", "Synchronized", "")


async def test_machines_that_do_not_answer_say_nothing_and_clocks_are_read_seldom() -> None:
    clocks = Clocks({"m-east-2": None, "m-west-1": 3600.0})
    plane, task = await opened(clocks), WatchClocks()
    await task.turn(plane, seen(plane, "west-1"))
    assert condition(plane) == ("True", "Synchronized", "")
    assert clocks.asked == 2
    await task.turn(plane, seen(plane))
    assert clocks.asked == 2


async def opened(clocks: Clocks) -> Plane:
    plane = await FakePlane().open()
    plane.sites = {"east": cast("Any", clocks), "west": cast("Any", clocks)}
    return plane
