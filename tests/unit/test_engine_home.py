"""What a home keeps of a plane: its secrets, which are its own, and its place at the door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from quarterdeck.api.base import Metadata
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.secrets import PlaneSecrets as SecretsResource
from quarterdeck.endpoint.door_guests import guests_file, invite, read_guests
from quarterdeck.engine import operations
from quarterdeck.engine.home import Home
from quarterdeck.engine.operations import Asker
from quarterdeck.errors import Conflict, NotFound
from quarterdeck.pki.codec import decode, encode

ASKER = Asker(who="a test")


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    made = await Home.open(tmp_path / "home")
    yield made
    await made.close()


async def created(home: Home, name: str = "alpha") -> ControlPlane:
    await operations.create(home, new_control_plane(name, site="east"), ASKER)
    return await home.store.get(ControlPlane, name)


async def stored(home: Home, name: str = "alpha") -> SecretsResource:
    return await home.store.get(SecretsResource, name)


async def test_secrets_are_made_once_and_say_whose_they_are(home: Home) -> None:
    plane = await created(home)
    first, second = await asyncio.gather(home.secrets(plane), home.secrets(plane))
    assert first == second == await home.secrets(plane)
    assert (await stored(home)).plane_uid == plane.metadata.uid


async def test_a_plane_goes_with_its_secrets_and_its_place_at_the_door(home: Home) -> None:
    plane, other = await created(home), await created(home, "beta")
    kept = await home.secrets(other)
    await home.secrets(plane)
    guests = guests_file(home.folder, "loopback")
    for each in (plane, other):
        invite(guests, each.name, uid=str(each.metadata.uid), host=each.host, port=6443)
    await home.forget(plane)
    for kind in (ControlPlane, SecretsResource):
        with pytest.raises(NotFound):
            await home.store.get(kind, "alpha")
    assert set(read_guests(guests)) == {"beta"}
    assert await home.secrets(other) == kept


async def test_a_plane_never_inherits_the_authority_of_one_that_had_its_name(home: Home) -> None:
    former = await home.secrets(await created(home))
    await home.store.delete(ControlPlane, "alpha")  # a deletion that ended half way, as older versions could leave it
    plane = await created(home)
    assert (await home.secrets(plane)).kubernetes_ca != former.kubernetes_ca


async def test_not_even_when_secrets_did_not_say_whose_they_are(home: Home) -> None:
    former = await home.secrets(await created(home))
    await home.store.update((await stored(home)).model_copy(update={"plane_uid": None}))
    await home.store.delete(ControlPlane, "alpha")
    plane = await created(home)
    assert (await home.secrets(plane)).kubernetes_ca != former.kubernetes_ca


async def test_a_plane_of_an_older_version_keeps_its_secrets_which_are_its_own_from_then_on(home: Home) -> None:
    plane = await created(home)
    secrets = await home.secrets(plane)
    await home.store.update((await stored(home)).model_copy(update={"plane_uid": None}))
    assert await home.secrets(plane) == secrets
    assert (await stored(home)).plane_uid == plane.metadata.uid
    assert decode((await stored(home)).data.get_secret_value()) == secrets


async def test_whoever_still_holds_a_deleted_plane_makes_no_secrets_and_takes_nobody_elses(home: Home) -> None:
    before = await created(home)
    await home.secrets(before)
    await home.forget(before)
    with pytest.raises(NotFound):
        await home.secrets(before)
    with pytest.raises(NotFound):
        await stored(home)
    plane = await created(home)
    secrets = await home.secrets(plane)
    with pytest.raises(Conflict, match="another one of that name"):
        await home.secrets(before)
    assert await home.secrets(plane) == secrets


async def test_secrets_of_another_plane_that_came_between_are_replaced(home: Home) -> None:
    former = await home.secrets(await created(home, "beta"))
    plane = await created(home)
    stray = SecretsResource(metadata=Metadata(name="alpha"), plane_uid="another", data=SecretStr(encode(former)))
    await home.store.create(stray)
    assert (await home.secrets(plane)).kubernetes_ca != former.kubernetes_ca
    assert (await stored(home)).plane_uid == plane.metadata.uid
