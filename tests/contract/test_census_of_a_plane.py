"""A census of what a real kube-apiserver has stored in a real etcd."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator

import pytest
from pydantic import JsonValue
from support.etcd_cluster import eventually
from support.replica_processes import OneReplica, binaries, replica
from support.widgets import DEFINITION, DEFINITIONS, WIDGETS

from quarterdeck.census.census import census
from quarterdeck.census.result import Census, undecodable
from quarterdeck.census.stored_types import MINORS
from quarterdeck.components.credentials import EncryptionKey
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.real import RealEtcd
from quarterdeck.kube.http import HttpKube
from quarterdeck.model.seats import PortName
from quarterdeck.upstream.catalog import Versions

__all__ = ["binaries", "replica"]

pytestmark = pytest.mark.timeout(300)

DEFAULT = "/api/v1/namespaces/default"


class Lab:
    """A plane that serves."""

    def __init__(self, replica: OneReplica) -> None:
        secrets = replica.secrets
        self.replica, self.keys = replica, secrets.encryption_keys
        self.kube = HttpKube(secrets.kubernetes_ca.bundle, secrets.manager)
        self.etcd = RealEtcd(ClientTls(secrets.etcd_ca.bundle, secrets.etcd_manager))

    async def put(self, path: str, kind: str, name: str, version: str = "v1", **content: JsonValue) -> None:
        made = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **content}
        await self.kube.apply(self.replica.apiserver, f"{path}/{name}", made, manager="somebody", force=True)

    async def census(self, keys: tuple[EncryptionKey, ...]) -> Census:
        url = self.replica.replica.seat.listen(PortName.ETCD_CLIENT).url()
        return await census(self.etcd, (url,), keys)


@pytest.fixture
async def lab(replica: OneReplica) -> AsyncIterator[Lab]:
    made = Lab(replica)
    yield made
    await made.kube.close()
    await made.etcd.close()


async def filled(lab: Lab) -> None:
    """Objects of the kinds that are stored in different ways."""
    await lab.put(f"{DEFAULT}/secrets", "Secret", "password", data={"it": b64encode(b"hunter2").decode()})
    await lab.put("/apis/resource.k8s.io/v1/deviceclasses", "DeviceClass", "gpu", "resource.k8s.io/v1", spec={})
    await lab.put(f"{DEFAULT}/services", "Service", "front", spec={"ports": [{"port": 80}]})
    await lab.kube.apply(
        lab.replica.apiserver, f"{DEFINITIONS}/widgets.tests.example", DEFINITION, manager="somebody", force=True
    )

    async def served() -> None:
        assert await lab.kube.read(lab.replica.apiserver, WIDGETS) is not None

    await eventually(served)
    await lab.put(WIDGETS, "Widget", "one", "tests.example/v1", spec={"size": 3})
    await lab.put(WIDGETS, "Widget", "two", "tests.example/v1", about="a field that comes before the type")


async def test_everything_in_a_fresh_plane_is_read_and_its_own_minor_decodes_it(lab: Lab) -> None:
    await filled(lab)
    found = await lab.census(lab.keys)
    assert found.unreadable == ()
    counts = {(each.resource, str(each.type)): each for each in found.types}
    assert set(counts) >= {
        ("apiservices.apiregistration.k8s.io", "apiregistration.k8s.io/v1 APIService"),
        # It is shorter (kubernetes: pkg/controlplane/apiserver/apiextensions.go).
        ("customresourcedefinitions.apiextensions.k8s.io", "apiextensions.k8s.io/v1beta1 CustomResourceDefinition"),
        ("leases", "coordination.k8s.io/v1 Lease"),
        ("peerserverleases", "v1 Endpoints"),
        ("ranges", "v1 RangeAllocation"),
        ("secrets", "v1 Secret"),
        ("services", "v1 Service"),
    }
    widgets = counts["widgets.tests.example", "tests.example/v1 Widget"]
    assert widgets.examples == tuple(f"/registry/tests.example/widgets/default/{each}" for each in ("one", "two"))
    assert (widgets.number, found.custom) == (2, {"widgets.tests.example"})
    version = Versions().kubernetes
    assert undecodable(found, (version.major, version.minor)).number == 0
    (new,) = undecodable(found, (1, 33)).types
    assert (str(new.type), new.examples) == ("resource.k8s.io/v1 DeviceClass", ("/registry/deviceclasses/gpu",))


async def test_what_is_encrypted_is_not_taken_for_read_without_its_key(lab: Lab) -> None:
    await filled(lab)
    found = await lab.census(())
    (secrets,) = found.unreadable
    assert secrets.why == f"encrypted with a key that the plane does not have ({lab.keys[0].name})"
    assert (secrets.number, secrets.examples) == (1, ("/registry/secrets/default/password",))
    assert undecodable(found, MINORS[0]).unreadable == found.unreadable
    wrong = EncryptionKey(lab.keys[0].name, bytes(32))
    assert [each.number for each in (await lab.census((wrong,))).unreadable] == [1]
