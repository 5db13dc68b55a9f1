"""Metadata: what a Kubernetes API server would keep of a resource."""

from __future__ import annotations

from fakes.store import MemoryStore
from pydantic import SecretStr
from support.golden import Golden

from quarterdeck.api.base import Metadata, owner_reference
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.documents import load
from quarterdeck.errors import InvalidInput


async def test_what_belongs_to_a_plane_names_it_by_its_uid() -> None:
    store = MemoryStore()
    plane = await store.create(new_control_plane("alpha", site="east"))
    metadata = Metadata(name="alpha", owner_references=(owner_reference(plane),))
    stored = await store.create(PlaneSecrets(metadata=metadata, data=SecretStr("key")))
    (owner,) = (await store.get(PlaneSecrets, stored.name)).metadata.owner_references
    assert owner.model_dump(mode="json") == {
        "apiVersion": "quarterdeck.dev/v1alpha1",
        "kind": "ControlPlane",
        "name": "alpha",
        "uid": plane.metadata.uid,
    }


def test_there_is_one_namespace(golden: Golden) -> None:
    head = "apiVersion: quarterdeck.dev/v1alpha1\nkind: ControlPlane\nspec: {placement: {site: east}}\n"
    (plane,) = load(f"{head}metadata: {{name: a, namespace: default}}", "x")
    assert isinstance(plane, ControlPlane)
    with golden.raises(InvalidInput):
        load(f"{head}metadata: {{name: a, namespace: team}}", "x")
