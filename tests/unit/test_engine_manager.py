"""A manager keeps every plane of its network: one plane's trouble is never another's. On a clock that jumps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from fakes.store import MemoryStore
from loop.clock import Clock, lived
from support.golden import Golden
from support.resources import with_spec, with_status

from quarterdeck.api.base import Metadata
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.operation import Operation, OperationSpec, OperationType
from quarterdeck.api.site import Isolation, Site, default_sites
from quarterdeck.engine.reconcile.drive import IdleWait
from quarterdeck.engine.reconcile.keeper import CADENCE, SHORTEST
from quarterdeck.engine.reconcile.manager import PlaneManager
from quarterdeck.engine.workspace.leases import lease_name, loan_name, manager_lease, next_manager_lease
from quarterdeck.engine.workspace.operations import Requester, wants
from quarterdeck.errors import Corrupt, Gone, NotFound
from quarterdeck.stores.lease import DEFAULT_TTL, Clocks, hold_lease
from quarterdeck.stores.port import amend


@dataclass
class FakeHome:
    store: MemoryStore

    async def wake(self, network: Isolation) -> None:
        """Nothing is shared here."""


@dataclass
class FakeEngine:
    """Holds a plane's lease and looks at it when its rest is over, as an engine does. ``looks``: when, of each;
    ``seen``: the generations; ``trouble``: what a look at a plane raises.
    """

    home: FakeHome
    requester: Requester
    clocks: Clocks
    watchers: tuple[object, ...] = ()
    looks: dict[str, list[float]] = field(default_factory=dict)
    seen: dict[str, list[int]] = field(default_factory=dict)
    trouble: dict[str, Exception] = field(default_factory=dict)
    upstream: object = None  # no program is needed

    async def keep(self, name: str, rest: IdleWait) -> None:
        store = self.home.store
        async with hold_lease(store, lease_name(name), self.requester.name, clocks=self.clocks):
            while True:
                try:
                    plane = await store.get(ControlPlane, name)
                except NotFound as error:
                    raise Gone("looking", "there is none") from error
                await rest.go_on()
                self.looks.setdefault(name, []).append(self.clocks.monotonic())
                self.seen.setdefault(name, []).append(plane.metadata.generation)
                if name in self.trouble:
                    raise self.trouble[name]
                await rest.over(wants(plane))


@dataclass
class LogLines:
    """A log that remembers."""

    lines: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def info(self, event: str, **facts: object) -> None:
        self.lines.append((event, facts))

    warning = info

    def of(self, plane: str) -> list[str]:
        return [event for event, facts in self.lines if facts.get("plane") == plane]


@dataclass
class Lab:
    clock: Clock = field(default_factory=Clock)
    store: MemoryStore = field(init=False)
    engine: FakeEngine = field(init=False)
    log: LogLines = field(default_factory=LogLines)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.clock.wall)
        self.engine = self.another("manager")

    def another(self, name: str) -> FakeEngine:
        requester = Requester(name=name, now=lambda: datetime.fromtimestamp(self.clock.wall(), UTC))
        return FakeEngine(home=FakeHome(self.store), requester=requester, clocks=self.clock.clocks())

    def start(self, engine: FakeEngine | None = None, network: Isolation = Isolation.LOOPBACK) -> asyncio.Task[None]:
        manager = PlaneManager(
            engine=self.engine if engine is None else engine, network=network, log=self.log, clock=self.clock.monotonic
        )
        self.tasks.append(asyncio.create_task(manager.run()))
        return self.tasks[-1]

    async def create(self, *names: str) -> None:
        for name in names:
            await self.store.create(new_control_plane(name, site="east"))

    async def scale(self, name: str, replicas: int = 5) -> None:
        def scaled(plane: ControlPlane) -> ControlPlane:
            return with_spec(plane, replicas=replicas)

        await amend(self.store, ControlPlane, name, scaled)


@contextlib.asynccontextmanager
async def living(lab: Lab) -> AsyncIterator[None]:
    """A life, and the end of all that it has started."""
    for site in default_sites():
        await lab.store.create(site)
    yield
    for task in lab.tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left


life = lived(Lab, living)


@life
async def test_a_change_of_one_of_500_planes_is_seen_at_once_and_every_plane_is_looked_at_within_its_cadence(
    lab: Lab,
) -> None:
    await lab.create(*(f"p{number}" for number in range(500)))
    lab.start()
    await asyncio.sleep(60)
    asked = lab.clock.now
    await lab.scale("p7")
    await asyncio.sleep(0.5)
    assert lab.engine.seen["p7"][-1] == 2
    assert lab.engine.looks["p7"][-1] - asked < 0.1
    looks = lab.engine.looks
    assert len(looks) == 500
    gaps = [after - before for times in looks.values() for before, after in zip(times, times[1:], strict=False)]
    assert max(gaps) <= CADENCE + 0.6
    assert sum(map(len, looks.values())) < 500 * 15, "nobody is woken for another's sake"
    seconds = {round(times[-2] % CADENCE) for times in looks.values()}
    assert len(seconds) >= CADENCE, "they do not all look in the same second"


@life
async def test_what_fails_in_one_keeper_is_told_once_backs_off_and_stops_no_other(lab: Lab, golden: Golden) -> None:
    await lab.create("good", "bad", "ugly")
    lab.engine.trouble |= {"bad": Corrupt("reading", "a newer version wrote it"), "ugly": KeyError("a defect")}
    lab.start()
    await asyncio.sleep(3600)
    assert len(lab.engine.looks["good"]) > 700
    assert 10 <= len(lab.engine.looks["bad"]) < 30
    assert 10 <= len(lab.engine.looks["ugly"]) < 30
    golden(lab.log.of("bad"))
    assert lab.log.of("ugly") == ["'a defect'"]
    del lab.engine.trouble["bad"]
    await lab.scale("bad")
    await asyncio.sleep(1)
    assert lab.engine.seen["bad"][-1] == 2, "what is wanted again is tried at once"
    golden(lab.log.of("bad")[1:])


@life
async def test_a_keeper_s_own_writes_do_not_wake_it_from_its_pause(lab: Lab) -> None:
    await lab.create("bad")

    class Writes(FakeEngine):
        async def keep(self, name: str, rest: IdleWait) -> None:
            await amend(lab.store, ControlPlane, name, counted)
            await super().keep(name, rest)

    def counted(plane: ControlPlane) -> ControlPlane:
        offset = (plane.status.port_offset or 0) + 1
        return with_status(plane, port_offset=offset)

    engine = lab.another("manager")
    writes = Writes(engine.home, engine.requester, engine.clocks, trouble={"bad": Corrupt("reading", "is damaged")})
    lab.start(writes)
    await asyncio.sleep(SHORTEST * 2.5)
    assert len(writes.looks["bad"]) == 2


@life
async def test_planes_that_come_are_kept_and_those_that_go_are_left(lab: Lab) -> None:
    lab.start()
    await asyncio.sleep(1)
    await lab.create("new")
    await asyncio.sleep(0.1)
    assert len(lab.engine.looks["new"]) == 1
    assert (await lab.store.lease(lease_name("new"))) is not None
    await lab.store.delete(ControlPlane, "new")
    await asyncio.sleep(0.1)
    assert await lab.store.lease(lease_name("new")) is None
    await lab.create("new")
    await asyncio.sleep(3)
    assert len(lab.engine.looks["new"]) >= 2, "a plane of the same name is another one"


@life
async def test_a_site_that_changes_and_an_operation_that_is_put_down_are_news_for_the_planes(lab: Lab) -> None:
    def with_zones(site: Site) -> Site:
        return with_spec(site, zones=("a", "b"))

    await lab.create("one", "two")
    lab.start()
    await asyncio.sleep(10)
    before = {name: len(times) for name, times in lab.engine.looks.items()}
    spec = OperationSpec(plane="one", type=OperationType.APPLY)
    await lab.store.create(Operation(metadata=Metadata(name="one-apply-1"), spec=spec))
    await asyncio.sleep(0.01)
    assert {name: len(times) - before[name] for name, times in lab.engine.looks.items()} == {"one": 1, "two": 0}
    await amend(lab.store, Site, "west", with_zones)
    await asyncio.sleep(0.01)
    assert {name: len(times) - before[name] for name, times in lab.engine.looks.items()} == {"one": 2, "two": 1}


async def holder(lab: Lab, name: str) -> str:
    held = await lab.store.lease(name)
    return held.holder if held is not None else ""


@life
async def test_a_manager_keeps_only_the_planes_of_its_network(lab: Lab) -> None:
    await lab.create("near")
    lab.start(network=Isolation.NETNS)
    await asyncio.sleep(20)
    assert not lab.engine.looks


@pytest.mark.parametrize("killed", [False, True])
@life
async def test_the_second_manager_stands_by_says_so_and_takes_over(lab: Lab, killed: bool) -> None:
    async def forget(_: object) -> None: ...

    await lab.create("alpha")
    first = lab.start()
    await asyncio.sleep(1)
    second = lab.another("second")
    lab.start(second)
    await asyncio.sleep(30)
    assert not second.looks
    assert ("standing by", {"network": "loopback", "serving": "manager"}) in lab.log.lines
    assert await holder(lab, next_manager_lease(Isolation.LOOPBACK)) == "second"
    third = lab.another("third")
    waiting = lab.start(third)
    await asyncio.sleep(30)
    assert await holder(lab, next_manager_lease(Isolation.LOOPBACK)) == "second", "there is only one next one"
    assert not third.looks
    waiting.cancel()
    await asyncio.sleep(0)
    if killed:  # as kill -9 does: nothing is let go
        lab.store.release = forget  # type: ignore[method-assign]
    first.cancel()
    since = lab.clock.now
    await asyncio.sleep(30)
    late = second.looks["alpha"][0] - since
    assert late < DEFAULT_TTL + 3 if killed else late < 2.5
    assert await holder(lab, manager_lease(Isolation.LOOPBACK)) == "second"
    assert await holder(lab, next_manager_lease(Isolation.LOOPBACK)) == "", "nobody is left to come after it"


@life
async def test_a_plane_that_a_command_drives_is_left_to_it_until_it_has_ended(lab: Lab) -> None:
    await lab.create("alpha")
    async with hold_lease(lab.store, lease_name("alpha"), "a command", clocks=lab.clock.clocks()):
        lab.start()
        await asyncio.sleep(30)
        assert not lab.engine.looks
    await asyncio.sleep(1.1)
    assert lab.engine.looks["alpha"]


@life
async def test_a_plane_that_is_lent_to_a_command_is_let_go_at_once_and_kept_again_afterwards(lab: Lab) -> None:
    await lab.create("alpha")
    lab.start()
    await asyncio.sleep(1)
    async with hold_lease(lab.store, loan_name("alpha"), "a command", clocks=lab.clock.clocks()):
        await lab.store.update(await lab.store.get(ControlPlane, "alpha"))
        await asyncio.sleep(0.1)
        looks = len(lab.engine.looks["alpha"])
        async with hold_lease(lab.store, lease_name("alpha"), "a command", clocks=lab.clock.clocks()):
            await asyncio.sleep(30)
        assert len(lab.engine.looks["alpha"]) == looks
    await asyncio.sleep(3)
    assert len(lab.engine.looks["alpha"]) == looks + 1
