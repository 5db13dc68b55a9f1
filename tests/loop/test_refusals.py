"""One machine refuses one thing again and again: all that does not depend on it goes on, and so does it in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from loop.calls import Call
from loop.faults import Kind, changes
from loop.lives import STORIES, Life, many
from loop.units import PLANE
from quarterdeck.api.base import find_condition
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.model.units import UnitSpec

#: Who cannot be started, and who dies meanwhile.
REFUSED, DIES = "west-4", "east-2"


@dataclass(slots=True)
class Refuses:
    """Etcd of a replica is not started as long as its machine refuses it."""

    refusing: bool = True
    times: int = 0
    again: asyncio.Event = field(default_factory=asyncio.Event)

    def of(self, call: Call, number: int) -> Kind | None:
        unit = call.args[1] if changes(call) and len(call.args) > 1 else None
        if not (self.refusing and isinstance(unit, UnitSpec) and unit.name == f"{PLANE}-{REFUSED}-etcd"):
            return None
        self.times += 1
        if self.times == 3:
            self.again.set()
        return Kind.FAILS


@dataclass(kw_only=True)
class Refused(Life):
    """A life in which a member dies while another one cannot be started, and both are well again later."""

    refuses: Refuses = field(default_factory=Refuses)
    tries: int = 0
    members: set[str] = field(default_factory=set)
    behind: set[str] = field(default_factory=set)
    positions: str = ""

    async def _lived(self) -> None:
        self.faults = self.books.faults = self.refuses
        task = asyncio.create_task(self._meanwhile(), name="what happens meanwhile")
        await super()._lived()
        await task

    async def _meanwhile(self) -> None:
        world, site = self.world, self.world.sites["east"]
        await self.refuses.again.wait()
        world.hurt.append(f"{DIES} is dead")
        machine = next(each.machine for each in self._plane().status.memory.replicas if each.name == DIES)
        await site.kill_machine(machine)
        self._strike()
        before = self.refuses.times
        await asyncio.sleep(30.0)
        self.tries = self.refuses.times - before
        self.members = {node.address.name for node in world.cluster.nodes if node.address is not None}
        self.behind = {name for each in world.balancers.values() for name in each.backends}
        self.positions = self._positions()
        await site.boot_machine(machine)
        world.hurt.clear()
        self._strike()
        self.refuses.refusing = False

    def _strike(self) -> None:
        self.world.strikes += 1
        self.world.touch()
        self.truths.calm = False

    def _plane(self) -> ControlPlane:
        body = self.world.store._bodies[ControlPlane.__name__, PLANE]
        return ControlPlane.model_validate_json(body, by_alias=True, by_name=False)

    def _positions(self) -> str:
        condition = find_condition(self._plane().status.conditions, ConditionType.RECONCILING)
        return condition.message if condition is not None else ""


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


def test_a_machine_that_refuses_a_new_member_holds_up_nothing_while_a_member_dies_elsewhere() -> None:
    life = Refused(story=next(each for each in STORIES if each.name == "3 to 3"))
    life.run()
    assert life.members == {"east-1", "east-3", "west-5", "west-6"}, "the dead one is out, the others have joined"
    assert life.behind, "somebody serves"
    assert not life.behind & {REFUSED, DIES}
    assert life.tries >= 5, "it is tried again and again"
    assert f"waiting for 'start etcd of {REFUSED}' to succeed: " in life.positions
