"""The SQLite file: private, never half made, and left as it is when something is wrong with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.golden import Golden

from quarterdeck.api.base import Metadata
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.errors import Corrupt, Unavailable
from quarterdeck.stores import sqlite_file
from quarterdeck.stores.port import JournalEntry
from quarterdeck.stores.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "store.db"


@pytest.fixture
def umask() -> Iterator[None]:
    """A user whose files are open to everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def contents(path: Path) -> dict[str, bytes]:
    """All that is kept: the file and its log, if there is anything in it (the -shm is only the log's index)."""
    found = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    return {
        name: content for name, content in found.items() if name.endswith(".db") or (name.endswith("-wal") and content)
    }


async def filled(path: Path, planes: int = 1) -> None:
    async with SqliteStore(path) as store:
        for number in range(planes):
            await store.create(new_control_plane(f"plane-{number}", site="east"))


@pytest.mark.usefixtures("umask")
async def test_nobody_else_can_read_the_store_not_even_its_log(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.create(PlaneSecrets(metadata=Metadata(name="a"), data=SecretStr("key")))
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm", "store.db-checked"), 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_store_that_was_copied_with_open_rights_is_closed_again(path: Path) -> None:
    await filled(path)
    path.chmod(0o644)
    await filled(path, planes=0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_deleted_secret_is_nowhere_in_the_files(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.create(PlaneSecrets(metadata=Metadata(name="a"), data=SecretStr("PRIVATE" * 9)))
        await store.delete(PlaneSecrets, "a")
    assert not any(b"PRIVATE" in content for content in contents(path).values())


async def test_what_was_written_is_there_when_the_store_is_opened_again(path: Path) -> None:
    await filled(path)
    async with SqliteStore(path) as store:
        assert [plane.name for plane in await store.list(ControlPlane)] == ["plane-0"]


async def test_of_many_that_open_a_new_store_at_once_all_get_the_same(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: SqliteStore(path), range(8)))
    entry = JournalEntry(plane="a", time=0.0, kind="k", text="t")
    await asyncio.gather(*(store.append(entry) for store in stores))
    assert len(await stores[0].journal("a")) == 8
    for store in stores:
        await store.close()
    assert {each.name for each in path.parent.iterdir()} == {"store.db", "store.db-checked"}


async def test_all_of_a_store_is_looked_at_once_a_day_and_once_a_boot(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    connect = sqlite_file._connected

    def connected(at: Path, mode: str, busy_timeout: float) -> sqlite3.Connection:
        connection = connect(at, mode, busy_timeout)
        connection.set_trace_callback(count)
        return connection

    def count(statement: str) -> None:
        nonlocal looked
        looked += "quick_check" in statement

    monkeypatch.setattr(sqlite_file, "_connected", connected)
    await filled(path)
    for _ in range(3):
        SqliteStore(path)._db.close()
    assert looked == 1
    note = path.with_name("store.db-checked")
    os.utime(note, (time.time() - 90_000, time.time() - 90_000))
    SqliteStore(path)._db.close()
    SqliteStore(path)._db.close()
    assert looked == 2
    note.write_text("another boot")
    SqliteStore(path)._db.close()
    assert looked == 3


@pytest.mark.parametrize("first", [4096, -8192], ids=["all-tables", "one-page"])
async def test_a_damaged_store_is_refused_and_left_as_it_is(path: Path, first: int, golden: Golden) -> None:
    await filled(path, planes=50)
    content = bytearray(path.read_bytes())
    start = first % len(content)
    content[start:-4096] = b"\xa5" * (len(content) - 4096 - start)
    path.write_bytes(content)
    path.with_name("store.db-checked").unlink()  # it is a day later
    before = contents(path)
    golden.hide(r"(?s)\(\*\*\* in .*?\)\)?; put", "(what SQLite says); put")
    with golden.raises(Corrupt):
        SqliteStore(path)
    assert contents(path) == before


async def test_what_was_damaged_since_the_last_look_shows_when_it_is_read(path: Path, golden: Golden) -> None:
    await filled(path, planes=50)
    content = bytearray(path.read_bytes())
    content[-8192:-4096] = b"\xa5" * 4096
    path.write_bytes(content)
    async with SqliteStore(path) as store:
        with golden.raises(Corrupt):
            await store.list(ControlPlane)


@pytest.mark.parametrize("content", [b"", b"kind: Site\n" * 100], ids=["empty", "text"])
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(path: Path, content: bytes, golden: Golden) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with golden.raises(Corrupt):
        SqliteStore(path)
    assert contents(path) == {"store.db": content}


async def test_a_store_that_was_cut_short_is_refused(path: Path) -> None:
    await filled(path, planes=50)
    os.truncate(path, path.stat().st_size // 2 + 100)
    path.with_name("store.db-checked").unlink()  # it is a day later
    with pytest.raises(Corrupt, match="damaged"):
        SqliteStore(path)


def test_somebody_elses_database_is_refused_and_left_as_it_is(path: Path, golden: Golden) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    before = contents(path)
    with golden.raises(Corrupt):
        SqliteStore(path)
    assert contents(path) == before


async def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(path: Path, golden: Golden) -> None:
    await filled(path)
    newer = sqlite3.connect(path)
    newer.execute("UPDATE schema_version SET version = 2")
    newer.commit()
    # As after a crash: what the newer version wrote is still in the log only.
    crashed = path.parent.parent / "crashed"
    shutil.copytree(path.parent, crashed)
    newer.close()
    for each in (path, crashed / "store.db"):
        before = contents(each)
        with golden.raises(Corrupt):
            SqliteStore(each)
        assert contents(each) == before


def add_owner(db: sqlite3.Connection) -> None:
    """A made-up migration: a table more, and a field more in each document."""
    db.execute("CREATE TABLE owners (name TEXT PRIMARY KEY)")
    db.execute("UPDATE resources SET body = json_set(body, '$.metadata.labels.owner', 'nobody')")


def fails(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE more (name TEXT PRIMARY KEY)")
    raise RuntimeError("killed")


async def test_a_store_of_an_older_format_is_migrated_step_by_step_when_it_is_opened(
    path: Path, golden: Golden
) -> None:
    await filled(path)
    steps: list[int] = []
    migrations = {1: add_owner, 2: lambda _: steps.append(2), 3: lambda _: steps.append(3)}
    for _ in range(2):
        async with SqliteStore(path, migrations=migrations) as store:
            plane = await store.get(ControlPlane, "plane-0")
            assert plane.metadata.labels == {"owner": "nobody"}
            await store.update(plane)
    assert steps == [2, 3], "once"
    with golden.raises(Corrupt):
        SqliteStore(path)


async def test_a_migration_that_is_cut_short_leaves_the_store_as_it_was(path: Path) -> None:
    await filled(path)
    before = dumped(path)
    with pytest.raises(RuntimeError, match="killed"):
        SqliteStore(path, migrations={1: add_owner, 2: fails})
    assert dumped(path) == before
    async with SqliteStore(path) as store:
        assert (await store.get(ControlPlane, "plane-0")).metadata.labels == {}


async def test_a_process_of_an_older_version_writes_nothing_more_once_the_store_was_migrated(
    path: Path, golden: Golden
) -> None:
    await filled(path)
    async with SqliteStore(path) as old:
        plane = await old.get(ControlPlane, "plane-0")
        async with SqliteStore(path, migrations={1: add_owner}):
            before = dumped(path)
        with golden.raises(Corrupt):
            await old.update(plane)
        assert dumped(path) == before


async def test_a_store_from_before_the_first_migration_is_refused_and_left_as_it_is(path: Path, golden: Golden) -> None:
    await filled(path)
    before = dumped(path)
    with golden.raises(Corrupt):
        SqliteStore(path, migrations={2: add_owner})
    assert dumped(path) == before


def dumped(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return [*db.iterdump()]


async def test_a_resource_that_another_version_wrote_otherwise_is_refused_without_telling_it(
    path: Path, golden: Golden
) -> None:
    await filled(path)
    db = sqlite3.connect(path)
    db.execute('UPDATE resources SET body = replace(body, \'"site"\', \'"place":"KEY","sites"\')')
    db.commit()
    db.close()
    async with SqliteStore(path) as store:
        with golden.raises(Corrupt) as caught:
            await store.get(ControlPlane, "plane-0")
    assert "KEY" not in str(caught.value)


async def test_a_full_disk_is_told_and_loses_nothing(path: Path, golden: Golden) -> None:
    async with SqliteStore(path) as store:
        await store.create(new_control_plane("kept", site="east"))
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count={pages}")
        entry = JournalEntry(plane="a", time=0.0, kind="k", text="x" * 100_000)
        with golden.raises(Unavailable):
            await store.append(entry)
        assert await store.journal("a") == ()
        assert (await store.get(ControlPlane, "kept")).name == "kept"
        store._db.execute("PRAGMA max_page_count=1000000")
        await store.append(entry)


async def test_a_store_that_cannot_be_written_says_so(path: Path, golden: Golden) -> None:
    async with SqliteStore(path) as store:
        store._db.execute("PRAGMA query_only=ON")
        with golden.raises(Unavailable):
            await store.create(new_control_plane("a", site="east"))


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "file").touch()
    with golden.raises(Unavailable):
        SqliteStore(tmp_path / "file" / "store.db")


async def test_a_store_that_somebody_keeps_busy_says_so_and_goes_on_afterwards(path: Path, golden: Golden) -> None:
    async with SqliteStore(path, busy_timeout=0.05) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with golden.raises(Unavailable):
            await store.create(new_control_plane("a", site="east"))
        other.execute("ROLLBACK")
        other.close()
        await store.create(new_control_plane("a", site="east"))


async def test_a_slow_store_does_not_hold_up_the_event_loop(path: Path) -> None:
    async with SqliteStore(path, busy_timeout=30.0) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(store.create(new_control_plane("a", site="east")))
        for _ in range(100):
            await asyncio.sleep(0)  # the loop turns while the write waits
        assert not writing.done()
        other.execute("ROLLBACK")
        other.close()
        assert (await writing).name == "a"
