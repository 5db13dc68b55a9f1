"""How the objects of a plane differ between two moments of its backup: databases that exist only meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from support.databases import AT, IDENTITIES, StoredMoment, database, history, stored_moment

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.app.backup import objects
from quarterdeck.app.backup.objects import BackedUpObjects
from quarterdeck.app.backup.restores import Restores
from quarterdeck.backup.build import BuiltDatabase, build
from quarterdeck.backup.chain import BackupMoment, Chain
from quarterdeck.backup.contents import DifferenceKind
from quarterdeck.backup.kubernetes.object_changes import MomentDifference
from quarterdeck.backup.records import Increment
from quarterdeck.engine.workspace import scratch_moments
from quarterdeck.engine.workspace.backups import OpenBackups, scratch_folder
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.scratch_moments import moment_difference, scratch_space
from quarterdeck.errors import Corrupt

WRITES: list[Mapping[str, bytes | None]] = [
    {"/registry/configmaps/default/one": b"one", "/registry/minions/node-1": b"node"},
    {"/registry/configmaps/default/two": b"two", "/registry/leases/kube-node-lease/node-1": b"1"},
    {"/registry/configmaps/default/one": None},
    {"/registry/leases/kube-node-lease/node-1": b"2", "/registry/tests.example/widgets/default/w": b"w"},
    {"/registry/minions/node-1": b"node again", "/registry/masterleases/10.0.0.1": b"x", "/registry/odd": b"y"},
]
LAST = len(WRITES) + 1
FULL = 3


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    made = await Home.open(tmp_path / "home")
    yield made
    await made.close()


@pytest.fixture
async def made(tmp_path: Path) -> StoredMoment:
    """A full backup of revision 3, and the increments up to the newest moment."""
    changes = history(WRITES)
    full = database(tmp_path / "full", changes[: FULL - 1])
    steps = [Increment((each,)) for each in changes[FULL - 1 :]]
    return await stored_moment(full, steps, revision=LAST, begins=FULL)


class Backups:
    """Open backups that have one moment, and the databases that were built of it."""

    def __init__(self, made: StoredMoment, patch: pytest.MonkeyPatch) -> None:
        self.store, self.keys, self.identities = made.store, self, IDENTITIES
        self.url, self.chains = "s3://planes", self
        self.moment = made.moment
        self.built: list[tuple[str, int]] = []
        self.fails: BaseException | None = None
        patch.setattr(scratch_moments, "build", self._build)

    async def read(self) -> Chain:
        return Chain("uid", fulls=(self.moment.full,), increments=self.moment.increments)

    async def _build(self, store: Any, moment: BackupMoment, identities: Any, target: Path) -> BuiltDatabase:
        self.built.append((target.name, moment.revision))
        assert target.parent.stat().st_mode & 0o777 == 0o700
        done = await build(store, moment, identities, target)
        if self.fails is not None:
            raise self.fails
        return done

    def at(self, revision: int) -> BackupMoment:
        steps = tuple(each for each in self.moment.increments if each.first <= revision)
        return replace(self.moment, increments=steps, revision=revision)


@pytest.fixture
def backups(made: StoredMoment, monkeypatch: pytest.MonkeyPatch) -> Backups:
    return Backups(made, monkeypatch)


async def difference(home: Home, backups: Backups, before: BackupMoment, after: BackupMoment) -> MomentDifference:
    return await moment_difference(home, "alpha", cast("OpenBackups", backups), before, after)


def changes_of(found: MomentDifference, *, churn: bool = False) -> list[tuple[str, str]]:
    return [(each.kind.value, str(each.path)) for each in found.changes if each.churn is churn]


def left(home: Home) -> Sequence[Path]:
    return sorted(scratch_folder(home.folder, "alpha").glob("*"))


async def test_objects_are_told_from_records_that_programs_write_all_the_time(home: Home, backups: Backups) -> None:
    found = await difference(home, backups, backups.at(FULL), backups.at(LAST))
    assert changes_of(found) == [
        ("removed", "configmaps default/one"),
        ("changed", "nodes node-1"),
        ("added", "widgets.tests.example default/w"),
    ]
    assert changes_of(found, churn=True) == [
        ("changed", "leases kube-node-lease/node-1"),
        ("added", "masterleases 10.0.0.1"),
        ("added", "keys /registry/odd"),
    ]
    assert ((found.before.revision, found.after.revision), found.after.at) == ((FULL, LAST), AT)
    assert left(home) == []


async def test_the_later_moment_may_come_first(home: Home, backups: Backups) -> None:
    found = await difference(home, backups, backups.at(LAST), backups.at(FULL + 1))
    assert ("removed", "widgets.tests.example default/w") in changes_of(found)


async def test_moments_of_one_full_backup_are_built_once_and_others_each(
    home: Home, backups: Backups, tmp_path: Path
) -> None:
    one = await difference(home, backups, backups.at(FULL), backups.at(LAST))
    assert backups.built == [("both.db", LAST)]
    backups.built.clear()
    whole = await stored_moment(database(tmp_path / "again", history(WRITES)), (), revision=LAST, begins=LAST)
    name = "data/another"
    backups.store.objects[name] = whole.store.objects["data/full"]
    stored = whole.moment.full.stored.model_copy(update={"name": name})
    later = replace(whole.moment, full=whole.moment.full.model_copy(update={"stored": stored}))
    other = await difference(home, backups, backups.at(FULL), later)
    assert backups.built == [("before.db", FULL), ("after.db", LAST)]
    assert other.changes == one.changes


async def test_a_moment_does_not_differ_from_itself_and_is_not_built(home: Home, backups: Backups) -> None:
    found = await difference(home, backups, backups.at(LAST), backups.at(LAST))
    assert (found.changes, backups.built) == ((), [])


async def test_a_pod_that_was_created_again_is_a_new_one(home: Home, tmp_path: Path, backups: Backups) -> None:
    pods: list[Mapping[str, bytes | None]] = [
        {"/registry/pods/default/web-0": b"old", "/registry/pods/default/gone": b"x"},
        {"/registry/pods/default/web-0": None, "/registry/pods/default/gone": None},
        {"/registry/pods/default/web-0": b"new", "/registry/pods/default/web-1": b"new"},
    ]
    changes = history(pods)
    made = await stored_moment(
        database(tmp_path / "pods", changes[:1]), [Increment((each,)) for each in changes[1:]], revision=4, begins=2
    )
    backups.store.objects.update(made.store.objects)
    found = await difference(home, backups, replace(made.moment, increments=(), revision=2), made.moment)
    assert {each.path.name: (each.kind, each.new_pod) for each in found.changes} == {
        "gone": (DifferenceKind.REMOVED, False),
        "web-0": (DifferenceKind.CHANGED, True),
        "web-1": (DifferenceKind.ADDED, True),
    }


async def test_nothing_is_left_of_a_comparison_that_fails_or_is_cut_off(home: Home, backups: Backups) -> None:
    for error in (Corrupt("building", "a hash differs"), asyncio.CancelledError()):
        backups.fails = error
        with pytest.raises(type(error)):
            await difference(home, backups, backups.at(FULL), backups.at(LAST))
        assert [*scratch_folder(home.folder, "alpha").iterdir()] == []


async def test_what_a_killed_process_left_is_removed_by_the_next_one_and_what_another_one_uses_is_not(
    home: Home,
) -> None:
    parent = scratch_folder(home.folder, "alpha")
    async with scratch_space(home, "alpha", "looking") as used:
        (used / "both.db").write_bytes(b"secrets")
        for name in (".objects-dead", ".objects-dead.made"):
            if name.endswith("made"):
                (parent / name).touch()
            else:
                (parent / name).mkdir()
                (parent / name / "both.db").write_bytes(b"secrets")
        async with scratch_space(home, "alpha", "looking"):
            assert not (parent / ".objects-dead").exists()
            assert (used / "both.db").exists()
    assert [*parent.iterdir()] == []


async def test_moments_are_named_as_for_a_restore(
    home: Home, backups: Backups, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_backups(*_: object) -> Backups:
        return backups

    monkeypatch.setattr(objects, "open_backups", open_backups)
    await home.store.create(new_control_plane("alpha", site="east"))
    its = BackedUpObjects(home, cast("Any", None), Restores(home, cast("Any", None)))
    found = await its.diff("alpha", at="4", to="5")
    assert (found.before.revision, found.after.revision) == (4, 5)
    assert (await its.diff("alpha", at="4")).after.revision == LAST
