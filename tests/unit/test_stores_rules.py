"""What is stored is parsed again only when it was changed, and secrets are kept by nobody but who reads them."""

from __future__ import annotations

from fakes.store import MemoryStore
from pydantic import SecretStr
from support.resources import with_status

from quarterdeck.api.base import Metadata
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.stores.rules import decoded, encoded


async def test_a_plane_that_was_not_changed_is_not_parsed_again() -> None:
    store = MemoryStore()
    await store.create(new_control_plane("demo", site="east", replicas=3))
    before = await store.get(ControlPlane, "demo")
    assert await store.get(ControlPlane, "demo") is before


async def test_a_plane_that_was_changed_is_read_as_it_is_now() -> None:
    store = MemoryStore()
    await store.create(new_control_plane("demo", site="east", replicas=3))
    before = await store.get(ControlPlane, "demo")
    await store.update(with_status(before, observed_generation=7))
    assert (await store.get(ControlPlane, "demo")).status.observed_generation == 7


def test_secrets_are_parsed_each_time_and_not_kept() -> None:
    secrets = PlaneSecrets(metadata=Metadata(name="demo"), data=SecretStr("{}"))
    body = encoded(secrets)
    one, two = (decoded(PlaneSecrets, "demo", body) for _ in range(2))
    assert one == two
    assert one is not two
