"""A plane that is kept: what breaks is mended, and what is asked for is brought about, without anybody who drives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from support.resources import with_spec

from loop.lives import EAST3, WEST3, Life, Story, Wish, _run, _settled, many
from loop.session import Books, Session
from loop.truths import Truths
from loop.units import PLANE
from quarterdeck.actions.plane import Plane
from quarterdeck.api.base import find_condition
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.controlplane import ControlPlane, RecoveryPolicy
from quarterdeck.api.operation import OperationPhase
from quarterdeck.api.site import Isolation
from quarterdeck.components.controller import controller_manager, scheduler
from quarterdeck.engine.background.addon_task import KEPT_PATIENCE, AddonTask
from quarterdeck.engine.background.tasks import ShortTurn
from quarterdeck.engine.reconcile import manager as managing
from quarterdeck.engine.reconcile.keeper import CADENCE
from quarterdeck.engine.reconcile.manager import PlaneManager
from quarterdeck.etcd.facts import Alarm, AlarmKind
from quarterdeck.etcd.faults import EtcdFault
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import BackendAddress
from quarterdeck.model.leadership import UNLED_S
from quarterdeck.model.world import World
from quarterdeck.stores.port import amend


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


@dataclass
class Quiet:
    """A log that nobody reads."""

    events: list[str] = field(default_factory=list)
    defects: list[object] = field(default_factory=list)

    def info(self, event: str, **facts: object) -> None:
        self.events.append(event)
        self.defects += [facts["exc_info"]] if facts.get("exc_info") is not None else []

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

    def start(self, name: str) -> asyncio.Task[None]:
        session = Session(name=name, world=self.world, truths=self.truths, books=self.books, happens=self._happens)
        manager = PlaneManager(
            engine=session.engine(), network=Isolation.LOOPBACK, log=self.log, clock=self.world.clock.monotonic
        )
        session.task = asyncio.create_task(manager.run(), name=name)
        self.sessions.append(session)
        return session.task

    async def plane(self) -> ControlPlane:
        return await self.world.store.get(ControlPlane, PLANE)

    async def until(self, holds: Callable[[], Awaitable[bool]], within: float) -> float:
        """The seconds that it took."""
        began = self.world.clock.now
        async with asyncio.timeout(within):
            while not await holds():  # noqa: ASYNC110 - it is looked at from outside
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


def test_a_load_balancer_that_somebody_changed_is_put_back_within_the_cadence() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        balancer = life.world.balancers["east"]
        wanted = dict(balancer.backends)
        assert len(wanted) == 3
        first, second, _ = wanted
        made_up = BackendAddress("10.9.9.9", 6443)
        await balancer.apply({first: wanted[first], second: made_up, "stranger": made_up})
        life.world.touch()

        async def as_wanted() -> bool:
            return balancer.backends == wanted

        assert not await as_wanted()
        assert await life.until(as_wanted, 30) <= CADENCE + 2

    kept(lived)


@pytest.mark.parametrize("lease", [controller_manager.LEASE, scheduler.LEASE])
def test_controllers_that_nobody_leads_are_told_of_within_a_minute_and_nothing_is_replaced(lease: str) -> None:
    async def lived(life: Kept) -> None:
        async def has_status(status: str) -> bool:
            found = (await life.plane()).status.conditions
            return {
                str(each.status) for each in found if each.type in (ConditionType.READY, ConditionType.CONTROLLERS_LEAD)
            } == {status}

        await life.until(lambda: has_status("True"), 60)
        before = life.world.processes.keys()
        kube, clock = life.world.kube, life.world.clock
        kube.set_lease(lease, "ghost", renewed=clock.now, duration=86_400.0)
        life.world.touch()
        assert await life.until(lambda: has_status("False"), 60) >= UNLED_S
        ready = find_condition((await life.plane()).status.conditions, ConditionType.READY)
        assert ready is not None
        assert f"run 'kubectl --namespace kube-system delete lease {lease}'" in ready.message
        events = [each for each in await life.world.store.events(PLANE) if each.reason == "NoLeader"]
        assert [each.message for each in events] == [ready.message]
        await asyncio.sleep(300)
        assert await has_status("False")
        assert life.world.processes.keys() == before
        kube.delete_lease(lease)
        life.world.touch()
        assert await life.until(lambda: has_status("True"), 60) <= 2 * CADENCE

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


def test_a_quorum_that_stays_lost_is_recovered_by_itself_after_a_time_where_the_spec_says_so() -> None:
    async def lived(life: Kept) -> None:
        await _recovers(life, RecoveryPolicy.AUTOMATIC)
        await asyncio.sleep(20)
        first, *dead = await _machines(life)
        await _kill(life, dead)
        await asyncio.sleep(100)
        stalled = find_condition((await life.plane()).status.conditions, ConditionType.STALLED)
        assert stalled is not None
        assert (stalled.status, stalled.reason) == ("True", "QuorumLost")
        assert "after 300 s a new epoch begins by itself" in stalled.message

        async def serves() -> bool:
            return (await life.plane()).status.memory.epoch == 1 and bool(ready_apiservers(life))

        assert 190 <= await life.until(serves, 300) <= 225
        for machine in dead:
            await life.world.site_of(machine).boot_machine(machine)
        struck(life)

        async def whole() -> bool:
            ready = find_condition((await life.plane()).status.conditions, ConditionType.READY)
            return ready is not None and ready.status == "True" and len(ready_apiservers(life)) == 3

        await life.until(whole, 300)
        memory = (await life.plane()).status.memory
        assert {each.machine for each in memory.kept} == {first, *dead}
        assert memory.epoch == 1

    kept(lived)


def test_a_lost_quorum_is_told_and_left_alone_where_nobody_has_said_anything() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        await _kill(life, (await _machines(life))[1:])
        await asyncio.sleep(400)
        assert (await life.plane()).status.memory.epoch == 0
        assert not ready_apiservers(life)
        stalled = find_condition((await life.plane()).status.conditions, ConditionType.STALLED)
        assert stalled is not None
        assert "see 'quarterdeck recover " in stalled.message

    kept(lived)


async def _recovers(life: Kept, policy: RecoveryPolicy) -> None:
    def with_consent(plane: ControlPlane) -> ControlPlane:
        return with_spec(plane, recovery=policy)

    await amend(life.world.store, ControlPlane, PLANE, with_consent)


async def _machines(life: Kept) -> list[str]:
    return [each.machine for each in (await life.plane()).status.memory.replicas]


async def _kill(life: Kept, machines: list[str]) -> None:
    for machine in machines:
        await life.world.site_of(machine).kill_machine(machine)
    struck(life)


def struck(life: Kept) -> None:
    """Something happened to the world, and clients may notice."""
    life.world.strikes += 1
    life.truths.calm = False
    life.world.touch()


def ready_apiservers(life: Kept) -> list[str]:
    """The apiservers that are ready."""
    life.world.settle()
    return [str(where) for where, each in life.world.kube.apiservers.items() if each.ready and not each.hangs]


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
        until = life.sessions[0].requester().now() + timedelta(minutes=5)

        def paused(plane: ControlPlane) -> ControlPlane:
            return with_spec(plane, paused=True, paused_until=until)

        await amend(life.world.store, ControlPlane, PLANE, paused)
        await asyncio.sleep(1)
        machine, unit = await life.stop(Component.CONTROLLER_MANAGER)
        site = life.world.site_of(machine)
        await asyncio.sleep(120)
        conditions = (await life.plane()).status.conditions
        ready, reconciling = (
            find_condition(conditions, ConditionType.READY),
            find_condition(conditions, ConditionType.RECONCILING),
        )
        assert ready is not None
        assert reconciling is not None
        assert (ready.status, ready.reason) == ("False", "NotUpToDate"), "it is seen"
        assert (reconciling.status, reconciling.reason) == ("False", "Paused")
        assert f"paused until {until:%F %T}" in reconciling.message

        async def runs() -> bool:
            return any(each.name == unit and each.state == "running" for each in await site.units(machine))

        assert not await runs(), "and nothing is done"
        assert 170 <= await life.until(runs, 300) <= 190, "the pause ends by itself"

    kept(lived)


def test_a_manager_has_other_work_than_to_wait_long_for_what_add_ons_need(monkeypatch: pytest.MonkeyPatch) -> None:
    patience: set[object] = set()

    async def finish(_: AddonTask, plane: Plane, **how: object) -> None:
        patience.add(how["patience"])

    monkeypatch.setattr(AddonTask, "finish", finish)

    async def lived(life: Kept) -> None:
        patience.clear()  # whoever created it had no other
        await asyncio.sleep(20)
        assert patience == {KEPT_PATIENCE}

    kept(lived)


def test_a_background_task_takes_turns_and_one_that_fails_is_told_once_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: list[str] = []

    async def turn(plane: Plane, world: World) -> None:
        turns.append(plane.name)
        raise KeyError("a defect")

    monkeypatch.setattr(managing, "background_tasks_of", lambda _: (ShortTurn(name="a background task", turn=turn),))

    async def lived(life: Kept) -> None:
        await asyncio.sleep(60)
        assert 8 <= len(turns) <= 13
        events = [each for each in await life.world.store.events(PLANE) if each.reason == "BackgroundTaskFailed"]
        assert [(each.message, each.count) for each in events] == [("a background task: KeyError: 'a defect'", 1)]
        (defect,) = life.log.defects
        assert isinstance(defect, KeyError)
        assert defect.__traceback__ is not None
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


async def _stalled(life: Kept) -> str:
    found = find_condition((await life.plane()).status.conditions, ConditionType.STALLED)
    return found.reason if found is not None and found.status == "True" else ""


def test_a_plane_whose_etcd_somebody_has_authenticate_is_left_as_it_is_and_named_until_that_is_off() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        cluster = life.world.clusters[Cluster.MAIN].cluster
        replicas = [each.name for each in (await life.plane()).status.memory.replicas]
        nodes = [each.id for each in cluster.nodes]
        cluster.authenticates = True
        life.world.touch()

        async def named() -> bool:
            return await _stalled(life) == "AuthenticationEnabled"

        assert await life.until(named, 120) <= 60
        messages = [
            each.message for each in await life.world.store.events(PLANE) if each.reason == "AuthenticationEnabled"
        ]
        assert [each for each in messages if f"'quarterdeck etcd disable-auth {PLANE}'" in each]
        await asyncio.sleep(600)
        assert [each.name for each in (await life.plane()).status.memory.replicas] == replicas, "nothing is exchanged"
        assert [each.id for each in cluster.nodes] == nodes

        cluster.authenticates = False
        life.world.touch()

        assert await life.until(lambda: _is_as_wanted(life), 120) <= 60
        assert await _stalled(life) == ""

    kept(lived)


def test_a_plane_whose_etcd_somebody_has_authenticate_can_be_deleted() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        life.world.clusters[Cluster.MAIN].cluster.authenticates = True
        life.world.touch()
        await asyncio.sleep(20)
        await life.ask(Wish())

        async def gone() -> bool:
            return not await life.world.store.list(ControlPlane)

        await life.until(gone, 120)

    kept(lived)


async def _is_as_wanted(life: Kept) -> bool:
    found = find_condition((await life.plane()).status.conditions, ConditionType.READY)
    return found is not None and found.status == "True"


def test_what_a_person_does_with_etcdctl_but_for_the_membership_ends_as_wanted_or_named() -> None:
    async def lived(life: Kept) -> None:
        await asyncio.sleep(20)
        etcd, cluster = life.world.etcd(), life.world.clusters[Cluster.MAIN].cluster
        replicas = [each.name for each in (await life.plane()).status.memory.replicas]
        nodes = {each.id for each in cluster.nodes}
        urls = [each.address.client_url for each in cluster.nodes if each.address is not None]

        async def well() -> bool:
            return not cluster.alarms and await _is_as_wanted(life)

        # Leadership goes to another member, history is forgotten, members are defragmented.
        leader = next(each for each in cluster.nodes if each.id == cluster.leader)
        other = next(each for each in cluster.nodes if each is not leader)
        assert leader.address is not None
        await etcd.move_leader(leader.address.client_url, other.id)
        life.world.clusters[Cluster.MAIN].moved_on_purpose()
        await etcd.compact(urls, cluster.index - cluster.keyless)
        for url in urls:
            await etcd.defragment(url)
        life.world.touch()
        await life.until(well, 60)

        # An alarm without a cause is turned off, one with a cause is raised again until there is room.
        cluster.alarms.append(Alarm(AlarmKind.NOSPACE, other.id))
        life.world.touch()
        assert await life.until(well, 120) <= 60
        cluster.quota = 16 << 20
        with pytest.raises(EtcdFault, match="no space"):
            for _ in range(100):
                cluster.overwrite(1 << 20)
        await etcd.disarm(urls, AlarmKind.NOSPACE)
        life.world.touch()

        # Members that are said to differ are left as they are, and named, until a person turns the alarm off.
        cluster.alarms.append(Alarm(AlarmKind.CORRUPT, other.id))
        life.world.touch()

        async def named() -> bool:
            return await _stalled(life) == "AlarmRaised"

        assert await life.until(named, 120) <= 60
        await asyncio.sleep(300)
        assert {each.id for each in cluster.nodes} == nodes
        await etcd.disarm(urls, AlarmKind.CORRUPT)
        life.world.touch()
        assert await life.until(well, 200) <= 120
        cluster.overwrite(1 << 20)
        assert [each.name for each in (await life.plane()).status.memory.replicas] == replicas

    kept(lived)
