"""Manifests of planes: made when they are asked for, kept with the plane, hidden from everybody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.addons_lab import addon, config_map, namespace, text
from support.golden import Golden
from support.resources import with_spec, with_status

from quarterdeck.api.belongings import AddonManifests
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.differences import differences
from quarterdeck.api.operation import OperationType
from quarterdeck.api.plane.addons import Addon
from quarterdeck.engine.preflight.local_changes import compared_addons
from quarterdeck.engine.workspace import addons, belongings, operations, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import InvalidInput
from quarterdeck.stores.key_seal import Key, reseal

ASKER = Requester(name="a test")
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"word": "hidden-word"}}


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    opened = await Home.open(tmp_path / "home")
    yield opened
    await opened.close()


async def plane(home: Home) -> ControlPlane:
    return await home.store.get(ControlPlane, "demo")


async def created(home: Home, *wanted: Addon) -> ControlPlane:
    made = new_control_plane("demo", site="east")
    await operations.create(home, with_spec(made, addons=wanted), ASKER)
    return await plane(home)


async def changed(home: Home, *wanted: Addon) -> ControlPlane:
    """As ``apply`` does: what the spec names is read again."""
    now = await plane(home)
    status = now.status.model_copy(update={"addon_manifests": ""})
    spec = now.spec.model_copy(update={"addons": wanted})
    await operations.change(home, now.model_copy(update={"spec": spec, "status": status}), OperationType.APPLY, ASKER)
    return await plane(home)


async def test_what_a_file_says_is_read_once_and_nobody_needs_the_file_later(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "dns.yaml"
    file.write_text(text(config_map("dns")))
    made = await created(home, Addon(name="dns", file=file))
    file.unlink()
    scaled = operations.moved(made, made.spec.placement, 1)
    await operations.change(home, scaled, OperationType.SCALE, ASKER)
    now = await plane(home)
    assert now.status.addon_manifests == made.status.addon_manifests != ""
    found = addons.contents_of(await addons.stored(home.store, now, now.status.addon_manifests))
    assert [str(ref) for each in found for ref in each.refs] == ["ConfigMap default/dns"]


async def test_a_file_that_says_something_else_is_another_set_though_the_spec_is_the_same(
    home: Home, tmp_path: Path
) -> None:
    file = tmp_path / "dns.yaml"
    file.write_text(text(config_map("dns")))
    wanted = Addon(name="dns", file=file)
    before = await created(home, wanted)
    assert (await changed(home, wanted)).status.addon_manifests == before.status.addon_manifests
    file.write_text(text(config_map("dns", more="x")))
    after = await changed(home, wanted)
    assert after.spec == before.spec
    assert after.status.addon_manifests != before.status.addon_manifests


async def test_what_was_read_for_a_plan_is_what_is_asked_for(home: Home, tmp_path: Path) -> None:
    """Nothing is read, and no chart is rendered, a second time; nor does anybody get what was not shown."""
    file = tmp_path / "dns.yaml"
    file.write_text(text(config_map("dns", shown="yes")))
    made = new_control_plane("demo", site="east")
    wanted = with_spec(made, addons=(Addon(name="dns", file=file),))
    shown, findings = await compared_addons(home, None, wanted)
    file.write_text("no YAML: [")
    await operations.create(home, wanted, ASKER, shown)
    now = await plane(home)
    assert addons.contents_of(await addons.stored(home.store, now, now.status.addon_manifests)) == shown
    assert len(findings) == 1

    file.write_text(text(config_map("dns", shown="more")))
    again = with_status(now, addon_manifests="")
    more, findings = await compared_addons(home, now, again)
    file.unlink()
    await operations.change(home, again, OperationType.APPLY, ASKER, more)
    now = await plane(home)
    assert addons.contents_of(await addons.stored(home.store, now, now.status.addon_manifests)) == more != shown
    assert len(findings) == 1


async def test_a_plane_whose_add_on_cannot_be_read_is_not_created(home: Home, tmp_path: Path, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        await created(home, Addon(name="dns", file=tmp_path / "none.yaml"))
    assert await home.store.list(ControlPlane) == ()
    assert await home.store.list(AddonManifests) == ()


async def test_an_abort_goes_back_to_the_add_ons_of_before(home: Home) -> None:
    before = await created(home, addon("dns", config_map("dns")))
    after = await changed(home, addon("dns", config_map("dns", more="x")))
    running = await recorded.current(home.store, "demo")
    assert running is not None
    assert operations.asks_for_addons(running)
    assert running.spec.from_ is not None
    back = operations.back(after, running.spec.from_)
    assert back.status.addon_manifests == before.status.addon_manifests
    await operations.change(home, back, OperationType.ABORT, ASKER)
    assert (await plane(home)).status.addon_manifests == before.status.addon_manifests


async def test_a_change_that_would_delete_a_namespace_under_what_is_wanted_is_refused(
    home: Home, golden: Golden
) -> None:
    before = await created(home, addon("web", namespace("web"), config_map("x", "web")))
    with golden.raises(InvalidInput):
        await changed(home, addon("web", config_map("x", "web")))
    assert await plane(home) == before


async def test_manifests_go_with_their_plane_and_those_that_nobody_names_before(home: Home) -> None:
    await created(home, addon("dns", config_map("dns", number="first")))
    for number in range(6):
        await changed(home, addon("dns", config_map("dns", number=str(number))))
    now = await plane(home)
    await addons.forget_unused(home.store, now, ())
    left = {each.name for each in await home.store.list(AddonManifests)}
    assert now.status.addon_manifests in left
    assert len(left) == 1 + 3
    await belongings.drop(home.store, now)
    assert await home.store.list(AddonManifests) == ()


async def test_what_manifests_hold_is_in_no_dump_and_sealed_with_the_keys(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text(SECRET))
    made = await created(home, Addon(name="s", file=file))
    stored = await addons.stored(home.store, made, made.status.addon_manifests)
    assert "hidden-word" not in repr(stored) + stored.model_dump_json() + made.model_dump_json()
    assert b"hidden-word" in everything(home)
    await home.close()
    key = Key(tmp_path / "key", b"0123456789abcdef")
    reseal(next(home.folder.glob("*.db")), None, key)
    assert b"hidden-word" not in everything(home)
    again = await Home.open(home.folder, key=key)
    try:
        assert (await again.store.list(AddonManifests)) == (stored,)
    finally:
        await again.close()


async def test_what_an_add_on_says_is_in_no_list_of_differences(home: Home) -> None:
    before = (await created(home, addon("s", SECRET))).spec
    after = before.model_copy(update={"addons": (addon("s", {**SECRET, "stringData": {"word": "other-word"}}),)})
    (found,) = differences(before, after)
    assert found.path == "spec.addons.s"
    assert "word" not in str(found)


def everything(home: Home) -> bytes:
    return b"".join(each.read_bytes() for each in home.folder.glob("*.db*") if each.is_file())
