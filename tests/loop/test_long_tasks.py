"""Long tasks of a plane that is kept: steps do not wait for them, and they end with the plane's lease."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from loop.lives import many
from loop.test_manager import Kept, kept
from loop.units import PLANE
from quarterdeck.actions.plane import Plane
from quarterdeck.engine.background.tasks import SHORTEST_PAUSE as SHORTEST
from quarterdeck.engine.background.tasks import BackgroundTask, Check, LongTask, Work
from quarterdeck.engine.reconcile import manager as managing
from quarterdeck.engine.reconcile.keeper import CADENCE
from quarterdeck.engine.workspace.leases import lease_name, loan_name
from quarterdeck.model.components import Component
from quarterdeck.model.world import World
from quarterdeck.stores.lease import Clocks, hold_lease

#: Seconds that a turn may come late after what it waits for.
LATE = 2 * CADENCE + 1


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


@dataclass
class Upload:
    """A long task that takes ten minutes, and some seconds to clean up when it is cancelled. ``breaks``: it fails at
    once.
    """

    breaks: bool = False
    begun: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    done: int = 0

    @property
    def task(self) -> BackgroundTask:
        return LongTask(name="an upload", due=self.due)

    async def due(self, plane: Plane, world: World) -> Work | None:
        return self.work if not self.done else None

    async def work(self, check: Check) -> None:
        loop = asyncio.get_running_loop()
        self.begun.append(loop.time())
        try:
            await check()
            if self.breaks:
                raise KeyError("a defect")
            await asyncio.sleep(600)
            self.done += 1
        except asyncio.CancelledError:
            await asyncio.sleep(3)
            raise
        finally:
            self.ended.append(loop.time())


@pytest.fixture
def upload(monkeypatch: pytest.MonkeyPatch) -> Upload:
    made = Upload()
    monkeypatch.setattr(managing, "background_tasks_of", lambda _: (made.task,))
    return made


def test_steps_do_not_wait_for_a_long_task_nor_end_it(upload: Upload) -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(60)
        assert (len(upload.begun), upload.ended) == (1, [])
        machine, unit = await life.stop(Component.CONTROLLER_MANAGER)
        site = life.world.site_of(machine)

        async def runs() -> bool:
            return any(each.name == unit and each.state == "running" for each in await site.units(machine))

        assert await life.until(runs, 30) <= 7, "it is started again beside the task"
        await asyncio.sleep(60)
        assert (len(upload.begun), upload.ended) == (1, []), "it goes on"
        await asyncio.sleep(600)
        assert (len(upload.begun), upload.done) == (1, 1)

    kept(lived)


def test_a_long_task_ends_before_the_lease_is_anothers_and_begins_again_when_it_is_kept_again(upload: Upload) -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(60)
        assert (len(upload.begun), upload.ended) == (1, [])
        store, clock = life.world.store, life.world.clock
        clocks = Clocks(monotonic=clock.monotonic, wall=clock.wall)
        async with hold_lease(store, loan_name(PLANE), "a command", clocks=clocks):
            await store.update(await life.plane())  # which wakes the manager
            async with hold_lease(store, lease_name(PLANE), "a command", wait=30, clocks=clocks):
                assert len(upload.ended) == 1, "it had cleaned up before another process drove"
                await asyncio.sleep(30)
                assert len(upload.begun) == 1
        await asyncio.sleep(LATE + 10)
        assert (len(upload.begun), upload.done) == (2, 0)

    kept(lived)
    assert len(upload.ended) == len(upload.begun), "and it ends with the manager"


def test_a_long_task_that_breaks_is_told_of_once_and_begins_again_later_each_time(upload: Upload) -> None:
    upload.breaks = True

    async def lived(life: Kept) -> None:
        await asyncio.sleep(400)
        pauses = [after - before for before, after in zip(upload.ended, upload.begun[1:], strict=False)]
        assert len(pauses) >= 4
        for times, pause in enumerate(pauses):
            assert SHORTEST * 2**times <= pause <= SHORTEST * 2**times + LATE, pauses
        events = [each for each in await life.world.store.events(PLANE) if each.reason == "BackgroundTaskFailed"]
        assert [(each.message, each.count) for each in events] == [("an upload: KeyError: 'a defect'", 1)]
        (defect,) = life.log.defects
        assert isinstance(defect, KeyError)
        upload.breaks = False
        await asyncio.sleep(320)
        assert upload.begun[-1] > upload.ended[-1], "it goes on now"

    kept(lived)
