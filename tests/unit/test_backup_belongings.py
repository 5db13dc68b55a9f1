"""The belongings of a plane in a backup: all of them come back, the same ones are the same bytes, and none is shown."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.store import MemoryStore
from pydantic import SecretStr
from support.golden import Golden
from support.resources import with_status
from support.stored_home import FIXTURES, put_together
from support.templates import template

from quarterdeck.api.base import Condition, ConditionStatus, Metadata, instant
from quarterdeck.api.belongings import AddonContent, AddonManifests, PlaneSecrets, manifests_of
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.hosts import Host, SshLogin
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.api.revision import ReplicaRevision, revision_of
from quarterdeck.api.site import Cordon, Site, SshSpec, default_sites
from quarterdeck.backup.belongings import read_archive
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.plane_archive import archive_of
from quarterdeck.errors import Conflict, Corrupt, NotFound, PreconditionFailed, QuarterdeckError
from quarterdeck.model.memory import LeftBehind, Memory
from quarterdeck.model.units import MachineRole
from quarterdeck.pki.codec import decode
from quarterdeck.stores.port import Store, amend

PASSWORD = "hunter2-in-an-add-on"
NOW = instant(1_900_000_000.0)


async def hosts_site(store: Store) -> Site:
    """A site of hosts, with a login by a key file and a cordon."""
    login = SshLogin(user="deck", identity_file="~/.ssh/deck")
    host = Host(name="cp-1", address="192.0.2.1", zone="a", roles=(MachineRole.CONTROL,), ssh=login)
    spec = SshSpec(driver="ssh", hosts=(host,), cordons=(Cordon(machine="cp-1", by="ada", since=NOW),))
    return await store.create(Site(metadata=Metadata(name="rack"), spec=spec))


async def stored(store: Store) -> ControlPlane:
    """A plane with all kinds of belongings, at one site, with something left behind at another one."""
    for site in default_sites():
        await store.create(site)
    await hosts_site(store)
    plane = await store.create(new_control_plane("alpha", site="east"))
    await secrets_of(store, plane)
    revision = await store.create(revision_of(plane, template()))
    content = AddonContent(name="dns", digest="d", data=SecretStr(PASSWORD))
    manifests = await store.create(manifests_of(plane, (content,)))
    memory = memory_to_status(Memory(left=(LeftBehind(site="rack", machine="cp-1", replica="rack-1"),)))
    changed = with_status(plane, revision=revision.name, addon_manifests=manifests.name, memory=memory, port_offset=3)
    await store.update(changed)
    other = await store.create(new_control_plane("beta", site="west"))
    await store.create(revision_of(other, template()))
    return await store.get(ControlPlane, "alpha")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


async def test_everything_of_the_plane_comes_back_and_nothing_of_others(store: MemoryStore) -> None:
    plane = await stored(store)
    archive = read_archive(await archive_of(store, plane))
    assert archive.plane == without_version(plane)
    assert archive.secrets == without_version(await store.get(PlaneSecrets, "alpha"))
    assert decode(archive.secrets.data.get_secret_value()) == await secrets_of(store, plane)
    revision, manifests = plane.status.revision, plane.status.addon_manifests
    assert archive.revisions == (without_version(await store.get(ReplicaRevision, revision)),)
    assert archive.manifests == (without_version(await store.get(AddonManifests, manifests)),)
    assert archive.manifests[0].spec.addons[0].data.get_secret_value() == PASSWORD
    assert [each.name for each in archive.sites] == ["east", "rack"]
    rack = archive.sites[1].spec
    assert isinstance(rack, SshSpec)
    assert (rack.cordons[0].by, rack.hosts[0].ssh.identity_file) == ("ada", "~/.ssh/deck")


def without_version(resource: Any) -> Any:
    return resource.model_copy(
        update={"metadata": resource.metadata.model_copy(update={"resource_version": None})},
    )


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda each: each.name)
@pytest.mark.parametrize("name", ["demo", "solo"])
async def test_planes_that_ran_come_back(fixture: Path, name: str, tmp_path: Path) -> None:
    put_together(fixture, tmp_path / "home")
    home = await Home.open(tmp_path / "home")
    try:
        plane = await home.store.get(ControlPlane, name)
        content = await archive_of(home.store, plane)
        archive = read_archive(content)
        assert archive.plane.status.memory == plane.status.memory
        assert archive.plane.spec == plane.spec
        assert decode(archive.secrets.data.get_secret_value()) == await secrets_of(home.store, plane)
        assert archive.to_bytes() == content, "what was read is written as the same bytes"
    finally:
        await home.close()


async def test_the_same_content_gives_the_same_bytes(store: MemoryStore) -> None:
    plane = await stored(store)
    before = await archive_of(store, plane)
    condition = Condition(type="Ready", status=ConditionStatus.TRUE, reason="Healthy", last_transition_time=NOW)
    await amend(store, ControlPlane, "alpha", lambda seen: with_status(seen, conditions=(condition,)))
    await amend(store, Site, "rack", lambda seen: with_status(seen, conditions=(condition,)))
    assert await archive_of(store, plane) == before
    await amend(store, Site, "rack", lambda seen: seen.with_cordons(()))
    assert await archive_of(store, plane) != before


async def test_no_secret_is_shown(store: MemoryStore) -> None:
    content = await archive_of(store, await stored(store))
    archive = read_archive(content)
    key = decode(archive.secrets.data.get_secret_value()).service_account[0].private.decode()
    assert json.dumps(json.dumps(key))[3:-3].encode() in content
    for shown in (repr(archive), str(archive), repr(archive.secrets)):
        assert "PRIVATE" not in shown
        assert PASSWORD not in shown


async def test_a_plane_that_would_not_come_back_is_not_archived(store: MemoryStore, golden: Golden) -> None:
    plane = await stored(store)
    with golden.raises(Conflict):
        await archive_of(store, with_uid(plane, "another"))
    await store.delete(ReplicaRevision, plane.status.revision)
    with golden.raises(Corrupt):
        await archive_of(store, plane)
    await store.delete(PlaneSecrets, "alpha")
    with pytest.raises(NotFound):
        await archive_of(store, plane)


def with_uid(plane: ControlPlane, uid: str) -> ControlPlane:
    return plane.model_copy(update={"metadata": plane.metadata.model_copy(update={"uid": uid})})


Damage = Callable[[dict[str, Any]], object]
DAMAGES: dict[str, Damage] = {
    "newer": lambda archive: archive.update(version=2),
    "no version": lambda archive: archive.pop("version"),
    "no resources": lambda archive: archive.update(resources={}),
    "two planes": lambda archive: archive["resources"].append(archive["resources"][0]),
    "no plane": lambda archive: archive["resources"].pop(0),
    "no keys": lambda archive: archive["resources"].pop(1),
    "keys of another plane": lambda archive: archive["resources"][1].update(planeUid="other"),
    "damaged keys": lambda archive: archive["resources"][1].update(data=archive["resources"][1]["data"][:500]),
    "keys of another type": lambda archive: archive["resources"][1].update(data=[archive["resources"][1]["data"]]),
    "no revision": lambda archive: archive["resources"].pop(2),
    "no manifests": lambda archive: archive["resources"].pop(3),
    "no site": lambda archive: archive["resources"].pop(4),
    "a stranger": lambda archive: archive["resources"].append({"kind": "Drill"}),
    "no resource": lambda archive: archive["resources"].append("text"),
    "a changed field": lambda archive: archive["resources"][0]["spec"].update(replicas="three"),
    "an unknown field of a revision": lambda archive: archive["resources"][2]["spec"].update(more=1),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_an_archive_that_cannot_be_used_is_one_clear_error(
    store: MemoryStore, damage: str, golden: Golden
) -> None:
    archive = json.loads(await archive_of(store, await stored(store)))
    DAMAGES[damage](archive)
    with golden.raises(PreconditionFailed if damage == "newer" else Corrupt) as seen:
        read_archive(json.dumps(archive).encode())
    assert "PRIVATE" not in str(seen.value)
    assert "\n" not in str(seen.value)


async def test_whatever_is_damaged_is_refused_or_read_and_never_shown(store: MemoryStore) -> None:
    content = await archive_of(store, await stored(store))
    chance = random.Random(1)
    refused = 0
    for number in range(100):
        changed = bytearray(content)
        if number % 2:
            del changed[chance.randrange(len(changed)) :]
        else:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        try:
            read_archive(bytes(changed))
        except QuarterdeckError as error:
            refused += 1
            assert "PRIVATE" not in str(error)
            assert "\n" not in str(error)
    assert refused >= 50
    for strange in (b"", b"[" * 100_000, b'{"version":1,"resources":[' + b"9" * 10_000 + b"]}", b"\xff\xfe"):
        with pytest.raises(Corrupt):
            read_archive(strange)
