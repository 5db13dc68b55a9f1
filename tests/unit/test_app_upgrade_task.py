"""An upgrade goes on by itself: once the part before has succeeded and has soaked, and never after an abort."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.operation import OperationPhase, OperationType
from quarterdeck.api.plane.upgrade import UpgradeSettings, UpgradeWindow
from quarterdeck.app import upgrade_task
from quarterdeck.app.upgrade_task import GoOnWithUpgrades
from quarterdeck.components.transitions.upgrade_path import next_part
from quarterdeck.engine.preflight.requests import Examined, Upgrade
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import LeaseLost, PreconditionFailed
from quarterdeck.model.findings import Finding, refuse
from quarterdeck.model.world import World

ASKER = Requester(name="a test")
SOAK = timedelta(hours=6)
EMULATING = UpgradeSettings(window=UpgradeWindow.EMULATING, soak=SOAK.total_seconds())


@dataclass
class Soaking:
    """A plane in a part of an upgrade, whose operation has ended."""

    home: Home
    task: GoOnWithUpgrades
    plane: Plane
    findings: list[Finding] = field(default_factory=list)
    checked: int = 0

    async def due(self) -> bool:
        self.task._looked = float("-inf")
        self.plane.resource = await recorded.existing(self.home.store, "demo")
        return await self.task.due(self.plane, cast("World", None)) is not None

    async def go_on(self) -> None:
        self.task._looked = float("-inf")
        work = await self.task.due(self.plane, cast("World", None))
        assert work is not None

        async def check() -> None:
            self.checked += 1

        await work(check)

    async def ended(self, phase: OperationPhase) -> None:
        (*_, last) = await recorded.operations_of(self.home.store, "demo")
        await operations.finish(self.home.store, last, phase, "", ASKER)

    async def at(self, window: UpgradeWindow) -> bool:
        spec = (await recorded.existing(self.home.store, "demo")).spec
        return (spec.upgrade or UpgradeSettings()).window is window

    def later(self, by: timedelta) -> None:
        now = datetime.now(UTC) + by
        self.task.now = lambda: now


@pytest.fixture
async def soaking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Soaking]:
    home = await Home.open(tmp_path / "home")
    plane = new_control_plane("demo", site="east").with_spec(upgrade=EMULATING)
    await operations.create(home, plane, ASKER)
    engine: Any = SimpleNamespace(home=home, requester=ASKER)
    async with AsyncExitStack() as stack:
        opened = await home.plane(await recorded.existing(home.store, "demo"), stack)
        made = Soaking(home, GoOnWithUpgrades(engine=engine), opened)

        async def examined(_: object, request: Upgrade) -> Examined:
            current = await recorded.existing(home.store, request.name)
            spec = next_part(current.spec)
            assert spec is not None
            wanted: ControlPlane = current.model_copy(update={"spec": spec})
            return Examined(kind=OperationType.UPGRADE, wanted=wanted, current=current, findings=made.findings)

        monkeypatch.setattr(upgrade_task, "examined_upgrade", examined)
        yield made
    await home.close()


async def test_each_window_is_left_once_it_has_soaked_until_the_last_one(soaking: Soaking) -> None:
    assert not await soaking.due(), "its operation has not ended"
    for window in (UpgradeWindow.RAISED, UpgradeWindow.FINAL):
        await soaking.ended(OperationPhase.SUCCEEDED)
        soaking.later(SOAK - timedelta(minutes=1))
        assert not await soaking.due()
        soaking.later(SOAK + timedelta(minutes=1))
        await soaking.go_on()
        assert await soaking.at(window)
    await soaking.ended(OperationPhase.SUCCEEDED)
    soaking.later(10 * SOAK)
    assert not await soaking.due()
    kinds = [each.spec.type for each in await recorded.operations_of(soaking.home.store, "demo")]
    assert kinds == [OperationType.CREATE, OperationType.UPGRADE, OperationType.UPGRADE]


@pytest.mark.parametrize("phase", [OperationPhase.FAILED, OperationPhase.ABORTED])
async def test_nothing_follows_a_part_that_did_not_succeed(phase: OperationPhase, soaking: Soaking) -> None:
    await soaking.ended(phase)
    soaking.later(10 * SOAK)
    assert not await soaking.due()


async def test_nothing_follows_an_abort(soaking: Soaking) -> None:
    await soaking.ended(OperationPhase.SUCCEEDED)
    soaking.later(10 * SOAK)
    await soaking.go_on()
    plane = await recorded.existing(soaking.home.store, "demo")
    (*_, last) = await recorded.operations_of(soaking.home.store, "demo")
    assert last.spec.from_ is not None
    await operations.change(soaking.home, operations.back(plane, last.spec.from_), OperationType.ABORT, ASKER)
    await soaking.ended(OperationPhase.SUCCEEDED)
    assert await soaking.at(UpgradeWindow.EMULATING)
    assert not await soaking.due()


async def test_a_check_that_refuses_keeps_the_plane_where_it_is(soaking: Soaking, golden: Golden) -> None:
    await soaking.ended(OperationPhase.SUCCEEDED)
    soaking.later(10 * SOAK)
    soaking.findings = [refuse("kubelets", "older than 1.34: n1 (v1.33.0)", "upgrade the kubelets of these nodes")]
    with golden.raises(PreconditionFailed):
        await soaking.go_on()
    assert await soaking.at(UpgradeWindow.EMULATING)
    soaking.findings = []
    await soaking.go_on()
    assert await soaking.at(UpgradeWindow.RAISED)
    assert soaking.checked == 1


async def test_nothing_is_asked_without_the_lease(soaking: Soaking) -> None:
    await soaking.ended(OperationPhase.SUCCEEDED)
    soaking.later(10 * SOAK)
    work = await soaking.task.due(soaking.plane, cast("World", None))
    assert work is not None

    async def lost() -> None:
        raise LeaseLost("", "", "")

    with pytest.raises(LeaseLost):
        await work(lost)
    assert await soaking.at(UpgradeWindow.EMULATING)


async def test_the_operations_are_looked_at_every_few_seconds_only(soaking: Soaking) -> None:
    await soaking.ended(OperationPhase.SUCCEEDED)
    soaking.later(10 * SOAK)
    soaking.task._looked = asyncio.get_running_loop().time()
    assert await soaking.task.due(soaking.plane, cast("World", None)) is None
