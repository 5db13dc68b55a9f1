"""Sealed keys: a copy of the store's file alone opens no plane."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.golden import Golden

from quarterdeck.api.base import Metadata
from quarterdeck.api.belongings import AddonContent, AddonManifests, PlaneSecrets, manifests_of
from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.api.site import Site, default_sites
from quarterdeck.errors import Corrupt, PreconditionFailed
from quarterdeck.stores.key_seal import Key, random_key, read_key, reseal
from quarterdeck.stores.sqlite import SqliteStore

SECRET = "-----BEGIN PRIVATE KEY----- of the plane"


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key costs 0.1 s on purpose; each seal says itself what it cost."""
    monkeypatch.setattr("quarterdeck.stores.key_seal._COST", {"n": 2**8, "r": 8, "p": 1})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "quarterdeck.db"


@pytest.fixture
def new_key(tmp_path: Path) -> Callable[[str], Key]:
    def made(name: str) -> Key:
        path = tmp_path / name
        path.write_bytes(random_key())
        path.chmod(0o600)
        return read_key(path)

    return made


async def put(store: SqliteStore, name: str) -> None:
    await store.create(PlaneSecrets(metadata=Metadata(name=name), data=SecretStr(SECRET)))


async def secret_of(path: Path, name: str, key: Key | None) -> str:
    async with SqliteStore(path, key=key) as store:
        return (await store.get(PlaneSecrets, name)).data.get_secret_value()


def on_disk(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(path.parent.glob(f"{path.name}*")))


async def test_a_new_store_with_a_key_is_sealed_from_its_first_moment(
    file: Path, new_key: Callable[[str], Key]
) -> None:
    key = new_key("key")
    async with SqliteStore(file, key=key) as store:
        await put(store, "alpha")
        await store.create(default_sites()[0])
        assert SECRET.encode() not in on_disk(file)
        assert b"east" in on_disk(file), "what is no secret stays readable"
    assert await secret_of(file, "alpha", key) == SECRET


async def test_a_sealed_store_cannot_be_opened_without_its_key(
    file: Path, new_key: Callable[[str], Key], golden: Golden
) -> None:
    SqliteStore(file, key=new_key("key"))._db.close()
    with golden.raises(PreconditionFailed):
        SqliteStore(file)
    with golden.raises(PreconditionFailed):
        SqliteStore(file, key=new_key("other"))


async def test_a_key_is_not_taken_for_a_seal(file: Path, new_key: Callable[[str], Key], golden: Golden) -> None:
    """Who names a key file believes that the home is sealed."""
    async with SqliteStore(file) as store:
        await put(store, "alpha")
    with golden.raises(PreconditionFailed):
        SqliteStore(file, key=new_key("key"))


async def test_a_home_is_sealed_sealed_again_and_unsealed(file: Path, new_key: Callable[[str], Key]) -> None:
    first, second = new_key("first"), new_key("second")
    async with SqliteStore(file) as store:
        for name in ("alpha", "beta"):
            await put(store, name)
    assert SECRET.encode() in on_disk(file)
    assert reseal(file, None, first) == 2
    assert SECRET.encode() not in on_disk(file), "nor in what is left of the pages before"
    assert await secret_of(file, "alpha", first) == SECRET
    assert reseal(file, first, second) == 2
    assert await secret_of(file, "beta", second) == SECRET
    with pytest.raises(PreconditionFailed):
        SqliteStore(file, key=first)
    assert reseal(file, second, None) == 2
    assert await secret_of(file, "alpha", None) == SECRET


async def test_what_add_ons_are_is_sealed_again_with_the_keys(file: Path, new_key: Callable[[str], Key]) -> None:
    first, second = new_key("first"), new_key("second")
    content = AddonContent(name="dns", digest="1" * 64, data=SecretStr(SECRET))
    async with SqliteStore(file, key=first) as store:
        made = manifests_of(await store.create(new_control_plane("alpha", site="east")), (content,))
        await store.create(made)
    reseal(file, first, second)
    assert SECRET.encode() not in on_disk(file)
    async with SqliteStore(file, key=second) as store:
        (found,) = (await store.get(AddonManifests, made.name)).spec.addons
        assert found.data.get_secret_value() == SECRET


async def test_an_empty_home_stays_sealed(file: Path, new_key: Callable[[str], Key], golden: Golden) -> None:
    async with SqliteStore(file, key=new_key("key")):
        pass
    with golden.raises(PreconditionFailed):
        SqliteStore(file)


async def test_sealing_with_the_wrong_key_changes_nothing(file: Path, new_key: Callable[[str], Key]) -> None:
    right, wrong = new_key("right"), new_key("wrong")
    async with SqliteStore(file, key=right) as store:
        await put(store, "alpha")
    for old, new in ((wrong, None), (wrong, right), (None, right)):
        with pytest.raises(PreconditionFailed):
            reseal(file, old, new)
    assert await secret_of(file, "alpha", right) == SECRET


async def test_a_key_that_is_lost_halfway_leaves_all_as_it_was(
    file: Path, new_key: Callable[[str], Key], golden: Golden
) -> None:
    """One document that cannot be opened: none is changed."""
    first, second = new_key("first"), new_key("second")
    async with SqliteStore(file, key=first) as store:
        for name in ("alpha", "beta"):
            await put(store, name)
    with sqlite3.connect(file) as db:
        db.execute("UPDATE resources SET body = 'sealed:1:AAAA' WHERE name = 'beta'")
    with golden.raises(Corrupt):
        reseal(file, first, second)
    assert await secret_of(file, "alpha", first) == SECRET


async def test_whoever_had_the_store_open_writes_no_key_past_a_new_seal(
    file: Path, new_key: Callable[[str], Key], golden: Golden
) -> None:
    async with SqliteStore(file) as store:
        await put(store, "alpha")
        stored = await store.get(PlaneSecrets, "alpha")
        await asyncio.to_thread(reseal, file, None, new_key("key"))
        for call in (store.get(PlaneSecrets, "alpha"), store.update(stored), put(store, "beta")):
            with golden.raises(PreconditionFailed):
                await call
        assert await store.list(Site) == (), "the rest it may do as before"


async def test_a_sealed_document_cannot_be_put_in_the_place_of_another(
    file: Path, new_key: Callable[[str], Key], golden: Golden
) -> None:
    key = new_key("key")
    async with SqliteStore(file, key=key) as store:
        for name in ("alpha", "beta"):
            await put(store, name)
    with sqlite3.connect(file) as db:
        (body,) = db.execute("SELECT body FROM resources WHERE name = 'alpha'").fetchone()
        db.execute("UPDATE resources SET body = ? WHERE name = 'beta'", (body,))
    with golden.raises(Corrupt) as caught:
        await secret_of(file, "beta", key)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path, mode: int, golden: Golden) -> None:
    path = tmp_path / "key"
    path.write_bytes(random_key())
    path.chmod(mode)
    with golden.raises(PreconditionFailed):
        read_key(path)


def test_a_key_file_is_the_users_own_and_long_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    path = tmp_path / "key"
    with golden.raises(PreconditionFailed):
        read_key(path)
    path.touch(0o600)
    path.write_bytes(b"short\n")
    with golden.raises(PreconditionFailed):
        read_key(path)
    path.write_bytes(b"correct horse battery staple\n")
    assert read_key(path).secret == b"correct horse battery staple", "a passphrase will do"
    assert "staple" not in repr(read_key(path))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(PreconditionFailed, match="it belongs to user"):
        read_key(path)
