"""The task that backs up a plane while its lease is held, and what the plane's condition says of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster
from fakes.store import MemoryStore
from support.backup_facts import VERIFIED
from support.conditions import eventually
from support.fake_plane import FakePlane
from support.golden import Golden
from support.recording_lab import QUICK, FaultyObjects, address, until
from support.resources import with_status
from support.templates import template

from quarterdeck.actions import addresses
from quarterdeck.actions.plane import Plane
from quarterdeck.api.base import Condition, ConditionStatus
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.controlplane import PLANE_FINALIZER, ControlPlane, new_control_plane
from quarterdeck.api.events import EventReason
from quarterdeck.api.plane.backup import BackupSettings
from quarterdeck.api.plane.memory import memory_from_status, memory_to_status
from quarterdeck.api.revision import revision_of
from quarterdeck.api.site import default_sites
from quarterdeck.backup import folding
from quarterdeck.backup.chain import Chain
from quarterdeck.backup.chain_store import ChainStore
from quarterdeck.backup.recording.policy import FullReason, Side
from quarterdeck.backup.recording.recorder import Recorder
from quarterdeck.engine.background import backup, backup_upkeep
from quarterdeck.engine.background.backup import BackUp, may_record, record
from quarterdeck.engine.background.backup_report import BackupState, ReportBackups
from quarterdeck.engine.background.tasks import Check
from quarterdeck.engine.workspace import backups as workspace
from quarterdeck.engine.workspace.backups import key_file
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Corrupt, LeaseLost, Unavailable
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.world import World
from quarterdeck.stores.port import amend
from quarterdeck.upstream.upstream import Upstream

NAME = "alpha"
NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
UPSTREAM = cast("Upstream", None)  # nothing is verified in these tests
WORLD = World(slots=(), memory=Memory(), now=0.0)


def replicas(epoch: int = 0) -> tuple[Replica, ...]:
    """The members of an epoch."""
    slot = Slot(site="east", zone="a")
    return tuple(
        Replica(name=each, slot=slot, machine=f"east-{each}", listed=True, started=True, epoch=epoch) for each in "abc"
    )


async def held() -> None:
    """The lease is held."""


class BackupLab:
    """A stored plane with an etcd in memory, and a task that backs it up to a store in memory."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder=folder, store=MemoryStore())
        self.cluster = FakeCluster.founded([address(each) for each in "abc"])
        self.objects = FaultyObjects()
        self.state = BackupState()
        self.check: Check = held

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Fakes in place of drivers, and no waiting."""
        patch.setattr(backup, "open_etcd", lambda secrets, stack: FakeEtcd(self.cluster))
        patch.setattr(addresses, "client_url", lambda replica, cluster: address(replica.name).client_url)
        patch.setattr(backup, "Recorder", partial(Recorder, pace=QUICK))
        patch.setattr(backup, "_FOLLOWING", 0.005)
        patch.setattr(backup_upkeep, "_RETRYING", 0.005)
        patch.setattr(backup_upkeep, "_PAUSE", 0.005)
        patch.setattr(backup_upkeep, "_SWEEPING", timedelta(milliseconds=5))
        patch.setattr(workspace, "open_backup_store", lambda url, options: self.objects)

    async def create(self) -> None:
        """Store the plane, with all that belongs to it."""
        store = self.home.store
        for site in default_sites():
            await store.create(site)
        plane = await store.create(new_control_plane(NAME, site="east").with_spec(backup=BackupSettings(enabled=True)))
        await secrets_of(store, plane)
        revision = await store.create(revision_of(plane, template()))
        memory = memory_to_status(Memory(created=True, bootstrap=("a", "b", "c"), replicas=replicas()))
        await store.update(with_status(plane, revision=revision.name, memory=memory, port_offset=0))

    async def plane(self) -> ControlPlane:
        return await self.home.store.get(ControlPlane, NAME)

    async def amend(self, change: Callable[[ControlPlane], ControlPlane]) -> None:
        await amend(self.home.store, ControlPlane, NAME, change)

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[asyncio.Task[None]]:
        """The task for the block. What ended it is raised at the end, unless the block has taken it."""
        task = asyncio.create_task(record(self.home, UPSTREAM, NAME, self.state, self.check))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def stored(self, task: asyncio.Task[None]) -> None:
        """Return once all that was written can be restored."""
        await until(lambda: task.done() or self.state.revision >= self.cluster.revision, "it is stored")
        assert not task.done(), task

    async def chain(self) -> Chain:
        uid = (await self.plane()).metadata.uid or ""
        return await ChainStore(self.objects, uid, f"{NAME}/{uid}").read()


@pytest.fixture
async def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BackupLab:
    made = BackupLab(tmp_path)
    made.install(monkeypatch)
    await made.create()
    return made


async def test_what_is_written_can_be_restored_with_the_whole_plane(lab: BackupLab, golden: Golden) -> None:
    async with lab.recording() as task:
        lab.cluster.write(3)
        await lab.stored(task)
        await eventually_whole(lab, epoch=0)
        lab.cluster.write(3)
        await lab.stored(task)
    chain = await lab.chain()
    assert chain.ranges("main", 0)[-1][1] == lab.cluster.revision
    assert [each.reason for each in lab.state.happened] == [EventReason.FULL_BACKUP]
    golden.hide(r"revision [\d,]+ (.*)\([\d,]+ bytes\)", r"revision REVISION \1(SIZE bytes)")
    golden(each.message for each in lab.state.happened)


async def eventually_whole(lab: BackupLab, epoch: int) -> None:
    """Return once the whole plane can be restored from the newest revision of an epoch."""
    await eventually(lab.chain, lambda chain: chain.belongings_at(lab.cluster.revision, epoch) is not None)


async def test_what_one_task_has_reported_does_not_outlive_it(lab: BackupLab) -> None:
    """The cluster of the former epoch did not answer at the end: that of the next one does."""
    lab.state.failed(Side.CLUSTER, NOW, error("watching"))
    lab.state.restorable(1 << 40, NOW)
    async with lab.recording() as task:
        await until(lambda: task.done() or lab.state.at != NOW, "it is another task")
        await until(lambda: task.done() or lab.state.revision == lab.cluster.revision, "it is stored")
        assert not task.done(), task
        assert lab.state.failing == {}


async def test_a_task_that_ends_with_an_error_is_not_called_continuous(lab: BackupLab) -> None:
    async with lab.recording() as task:
        await lab.stored(task)
    (newest, *_) = sorted((name for name in lab.objects.objects if "/links/" in name), reverse=True)
    lab.objects.objects[newest] = (b"{}", NOW)
    plane = await FakePlane().open()
    plane.resource = await lab.plane()
    work = await BackUp(home=lab.home, upstream=UPSTREAM, state=lab.state).due(plane, WORLD)
    assert work is not None
    with pytest.raises(Corrupt):
        await work(held)
    assert isinstance(lab.state.ended, Corrupt)
    lab.state.begin()
    assert lab.state.ended is None


async def test_a_new_epoch_ends_the_task_and_the_next_one_begins_with_a_full_backup(lab: BackupLab) -> None:
    async with lab.recording() as task:
        await lab.stored(task)
        memory = memory_from_status((await lab.plane()).status.memory)
        new = memory_to_status(replace(memory, epoch=1, replicas=replicas(1)))
        await lab.amend(lambda seen: seen.with_status(memory=new))
        async with asyncio.timeout(20):
            await task
    lab.cluster.write(2)
    async with lab.recording() as task:
        await lab.stored(task)
        await eventually_whole(lab, epoch=1)
    chain = await lab.chain()
    assert [each.epoch for each in chain.fulls] == [0, 1]
    assert [FullReason.FIRST.value in each.message for each in lab.state.happened] == [True, False]
    assert FullReason.EPOCH.value in lab.state.happened[-1].message


@pytest.mark.parametrize(
    "change",
    [
        lambda seen: seen.with_spec(backup=BackupSettings(enabled=False)),
        lambda seen: seen.with_spec(backup=BackupSettings(enabled=True, store="s3://elsewhere")),
    ],
    ids=["disabled", "another store"],
)
async def test_a_change_of_what_is_backed_up_ends_the_task(
    lab: BackupLab, change: Callable[[ControlPlane], ControlPlane]
) -> None:
    async with lab.recording() as task:
        await lab.stored(task)
        await lab.amend(change)
        async with asyncio.timeout(20):
            await task


@pytest.mark.parametrize("finalizers", [(), (PLANE_FINALIZER,)], ids=["gone", "being deleted"])
async def test_a_plane_that_is_deleted_is_not_backed_up_any_more(lab: BackupLab, finalizers: tuple[str, ...]) -> None:
    metadata = (await lab.plane()).metadata.model_copy(update={"finalizers": finalizers})
    await lab.amend(lambda seen: seen.model_copy(update={"metadata": metadata}))
    async with lab.recording() as task:
        await lab.stored(task)
        await lab.home.store.delete(ControlPlane, NAME)
        async with asyncio.timeout(20):
            await task


@pytest.mark.parametrize("call", [1, 2, 3, 5, 8, 13])
async def test_a_store_that_is_away_ends_nothing(lab: BackupLab, call: int) -> None:
    """Whichever of its calls is the first that fails: of the recorder, the belongings, or the sweep."""
    failed: list[str] = []

    def fault(number: int, does: str, done: bool) -> None:
        if number >= call and len(failed) < 20:
            failed.append(does)
            raise Unavailable(does, "no answer")

    lab.objects.fault = fault
    async with lab.recording() as task:
        for _ in range(4):
            lab.cluster.write(1)
            await lab.stored(task)
        await until(lambda: task.done() or len(failed) == 20, "it was away")
        await eventually_whole(lab, epoch=0)
        lab.cluster.write(1)
        await lab.stored(task)
        assert not task.done()


async def test_belongings_are_stored_again_only_if_they_have_changed_or_others_are_to_open_them(lab: BackupLab) -> None:
    async with lab.recording() as task:
        await lab.stored(task)
        await eventually_whole(lab, epoch=0)
    before = (await lab.chain()).belongings
    for _ in range(2):
        async with lab.recording() as task:
            lab.cluster.write(1)
            await lab.stored(task)
            await looked(lab)
    assert (await lab.chain()).belongings == before
    key_file(lab.home.folder).unlink()
    async with lab.recording():
        await eventually(lab.chain, lambda chain: len(chain.belongings) == len(before) + 1)
        await looked(lab)
    assert len((await lab.chain()).belongings) == len(before) + 1


async def looked(lab: BackupLab) -> None:
    """Return once a running task has read the belongings of the plane a few times more."""
    get, reads = lab.home.store.get, 0

    async def counted(kind: type[Any], name: str) -> Any:
        nonlocal reads
        reads += kind is PlaneSecrets
        return await get(kind, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab.home.store, "get", counted)
        await until(lambda: reads > 3, "it looks")


async def test_increments_are_joined_beside_the_recording_and_damaged_ones_are_told_once(
    lab: BackupLab, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    async with lab.recording() as task:
        for _ in range(9):
            lab.cluster.write(1)
            await lab.stored(task)
    before = await lab.chain()
    damaged = before.increments[0].stored.name
    content, at = lab.objects.objects[damaged]
    lab.objects.objects[damaged] = (content[:-4], at)
    monkeypatch.setattr(backup_upkeep, "_JOINING_AFTER", timedelta(0))
    async with lab.recording() as task:
        await eventually(lab.chain, lambda chain: len(chain.increments) <= 3)
        lab.cluster.write(1)
        await lab.stored(task)
    chain = await lab.chain()
    assert chain.increments[0].stored.name == damaged
    assert chain.ranges("main", 0)[0][1] == lab.cluster.revision
    (event,) = [each for each in lab.state.happened if each.reason is EventReason.BACKUP_UNREADABLE]
    golden.hide(r"alpha/\S+/data/[^:\s]+", "OBJECT")
    golden.hide(r"\d+ bytes, \d+ were", "SIZE bytes, SIZE were")
    golden(event.message)


async def test_many_increments_are_folded_without_asking_etcd_and_recording_goes_on(
    lab: BackupLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "FOLDED_BYTES", 1000)
    async with lab.recording() as task:
        while len((await lab.chain()).fulls) < 3:
            lab.cluster.write(1)
            await lab.stored(task)
        lab.cluster.write(1)
        await lab.stored(task)
    chain = await lab.chain()
    taken, *folded = chain.fulls
    assert {each.folded_from for each in folded} == {taken.revision}
    assert chain.ranges("main", 0) == ((taken.revision, lab.cluster.revision),)
    assert [FullReason.FIRST.value in each.message for each in lab.state.happened][:2] == [True, False]
    assert FullReason.FOLDED.value in lab.state.happened[-1].message


async def test_what_cannot_be_folded_is_told_once_and_recording_goes_on(
    lab: BackupLab, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    async with lab.recording() as task:
        for _ in range(9):
            lab.cluster.write(1)
            await lab.stored(task)
    (full,) = (await lab.chain()).fulls
    del lab.objects.objects[full.stored.name]
    monkeypatch.setattr(folding, "FOLDED_BYTES", 1)
    lab.state.happened.clear()
    async with lab.recording() as task:
        await until(lambda: task.done() or lab.state.happened, "it is told")
        for _ in range(5):
            lab.cluster.write(1)
            await lab.stored(task)
    golden.hide(r"alpha/\S+/data/[^:\s]+", "OBJECT")
    golden(each.message for each in lab.state.happened)


async def test_another_holder_of_the_lease_ends_the_task(lab: BackupLab) -> None:
    async def lost() -> None:
        raise LeaseLost("backing up", "another process has the lease")

    async with lab.recording() as task:
        await lab.stored(task)
    lab.check = lost
    async with lab.recording() as task:
        lab.cluster.write(1)
        with pytest.raises(LeaseLost):
            async with asyncio.timeout(20):
                await task


@pytest.mark.parametrize(
    ("change", "due"),
    [
        (lambda seen: seen, True),
        (lambda seen: seen.with_spec(backup=BackupSettings(enabled=False)), False),
        (lambda seen: seen.with_status(memory=memory_to_status(Memory())), False),
        (
            lambda seen: seen.model_copy(
                update={"metadata": seen.metadata.model_copy(update={"deletion_timestamp": "2030-01-31T12:00:00Z"})}
            ),
            False,
        ),
    ],
    ids=["created", "disabled", "not created", "deleted"],
)
async def test_only_planes_with_an_etcd_are_backed_up(
    lab: BackupLab, change: Callable[[ControlPlane], ControlPlane], due: bool
) -> None:
    plane = await FakePlane().open()
    plane.resource = change(await lab.plane())
    assert may_record(plane.resource) is due
    work = await BackUp(home=lab.home, upstream=UPSTREAM, state=lab.state).due(plane, WORLD)
    assert (work is not None) is due


# What the plane's condition says.


async def backed_up() -> Plane:
    """A plane with backups."""
    plane = await FakePlane().open()
    enabled = plane.resource.with_spec(backup=BackupSettings(enabled=True))
    plane.resource = await plane.store.update(enabled)
    return plane


def error(does: str) -> Unavailable:
    return Unavailable(does, "no answer within 5 s")


def recent(state: BackupState) -> None:
    state.restorable(100, NOW)
    state.failed(Side.STORE, NOW - timedelta(seconds=5), error("storing"))


def store_away(state: BackupState) -> None:
    state.restorable(100, NOW - timedelta(minutes=1))
    state.failed(Side.STORE, NOW - timedelta(minutes=1), error("storing"))


def cluster_away(state: BackupState) -> None:
    state.failed(Side.CLUSTER, NOW - timedelta(minutes=1), error("watching"))


def back(state: BackupState) -> None:
    store_away(state)
    state.answers(Side.STORE)


def damaged(state: BackupState) -> None:
    state.restorable(100, NOW)
    state.damaged(Corrupt("checking the backup", "the hash differs", "use another backup"))


def verified_again(state: BackupState) -> None:
    damaged(state)
    state.verified(VERIFIED)


def ended(state: BackupState) -> None:
    state.restorable(100, NOW)
    state.ended = Corrupt("reading the chain", "link 7 is missing", "restore it")


@pytest.mark.parametrize(
    ("happens", "status", "reason"),
    [
        (lambda state: None, ConditionStatus.UNKNOWN, ConditionReason.FIRST_BACKUP),
        (lambda state: state.restorable(100, NOW), ConditionStatus.TRUE, ConditionReason.CONTINUOUS),
        (recent, ConditionStatus.TRUE, ConditionReason.CONTINUOUS),
        (store_away, ConditionStatus.FALSE, ConditionReason.STORE_UNAVAILABLE),
        (cluster_away, ConditionStatus.FALSE, ConditionReason.CLUSTER_UNAVAILABLE),
        (back, ConditionStatus.TRUE, ConditionReason.CONTINUOUS),
        (ended, ConditionStatus.FALSE, ConditionReason.BACKUP_FAILED),
        (damaged, ConditionStatus.FALSE, ConditionReason.BACKUP_DAMAGED),
        (verified_again, ConditionStatus.TRUE, ConditionReason.CONTINUOUS),
    ],
    ids=["first", "continuous", "a moment", "no store", "no cluster", "back", "ended", "damaged", "verified again"],
)
async def test_the_condition_says_how_backups_go(
    golden: Golden, happens: Callable[[BackupState], None], status: ConditionStatus, reason: ConditionReason
) -> None:
    plane, state = await backed_up(), BackupState(now=lambda: NOW)
    happens(state)
    await ReportBackups(state=state).turn(plane, WORLD)
    (condition,) = conditions(plane)
    assert (condition.status, condition.reason) == (status, reason)
    golden(condition.message)


async def test_a_plane_without_backups_has_no_condition() -> None:
    plane, state = await backed_up(), BackupState(now=lambda: NOW)
    state.restorable(100, NOW)
    state.stored_now(1, 1000)
    await ReportBackups(state=state).turn(plane, WORLD)
    assert conditions(plane)
    assert plane.resource.status.backup is not None
    await amend(
        plane.store, ControlPlane, plane.name, lambda seen: seen.with_spec(backup=BackupSettings(enabled=False))
    )
    plane.resource = await plane.store.get(ControlPlane, plane.name)
    await ReportBackups(state=state).turn(plane, WORLD)
    assert conditions(plane) == []
    assert plane.resource.status.backup is None


async def test_gaps_and_what_was_discarded_become_events_once(golden: Golden) -> None:
    plane, state = await FakePlane().open(), BackupState(now=lambda: NOW)
    state.gap(1_000, 2_000)
    state.spool_discarded("it had 1 GiB")
    for _ in range(2):
        await ReportBackups(state=state).turn(plane, WORLD)
    events = await plane.store.events(plane.name)
    assert [each.reason for each in events] == [EventReason.BACKUP_GAP.value, EventReason.BACKUP_SPOOL_DISCARDED.value]
    assert [each.count for each in events] == [1, 1]
    golden(each.message for each in events)


async def test_verifications_become_events_once_and_the_status_is_written_once_a_minute(golden: Golden) -> None:
    plane, state = await backed_up(), BackupState(now=lambda: NOW)
    now = 0.0
    plane.steady = lambda: now
    report = ReportBackups(state=state)
    await report.turn(plane, WORLD)
    assert plane.resource.status.backup is None, "nothing is stored yet"
    state.restorable(100, NOW)
    state.stored_now(1, 1000)
    await report.turn(plane, WORLD)
    first = plane.resource.status.backup
    assert first is not None
    assert (first.revision, first.restorable_at, first.fulls, first.verified_at) == (100, NOW, 1, None)
    state.restorable(101, NOW)
    await report.turn(plane, WORLD)
    assert plane.resource.status.backup == first, "only once a minute"
    for _ in range(2):
        state.not_verified(error("starting an etcd"))
    state.damaged(Corrupt("checking the backup", "the hash differs", "use another backup"))
    for _ in range(2):
        state.verified(VERIFIED)
    await report.turn(plane, WORLD)
    second = plane.resource.status.backup
    assert second is not None
    assert (second.revision, second.verified_revision) == (101, VERIFIED.revision), "at once"
    state.restorable(102, NOW)
    now = 60.0
    await report.turn(plane, WORLD)
    assert plane.resource.status.backup is not None
    assert plane.resource.status.backup.revision == 102
    golden(each.message for each in await plane.store.events(plane.name))


def conditions(plane: Plane) -> list[Condition]:
    return [each for each in plane.resource.status.conditions if each.type == ConditionType.BACKED_UP]
