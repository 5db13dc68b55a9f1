"""Restores as the face has them: which moment is meant, what consents to it, and a plane whose home was lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fakes.objects import MemoryObjects
from pyrage import x25519
from support.backup_facts import NOTHING_LOST
from support.databases import AT
from support.golden import Golden
from support.resources import with_spec, with_status
from support.restoring_lab import URL, cordoned, full, store_keys
from support.restoring_lab import RestoringLab as Lab
from support.templates import template

from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.epochs import NewEpoch, RestoreEvents, RestoreFrom
from quarterdeck.api.plane.etcd import Etcd, Events
from quarterdeck.api.plane.memory import memory_from_status, memory_to_status
from quarterdeck.api.revision import ReplicaRevision
from quarterdeck.api.site import LocalSpec, Site
from quarterdeck.app import changes
from quarterdeck.app.backup import events, restores
from quarterdeck.app.backup.events import EventsPlan, events_plan
from quarterdeck.app.backup.restores import RestorePlan, time_of
from quarterdeck.backup.chain import BackupMoment, Chain, FullBackup
from quarterdeck.backup.kubernetes.object_changes import MomentDifference
from quarterdeck.engine.workspace import backups, operations
from quarterdeck.engine.workspace.backups import backup_keys, open_backups
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.restores import RestoredDatabase
from quarterdeck.engine.workspace.settings import consent_of
from quarterdeck.errors import (
    Conflict,
    Corrupt,
    InvalidInput,
    NotFound,
    PreconditionFailed,
    QuarterdeckError,
    Unavailable,
)
from quarterdeck.model.epochs import EventsPoint
from quarterdeck.model.memory import Memory


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> MemoryObjects:
    """The backup store of all URLs."""
    made = MemoryObjects()
    for module in (backups, restores):
        monkeypatch.setattr(module, "open_backup_store", lambda *_: made)
    return made


@pytest.fixture
async def lab(tmp_path: Path, objects: MemoryObjects) -> AsyncIterator[Lab]:
    async with AsyncExitStack() as stack:
        yield Lab(tmp_path, stack)


# --- moments --------------------------------------------------------------------------------------------------------


#: Revisions 30 and 40 of epoch 0, and 40 and 50 of epoch 1, an hour apart.
FULLS = tuple(
    full(revision, epoch=epoch, at=AT + timedelta(hours=hours))
    for hours, (epoch, revision) in enumerate(((0, 30), (0, 40), (1, 40), (1, 50)))
)


async def moment(lab: Lab, to: str, fulls: Sequence[FullBackup] = FULLS) -> tuple[int, int]:
    """The epoch and the revision that are meant."""
    home, its = await lab.home("home")
    plane = await home.store.create(new_control_plane("alpha", site="east"))
    opened = replace(await open_backups(home, plane), url=URL)
    found = await its.moment(opened, Chain("uid", fulls=tuple(fulls)), to)
    return found.full.epoch, found.revision


@pytest.mark.parametrize(
    ("to", "meant"),
    [
        ("latest", (1, 50)),
        ("40", (1, 40)),
        ("30", (0, 30)),
        ("2030-01-01T03:00:00Z", (1, 50)),
        ("2030-01-01T01:59:59+00:00", (0, 40)),
        ("2030-01-01T03:30:00+02:00", (0, 40)),
    ],
)
async def test_a_moment_is_the_newest_one_a_revision_or_a_time(
    lab: Lab, to: str, meant: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restores, "datetime", Later)
    assert await moment(lab, to) == meant


class Later(datetime):
    """The day after the backups."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return AT + timedelta(days=1)


async def test_a_revision_is_written_as_it_is_printed(lab: Lab) -> None:
    assert await moment(lab, "1,040", (full(1040),)) == (0, 1040)


@pytest.mark.parametrize(
    ("to", "kind"),
    [
        ("yesterday", InvalidInput),
        ("-3", InvalidInput),
        ("", InvalidInput),
        ("2030-01-01T03:00:00", InvalidInput),
        ("2030-01-03T00:00:00Z", InvalidInput),
        ("2029-12-31T23:59:59Z", NotFound),
        ("45", NotFound),
        ("99", NotFound),
    ],
)
async def test_a_moment_that_no_backup_has_is_one_clear_error(
    lab: Lab, to: str, kind: type[QuarterdeckError], golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restores, "datetime", Later)
    with golden.raises(kind):
        await moment(lab, to)


async def test_without_any_full_backup_there_is_no_moment(lab: Lab, golden: Golden) -> None:
    with golden.raises(NotFound):
        await moment(lab, "latest", ())


# --- consent --------------------------------------------------------------------------------------------------------


PLAN = RestorePlan(
    plane="alpha",
    store=URL,
    folder="alpha/1",
    epoch=1,
    from_epoch=0,
    revision=40,
    seen=52,
    at=AT,
    proof=None,
    losses=NOTHING_LOST,
)
RESTORE = RestoreFrom(store=URL, folder="alpha/1", epoch=0, revision=40)


def test_the_moment_of_events_is_as_old_as_the_one_that_was_asked_for() -> None:
    moment = BackupMoment(full(40), (), 40)
    assert time_of("latest", moment) is None
    assert time_of("1,040", moment) == AT
    assert time_of("2030-01-01T03:30:00+02:00", moment) == AT + timedelta(minutes=90)


async def events_of(lab: Lab, *fulls: FullBackup, at: datetime | None, monkeypatch: pytest.MonkeyPatch) -> EventsPlan:
    home, _ = await lab.home("home")
    made = with_spec(new_control_plane("alpha", site="east"), etcd=Etcd(events=Events(separate=True)))
    plane = await home.store.create(made)

    async def database(*_: object, by_replay: bool) -> RestoredDatabase:
        return RestoredDatabase(Path("events.db"), None)

    monkeypatch.setattr(events, "restored_database", database)
    engine = cast("Any", SimpleNamespace(home=home, upstream=None))
    planned = await events_plan(engine, plane, await open_backups(home, plane), Chain("uid", fulls=fulls), at=at)
    assert planned is not None
    return planned


EVENTS = tuple(each.model_copy(update={"cluster": "events"}) for each in FULLS)


@pytest.mark.parametrize(
    ("at", "restored"),
    [(None, (1, 50)), (AT + timedelta(hours=2.5), (1, 40)), (AT + timedelta(minutes=5), (0, 30)), (AT, (0, 30))],
)
async def test_events_come_back_as_of_their_own_newest_moment_by_then(
    lab: Lab, at: datetime | None, restored: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "datetime", Later)
    planned = await events_of(lab, *EVENTS, at=at, monkeypatch=monkeypatch)
    assert planned.restore == RestoreEvents(epoch=restored[0], revision=restored[1])


async def test_without_a_backup_of_events_they_begin_empty_and_that_is_said(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(events, "datetime", Later)
    planned = await events_of(lab, *FULLS, at=None, monkeypatch=monkeypatch)
    assert planned.restore is None
    golden(planned.words)
    later = await events_of_again(lab, monkeypatch)
    assert later.restore is None, "the first backup of events is newer"


async def events_of_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> EventsPlan:
    home, _ = await lab.home("home")
    await home.store.delete(ControlPlane, "alpha")
    return await events_of(lab, *EVENTS, at=AT - timedelta(seconds=1), monkeypatch=monkeypatch)


async def test_the_consent_names_the_moment_of_events(lab: Lab) -> None:
    home, its = await lab.home("home")
    await home.store.create(new_control_plane("alpha", site="east"))
    moment = BackupMoment(EVENTS[2], (), 40)
    await its.start(replace(PLAN, events=EventsPlan(moment=moment)))
    word = (await home.store.get(ControlPlane, "alpha")).spec.new_epoch
    assert word is not None
    assert word.restore == RESTORE.model_copy(update={"events": RestoreEvents(epoch=1, revision=40)})
    point = consent_of(await home.store.get(ControlPlane, "alpha")).restore
    assert point is not None
    assert point.events == EventsPoint(epoch=1, revision=40)


def test_what_would_be_lost_is_counted_and_never_negative() -> None:
    assert PLAN.lost == 12
    assert replace(PLAN, seen=39).lost == 0
    assert replace(PLAN, epoch=2, seen=1_000_000_040).lost is None


async def test_the_consent_names_the_epoch_and_the_moment(lab: Lab) -> None:
    home, its = await lab.home("home")
    await home.store.create(new_control_plane("alpha", site="east"))
    await its.start(PLAN)
    assert (await home.store.get(ControlPlane, "alpha")).spec.new_epoch == NewEpoch(epoch=1, restore=RESTORE)
    await its.start(PLAN, even_if_others_live=True)
    asked = (await home.store.get(ControlPlane, "alpha")).spec.new_epoch
    assert asked == NewEpoch(epoch=1, even_if_others_live=True, restore=RESTORE)


async def test_nobody_consents_to_an_epoch_that_has_begun_or_is_not_the_next(lab: Lab, golden: Golden) -> None:
    home, its = await lab.home("home")
    plane = await home.store.create(new_control_plane("alpha", site="east"))
    await home.store.update(with_status(plane, memory=memory_to_status(Memory(epoch=1))))
    with golden.raises(Conflict):
        await its.start(PLAN)
    assert (await home.store.get(ControlPlane, "alpha")).spec.new_epoch is None


async def test_a_plane_that_nobody_may_drive_is_not_restored(lab: Lab, golden: Golden) -> None:
    home, its = await lab.home("home")
    plane = await home.store.create(with_spec(new_control_plane("alpha", site="east"), paused=True))
    for refused in (its.start(PLAN), its.plan("alpha")):
        with golden.raises(PreconditionFailed):
            await refused
    kept = plane.metadata.model_copy(update={"finalizers": ("quarterdeck.dev/teardown",)})
    await home.store.update(with_spec(plane, paused=False).model_copy(update={"metadata": kept}))
    await operations.delete(home, "alpha", operations.Requester(name="a test"))
    for refused in (its.start(PLAN), its.plan("alpha")):
        with golden.raises(PreconditionFailed):
            await refused


# --- a plane whose home was lost ------------------------------------------------------------------------------------


async def test_a_plane_comes_back_with_its_keys_and_is_paused_until_its_data_is_restored(lab: Lab) -> None:
    lost, key = await lab.backed_up()
    home, its = await lab.home("home")
    assert await its.adopt("alpha", URL, key=key) == lost.metadata.uid
    plane = await home.store.get(ControlPlane, "alpha")
    assert plane.metadata.uid == lost.metadata.uid
    assert (plane.spec.paused, plane.status.awaits_data, plane.spec.new_epoch) == (True, True, None)
    assert (plane.spec.backup.store, plane.status.observed_generation) == (URL, None)
    assert memory_from_status(plane.status.memory) == memory_from_status(lost.status.memory)
    assert (await home.store.get(PlaneSecrets, "alpha")).plane_uid == lost.metadata.uid
    assert (await home.store.get(ReplicaRevision, lost.status.revision)).spec == template()
    assert set(await identities(home)) >= set(backups.read_identities(key))
    assert (await open_backups(home, plane)).folder == f"alpha/{lost.metadata.uid}"


async def identities(home: Home) -> tuple[str, ...]:
    return (await backup_keys(home.folder)).identities.keys


async def test_the_consent_resumes_it_in_the_same_write_and_no_other_pause(lab: Lab) -> None:
    _, key = await lab.backed_up(paused=True)
    home, its = await lab.home("home")
    await its.adopt("alpha", URL, key=key)
    before = await home.store.get(ControlPlane, "alpha")
    await its.start(PLAN)
    plane = await home.store.get(ControlPlane, "alpha")
    assert (plane.spec.paused, plane.status.awaits_data) == (False, False)
    assert plane.spec.new_epoch == NewEpoch(epoch=1, restore=RESTORE)
    assert plane.metadata.generation == (before.metadata.generation or 0) + 1, "it was one write"
    await changes.set_paused(home, "alpha", paused=True)
    with pytest.raises(PreconditionFailed):
        await its.start(PLAN)


async def test_it_says_why_it_is_paused_and_that_resuming_it_keeps_the_data_on_its_machines(
    lab: Lab, golden: Golden
) -> None:
    _, key = await lab.backed_up()
    home, its = await lab.home("home")
    await its.adopt("alpha", URL, key=key)
    golden(operations.why_paused(await home.store.get(ControlPlane, "alpha"), AT))
    await changes.set_paused(home, "alpha", paused=False)
    plane = await home.store.get(ControlPlane, "alpha")
    assert (plane.spec.paused, plane.status.awaits_data) == (False, False)


async def test_a_plane_that_waits_for_its_data_is_planned_again_after_a_failure(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, key = await lab.backed_up()
    _, its = await lab.home("home")
    await its.adopt("alpha", URL, key=key)
    fails = [True]

    async def restored_database(*_: object, by_replay: bool) -> RestoredDatabase:
        if fails.pop():
            raise Unavailable("restoring a database", "the disk is full", "make room")
        return RestoredDatabase(Path("db"), None)

    monkeypatch.setattr(restores, "restored_database", restored_database)
    with pytest.raises(Unavailable):
        await its.plan("alpha")
    fails.append(False)
    assert await its.adopt("alpha", URL, key=key) == lost.metadata.uid, "the same command continues"
    plan = await its.plan("alpha")
    assert (plan.epoch, plan.from_epoch, plan.revision, plan.seen, plan.at) == (1, 0, 40, 40, AT)
    assert (plan.store, plan.folder) == (URL, f"alpha/{lost.metadata.uid}")


async def test_a_plan_compares_the_objects_and_an_error_of_that_prevents_no_restore(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = await lab.backed_up()
    _, its = await lab.home("home")
    await its.adopt("alpha", URL, key=key)

    async def restored_database(*_: object, by_replay: bool) -> RestoredDatabase:
        return RestoredDatabase(Path("db"), None)

    async def damaged(*_: object) -> MomentDifference:
        raise Corrupt("reading data/9", "its content has changed")

    monkeypatch.setattr(restores, "restored_database", restored_database)
    newest = (await its.plan("alpha")).losses
    assert isinstance(newest, MomentDifference)
    assert (newest.before, newest.changes) == (newest.after, ())
    monkeypatch.setattr(restores, "moment_difference", damaged)
    assert isinstance((await its.plan("alpha")).losses, Corrupt)


async def test_the_same_command_goes_on_until_the_epoch_has_begun(lab: Lab, golden: Golden) -> None:
    lost, key = await lab.backed_up()
    home, its = await lab.home("home")
    await its.adopt("alpha", URL, key=key)
    await its.start(PLAN)
    assert await its.adopt("alpha", URL, key=key) == lost.metadata.uid, "consented, and not begun"
    plane = await home.store.get(ControlPlane, "alpha")
    assert not plane.spec.paused
    await home.store.update(with_status(plane, memory=memory_to_status(Memory(epoch=1))))
    with golden.raises(Conflict):
        await its.adopt("alpha", URL, key=key)


async def test_what_an_interrupted_attempt_has_stored_is_used(lab: Lab) -> None:
    lost, key = await lab.backed_up()
    home, its = await lab.home("home")
    create = home.store.create

    async def dies(resource: Any, **given: Any) -> Any:
        if isinstance(resource, ControlPlane):
            raise Unavailable("storing", "the process is killed")
        return await create(resource, **given)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Unavailable):
        patch.setattr(home.store, "create", dies)
        await its.adopt("alpha", URL, key=key)
    await its.adopt("alpha", URL, key=key)
    assert (await home.store.get(ControlPlane, "alpha")).metadata.uid == lost.metadata.uid


async def test_keys_that_a_deleted_plane_of_that_name_left_are_not_taken_for_its_own(lab: Lab) -> None:
    lost, key = await lab.backed_up()
    home, its = await lab.home("home")
    stranger = await home.store.create(new_control_plane("alpha", site="east"))
    await store_keys(home, stranger)
    await home.store.delete(ControlPlane, "alpha")
    await its.adopt("alpha", URL, key=key)
    assert (await home.store.get(PlaneSecrets, "alpha")).plane_uid == lost.metadata.uid


async def test_sites_that_exist_are_kept_and_those_that_are_missing_come_back(lab: Lab) -> None:
    _, key = await lab.backed_up()
    home, its = await lab.home("home")
    east = await home.store.get(Site, "east")
    await home.store.update(east.model_copy(update={"spec": cordoned(east, "grace")}))
    await its.adopt("alpha", URL, key=key)
    kept = (await home.store.get(Site, "east")).spec
    assert isinstance(kept, LocalSpec)
    assert [each.by for each in kept.cordons] == ["grace"]
    other, again = await lab.home("other")
    await other.store.delete(Site, "east")
    await again.adopt("alpha", URL, key=key)
    back = (await other.store.get(Site, "east")).spec
    assert isinstance(back, LocalSpec)
    assert [each.by for each in back.cordons] == ["ada"]


async def test_a_plane_that_the_home_has_is_not_replaced(lab: Lab, golden: Golden) -> None:
    _, key = await lab.backed_up()
    home, its = await lab.home("home")
    stranger = await home.store.create(new_control_plane("alpha", site="west"))
    with golden.raises(Conflict):
        await its.adopt("alpha", URL, key=key)
    await home.store.update(with_status(with_spec(stranger, paused=True), awaits_data=True))
    with golden.raises(Conflict):
        await its.adopt("alpha", URL, key=key)
    assert (await home.store.get(ControlPlane, "alpha")).spec.placement.site == "west"


async def test_a_backup_that_cannot_bring_it_back_changes_nothing(lab: Lab, tmp_path: Path, golden: Golden) -> None:
    _, key = await lab.backed_up()
    home, its = await lab.home("home")
    wrong = tmp_path / "wrong.key"
    wrong.write_text(f"{x25519.Identity.generate()}\n")
    golden.hide(r"alpha/[0-9a-f-]+/data/[0-9a-f]+", "OBJECT")
    with golden.raises(PreconditionFailed) as seen:
        await its.adopt("alpha", URL, key=wrong)
    assert "AGE-SECRET" not in str(seen.value)
    with golden.raises(NotFound):
        await its.adopt("beta", URL, key=key)
    assert await home.store.list(ControlPlane) == ()
    assert len(await identities(home)) == 1, "a key that opens nothing is not kept"


async def test_a_backup_of_data_alone_is_refused(lab: Lab, golden: Golden) -> None:
    _, key = await lab.backed_up(whole=False)
    home, its = await lab.home("home")
    with golden.raises(PreconditionFailed):
        await its.adopt("alpha", URL, key=key)
    assert await home.store.list(ControlPlane) == ()
