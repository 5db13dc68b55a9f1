"""Long tasks run beside the steps of a plane, one of each name, and no longer than the plane's lease is held."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from fakes.store import MemoryStore

from quarterdeck.engine.background import tasks
from quarterdeck.engine.background.tasks import Check, LongTasks
from quarterdeck.engine.notices.troubles import Troubles
from quarterdeck.engine.notices.watchers import Unwatched, Watchers
from quarterdeck.errors import LeaseLost, QuarterdeckError, Unavailable


@dataclass
class CauseWatcher(Unwatched):
    """A watcher that remembers the causes of what it was told."""

    causes: list[BaseException | None] = field(default_factory=list)

    async def troubled(self, error: QuarterdeckError) -> None:
        self.causes.append(error.__cause__)


@dataclass
class Lab:
    """Long tasks under a lease that may be lost. ``undone``: the work was cancelled, and has cleaned up."""

    store: MemoryStore = field(default_factory=MemoryStore)
    watcher: CauseWatcher = field(default_factory=CauseWatcher)
    lost: bool = False
    undone: bool = False
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: LongTasks = field(init=False)

    def __post_init__(self) -> None:
        troubles = Troubles(store=self.store, plane="demo", clock=lambda: 0.0, watchers=Watchers([self.watcher]))
        self.tasks = LongTasks(plane="demo", check=self.check, troubles=troubles)

    async def check(self) -> None:
        if self.lost:
            raise LeaseLost("acting", "it has passed on")

    async def work(self, check: Check) -> None:
        self.goes_on.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.undone = True

    async def run(self, error: Exception | None) -> None:
        """A task that ends at once, with that error or well."""

        async def work(check: Check) -> None:
            await check()
            if error is not None:
                raise error

        self.tasks.begin("a task", work)
        await asyncio.gather(*self.tasks._running.values())

    async def messages(self) -> list[str]:
        return [each.message for each in await self.store.events("demo")]


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_PULSE", 0.01)


async def test_one_task_of_a_name_is_under_way_at_a_time() -> None:
    lab = Lab()
    lab.tasks.begin("a task", lab.work)
    await lab.goes_on.wait()
    assert not lab.tasks.may_begin("a task")
    assert lab.tasks.may_begin("another")
    await lab.tasks.end()
    assert lab.undone
    assert lab.tasks.may_begin("a task")


async def test_a_task_ends_when_the_lease_is_lost_whatever_the_driver_is_at() -> None:
    lab = Lab()
    lab.tasks.begin("a task", lab.work)
    (task,) = lab.tasks._running.values()
    await lab.goes_on.wait()
    lab.lost = True
    async with asyncio.timeout(5):
        await task
    assert lab.undone
    assert await lab.messages() == [], "the driver tells of that"


async def test_a_task_that_learns_itself_that_the_lease_is_lost_is_no_failure() -> None:
    lab = Lab(lost=True)
    await lab.run(None)
    assert await lab.messages() == lab.watcher.causes == []
    assert lab.tasks.may_begin("a task")


async def test_what_fails_is_told_once_and_not_begun_again_at_once() -> None:
    lab = Lab()
    for _ in range(3):
        await lab.run(Unavailable("uploading", "no answer"))
        assert not lab.tasks.may_begin("a task")
    assert [each.count for each in await lab.store.events("demo")] == [1]
    assert await lab.messages() == ["a task: uploading: no answer"]
    assert lab.watcher.causes == [], "that was to be expected"
    await lab.run(None)
    assert lab.tasks.may_begin("a task")
    await lab.run(Unavailable("uploading", "no answer"))
    assert [each.count for each in await lab.store.events("demo")] == [2], "it had gone well in between"


async def test_a_defect_is_told_with_its_traceback_once() -> None:
    lab, defect = Lab(), KeyError("a defect")
    for _ in range(2):
        await lab.run(defect)
    assert await lab.messages() == ["a task: KeyError: 'a defect'"]
    assert lab.watcher.causes == [defect]
    assert defect.__traceback__ is not None
