"""Who watches locks while a plane is driven writes each transition down, with whose it is, and ends nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from fakes.kube import FakeApiserver
from support.fake_plane import FakePlane, host_of
from support.golden import Golden

from quarterdeck.actions.addresses import apiserver_address, server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.api.plane.controllers import CloudControllerManager, ControllerProgram
from quarterdeck.api.revision import ControllerSetTemplate, Guard
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.ports import seat_at
from quarterdeck.components.template import Revisions
from quarterdeck.engine.controller_sets import lock_watch, set_holders
from quarterdeck.engine.controller_sets.lock_watch import locks_watched
from quarterdeck.engine.notices.troubles import Troubles
from quarterdeck.errors import LeaseLost, Unavailable
from quarterdeck.handover.tenures import LEFT, TAKEN
from quarterdeck.kube.port import Address, SeenLease
from quarterdeck.stores.port import JournalEntry

MAIN, LOCK = "kube-controller-manager", "migration"
SET = ControllerSetTemplate(
    name="ipam", lock=LOCK, controllers=("node-ipam-controller",), owner=ControllerProgram.CLOUD, guard=Guard.SET
)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_watch, "AGAIN", 0.01)
    monkeypatch.setattr(set_holders, "PATIENCE", 0.3)


@pytest.fixture
def fake() -> FakePlane:
    """Its replicas have ports for all programs."""
    made = FakePlane()
    seated = tuple(replace(each, seat=seat_at(each.machine, host_of(each.name), 0)) for each in made.memory.replicas)
    made.memory = replace(made.memory, replicas=seated)
    return made


async def opened(fake: FakePlane, *sets: ControllerSetTemplate) -> Plane:
    plane = await fake.open()
    templates = {
        name: each.model_copy(update={"controller_sets": sets}) for name, each in plane.revisions.templates.items()
    }
    plane.revisions = Revisions(templates=templates)
    fake.kube.apiservers = {apiserver_address(each): FakeApiserver() for each in plane.memory.replicas}
    return plane


@pytest.fixture
async def plane(fake: FakePlane) -> Plane:
    return await opened(fake, SET)


def controller(plane: Plane, replica: str, manager: ControllerProgram = ControllerProgram.KUBE) -> Address:
    (port,) = CATALOGUE[manager.component].ports
    return server_address(plane.memory.replica(replica), port.name)


def takes(
    fake: FakePlane, plane: Plane, lock: str, replica: str, manager: ControllerProgram = ControllerProgram.KUBE
) -> None:
    """One of a plane's managers takes a lock, and says so."""
    fake.kube.leaders = {where: held - {lock} for where, held in fake.kube.leaders.items()}
    mine = controller(plane, replica, manager)
    fake.kube.leaders[mine] = fake.kube.leaders.get(mine, frozenset()) | {lock}
    fake.kube.set_lease(lock, f"{replica}_1f", renewed=100.0, manager=manager.value)


def troubles(fake: FakePlane, operation: str = "") -> Troubles:
    return Troubles(store=fake.store, plane="demo", clock=lambda: fake.clocks.wall, operation=operation)


async def history(fake: FakePlane) -> list[JournalEntry]:
    return [each for each in await fake.store.journal("demo") if each.kind in (TAKEN, LEFT)]


async def written(fake: FakePlane, count: int) -> list[JournalEntry]:
    """The history, once it has so many entries."""
    await until(lambda: _has(fake, count))
    return await history(fake)


async def _has(fake: FakePlane, count: int) -> bool:
    return len(await history(fake)) >= count


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(5):
        while not await holds():  # noqa: ASYNC110 - it is looked at from outside
            await asyncio.sleep(0.01)


async def test_each_transition_is_recorded_with_its_holder_and_the_operation_in_progress(
    fake: FakePlane, plane: Plane, golden: Golden
) -> None:
    takes(fake, plane, MAIN, "east-1")
    known = troubles(fake, "demo-1")
    async with locks_watched(plane, known):
        await written(fake, 1)
        known.operation = ""
        fake.clocks.pass_(7.0)
        takes(fake, plane, LOCK, "west-1", ControllerProgram.CLOUD)
        await written(fake, 2)
        fake.kube.set_lease("kube-scheduler", "nobody asked for this one")
        takes(fake, plane, MAIN, "east-2")
        await written(fake, 4)
    first, second, left, third = await history(fake)
    assert (first.kind, first.operation, first.replica, first.site, first.time) == (
        TAKEN,
        "demo-1",
        "east-1",
        "east",
        1_800_000_000.0,
    )
    golden(first.text)
    assert first.detail == {
        "lock": MAIN,
        "holder": "east-1_1f",
        "component": MAIN,
        "replica": "east-1",
        "token": 0,
        "acquired": 100.0,
    }
    assert (second.operation, second.time) == ("", 1_800_000_007.0)
    assert (second.detail["lock"], second.detail["component"], second.detail["replica"]) == (
        LOCK,
        "cloud-controller-manager",
        "west-1",
    )
    assert (left.kind, left.replica, left.detail) == (
        LEFT,
        "east-1",
        {"lock": MAIN, "holder": "east-1_1f", "token": 0, "renewed": 100.0, "duration": 15.0, "released": False},
    )
    golden(left.text)
    assert (third.detail["replica"], third.detail["token"]) == ("east-2", 1)


async def test_the_next_watcher_tells_no_tenure_twice_and_counts_what_nobody_saw(
    fake: FakePlane, plane: Plane, golden: Golden
) -> None:
    takes(fake, plane, MAIN, "east-1")
    async with locks_watched(plane, troubles(fake)):
        await written(fake, 1)
    async with locks_watched(plane, troubles(fake)):
        takes(fake, plane, LOCK, "west-1", ControllerProgram.CLOUD)
        assert [each.detail["lock"] for each in await written(fake, 2)] == [MAIN, LOCK]
    for replica in ("east-2", "west-1", "east-1"):
        takes(fake, plane, MAIN, replica)
    async with locks_watched(plane, troubles(fake)):
        *_, last = await written(fake, 3)
    assert (last.kind, last.replica, last.detail["token"], last.detail["missed"]) == (TAKEN, "east-1", 3, 2)
    golden(last.text)


async def test_a_plane_without_sets_is_not_watched(fake: FakePlane) -> None:
    plane = await opened(fake)
    takes(fake, plane, MAIN, "east-1")
    before = asyncio.all_tasks()
    async with locks_watched(plane, troubles(fake)):
        assert asyncio.all_tasks() == before


async def test_who_had_the_lock_before_and_has_not_noticed_is_not_taken_for_who_has_it(
    fake: FakePlane, plane: Plane
) -> None:
    takes(fake, plane, MAIN, "east-1")
    async with locks_watched(plane, troubles(fake)):
        await written(fake, 1)
        fake.kube.set_lease(MAIN, "east-2_1f", manager=MAIN)  # it does not say so yet, and the other still does
        await asyncio.sleep(0.05)
        fake.kube.leaders[controller(plane, "east-2")] = frozenset({MAIN})
        del fake.kube.leaders[controller(plane, "east-1")]
        assert (await written(fake, 3))[-1].replica == "east-2"


async def test_who_takes_a_lock_again_that_it_has_let_go_of_is_known_at_once(
    fake: FakePlane, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a manager does that was restarted on the same replica."""
    monkeypatch.setattr(set_holders, "PATIENCE", 60.0)
    takes(fake, plane, MAIN, "east-1")
    async with locks_watched(plane, troubles(fake)):
        await written(fake, 1)
        fake.kube.set_lease(MAIN, "")
        await written(fake, 2)
        fake.kube.set_lease(MAIN, "east-1_2f", renewed=101.0, manager=MAIN)
        last = (await written(fake, 3))[-1]
    assert (last.kind, last.replica, last.detail["holder"]) == (TAKEN, "east-1", "east-1_2f")


async def test_where_two_say_that_they_hold_it_nobody_is_named_and_a_stranger_is_nobody(
    fake: FakePlane, plane: Plane
) -> None:
    for replica in ("east-1", "east-2"):
        fake.kube.leaders[controller(plane, replica)] = frozenset({MAIN})
    fake.kube.set_lease(MAIN, "one of them", manager=MAIN)
    fake.kube.set_lease(LOCK, "laptop_1f", manager="kubectl-edit")
    async with locks_watched(plane, troubles(fake)):
        first, second = await written(fake, 2)
    assert (first.detail["component"], first.detail["replica"]) == (MAIN, "")
    assert (second.detail["component"], second.detail["replica"]) == ("", "")


async def test_who_took_a_lock_right_before_the_end_is_written_by_its_program_alone(
    fake: FakePlane, plane: Plane
) -> None:
    async with locks_watched(plane, troubles(fake)):
        await asyncio.sleep(0.05)
        fake.kube.set_lease(LOCK, "west-1_1f", manager="cloud-controller-manager")
        await asyncio.sleep(0.05)
        assert not await history(fake), "it is still asked who it is"
    (found,) = await history(fake)
    assert (found.detail["component"], found.detail["replica"]) == ("cloud-controller-manager", "")


async def test_another_apiserver_goes_on_where_one_ended_and_nothing_is_told_of_that(
    fake: FakePlane, plane: Plane
) -> None:
    takes(fake, plane, MAIN, "east-1")
    first, second, third = fake.kube.apiservers
    async with locks_watched(plane, troubles(fake)):
        await written(fake, 1)
        for gone, token in ((first, 1), (second, 2)):
            fake.kube.apiservers[gone].up = False
            takes(fake, plane, MAIN, "east-2" if token == 1 else "west-1")
            assert (await written(fake, 1 + 2 * token))[-1].detail["token"] == token
        fake.kube.apiservers[third].up = False
        takes(fake, plane, MAIN, "east-1")
        await asyncio.sleep(1.2)  # the fake says that it is gone within a second
        fake.kube.apiservers[first].up = True
        assert (await written(fake, 7))[-1].detail == {**(await history(fake))[0].detail, "token": 3}
    assert not await fake.store.events("demo")


async def test_one_that_is_ready_and_cannot_be_watched_is_left_for_another(
    fake: FakePlane, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = fake.kube.apiservers
    watched = fake.kube.lease_changes

    def changes(apiserver: Address) -> AsyncGenerator[SeenLease, None]:
        if apiserver == first:
            raise Unavailable("watching", "it is not for this one")
        return watched(apiserver)

    monkeypatch.setattr(fake.kube, "lease_changes", changes)
    takes(fake, plane, MAIN, "east-1")
    async with locks_watched(plane, troubles(fake)):
        await written(fake, 1)
    assert not await fake.store.events("demo")


class Failing:
    """A port some of whose calls fail for as long as a test says so."""

    def __init__(self, inner: Any, method: str, error: Exception) -> None:
        self._inner, self._method, self._error = inner, method, error
        self.fails, self.failed = True, 0

    def __getattr__(self, name: str) -> Any:
        if name == self._method and self.fails:
            self.failed += 1
            raise self._error
        return getattr(self._inner, name)


@pytest.mark.parametrize(
    ("port", "method"),
    [("store", "append"), ("store", "journal"), ("kube", "lease_changes")],
)
@pytest.mark.parametrize("error", [Unavailable("asking", "no answer"), KeyError("a defect")])
async def test_what_fails_is_told_once_and_tried_again_and_nothing_is_lost(
    fake: FakePlane, plane: Plane, port: str, method: str, error: Exception, golden: Golden
) -> None:
    failing = Failing(getattr(plane, port), method, error)
    setattr(plane, port, failing)
    takes(fake, plane, MAIN, "east-1")
    async with locks_watched(plane, troubles(fake)):

        async def often() -> bool:
            return failing.failed >= 4

        await until(often)
        (event,) = await fake.store.events("demo")
        assert (event.reason, event.count) == ("LockHistoryFailed", 1)
        golden(event.message)
        failing.fails = False
        await written(fake, 1)


async def test_nothing_is_written_once_another_process_drives(
    fake: FakePlane, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        raise LeaseLost("acting", "it has passed on")

    monkeypatch.setattr(plane, "check", check)
    takes(fake, plane, MAIN, "east-1")
    async with locks_watched(plane, troubles(fake)):
        await asyncio.sleep(0.1)
    assert not await history(fake)
    assert not await fake.store.events("demo")


async def test_what_is_done_in_the_block_may_fail_as_it_did_without(
    fake: FakePlane, plane: Plane, golden: Golden
) -> None:
    before = asyncio.all_tasks()
    with golden.raises(Unavailable):
        async with locks_watched(plane, troubles(fake)):
            raise Unavailable("doing", "of the block")
    assert asyncio.all_tasks() == before


async def test_a_cloud_controller_manager_is_known_by_the_file_that_it_is(plane: Plane) -> None:
    cloud = CloudControllerManager.model_validate({"program": "/opt/openstack-ccm"}, strict=False)
    (name, template), *_ = plane.revisions.templates.items()
    changed = {name: template.model_copy(update={"cloud_controller_manager": cloud})}
    plane.revisions = replace(plane.revisions, templates=changed)
    assert set_holders.manager_of(plane, "openstack-ccm") is ControllerProgram.CLOUD
    assert set_holders.manager_of(plane, "kube-controller-manager") is ControllerProgram.KUBE
    assert set_holders.manager_of(plane, "kubectl") is None
