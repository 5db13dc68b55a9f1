"""A new plane with a program that runs and never gets ready: within a minute the reason of the wait is that program, in
its own words; after a while its creation has failed, and goes on once nothing is in the way any more.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from fakes.site_machines import Behaviour

from loop.fake_world import Joined
from loop.lives import EAST3, Story, Wish, many
from loop.members import Members
from loop.test_first_revision import Mistaken
from loop.units import replica_of
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.engine.workspace.settings import planner_settings
from quarterdeck.model.bounds import Settings
from quarterdeck.model.clusters import CLUSTER
from quarterdeck.model.components import Component
from quarterdeck.model.units import UnitSpec

ETCD, APISERVER, SCHEDULER = Component.ETCD, Component.APISERVER, Component.SCHEDULER
#: Seconds that a program gets here once nothing new is seen of it, and within which it must have been named.
FIRST = 15.0
NAMED = 60.0
#: The programs that hang by now, and what each writes when it starts.
HANGS: set[Component] = set()
SAYS = "I1125 21:42:59.747271    9192 options.go:263] it starts\nE1125 21:43:00.1 1 x.go:1] cannot reach it\n"


@dataclass(kw_only=True)
class Hanging(Mistaken):
    """A life in which the ``component`` of a new plane hangs, until its creation has failed."""

    named: float = math.inf
    waits: str = ""

    def wished(self, plane: ControlPlane) -> ControlPlane:
        return plane

    async def _supervised(self) -> None:
        began = self.world.clock.now
        while not self.failed:
            await asyncio.sleep(1.0)
            conditions = self.conditions_now()
            assert conditions.get(ConditionType.READY, ("", ""))[0] != "True", "it is ready, and a program does not run"
            waits = conditions.get(ConditionType.RECONCILING, ("", ""))[1]
            if "reports nothing new" in waits and not self.waits:
                self.named, self.waits = self.world.clock.now - began, waits

    async def _corrected(self) -> None:
        HANGS.clear()
        self.world.touch()
        assert await self._driven()
        await self._after()


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


@pytest.fixture(autouse=True)
def hang(monkeypatch: pytest.MonkeyPatch) -> None:
    behaves, found = Joined._behaviour, Members._found
    apiservers, controllers = Joined._apiservers, Joined._controllers

    def _behaviour(self: Joined, spec: UnitSpec) -> Behaviour:
        return replace(behaves(self, spec), output=SAYS)

    def _found(self: Members, founders: list[object]) -> None:
        if not any(CLUSTER.get(each) is self.kind for each in HANGS):
            found(self, founders)  # type: ignore[arg-type]

    def _apiservers(self: Joined) -> None:
        apiservers(self)
        if APISERVER in HANGS:
            for each in self.kube.apiservers.values():
                each.ready = False

    def _controllers(self: Joined) -> None:
        controllers(self)
        stuck = (each for each in self.processes.values() if replica_of(each.seen.spec.name)[1] in HANGS)
        self.kube.frozen |= {each.listens for each in stuck if each.component == SCHEDULER}

    def soon(plane: ControlPlane) -> Settings:
        return replace(planner_settings(plane), first_ready=FIRST)

    monkeypatch.setattr(Joined, "_behaviour", _behaviour)
    monkeypatch.setattr(Members, "_found", _found)
    monkeypatch.setattr(Joined, "_apiservers", _apiservers)
    monkeypatch.setattr(Joined, "_controllers", _controllers)
    monkeypatch.setattr("quarterdeck.engine.observation.observe.planner_settings", soon)


@pytest.mark.parametrize("component", [ETCD, APISERVER, SCHEDULER])
def test_a_creation_whose_program_hangs_names_it_within_a_minute_and_is_given_up_after_a_while(
    component: Component,
) -> None:
    HANGS.clear()
    HANGS.add(component)
    life = Hanging(story=Story("create", None, Wish(site=EAST3.site, replicas=EAST3.replicas)), component=component)
    life.run()
    assert life.named <= NAMED
    assert "cannot reach it" in life.waits
    assert "'quarterdeck logs demo --replica east-" in life.waits
    assert life.took <= life.named + FIRST + 5.0
    assert f"{component} of east-" in life.failed
    assert "has reported nothing new for 15 s" in life.failed
    assert "cannot reach it" in life.failed
    status, message = life.conditions[ConditionType.STALLED]
    assert (status, life.conditions[ConditionType.READY][0]) == ("True", "False")
    assert "cannot reach it" in message
