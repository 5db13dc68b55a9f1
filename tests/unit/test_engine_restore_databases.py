"""Databases that are built to restore a plane: once, whole or not at all, and deleted when they are not needed."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from support.databases import AT
from support.resources import with_status

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.backup.chain import Chain, FullBackup, ObjectReference
from quarterdeck.engine.workspace import restores
from quarterdeck.engine.workspace.backups import OpenBackups, scratch_folder
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.restores import forget_restored, restored_database
from quarterdeck.errors import Corrupt, NotFound
from quarterdeck.model.clusters import Cluster, ClusterMemory
from quarterdeck.model.epochs import BackupOrigin, Seed
from quarterdeck.model.memory import Memory

ORIGIN = BackupOrigin(store="file:///backups", folder="alpha/1", epoch=0)


class Builds:
    """Builds that write ``whole`` instead of a database; ``fails`` is what the proof of the next one raises."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.revisions: list[int] = []
        self.replayed: list[bool] = []
        self.fails: BaseException | None = None
        reference = ObjectReference(name="data/1", sha256="", size_bytes=1)
        full = FullBackup(cluster="main", epoch=0, revision=40, at=AT, etcd_version="3.6.16", stored=reference)
        events = full.model_copy(update={"cluster": "events", "epoch": 2})
        self._chain = Chain("1", fulls=(full, events))
        patch.setattr(restores, "open_backups_at", self._opened)
        patch.setattr(restores, "etcd_programs", self._programs)
        patch.setattr(restores, "proven", self._proven)
        patch.setattr(restores, "revive", lambda path: path.write_text(path.read_text() + ", revived"))

    async def _opened(self, _: Home, plane: ControlPlane, url: str, folder: str) -> OpenBackups:
        assert (plane.name, url, folder) == ("alpha", ORIGIN.store, ORIGIN.folder)
        return cast("OpenBackups", self)

    @property
    def chains(self) -> Builds:
        return self

    async def read(self) -> Chain:
        return self._chain

    async def _programs(self, *_: object) -> None: ...

    async def _proven(self, _: object, __: object, moment: Any, target: Path, ___: object, *, by_replay: bool) -> str:
        self.revisions.append(moment.revision)
        self.replayed.append(by_replay)
        target.write_text("whole")
        if self.fails is not None:
            raise self.fails
        return "the proof"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Builds:
    return Builds(monkeypatch)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    made = await Home.open(tmp_path / "home")
    await made.store.create(new_control_plane("alpha", site="east"))
    yield made
    await made.close()


async def built(home: Home, revision: int = 40, *, by_replay: bool = False) -> restores.RestoredDatabase:
    plane = await home.store.get(ControlPlane, "alpha")
    return await restored_database(home, cast("Any", None), plane, ORIGIN, revision, by_replay=by_replay)


def left(home: Home) -> list[Path]:
    return sorted(scratch_folder(home.folder, "alpha").iterdir())


async def test_a_database_is_built_once_and_revived_in_a_folder_of_this_user_alone(home: Home, builds: Builds) -> None:
    first, second = await built(home), await built(home)
    assert first.path == second.path
    assert (first.proof, second.proof) == ("the proof", None)
    assert first.path.read_text() == "whole, revived"
    assert builds.revisions == [40]
    assert first.path.parent.stat().st_mode & 0o777 == 0o700


async def test_a_build_that_was_killed_or_not_proven_is_never_used(home: Home, builds: Builds) -> None:
    for error in (KeyboardInterrupt(), Corrupt("checking a database", "a hash differs", "restore another moment")):
        builds.fails = error
        with pytest.raises(type(error)):
            await built(home)
        assert not any(each.suffix == ".db" for each in left(home))
    builds.fails = None
    found = await built(home)
    assert found.path.read_text() == "whole, revived"
    assert left(home) == [found.path]


async def test_a_revision_that_no_backup_has_builds_nothing(home: Home, builds: Builds) -> None:
    with pytest.raises(NotFound):
        await built(home, 41)
    assert builds.revisions == []


async def test_the_database_of_events_is_another_one_and_deleted_with_that_of_the_epoch(
    home: Home, builds: Builds
) -> None:
    plane, origin = await home.store.get(ControlPlane, "alpha"), replace(ORIGIN, epoch=2)
    events = await restored_database(home, cast("Any", None), plane, origin, 40, Cluster.EVENTS)
    main = await built(home)
    assert events.path != main.path
    seed = Seed(origin=origin, founder="east-4", revision=40, seen=0)
    for restored, kept in ((False, [events.path]), (True, [])):
        clusters = ClusterMemory(epoch=3, seed=replace(seed, restored=restored))
        memory = memory_to_status(Memory(epoch=1, seed=SEED, events=clusters))
        await forget_restored(home, with_status(plane, memory=memory))
        assert left(home) == kept


async def forget(home: Home, seed: Seed | None) -> None:
    plane = await home.store.get(ControlPlane, "alpha")
    await forget_restored(home, with_status(plane, memory=memory_to_status(Memory(epoch=1, seed=seed))))


SEED = Seed(origin=ORIGIN, founder="east-4", revision=40, seen=50, restored=True)


async def test_the_database_of_an_epoch_is_deleted_once_its_founder_has_it(home: Home, builds: Builds) -> None:
    found = await built(home)
    await forget(home, None)
    await forget(home, Seed(origin=ORIGIN, founder="east-4", revision=40, seen=50))
    await forget(home, Seed(origin=ORIGIN, founder="east-4", revision=39, seen=50, restored=True))
    assert left(home) == [found.path], "it may be about to be used"
    await forget(home, SEED)
    assert left(home) == []
    await built(home)
    assert builds.revisions == [40, 40]


async def test_what_nothing_was_restored_from_is_deleted_after_a_day(home: Home, builds: Builds) -> None:
    found = await built(home)
    broken = found.path.with_suffix(".built")
    broken.write_text("half")
    spool = found.path.with_name("spool-main")
    spool.write_text("changes")
    yesterday = time.time() - 25 * 3600
    for each in (broken, spool):
        os.utime(each, (yesterday, yesterday))
    await forget(home, None)
    assert left(home) == [found.path, spool]
    os.utime(found.path, (yesterday, yesterday))
    await forget(home, None)
    assert left(home) == [spool]


async def test_where_nothing_was_ever_built_there_is_nothing_to_forget(home: Home) -> None:
    await forget(home, SEED)


async def test_a_replay_is_built_in_place_of_the_database_that_there_is(home: Home, builds: Builds) -> None:
    first = await built(home)
    first.path.write_text("refused by etcd")
    second = await built(home, by_replay=True)
    assert (second.path, second.proof, builds.replayed) == (first.path, "the proof", [False, True])
    assert second.path.read_text() != "refused by etcd"
    assert (await built(home)).proof is None
    assert left(home) == [first.path]
