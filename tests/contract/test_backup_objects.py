"""Objects out of a backup of a real plane: compared, decoded by an apiserver of their own, and brought back."""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import JsonValue
from support.conditions import until
from support.etcd_cluster import eventually
from support.leftovers import working_in
from support.replica_processes import OneReplica, binaries, replica

from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.revision import revision_of
from quarterdeck.app.backup import objects
from quarterdeck.app.backup.objects import BackedUpObject, BackedUpObjects, BringBack
from quarterdeck.app.backup.restores import Restores
from quarterdeck.backup.chain import ChainLink, FullBackup
from quarterdeck.backup.database import cut_checksum, newest_revision
from quarterdeck.backup.kubernetes.bring_back import MANAGER
from quarterdeck.backup.kubernetes.object_changes import compared
from quarterdeck.engine.workspace.backups import OpenBackups, open_backups, scratch_folder
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.plane_archive import archive_of
from quarterdeck.engine.workspace.scratch_planes import scratch_plane
from quarterdeck.errors import Conflict, InvalidInput, NotFound, PreconditionFailed
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.kube.http import HttpKube
from quarterdeck.model.seats import PortName
from quarterdeck.pki.codec import encode
from quarterdeck.upstream.upstream import Upstream

__all__ = ["binaries", "replica"]

pytestmark = pytest.mark.timeout(300)

CORE, DEFAULT = "/api/v1", "/api/v1/namespaces/default"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/tests.example/v1/namespaces/default/widgets"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
SECRET = b64encode(b"hunter2").decode()
CRD: dict[str, JsonValue] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.tests.example"},
    "spec": {
        "group": "tests.example",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
            for name in ("v1", "v2")
        ],
    },
}


def manifest(kind: str, name: str, version: str = "v1", **content: JsonValue) -> dict[str, JsonValue]:
    metadata: dict[str, JsonValue] = {"name": name}
    metadata |= cast("dict[str, JsonValue]", content.pop("metadata", {}))
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


POD: dict[str, JsonValue] = {"containers": [{"name": "one", "image": "example.com/one"}], "restartPolicy": "Never"}
JOB = manifest("Job", "work", "batch/v1", spec={"template": {"spec": POD}})


#: An object by its type and its name.
Get = Callable[[str, str], Awaitable[BackedUpObject]]


@dataclass
class Lab:
    """A plane that serves, with its home and its backups, and revisions of it that can be looked at."""

    replica: OneReplica
    kube: HttpKube
    home: Home
    backups: OpenBackups
    folder: Path
    its: BackedUpObjects

    async def put(self, path: str, content: Mapping[str, JsonValue], *, manager: str = "somebody") -> str:
        name = cast("dict[str, str]", content["metadata"])["name"]
        made = await self.kube.apply(self.replica.apiserver, f"{path}/{name}", content, manager=manager, force=True)
        return made.uid

    async def read(self, path: str) -> Any:
        return await self.kube.read(self.replica.apiserver, path)

    async def delete(self, path: str) -> None:
        found = await self.read(path)
        assert await self.kube.delete(self.replica.apiserver, path, uid=found["metadata"]["uid"])

    async def backed_up(self) -> int:
        """Add a full backup of this moment to the chain; its revision."""
        secrets, path = self.replica.secrets, self.folder / "full"
        url = self.replica.replica.seat.listen(PortName.ETCD_CLIENT).url()
        async with EtcdMember(url, ClientTls(secrets.etcd_ca.bundle, secrets.etcd_manager)) as member:
            with path.open("wb") as file:
                async with aclosing(member.maintenance.snapshot()) as parts:
                    async for part in parts:
                        file.write(part)
        stored = await self.backups.deposit.put(_one(path.read_bytes()))
        cut_checksum(path)
        revision, now = newest_revision(path), datetime.now(UTC)
        full = FullBackup(cluster="main", epoch=0, revision=revision, at=now, etcd_version="3.6.16", stored=stored)
        plane = await self.home.store.get(ControlPlane, "alpha")
        belongings = await self.backups.deposit.put(_one(await archive_of(self.home.store, plane)))
        link = ChainLink(number=0, previous="", plane="", writer="a test", at=now, fulls=(full,), belongings=belongings)
        await self.backups.chains.append(await self.backups.chains.read(), link)
        return revision

    @asynccontextmanager
    async def at(self, revision: int) -> AsyncIterator[Get]:
        """What ``get`` gets at a moment, by one apiserver: each takes some seconds to start."""
        plane, chain = await self.home.store.get(ControlPlane, "alpha"), await self.backups.chains.read()
        moment = chain.at_revision("main", revision, 0)
        upstream = Upstream.from_environment(os.environ)
        async with scratch_plane(self.home, upstream, plane, self.backups, chain, moment) as apiserver:

            async def get(kind: str, name: str) -> BackedUpObject:
                return await objects._read(apiserver, "alpha", kind, name, compared(moment))

            yield get

    async def bring_back(self, found: BackedUpObject) -> BringBack:
        plan = await self.its.plan(found)
        await self.its.bring_back(plan)
        return plan


async def _one(content: bytes) -> AsyncGenerator[bytes, None]:
    yield content


@pytest.fixture
async def lab(replica: OneReplica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    home = await Home.open(tmp_path / "home")
    plane = await home.store.create(new_control_plane("alpha", site="east"))
    data = {"metadata": {"name": "alpha"}, "planeUid": plane.metadata.uid, "data": encode(replica.secrets)}
    await home.store.create(PlaneSecrets.model_validate(data))
    revision = await home.store.create(revision_of(plane, replica.plane))
    plane = await home.store.update(plane.with_status(revision=revision.name))
    kube = HttpKube(replica.secrets.kubernetes_ca.bundle, replica.secrets.manager)

    @asynccontextmanager
    async def open_plane(*_: object) -> AsyncIterator[Any]:
        yield SimpleNamespace(kube=kube)

    async def ready_apiserver(*_: object) -> Any:
        return replica.apiserver

    monkeypatch.setattr(objects, "open_plane", open_plane)
    monkeypatch.setattr(objects, "ready_apiserver", ready_apiserver)
    engine = cast("Any", lambda: SimpleNamespace(upstream=Upstream.from_environment(os.environ)))
    its = BackedUpObjects(home, engine, Restores(home, engine))
    yield Lab(replica, kube, home, await open_backups(home, plane), tmp_path, its)
    await kube.close()
    await home.close()


async def test_a_backup_is_compared_read_and_brought_back(lab: Lab) -> None:
    """One plane for all of it: each moment that is looked at is an apiserver that starts."""
    owner = await lab.put(f"{DEFAULT}/configmaps", manifest("ConfigMap", "owner", data={}))
    owned = {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}]}
    await lab.put(f"{DEFAULT}/configmaps", manifest("ConfigMap", "owned", data={"a": "b"}, metadata=owned))
    await lab.put(f"{DEFAULT}/configmaps", manifest("ConfigMap", "kept", data={"a": "old", "same": "x"}))
    await lab.put(f"{DEFAULT}/secrets", manifest("Secret", "password", data={"it": SECRET}))
    await lab.put(CRDS, CRD)
    await _served(lab)
    await lab.put(WIDGETS, manifest("Widget", "one", "tests.example/v1", spec={"size": 3}))
    await lab.put(JOBS, JOB)
    await lab.put(f"{DEFAULT}/serviceaccounts", manifest("ServiceAccount", "default"))
    await lab.put(f"{DEFAULT}/pods", manifest("Pod", "bound", spec={**POD, "nodeName": "node-1"}))
    await lab.put(f"{DEFAULT}/services", manifest("Service", "front", spec={"ports": [{"port": 80}]}))
    address = (await lab.read(f"{DEFAULT}/services/front"))["spec"]["clusterIP"]
    then = await lab.backed_up()

    await lab.delete(f"{DEFAULT}/services/front")
    for each in (f"{DEFAULT}/configmaps/owner", f"{DEFAULT}/configmaps/owned", f"{WIDGETS}/one", f"{JOBS}/work"):
        await lab.delete(each)
    await lab.put(f"{DEFAULT}/configmaps", manifest("ConfigMap", "kept", data={"a": "new", "same": "x", "later": "y"}))
    await lab.put(f"{DEFAULT}/secrets", manifest("Secret", "password", data={"it": b64encode(b"other").decode()}))
    await lab.put(f"{DEFAULT}/configmaps", manifest("ConfigMap", "later", data={}))
    now = await lab.backed_up()

    await _compared(lab, then, now)
    kept = await lab.its.get("alpha", "cm", "kept", at=str(now))
    assert kept.document["data"] == {"a": "new", "same": "x", "later": "y"}
    assert [*scratch_folder(lab.home.folder, "alpha").iterdir()] == [], "nothing is left"
    async with lab.at(then) as get:
        await _read(get)
        await _created(lab, get)
        await lab.bring_back(await get("svc", "front"))
        assert (await lab.read(f"{DEFAULT}/services/front"))["spec"]["clusterIP"] == address
        await _changed(lab, get)
        await _refused(lab, get)


async def _served(lab: Lab) -> None:
    """Return once the apiserver has established the definition."""

    async def listed() -> None:
        assert await lab.read(WIDGETS) is not None

    await eventually(listed)


async def _compared(lab: Lab, then: int, now: int) -> None:
    found = await lab.its.diff("alpha", at=str(then), to=str(now))
    changes = {(each.kind.value, str(each.path)) for each in found.changes if not each.churn}
    assert changes >= {
        ("removed", "configmaps default/owner"),
        ("removed", "configmaps default/owned"),
        ("removed", "widgets.tests.example default/one"),
        ("removed", "jobs default/work"),
        ("changed", "configmaps default/kept"),
        ("changed", "secrets default/password"),
        ("added", "configmaps default/later"),
    }
    assert not any("pods" in words for _, words in changes)


async def _read(get: Get) -> None:
    """Also what is encrypted, and custom resources, by all their names."""
    secret = await get("secrets", "password")
    assert secret.document["data"] == {"it": SECRET}
    assert "managedFields" not in cast("dict[str, JsonValue]", secret.document["metadata"])
    widget = await get("wd", "default/one")
    assert (widget.document["apiVersion"], widget.document["spec"]) == ("tests.example/v1", {"size": 3})
    assert (await get("Namespace", "kube-system")).document["kind"] == "Namespace"
    with pytest.raises(NotFound, match="there was no such object in namespace default then"):
        await get("configmap", "later")
    with pytest.raises(NotFound, match="there was no resource type 'gadgets' then"):
        await get("gadgets", "one")
    with pytest.raises(InvalidInput, match="namespaces are in no namespace"):
        await get("ns", "default/default")


async def _created(lab: Lab, get: Get) -> None:
    """Without the owner that is gone: the object would be deleted with it."""
    former = await get("configmap", "owned")
    plan = await lab.bring_back(await get("configmap", "owned"))
    assert (plan.uid, [each.name for each in plan.dropped]) == ("", ["owner"])
    made = await lab.read(f"{DEFAULT}/configmaps/owned")
    assert made["data"] == {"a": "b"}
    assert "ownerReferences" not in made["metadata"]
    assert made["metadata"]["uid"] != cast("dict[str, JsonValue]", former.document["metadata"])["uid"]
    assert [each["manager"] for each in made["metadata"]["managedFields"]] == [MANAGER]
    assert not (await lab.bring_back(await get("widgets.tests.example", "one"))).uid
    assert (await lab.read(f"{WIDGETS}/one"))["spec"] == {"size": 3}
    await lab.bring_back(await get("job", "work"))
    job = await lab.read(f"{JOBS}/work")
    assert job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] == job["metadata"]["uid"]


async def _changed(lab: Lab, get: Get) -> None:
    plan = await lab.its.plan(await get("configmap", "kept"))
    assert [(each.path, each.before, each.after) for each in plan.changes] == [("data.a", "new", "old")]
    assert [each.path for each in plan.left] == ["data.later"]
    assert (await lab.read(f"{DEFAULT}/configmaps/kept"))["data"]["a"] == "new", "a plan changes nothing"
    await lab.its.bring_back(plan)
    assert (await lab.read(f"{DEFAULT}/configmaps/kept"))["data"] == {"a": "old", "same": "x", "later": "y"}
    assert (await lab.its.plan(plan.object)).changes_nothing
    secret = await lab.its.plan(await get("secret", "password"))
    assert [(each.path, each.before, each.after, each.hidden) for each in secret.changes] == [
        ("data.it", None, None, True)
    ]
    await lab.delete(f"{DEFAULT}/secrets/password")
    with pytest.raises(Conflict):
        await lab.its.bring_back(secret)


async def _refused(lab: Lab, get: Get) -> None:
    with pytest.raises(PreconditionFailed, match="it was bound to node node-1"):
        await lab.its.plan(await get("po", "bound"))
    await lab.put(
        f"{DEFAULT}/configmaps", manifest("ConfigMap", "kept", data={"a": "new"}, immutable=True), manager="another"
    )
    with pytest.raises(PreconditionFailed, match="delete it first"):
        await lab.its.plan(await get("configmap", "kept"))
    widget = await get("widget", "one")
    await lab.delete(f"{CRDS}/widgets.tests.example")
    with pytest.raises(PreconditionFailed, match=r"the plane does not serve widgets \(tests.example/v1\) now"):
        async with asyncio.timeout(60):
            while True:  # until the apiserver has forgotten the kind
                await lab.its.plan(widget)
    async with asyncio.timeout(60):
        while await lab.read(f"{CRDS}/widgets.tests.example") is not None:  # noqa: ASYNC110 - its finalizer ends later
            await asyncio.sleep(0.05)
    await lab.bring_back(await get("crd", "widgets.tests.example"))
    await _served(lab)
    await lab.bring_back(widget)
    assert (await lab.read(f"{WIDGETS}/one"))["spec"] == {"size": 3}, "its definition had to come first"


async def test_nothing_outlives_a_look_that_is_cancelled(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    then = await lab.backed_up()
    reading, place = asyncio.Event(), scratch_folder(lab.home.folder, "alpha")

    async def read(*_: object) -> BackedUpObject:
        reading.set()
        await asyncio.Event().wait()
        raise AssertionError("it is cancelled")

    monkeypatch.setattr(objects, "_read", read)
    looking = asyncio.ensure_future(lab.its.get("alpha", "configmap", "kept", at=str(then)))
    await reading.wait()
    modes = {each.stat().st_mode & 0o077 for each in place.iterdir()}
    assert (modes, len(working_in(place))) == ({0}, 4), "etcd, an apiserver, and a parent of each"
    assert not [each for each in working_in(place) if "PRIVATE KEY" in Path(f"/proc/{each}/cmdline").read_text()]
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    until(lambda: not working_in(place), "all have ended")
    assert [*place.iterdir()] == []
