"""A new plane with a program that cannot start: its creation fails with the reason that the program gives, and goes on
once the user has changed the spec.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from fakes.site_machines import Behaviour
from support.resources import with_spec

from loop.fake_world import Joined
from loop.lives import EAST1, EAST3, Life, Story, Wish, many, new_plane
from loop.units import PLANE, replica_of
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation, OperationPhase
from quarterdeck.model.bounds import Settings
from quarterdeck.model.components import Component
from quarterdeck.model.units import UnitSpec

#: A flag that no program knows, and what each says of it.
BAD = "no-such-flag"
SAYS = "I1125 21:42:59.747271    9192 options.go:263] it starts\nError: unknown flag: --no-such-flag\nbye\n"
#: Whether programs know it by now: what was in the way is gone.
KNOWN: list[bool] = []
#: Seconds within which a creation must have failed.
PATIENCE = 60.0


@dataclass(kw_only=True)
class Mistaken(Life):
    """A life whose user creates a plane with a flag that its ``component`` does not know, and removes it then."""

    component: Component
    took: float = 0.0
    failed: str = ""
    conditions: dict[str, tuple[str, str]] = field(default_factory=dict)
    supervisors: asyncio.Task[None] = field(init=False)

    def wished(self, plane: ControlPlane) -> ControlPlane:
        flags = {BAD: "x"} if len(self.wishes) <= 1 else {}
        extra = plane.spec.extra_args.model_copy(update={self.component.replace("-", "_"): flags})
        return with_spec(plane, extra_args=extra)

    async def _lived(self) -> None:
        self.supervisors = asyncio.create_task(self._supervised(), name="the supervisors")
        await self._mistaken()
        await self._corrected()

    async def _corrected(self) -> None:
        await super()._lived()

    async def _after(self) -> None:
        self.supervisors.cancel()
        await asyncio.wait({self.supervisors})
        await super()._after()

    async def _supervised(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            for site in self.world.sites.values():
                site.try_again()
            self.world.touch()
            assert self.failed or self.conditions_now().get(ConditionType.READY, ("", ""))[0] != "True", (
                "it is ready, and a program does not run"
            )

    def conditions_now(self) -> dict[str, tuple[str, str]]:
        """The conditions of now: status and message."""
        body = self.world.store._bodies[ControlPlane.__name__, PLANE]
        plane = ControlPlane.model_validate_json(body, by_alias=True, by_name=False)
        return {each.type: (each.status.value, each.message) for each in plane.status.conditions}

    async def _mistaken(self) -> None:
        await self.ask(self.story.wish)
        began = self.world.clock.now
        assert not await self._driven()
        self.took = self.world.clock.now - began
        operation = self.operations()[-1]
        assert operation.status.phase is OperationPhase.FAILED
        self.failed = operation.status.message
        self.conditions = self.conditions_now()

    async def ask(self, wish: Wish) -> Operation:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("loop.lives.new_plane", lambda wish: self.wished(new_plane(wish)))
            patch.setattr(Wish, "of", lambda _, plane: self.wished(plane))
            return await super().ask(wish)


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


@pytest.fixture(autouse=True)
def knows_no_such_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    behaves = Joined._behaviour

    def _behaviour(self: Joined, spec: UnitSpec) -> Behaviour:
        if not KNOWN and any(each.startswith(f"--{BAD}") for each in spec.argv):
            assert replica_of(spec.name)
            return Behaviour(exit_code=1, output=SAYS)
        return behaves(self, spec)

    KNOWN.clear()
    monkeypatch.setattr(Joined, "_behaviour", _behaviour)


@pytest.mark.parametrize("wish", [EAST1, EAST3], ids=str)
@pytest.mark.parametrize("component", [Component.ETCD, Component.APISERVER, Component.SCHEDULER])
def test_a_creation_whose_program_cannot_start_fails_within_a_minute_and_goes_on_with_another_spec(
    component: Component, wish: Wish
) -> None:
    life = Mistaken(story=Story("create", None, wish), component=component)
    life.run()
    assert life.took <= PATIENCE
    assert f"{component} of east-" in life.failed
    assert "exit code 1: Error: unknown flag: --no-such-flag" in life.failed
    status, message = life.conditions[ConditionType.STALLED]
    assert (status, life.conditions[ConditionType.READY][0]) == ("True", "False")
    assert "unknown flag: --no-such-flag" in message


@dataclass(kw_only=True)
class Patient(Mistaken):
    """A life whose user changes nothing, and waits again: first in vain, and then once nothing is in the way."""

    async def _corrected(self) -> None:
        began = self.world.clock.now
        assert not await self._driven()
        assert self.world.clock.now - began > Settings().first_start / 2, "it is tried once more"
        KNOWN.append(True)
        assert await self._driven()
        await self._after()


@dataclass(kw_only=True)
class Resigned(Mistaken):
    """A life whose user has the plane deleted."""

    async def _corrected(self) -> None:
        await self.ask(Wish())
        assert await self._driven()
        await self._after()


@pytest.mark.parametrize("component", [Component.ETCD, Component.APISERVER, Component.SCHEDULER])
def test_a_plane_that_never_ran_is_deleted_as_any_other(component: Component) -> None:
    Resigned(story=Story("create", None, EAST3), component=component).run()


@pytest.mark.parametrize("component", [Component.ETCD, Component.SCHEDULER])
def test_who_drives_it_again_tries_it_again_and_what_runs_then_is_not_given_up_any_more(component: Component) -> None:
    life = Patient(story=Story("create", None, EAST3), component=component)
    life._check_flags = lambda: None  # type: ignore[method-assign]
    life.run()
    assert "unknown flag: --no-such-flag" in life.failed
