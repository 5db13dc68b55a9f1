"""Objects out of a backup, read and brought back: what is asked of the apiserver, and what the plane must have."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fakes.kube import FakeApiserver, FakeKube
from pydantic import JsonValue
from support.databases import AT
from support.golden import Golden

from quarterdeck.app.backup import objects
from quarterdeck.app.backup.objects import BackedUpObject, BackedUpObjects
from quarterdeck.backup.kubernetes.bring_back import MANAGER
from quarterdeck.backup.kubernetes.object_changes import ComparedMoment
from quarterdeck.backup.kubernetes.scratch_apiserver import ScratchApiserver
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Conflict, InvalidInput, NotFound, PreconditionFailed, QuarterdeckError
from quarterdeck.kube.port import Address, ApiResource, Refusal, Refused

APISERVER = Address("127.0.0.1", 6443)
MOMENT = ComparedMoment(0, 1040, AT)
CONFIG_MAP = ApiResource("", "v1", "ConfigMap", "configmaps", namespaced=True)
PATH = "/api/v1/namespaces/default/configmaps/one"
Document = Mapping[str, JsonValue]


def document(**content: JsonValue) -> dict[str, JsonValue]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": "default", "uid": "old", "resourceVersion": "9"},
        **content,
    }


def found(content: Document, resource: ApiResource = CONFIG_MAP, namespace: str = "default") -> BackedUpObject:
    return BackedUpObject(
        plane="alpha", moment=MOMENT, resource=resource, namespace=namespace, name="one", document=content
    )


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube(apiservers={APISERVER: FakeApiserver()})


@pytest.fixture
def its(kube: FakeKube, monkeypatch: pytest.MonkeyPatch) -> BackedUpObjects:
    @asynccontextmanager
    async def open_plane(*_: object) -> AsyncIterator[Any]:
        yield SimpleNamespace(kube=kube)

    async def ready_apiserver(*_: object) -> Address:
        return APISERVER

    async def in_reach(*_: object) -> None: ...

    monkeypatch.setattr(objects, "open_plane", open_plane)
    monkeypatch.setattr(objects, "ready_apiserver", ready_apiserver)
    monkeypatch.setattr(objects, "require_plane_in_reach", in_reach)
    return BackedUpObjects(cast("Home", None), cast("Any", None), cast("Any", None))


def reader(kube: FakeKube) -> ScratchApiserver:
    return ScratchApiserver(kube, APISERVER, 1040)


async def read(kube: FakeKube, kind: str, name: str) -> BackedUpObject:
    return await objects._read(reader(kube), "alpha", kind, name, MOMENT)


# --- reading --------------------------------------------------------------------------------------------------------


async def test_an_object_is_read_as_of_the_revision_with_its_kind(kube: FakeKube) -> None:
    kube.objects.put(PATH, {"metadata": {"name": "one", "namespace": "default"}, "data": {"a": "b"}})
    asked: list[str] = []
    plain = kube.objects.read

    async def noted(apiserver: Address, path: str) -> JsonValue:
        asked.append(path)
        return await plain(apiserver, path)

    kube.objects.read = noted  # type: ignore[method-assign]
    one = await read(kube, "cm", "one")
    assert (one.document["apiVersion"], one.document["kind"], one.document["data"]) == ("v1", "ConfigMap", {"a": "b"})
    assert (one.called, one.path) == ("configmaps default/one", PATH)
    assert all("resourceVersion=1040&resourceVersionMatch=Exact" in each for each in asked)
    assert "HUNTER" not in repr(found(document(data={"a": "HUNTER"}))), "it may be a Secret"


async def test_an_object_without_a_namespace_is_called_by_its_name_alone(kube: FakeKube) -> None:
    one = await read(kube, "ns", "kube-system")
    assert (one.namespace, one.called) == ("", "namespaces kube-system")


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        ("cm", "default/none", NotFound),
        ("ns", "none", NotFound),
        ("gadgets", "one", NotFound),
        ("cm", "", InvalidInput),
        ("cm", "a/b/c", InvalidInput),
        ("cm", "default/", InvalidInput),
        ("ns", "default/default", InvalidInput),
    ],
)
async def test_what_is_not_there_or_not_named_is_said(
    kube: FakeKube, kind: str, name: str, error: type[QuarterdeckError], golden: Golden
) -> None:
    with golden.raises(error):
        await read(kube, kind, name)


# --- bringing back --------------------------------------------------------------------------------------------------


async def test_what_is_gone_is_created_by_a_manager_of_its_own(kube: FakeKube, its: BackedUpObjects) -> None:
    plan = await its.plan(found(document(data={"a": "b"})))
    assert (plan.uid, plan.changes, plan.left, plan.changes_nothing) == ("", (), (), False)
    assert PATH not in kube.objects.objects, "a plan changes nothing"
    await its.bring_back(plan)
    made = kube.objects.objects[PATH]
    assert made.fields["data", "a"] == "b"
    assert ("metadata", "uid") not in made.fields
    assert set(made.owners) == {MANAGER}


async def test_what_exists_is_changed_and_what_was_added_since_is_told_and_stays(
    kube: FakeKube, its: BackedUpObjects
) -> None:
    kube.objects.put(PATH, document(data={"a": "new", "later": "x"}))
    plan = await its.plan(found(document(data={"a": "old"})))
    assert [(each.path, each.before, each.after) for each in plan.changes] == [("data.a", "new", "old")]
    assert [each.path for each in plan.left] == ["data.later"]
    await its.bring_back(plan)
    assert {name[-1]: value for name, value in kube.objects.objects[PATH].fields.items() if name[0] == "data"} == {
        "a": "old",
        "later": "x",
    }
    assert (await its.plan(found(document(data={"a": "old"})))).changes_nothing


async def test_owners_are_kept_only_if_they_are_still_the_same(kube: FakeKube, its: BackedUpObjects) -> None:
    there = kube.objects.put("/apis/apps/v1/namespaces/default/deployments/there", {"metadata": {"name": "there"}})
    kube.objects.put("/apis/apps/v1/namespaces/default/deployments/again", {"metadata": {"name": "again"}})
    owners: list[JsonValue] = [
        {"apiVersion": version, "kind": kind, "name": name, "uid": uid}
        for version, kind, name, uid in (
            ("apps/v1", "Deployment", "there", there.uid),
            ("apps/v1", "Deployment", "again", "another"),
            ("apps/v1", "Deployment", "gone", "gone"),
            ("tests.example/v1", "Widget", "unknown", "unknown"),
        )
    ]
    metadata: JsonValue = {"name": "one", "namespace": "default", "ownerReferences": owners}
    plan = await its.plan(found(document(metadata=metadata)))
    assert [each.name for each in plan.dropped] == ["again", "gone", "unknown"]
    await its.bring_back(plan)
    assert kube.objects.objects[PATH].fields["metadata", "ownerReferences"] == owners[:1]


async def test_an_object_that_came_or_went_since_it_was_planned_is_not_touched(
    kube: FakeKube, its: BackedUpObjects, golden: Golden
) -> None:
    plan = await its.plan(found(document(data={})))
    kube.objects.put(PATH, document(data={"a": "somebody's"}))
    with golden.raises(Conflict):
        await its.bring_back(plan)
    assert kube.objects.objects[PATH].fields["data", "a"] == "somebody's"


async def test_an_object_that_is_being_deleted_is_waited_for(
    kube: FakeKube, its: BackedUpObjects, golden: Golden
) -> None:
    kube.objects.put(PATH, document(data={})).deleting = True
    with golden.raises(PreconditionFailed):
        await its.plan(found(document(data={"a": "b"})))


WIDGET = ApiResource("tests.example", "v1", "Widget", "widgets", namespaced=True)


@pytest.mark.parametrize(
    "one",
    [
        found({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}}, namespace=""),
        found(document(), namespace="nowhere"),
        found({"apiVersion": "tests.example/v1", "kind": "Widget", "metadata": {"name": "one"}}, WIDGET),
    ],
    ids=["a node", "no namespace", "no kind"],
)
async def test_what_cannot_be_brought_back_is_refused_with_the_reason(
    kube: FakeKube, its: BackedUpObjects, one: BackedUpObject, golden: Golden
) -> None:
    with golden.raises(PreconditionFailed):
        await its.plan(one)
    assert kube.objects.calls == []


@pytest.mark.parametrize("exists", [False, True])
async def test_the_planes_own_words_are_said_when_it_refuses(
    kube: FakeKube, its: BackedUpObjects, exists: bool, golden: Golden
) -> None:
    if exists:
        kube.objects.put(PATH, document(data={}))
    plan = await its.plan(found(document(data={"a": "b"})))
    kube.objects.refuses["one"] = Refused("applying", "Invalid (422): field is immutable", Refusal.INVALID)
    for refused in (its.plan(found(document(data={"a": "b"}))), its.bring_back(plan)):
        with golden.raises(PreconditionFailed):
            await refused
