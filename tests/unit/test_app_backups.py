"""Backups by hand: they return once what was acknowledged before can be restored, whichever process backs it up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from fakes.objects import MemoryObjects
from support.databases import AT
from support.golden import Golden
from support.resources import with_spec, with_status

from quarterdeck.api.base import ConditionStatus, with_condition
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.api.site import Isolation
from quarterdeck.app.backup import backups as its
from quarterdeck.app.backup import removal
from quarterdeck.app.backup.backups import Backups, TakenBackup, ranges_of
from quarterdeck.backup.chain import (
    Chain,
    ChainLink,
    FullBackup,
    Increments,
    ObjectReference,
    Reached,
    StoredBelongings,
)
from quarterdeck.backup.objects.port import ObjectHeld
from quarterdeck.engine.workspace import backups, leases
from quarterdeck.engine.workspace.backups import backup_keys, open_backups
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Gone, LeaseLost, PreconditionFailed, QuarterdeckError, TimedOut, Unavailable
from quarterdeck.model.memory import Memory
from quarterdeck.stores.lease import Clocks

#: The revision of etcd when a backup is asked for.
NOW = 45


def reference(name: str, size: int = 10) -> ObjectReference:
    return ObjectReference(name=name, sha256="", size_bytes=size)


FULL = FullBackup(
    cluster="main", epoch=0, revision=40, at=AT, etcd_version="3.6.16", stored=reference("data/full", 1000)
)
STEP = Increments(
    cluster="main",
    epoch=0,
    first=41,
    last=45,
    first_at=AT + timedelta(seconds=1),
    last_at=AT + timedelta(seconds=9),
    stored=reference("data/41"),
)


class Lab:
    """A home with plane ``alpha``, and what writes its backups: ``links``, one at each look at the chain."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.objects = MemoryObjects()
        self.recorded = 0
        self.links: list[ChainLink] = []
        engine = SimpleNamespace(requester=SimpleNamespace(name="a test"), clocks=Clocks(), upstream=None)
        self.backups = Backups(home, lambda: cast("Any", engine))

    async def record(self, home: Home, upstream: object, name: str, _: object, check: Any) -> None:
        """In place of the task: it writes the links."""
        assert (home, name) == (self.home, "alpha")
        self.recorded += 1
        await check()
        await self.write()
        await asyncio.Event().wait()

    async def write(self) -> None:
        opened = await open_backups(self.home, await self.home.store.get(ControlPlane, "alpha"))
        chain = await opened.chains.read()
        for each in self.links:
            chain = await opened.chains.append(chain, each)


def link(*, fulls: tuple[FullBackup, ...] = (), steps: tuple[Increments, ...] = (), whole: bool = False) -> ChainLink:
    belongings = reference("data/belongings") if whole else None
    return ChainLink(
        number=0, previous="", plane="", writer="", at=AT, fulls=fulls, increments=steps, belongings=belongings
    )


@pytest.fixture
async def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    home = await Home.open(tmp_path / "home")
    plane = await home.store.create(new_control_plane("alpha", site="east"))
    on = with_spec(plane, backup=plane.spec.backup.model_copy(update={"enabled": True}))
    await home.store.update(with_status(on, memory=memory_to_status(Memory(created=True))))
    made = Lab(home)

    async def revision(_: Backups, name: str) -> int:
        assert name == "alpha"
        return NOW

    monkeypatch.setattr(backups, "open_backup_store", lambda *_: made.objects)
    monkeypatch.setattr(removal, "open_backup_store", lambda *_: made.objects)
    monkeypatch.setattr(Backups, "_revision", revision)
    monkeypatch.setattr(its, "record", made.record)
    monkeypatch.setattr(its, "_LOOK", 0.01)
    yield made
    await home.close()


async def managed(lab: Lab) -> None:
    await lab.home.store.acquire(leases.manager_lease(Isolation.LOOPBACK), "a manager", 60.0)


def taken_of(found: TakenBackup) -> tuple[int, int, int, bool]:
    return found.revision, found.full.revision, found.size_bytes, found.whole_plane


async def test_without_a_manager_this_process_backs_the_plane_up_until_it_is_covered(lab: Lab) -> None:
    lab.links = [link(fulls=(FULL,), whole=True), link(steps=(STEP,))]
    assert taken_of(await lab.backups.create("alpha", timeout=30)) == (NOW, 40, 1010, True)
    assert lab.recorded == 1
    held = await lab.home.store.lease(leases.lease_name("alpha"))
    assert held is None, "the lease of the plane is released"


async def test_a_first_backup_that_is_newer_than_the_call_covers_it(lab: Lab) -> None:
    """The plane is written to between the call and the first full backup."""
    later = FULL.model_copy(update={"revision": NOW + 5})
    lab.links = [link(fulls=(later,), whole=True)]
    assert taken_of(await lab.backups.create("alpha", timeout=30)) == (NOW + 5, NOW + 5, FULL.stored.size_bytes, True)


async def test_with_a_manager_it_only_waits_for_it(lab: Lab) -> None:
    await managed(lab)
    lab.links = [link(fulls=(FULL,), whole=True)]
    await lab.write()
    asked = asyncio.create_task(lab.backups.create("alpha", timeout=30))
    done, _ = await asyncio.wait({asked}, timeout=0.2)
    assert done == set(), "the revision of now is not stored yet"
    lab.links = [link(steps=(STEP,))]
    await lab.write()
    assert taken_of(await asked) == (NOW, 40, 1010, True)
    assert lab.recorded == 0


async def test_data_without_the_keys_of_the_plane_is_said_to_be_that(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(its, "_BELONGINGS", 0.05)
    lab.links = [link(fulls=(FULL,)), link(steps=(STEP,))]
    assert taken_of(await lab.backups.create("alpha", timeout=30)) == (NOW, 40, 1010, False)


async def failed(lab: Lab, at: datetime) -> None:
    """The condition as the manager writes it when its task has ended."""
    plane = await lab.home.store.get(ControlPlane, "alpha")
    conditions = with_condition(
        (),
        ConditionType.BACKED_UP,
        ConditionStatus.FALSE,
        reason=ConditionReason.BACKUP_FAILED,
        now=at.timestamp(),
        message="reading links/7.json: this link of the chain is missing",
    )
    await lab.home.store.update(with_status(plane, conditions=conditions))


async def test_it_ends_with_the_error_with_which_the_task_of_the_manager_ends(lab: Lab, golden: Golden) -> None:
    await managed(lab)
    golden.hide(str(lab.home.folder), "HOME")
    await failed(lab, datetime.now(UTC) - timedelta(seconds=5))
    asked = asyncio.create_task(lab.backups.create("alpha", timeout=30))
    done, _ = await asyncio.wait({asked}, timeout=0.2)
    assert done == set(), "an error of before may be over"
    await failed(lab, datetime.now(UTC))
    with golden.raises(Unavailable):
        await asked


@pytest.mark.parametrize(
    "links",
    [
        [],
        [link(fulls=(FULL,), whole=True)],
        [link(fulls=(FULL,)), link(steps=(STEP,))],
        [link(fulls=(FULL.model_copy(update={"epoch": 1, "revision": NOW}),), whole=True)],
        [link(fulls=(FULL.model_copy(update={"cluster": "events", "revision": NOW}),), whole=True)],
    ],
    ids=["nothing", "too early", "data alone", "another epoch", "another cluster"],
)
async def test_what_does_not_bring_the_moment_back_whole_is_waited_for_up_to_the_timeout(
    lab: Lab, links: list[ChainLink], golden: Golden
) -> None:
    await managed(lab)
    lab.links = links
    await lab.write()
    with golden.raises(TimedOut):
        await lab.backups.create("alpha", timeout=0.2)


async def test_a_plane_that_is_not_backed_up_is_refused(lab: Lab, golden: Golden) -> None:
    plane = await lab.home.store.get(ControlPlane, "alpha")
    off = plane.spec.backup.model_copy(update={"enabled": False})
    plane = await lab.home.store.update(with_spec(plane, backup=off))
    with golden.raises(PreconditionFailed):
        await lab.backups.create("alpha")
    on = with_spec(plane, backup=off.model_copy(update={"enabled": True}))
    await lab.home.store.update(with_status(on, memory=memory_to_status(Memory())))
    with golden.raises(PreconditionFailed):
        await lab.backups.create("alpha")
    with pytest.raises(Gone):
        await lab.backups.create("beta")
    assert lab.recorded == 0


@pytest.mark.parametrize(
    "error", [LeaseLost("backing up", "it is lost"), PreconditionFailed("backing up", "no rights")]
)
async def test_what_ends_the_backup_ends_the_wait_for_it(
    lab: Lab, error: QuarterdeckError, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def record(*_: object) -> None:
        raise error

    monkeypatch.setattr(its, "record", record)
    with pytest.raises(type(error)):
        await lab.backups.create("alpha", timeout=30)


async def test_the_list_has_each_stretch_and_whom_it_is_encrypted_for(lab: Lab) -> None:
    lab.links = [link(fulls=(FULL,), whole=True), link(steps=(STEP,))]
    await lab.write()
    found = await lab.backups.list("alpha")
    assert found.recipients == ((await backup_keys(lab.home.folder)).recipient,)
    (only,) = found.ranges
    assert (only.first, only.last, only.fulls, only.size_bytes, only.whole_plane) == (40, 45, 1, 1010, True)
    assert (only.first_at, only.last_at) == (AT, STEP.last_at)


def test_a_gap_parts_the_stretches_and_belongings_of_later_ones_do_not_bring_back_earlier_ones() -> None:
    later = FULL.model_copy(update={"revision": 60, "at": AT + timedelta(hours=1)})
    events = FULL.model_copy(update={"cluster": "events"})
    belongings = (StoredBelongings(reference("data/belongings"), Reached(0, 60)),)
    chain = Chain("uid", fulls=(later, FULL, events), increments=(STEP,), belongings=belongings)
    seen = [(each.cluster, each.first, each.last, each.whole_plane) for each in ranges_of(chain, ())]
    assert seen == [("events", 40, 40, False), ("main", 40, 45, False), ("main", 60, 60, True)]
    assert ranges_of(replace(chain, fulls=()), ()) == ()


async def test_the_backups_of_a_deleted_plane_go_with_all_their_objects(lab: Lab) -> None:
    lab.links = [link(fulls=(FULL,), whole=True), link(steps=(STEP,))]
    await lab.write()
    await lab.objects.create("alpha/another-plane/links/1", b"of a former plane of that name")
    found = await lab.backups.stored("alpha")
    assert (found.objects, found.size_bytes) == (
        2,
        sum(len(content) for content, _ in lab.objects.objects.values()) - 30,
    )
    await lab.backups.delete(found)
    assert list(lab.objects.objects) == ["alpha/another-plane/links/1"]


async def test_backups_that_the_store_holds_are_named_and_begin_without_their_newest_link(lab: Lab) -> None:
    lab.links = [link(fulls=(FULL,), whole=True), link(steps=(STEP,))]
    await lab.write()
    found = await lab.backups.stored("alpha")
    lab.objects.held_for = timedelta(days=1)
    with pytest.raises(ObjectHeld, match="the plane is gone, but its backups are not") as held:
        await lab.backups.delete(found)
    assert found.folder in str(held.value)
    lab.objects.now += timedelta(days=2)
    deleted: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab.objects, "delete", AsyncMock(side_effect=deleted.extend))
        await lab.backups.delete(found)
    assert [each.rpartition("/")[2] for each in deleted] == ["00000000000000000002.json", "00000000000000000001.json"]
