"""A plane that is kept: what breaks is mended, and what is asked for is brought about, without anybody who drives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from loop.lives import EAST3, WEST3, Life, Story, Wish, _run, _settled, many
from loop.session import Books, Session
from loop.truths import Truths
from loop.units import PLANE
from quarterdeck.actions.plane import Plane
from quarterdeck.api.conditions import find_condition
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import OperationPhase
from quarterdeck.api.site import Isolation
from quarterdeck.engine import manager as managing
from quarterdeck.engine.conditions import READY, RECONCILING
from quarterdeck.engine.manager import Manager
from quarterdeck.etcd.faults import EtcdFault
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.world import World
from quarterdeck.stores.amend import amend


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


@dataclass
class Quiet:
    """A log that nobody reads."""

    said: list[str] = field(default_factory=list)

    def info(self, event: str, **facts: object) -> None:
        self.said.append(event)

    warning = info


@dataclass(kw_only=True)
class Kept(Life):
    """A life under a manager. ``lived`` is what happens in it."""

    lived: Callable[[Kept], Awaitable[None]]
    log: Quiet = field(default_factory=Quiet)

    def run(self) -> Kept:
        self.world = _settled(self.story.start)
        self.truths, self.books = Truths(self.world), Books()
        _run(self.world, self._whole(), self.trouble)
        # Nobody is left to look at what the tasks of a killed process came to.
        assert not [each for each in self.trouble if "Died()" not in each]
        assert self.books.broken is None
        return self

    async def _whole(self) -> None:
        manager = self.start("manager 1")
        await self.lived(self)
        manager.cancel()
        await asyncio.wait({manager})
        await self._after()

    def start(self, who: str) -> asyncio.Task[None]:
        session = Session(who=who, world=self.world, truths=self.truths, books=self.books, happens=self._happens)
        manager = Manager(
            engine=session.engine(), network=Isolation.LOOPBACK, log=self.log, clock=self.world.clock.monotonic
        )
        session.task = asyncio.create_task(manager.run(), name=who)
        self.sessions.append(session)
        return session.task

    async def plane(self) -> ControlPlane:
        return await self.world.store.get(ControlPlane, PLANE)

    async def until(self, so: Callable[[], Awaitable[bool]], within: float) -> float:
        """The seconds that it took."""
        began = self.world.clock.now
        async with asyncio.timeout(within):
            while not await so():  # noqa: ASYNC110 - it is looked at from outside
                await asyncio.sleep(0.05)
        return self.world.clock.now - began

    async def stop(self, component: Component) -> tuple[str, str]:
        """Somebody stops one program of the plane by hand."""
        for site in self.world.sites.values():
            for machine in await site.machines():
                for unit in await site.units(machine.name):
                    if unit.name.endswith(f"-{component}"):
                        await site.stop_unit(machine.name, unit.name)
                        self.world.touch()
                        return machine.name, unit.name
        raise AssertionError("there is none")


def kept(lived: Callable[[Kept], Awaitable[None]], start: Wish | None = EAST3) -> Kept:
    return Kept(story=Story("kept", start, EAST3), lived=lived).run()


def test_a_program_that_somebody_stopped_runs_again_within_the_cadence_and_nobody_drives() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        machine, unit = await life.stop(Component.CONTROLLER_MANAGER)
        site = life.world.site_of(machine)

        async def runs() -> bool:
            return any(each.name == unit and each.state == "running" for each in await site.units(machine))

        assert not await runs()
        assert await life.until(runs, 30) <= 7

    kept(lived)


def test_what_is_asked_for_is_brought_about_at_once_and_its_operation_is_over() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        await life.ask(WEST3)
        await asyncio.sleep(0.5)
        assert life.operations()[-1].status.phase is OperationPhase.RUNNING

        async def over() -> bool:
            return life.operations()[-1].status.phase is OperationPhase.SUCCEEDED

        await life.until(over, 240)
        plane = await life.plane()
        assert plane.status.memory.served_site == "west"
        await life.ask(Wish())

        async def gone() -> bool:
            return not await life.world.store.list(ControlPlane)

        await life.until(gone, 240)
        assert not life.world.remains()
        assert life.operations()[-1].status.phase is OperationPhase.SUCCEEDED

    kept(lived)


@pytest.mark.parametrize("after", [0.3, 2.0, 5.0])
def test_a_manager_that_is_killed_in_a_change_is_followed_by_one_that_goes_on(after: float) -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        await life.ask(WEST3)
        await asyncio.sleep(after)
        assert life.operations()[-1].status.phase is OperationPhase.RUNNING
        life.sessions[0].kill()
        life.start("manager 2")

        async def over() -> bool:
            return life.operations()[-1].status.phase is OperationPhase.SUCCEEDED

        await life.until(over, 240)
        assert (await life.plane()).status.memory.served_site == "west"
        life.sessions[-1].stop()

    kept(lived)


def test_a_paused_plane_is_looked_at_and_nothing_is_done_until_the_pause_is_over() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        until = life.sessions[0].asker().now() + timedelta(minutes=5)

        def paused(plane: ControlPlane) -> ControlPlane:
            spec = plane.spec.model_copy(update={"paused": True, "paused_until": until})
            return plane.model_copy(update={"spec": spec})

        await amend(life.world.store, ControlPlane, PLANE, paused)
        await asyncio.sleep(1)
        machine, unit = await life.stop(Component.CONTROLLER_MANAGER)
        site = life.world.site_of(machine)
        await asyncio.sleep(120)
        so = (await life.plane()).status.conditions
        ready, reconciling = find_condition(so, READY), find_condition(so, RECONCILING)
        assert ready is not None
        assert reconciling is not None
        assert (ready.status, ready.reason) == ("False", "NotAsWanted"), "it is seen"
        assert (reconciling.status, reconciling.reason) == ("False", "Paused")
        assert f"paused until {until:%F %T}" in reconciling.message

        async def runs() -> bool:
            return any(each.name == unit and each.state == "running" for each in await site.units(machine))

        assert not await runs(), "and nothing is done"
        assert 170 <= await life.until(runs, 300) <= 190, "the pause ends by itself"

    kept(lived)


def test_a_duty_takes_turns_and_one_that_fails_is_told_once_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []

    class Fails:
        name = "a duty"

        async def turn(self, plane: Plane, world: World) -> None:
            turns.append(plane.name)
            raise KeyError("a defect")

    monkeypatch.setattr(managing, "DUTIES", (Fails,))

    async def lived(life: Kept) -> None:
        await asyncio.sleep(60)
        assert 8 <= len(turns) <= 13
        told = [each for each in await life.world.store.events(PLANE) if each.reason == "DutyFailed"]
        assert [(each.message, each.count) for each in told] == [("a duty: KeyError: 'a defect'", 1)]
        machine, unit = await life.stop(Component.CONTROLLER_MANAGER)
        site = life.world.site_of(machine)

        async def runs() -> bool:
            return any(each.name == unit and each.state == "running" for each in await site.units(machine))

        await life.until(runs, 7)

    kept(lived)


def test_a_member_that_has_other_data_than_most_is_exchanged_and_nobody_copies_from_it() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        cluster = life.world.clusters[Cluster.MAIN].cluster
        wrong = cluster.by_id(cluster.leader)
        assert wrong is not None
        wrong.hash = 2

        async def exchanged() -> bool:
            names = {each.name for each in (await life.plane()).status.memory.replicas}
            return len(names) == 3 and wrong not in cluster.nodes and "east-4" in names

        assert await life.until(exchanged, 700) <= 660, "it is compared every ten minutes"
        assert {node.hash for node in cluster.nodes} == {1}

    kept(lived)


def test_etcd_without_room_takes_writes_again_and_nobody_drives() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        cluster = life.world.clusters[Cluster.MAIN].cluster
        cluster.quota = 16 << 20
        with pytest.raises(EtcdFault, match="no space"):
            for _ in range(100):
                cluster.overwrite(1 << 20)

        async def room() -> bool:
            return not cluster.alarms

        assert await life.until(room, 60) <= 20
        cluster.overwrite(1 << 20)
        assert not cluster.alarms

    kept(lived)
