"""The keys of a home's backups, and the options of their stores: made once, for their owner alone, and never shown."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from fakes.objects import MemoryObjects
from pyrage import x25519
from support.golden import Golden
from support.resources import with_spec

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.engine.workspace import backups
from quarterdeck.engine.workspace.backups import (
    add_identities,
    backup_keys,
    default_store,
    key_file,
    open_backups,
    read_identities,
    read_options,
)
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import InvalidInput, PreconditionFailed

SECRET = "hunter2"


async def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    keys = await backup_keys(tmp_path)
    assert keys.path == key_file(tmp_path)
    assert keys.path.stat().st_mode & 0o777 == 0o600
    assert keys.recipient == str(x25519.Identity.from_str(keys.own).to_public())
    assert await backup_keys(tmp_path) == keys
    assert [each.name for each in tmp_path.iterdir()] == [keys.path.name], "nothing is left beside it"
    assert keys.own not in repr(keys)


async def test_of_several_that_make_it_at_the_same_time_all_get_the_same_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, generate = Barrier(4), x25519.Identity.generate

    class Together:
        """All have seen that there is no key before any of them makes one."""

        @staticmethod
        def generate() -> x25519.Identity:
            at_once.wait(timeout=30)
            return generate()

        from_str = staticmethod(x25519.Identity.from_str)

    monkeypatch.setattr(backups, "x25519", type("Keys", (), {"Identity": Together}))
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: asyncio.run(backup_keys(tmp_path)).own, range(4)))
    assert len(set(made)) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["backup.key"]


@pytest.mark.parametrize("content", ["", "nothing\n", "AGE-SECRET-KEY-1HUNTER2\n"])
async def test_a_damaged_key_file_is_refused_stays_and_is_not_shown(
    tmp_path: Path, content: str, golden: Golden
) -> None:
    key_file(tmp_path).write_text(content)
    key_file(tmp_path).chmod(0o600)
    with golden.raises(PreconditionFailed) as seen:
        await backup_keys(tmp_path)
    assert "HUNTER2" not in str(seen.value)
    assert key_file(tmp_path).read_text() == content


async def test_a_key_that_others_may_read_is_not_used(tmp_path: Path, golden: Golden) -> None:
    (await backup_keys(tmp_path)).path.chmod(0o640)
    with golden.raises(PreconditionFailed):
        await backup_keys(tmp_path)


async def test_no_file_of_keys_is_one_clear_error(tmp_path: Path, golden: Golden) -> None:
    with golden.raises(PreconditionFailed):
        read_identities(tmp_path / "backup.key")


async def test_other_keys_are_added_once_behind_the_homes_own(tmp_path: Path) -> None:
    first = await backup_keys(tmp_path)
    other = str(x25519.Identity.generate())
    for _ in range(2):
        await add_identities(tmp_path, (other, first.own))
    keys = await backup_keys(tmp_path)
    assert (keys.own, keys.others) == (first.own, (other,))
    assert keys.identities.keys == (first.own, other)
    assert keys.path.stat().st_mode & 0o777 == 0o600


def test_options_are_lines_of_name_and_value(tmp_path: Path) -> None:
    (tmp_path / "options").write_text(f"# of the bucket\n\nregion = eu-1\nsecret_access_key={SECRET}=\n")
    assert read_options(tmp_path / "options") == {"region": "eu-1", "secret_access_key": f"{SECRET}="}


@pytest.mark.parametrize("content", [f"region=eu-1\n{SECRET}\n", f"={SECRET}\n", f"key={SECRET}\xff\n"])
def test_options_that_cannot_be_read_are_an_error_that_shows_no_value(
    tmp_path: Path, content: str, golden: Golden
) -> None:
    (tmp_path / "options").write_bytes(content.encode("latin-1"))
    with golden.raises(InvalidInput) as seen:
        read_options(tmp_path / "options")
    assert SECRET not in str(seen.value)


def test_an_options_file_that_is_missing_is_an_error_of_the_users(tmp_path: Path, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        read_options(tmp_path / "options")


async def test_without_another_place_backups_are_in_a_folder_of_the_home(tmp_path: Path) -> None:
    home = await Home.open(tmp_path / "home")
    try:
        plane = await home.store.create(new_control_plane("alpha", site="east"))
        found = await open_backups(home, plane)
    finally:
        await home.close()
    assert found.url == default_store(tmp_path / "home") == (tmp_path / "home" / "backups").as_uri()
    assert (tmp_path / "home" / "backups").stat().st_mode & 0o777 == 0o700
    assert found.folder == f"alpha/{plane.metadata.uid}"
    assert found.deposit.recipients.keys == (found.keys.recipient,)


async def test_another_place_and_other_recipients_are_those_of_the_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, object]] = []

    def opened(url: str, options: object) -> MemoryObjects:
        asked.append((url, options))
        return MemoryObjects()

    monkeypatch.setattr(backups, "open_backup_store", opened)
    (tmp_path / "options").write_text("region=eu-1\n")
    recipient = str(x25519.Identity.generate().to_public())
    home = await Home.open(tmp_path / "home")
    try:
        plane = await home.store.create(new_control_plane("alpha", site="east"))
        changes = {"store": "s3://planes", "options_file": tmp_path / "options", "recipients": (recipient,)}
        backup = plane.spec.backup.model_copy(update=changes)
        found = await open_backups(home, with_spec(plane, backup=backup))
    finally:
        await home.close()
    assert asked == [("s3://planes", {"region": "eu-1"})]
    assert found.deposit.recipients.keys == (found.keys.recipient, recipient)
    assert not (tmp_path / "home" / "backups").exists()
