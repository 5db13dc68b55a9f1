"""Whatever fails, the driver goes on from a new look; only what no retry mends ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import pytest
from fakes.store import MemoryStore
from support.golden import Golden
from support.small_plane import SmallPlane, small_plane

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import tell_condition
from quarterdeck.api.base import ConditionStatus, R
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.engine.notices.journal import CONNECTIONS_EVERY
from quarterdeck.engine.notices.troubles import Disposition, Troubles, fate
from quarterdeck.engine.notices.watchers import Unwatched, Watchers
from quarterdeck.engine.reconcile import loop as driving
from quarterdeck.engine.reconcile import step_backoff
from quarterdeck.engine.reconcile.loop import Driver
from quarterdeck.errors import (
    Conflict,
    Corrupt,
    Gone,
    InvalidInput,
    LeaseLost,
    NotFound,
    Paused,
    PreconditionFailed,
    QuarterdeckError,
    TimedOut,
    Unavailable,
)
from quarterdeck.etcd.faults import Reason, fault
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.model.steps.units import StartUnit, StopUnit
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import World
from quarterdeck.stores.port import EntryOutcome, Event, JournalEntry, Lease

BUSY = Unavailable("writing to the store", "another process keeps it busy", "try again")


class FailingStore(MemoryStore):
    """``failing`` maps a method to the errors that its next calls raise."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: dict[str, list[Exception]] = {}

    def _fail(self, method: str) -> None:
        if errors := self.failing.get(method):
            raise errors.pop(0)

    async def get(self, kind: type[R], name: str) -> R:
        self._fail("get")
        return await super().get(kind, name)

    async def update(self, resource: R, *, lease: Lease | None = None) -> R:
        self._fail("update")
        return await super().update(resource, lease=lease)

    async def append(self, entry: JournalEntry) -> JournalEntry:
        self._fail("append")
        return await super().append(entry)

    async def record(self, event: Event) -> None:
        self._fail("record")
        await super().record(event)


@dataclass
class Recorder(Unwatched):
    """A watcher that remembers; ``dies`` when it is told of a step."""

    dies: Exception | None = None
    notices: list[str] = field(default_factory=list)

    async def begins(self, step: Step) -> None:
        self.notices.append(f"begins {type(step).__name__}")
        if self.dies is not None:
            raise self.dies

    async def lasts(self, step: Step, seconds: float) -> None:
        self.notices.append(f"lasts {type(step).__name__}")

    async def ended(self, step: Step, seconds: float, error: QuarterdeckError | None) -> None:
        self.notices.append(f"{'failed' if error else 'did'} {type(step).__name__}")

    async def troubled(self, error: QuarterdeckError) -> None:
        self.notices.append(str(error))


@dataclass
class Lab:
    """A plane at which one controller manager is to be started: one step, then all is as wanted."""

    small: SmallPlane
    store: FailingStore
    watchers: list[Unwatched]
    taken: int = 0
    failures: list[Exception] = field(default_factory=list)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def drive(self) -> Plan:
        return await asyncio.wait_for(self.driver().run(), 20)

    def driver(self) -> Driver:
        troubles = Troubles(
            store=self.store,
            plane="alpha",
            clock=self.small.plane.clock,
            watchers=Watchers(self.watchers),
            operation="op",
        )
        return Driver(plane=self.small.plane, observer=self.small.observer(), troubles=troubles)

    async def carry_out(self, plane: Plane, step: Step, world: World) -> dict[str, object]:
        assert isinstance(step, StartUnit), step
        await self.ready.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.taken += 1
        self.small.world = running(self.small.world)
        return {}

    async def journal(self, kind: str) -> list[EntryOutcome]:
        return [each.outcome for each in await self.store.journal("alpha") if each.kind == kind]

    async def events(self, reason: str) -> list[Event]:
        return [each for each in await self.store.events("alpha") if each.reason == reason]


def without_a_controller(world: World) -> World:
    fact = world.replica("east-1")
    units = tuple(
        (name, UnitState.STOPPED if name == Component.CONTROLLER_MANAGER else state) for name, state in fact.units
    )
    return replace(world, replicas=(replace(fact, units=units), *world.replicas[1:]))


def running(world: World) -> World:
    fact = world.replica("east-1")
    units = tuple((name, UnitState.RUNNING) for name, _ in fact.units)
    return replace(world, replicas=(replace(fact, units=units), *world.replicas[1:]))


@pytest.fixture
async def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(driving, "POLL", 0.0)
    monkeypatch.setattr(step_backoff, "LONGEST", 0.0)
    store = FailingStore()
    made = Lab(await small_plane(store=store), store, [Recorder()])
    made.ready.set()
    made.small.world = without_a_controller(made.small.world)
    monkeypatch.setattr(driving, "carry_out", made.carry_out)
    return made


def notices(lab: Lab) -> list[str]:
    watcher = lab.watchers[-1]
    assert isinstance(watcher, Recorder)
    return watcher.notices


AGAIN = [
    BUSY,
    TimedOut("waiting", "nothing"),
    Conflict("changing the record", "somebody else changed it at the same time"),
    PreconditionFailed("changing the record", "BADTIME"),
    NotFound("asking site east", "there is no such machine"),
    fault("promoting a member", Reason.INVALID, "invalid"),
    fault("promoting a member", Reason.CORRUPT, "corrupt cluster"),
    OSError(24, "Too many open files"),
]
ENDS = [
    LeaseLost("acting", "it has passed on"),
    Gone("reading ControlPlane 'alpha'", "there is none of that name"),
    Paused("driving plane alpha", "it is paused"),
    InvalidInput("reading the TSIG secret", "it is not there"),
    Corrupt("reading the store", "it is damaged"),
]


@pytest.mark.parametrize("error", AGAIN, ids=lambda error: type(error).__name__)
async def test_a_step_that_fails_is_taken_again(lab: Lab, error: Exception) -> None:
    lab.failures = [error]
    assert (await lab.drive()).done
    assert lab.taken == 1
    assert notices(lab) == ["begins StartUnit", "failed StartUnit", "did StartUnit"]


@pytest.mark.parametrize("error", AGAIN, ids=lambda error: type(error).__name__)
async def test_a_look_that_fails_is_repeated(lab: Lab, error: Exception) -> None:
    lab.small.looks = [error, error]
    assert (await lab.drive()).done
    assert lab.taken == 1
    assert len([each for each in notices(lab) if "Step" not in each and "StartUnit" not in each]) == 1


@pytest.mark.parametrize("method", ["get", "append", "record"])
@pytest.mark.parametrize("after", range(4))
async def test_a_store_that_is_busy_at_any_call_is_asked_again(
    lab: Lab, method: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    original: Callable[..., Awaitable[object]] = getattr(MemoryStore, method)
    calls = 0

    async def failing(self: object, *given: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls == after + 1:
            raise BUSY
        return await original(self, *given, **named)

    monkeypatch.setattr(FailingStore, method, failing)
    assert (await lab.drive()).done
    assert lab.taken >= 1


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
async def test_what_no_retry_mends_ends_the_driver(lab: Lab, error: Exception) -> None:
    lab.failures = [error]
    with pytest.raises(type(error)):
        await lab.drive()
    assert fate(error) in (Disposition.OVER, Disposition.HOPELESS)


async def test_a_plane_that_was_deleted_meanwhile_is_driven_no_more(lab: Lab) -> None:
    await lab.store.delete(ControlPlane, "alpha")
    with pytest.raises(Gone):
        await lab.drive()


def test_what_nobody_foresaw_is_not_tried_again() -> None:
    assert fate(KeyError("x")) is Disposition.HOPELESS


async def test_a_step_that_takes_long_is_told_of_while_it_goes_on(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quarterdeck.engine.reconcile.loop._LASTS", 0.0)
    lab.ready.clear()

    class Recorded(Recorder):
        async def lasts(self, step: Step, seconds: float) -> None:
            await super().lasts(step, seconds)
            lab.ready.set()

    lab.watchers.append(recorded := Recorded())
    await lab.drive()
    assert recorded.notices == ["begins StartUnit", "lasts StartUnit", "did StartUnit"]


def test_that_an_apiserver_takes_its_time_to_stop_has_a_reason() -> None:
    stops = {each: StopUnit(site="", why="", replica="east-1", component=each).takes_long for each in NAMED}
    assert {each for each, why in stops.items() if why} == {Component.APISERVER}
    assert "audit" in stops[Component.APISERVER]


async def test_a_step_that_fails_the_same_way_again_is_told_once(lab: Lab) -> None:
    lab.failures = [BUSY, BUSY, BUSY, TimedOut("starting", "no answer"), BUSY]
    await lab.drive()
    assert notices(lab) == [
        "begins StartUnit",
        "failed StartUnit",
        "failed StartUnit",
        "failed StartUnit",
        "did StartUnit",
    ]
    assert await lab.journal("start-unit") == [
        EntryOutcome.STARTED, EntryOutcome.FAILED, EntryOutcome.FAILED,
        EntryOutcome.FAILED, EntryOutcome.STARTED, EntryOutcome.DONE,
    ]  # fmt: skip
    assert sum(each.count for each in await lab.events("StepFailed")) == 3


async def test_a_step_that_fails_again_and_again_holds_up_no_other(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_backoff, "LONGEST", 0.05)
    fact = lab.small.world.replica("east-1")
    units = tuple((name, UnitState.STOPPED if name == Component.ETCD else state) for name, state in fact.units)
    both = replace(fact, units=units, has_data=True)
    lab.small.world = replace(lab.small.world, replicas=(both, *lab.small.world.replicas[1:]))
    tried: list[Component] = []

    async def carry_out(plane: Plane, step: Step, world: World) -> dict[str, object]:
        assert isinstance(step, StartUnit), step
        tried.append(step.component)
        if Component.CONTROLLER_MANAGER not in tried:
            raise BUSY
        seen = lab.small.world.replica("east-1")
        units = {**dict(seen.units), step.component: UnitState.RUNNING}
        now = replace(seen, units=tuple(units.items()))
        lab.small.world = replace(lab.small.world, replicas=(now, *lab.small.world.replicas[1:]))
        return {}

    monkeypatch.setattr(driving, "carry_out", carry_out)
    assert (await lab.drive()).done
    assert tried[:2] == [Component.ETCD, Component.CONTROLLER_MANAGER], "the one that fails waits for its time"
    assert tried[-1] == Component.ETCD, "and is tried again"


async def test_a_trouble_is_told_once_to_everybody_and_again_only_after_things_went_well(lab: Lab) -> None:
    lab.small.looks = [BUSY, BUSY, BUSY]
    await lab.drive()
    assert notices(lab) == [str(BUSY), "begins StartUnit", "did StartUnit"]
    assert [each.message for each in await lab.events("ReconcileError")] == [str(BUSY)]
    assert await lab.journal("ReconcileError") == [EntryOutcome.NOTED]


async def test_what_a_store_could_not_be_told_of_itself_it_is_told_later(lab: Lab) -> None:
    lab.store.failing = {"get": [BUSY], "record": [BUSY]}
    await lab.drive()
    assert notices(lab)[0] == str(BUSY)
    assert [each.message for each in await lab.events("ReconcileError")] == [str(BUSY)]


async def test_a_condition_that_a_background_task_tells_while_the_driver_writes_its_own_is_not_lost(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane, write, tasks = lab.small.plane, lab.store.update, list[asyncio.Task[None]]()

    async def update(resource: ControlPlane, *, lease: Lease | None = None) -> ControlPlane:
        if not tasks:
            slow = (ConditionStatus.FALSE, ConditionReason.LINK_SLOW, "a link is slow")
            tasks.append(asyncio.create_task(tell_condition(plane, ConditionType.LINKS_HEALTHY, slow)))
            for _ in range(50):
                await asyncio.sleep(0)  # this write takes long
        return await write(resource, lease=lease)

    monkeypatch.setattr(lab.store, "update", update)
    await lab.driver().look_on("until tomorrow")
    await asyncio.gather(*tasks)
    statuses = {each.type: each.status for each in (await lab.store.get(ControlPlane, "alpha")).status.conditions}
    assert statuses[ConditionType.LINKS_HEALTHY] == "False"
    assert statuses[ConditionType.READY] == "False"


async def test_the_driver_goes_on_without_a_watcher_that_dies(lab: Lab, golden: Golden) -> None:
    gone = Recorder(dies=BrokenPipeError(32, "Broken pipe"))
    lab.watchers = [gone, lab.watchers[0]]
    assert (await lab.drive()).done
    assert gone.notices == ["begins StartUnit"]
    assert notices(lab)[0] == "begins StartUnit"
    golden(notices(lab)[1])
    assert notices(lab)[2:] == ["did StartUnit"]
    assert len(await lab.events("WatcherLost")) == 1


async def test_what_a_former_driver_held_is_let_go_with_the_first_look(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go: list[str] = []
    for name, balancer in lab.small.balancers.items():

        async def note(name: str = name) -> None:
            let_go.append(name)

        monkeypatch.setattr(type(balancer), "let_go", lambda self, note=note: note(), raising=True)
    await lab.drive()
    assert len(let_go) == len(lab.small.balancers)


async def test_a_changed_number_of_connections_alone_is_no_row_of_the_journal(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lab.small.world
    lab.small.looks = [with_connections(first, count) for count in range(50)]
    waiting = 50

    async def not_yet(*_: object) -> dict[str, object]:
        nonlocal waiting
        waiting -= 1
        if waiting:
            raise BUSY
        lab.small.world = running(lab.small.world)
        return {}

    monkeypatch.setattr(driving, "carry_out", not_yet)
    await lab.drive()
    assert len(await lab.journal("Observed")) == 1


def with_connections(world: World, count: int) -> World:
    return replace(world, balancers=(replace(world.balancers[0], connections=count), *world.balancers[1:]))


def test_connections_are_written_down_with_what_else_changes_and_now_and_then(lab: Lab) -> None:
    timeline = driving.JournalFilter()
    world = lab.small.world
    assert timeline.news(with_connections(world, 1), 0.0) is not None
    assert timeline.news(with_connections(world, 2), 1.0) is None
    assert timeline.news(with_connections(world, 2), CONNECTIONS_EVERY) is not None
    assert timeline.news(with_connections(world, 2), 3 * CONNECTIONS_EVERY) is None
    changed = timeline.news(replace(with_connections(world, 9), record="west"), 3 * CONNECTIONS_EVERY + 1)
    assert changed is not None
    assert changed["connections"] == {"east": 9}


def test_only_what_two_looks_in_a_row_find_left_is_left(lab: Lab) -> None:
    """Who does not answer one call is back with the next."""
    driver = lab.driver()
    left, other = Plan(leftovers=("east-1",)), Plan(leftovers=("east-2",))
    assert driver._is_over(Plan())
    assert [driver._is_over(each) for each in (left, Plan(waiting=(Wait("it", "see to it"),)), left, other, other)] == [
        False,
        False,
        False,
        False,
        True,
    ]
