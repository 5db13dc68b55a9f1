"""What of an object out of a backup is applied, what that changes, and which objects are not brought back."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue
from support.golden import Golden

from quarterdeck.backup.kubernetes.bring_back import applicable, field_changes, owners_of, printable, warnings, why_not


def object_of(kind: str, version: str = "v1", **content: Any) -> dict[str, JsonValue]:
    metadata = {
        "name": "one",
        "namespace": "default",
        "uid": "u1",
        "resourceVersion": "7",
        "generation": 3,
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "deletionTimestamp": "2030-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 30,
        "managedFields": [{"manager": "somebody"}],
        **content.pop("metadata", {}),
    }
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


def owner(name: str, kind: str = "Deployment") -> dict[str, JsonValue]:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def test_what_the_apiserver_writes_and_the_status_are_not_applied() -> None:
    labels = {"app": "one"}
    found = object_of("Service", metadata={"labels": labels}, spec={"clusterIP": "10.0.0.9"}, status={"x": 1})
    assert applicable(found) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "one", "namespace": "default", "labels": labels},
        "spec": {"clusterIP": "10.0.0.9"},
    }
    assert "status" in found, "the object itself stays as it is"


def test_owners_that_are_gone_are_left_out_and_the_others_stay() -> None:
    found = object_of("ReplicaSet", "apps/v1", metadata={"ownerReferences": [owner("a"), owner("b")]})
    first, second = owners_of(found)
    assert (first.group, first.kind, first.name, first.uid) == ("apps", "Deployment", "a", "uid-a")
    kept = applicable(found, without=(first,))["metadata"]
    assert isinstance(kept, dict)
    assert kept["ownerReferences"] == [owner("b")]
    alone = applicable(found, without=(first, second))["metadata"]
    assert isinstance(alone, dict)
    assert "ownerReferences" not in alone


def test_a_deletion_that_was_under_way_does_not_come_back() -> None:
    found = object_of("ConfigMap", metadata={"finalizers": ["foregroundDeletion", "example.com/kept"]})
    kept = applicable(found)["metadata"]
    assert isinstance(kept, dict)
    assert kept["finalizers"] == ["example.com/kept"]
    gone = applicable(object_of("ConfigMap", metadata={"finalizers": ["orphan"]}))["metadata"]
    assert isinstance(gone, dict)
    assert "finalizers" not in gone


@pytest.mark.parametrize("manual", [False, True])
def test_a_job_gets_another_selector_unless_a_person_chose_it(manual: bool) -> None:
    labels = {"batch.kubernetes.io/controller-uid": "u1", "controller-uid": "u1", "app": "one"}
    spec: dict[str, Any] = {
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
        "template": {"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never"}},
        "manualSelector": manual,
    }
    made: dict[str, Any] = applicable(object_of("Job", "batch/v1", spec=spec, metadata={"labels": labels}))
    if manual:
        assert made["spec"] == spec
        return
    assert "selector" not in made["spec"]
    assert made["spec"]["template"] == {"metadata": {"labels": {"app": "one"}}, "spec": {"restartPolicy": "Never"}}
    assert made["metadata"]["labels"] == {"app": "one"}
    assert "selector" in spec, "the object itself stays as it is"


def test_an_object_is_printed_without_its_managed_fields() -> None:
    metadata = printable(object_of("ConfigMap", data={}))["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["uid"] == "u1"
    assert "managedFields" not in metadata


@pytest.mark.parametrize(
    "found",
    [
        object_of("Node"),
        object_of("Event"),
        object_of("Event", "events.k8s.io/v1"),
        object_of("Lease", "coordination.k8s.io/v1"),
        object_of("Pod", spec={"nodeName": "node-1"}),
    ],
    ids=lambda each: f"{each['apiVersion']}/{each['kind']}",
)
def test_what_others_write_by_themselves_is_not_brought_back(found: dict[str, JsonValue], golden: Golden) -> None:
    golden(why_not(found))


@pytest.mark.parametrize(
    "found", [object_of("Pod", spec={}), object_of("Secret"), object_of("Node", "tests.example/v1")]
)
def test_all_else_can_be_brought_back(found: dict[str, JsonValue]) -> None:
    assert why_not(found) == ""


def test_changes_are_told_by_fields() -> None:
    before = object_of("Deployment", "apps/v1", spec={"replicas": 3, "a": [1, {"b": 2}], "c": [1], "gone": {"x": 1}})
    after = object_of(
        "Deployment", "apps/v1", spec={"replicas": 5, "a": [1, {"b": 3}], "c": [1, 2], "new": None}, status={"x": 1}
    )
    after["metadata"] = {"name": "one", "namespace": "default", "uid": "another", "labels": {"app": "one"}}
    found = [(each.path, each.before, each.after) for each in field_changes(before, after)]
    assert found == [
        ("metadata.labels", None, {"app": "one"}),
        ("spec.a[1].b", 2, 3),
        ("spec.c", [1], [1, 2]),
        ("spec.gone", {"x": 1}, None),
        ("spec.replicas", 3, 5),
    ]


def test_no_value_of_a_secret_is_told() -> None:
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    before = object_of("Secret", data={"a": "HUNTER2"}, type="Opaque", metadata={"annotations": {applied: "HUNTER2"}})
    after = object_of("Secret", data={"a": "HUNTER3"}, type="x", metadata={"annotations": {applied: "HUNTER3"}})
    found = field_changes(before, after)
    assert [(each.path, each.hidden) for each in found] == [
        ("data.a", True),
        (f"metadata.annotations.{applied}", True),
        ("type", False),
    ]
    assert "HUNTER" not in str(found)
    assert "HUNTER" not in str(field_changes(object_of("Secret", type="Opaque"), before)), "nor as a whole"


@pytest.mark.parametrize("created", [True, False], ids=["created", "changed"])
@pytest.mark.parametrize(
    "kind", ["PersistentVolume", "PersistentVolumeClaim", "ServiceAccount", "token", "Secret", "Pod"]
)
def test_what_does_not_come_back_with_an_object_is_said(kind: str, created: bool, golden: Golden) -> None:
    token = {
        "type": "kubernetes.io/service-account-token",
        "metadata": {
            "annotations": {"kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": "u7"}
        },
        "data": {"token": "c2VjcmV0"},
    }
    found = object_of("Secret", **token) if kind == "token" else object_of(kind)
    said = warnings(found, created=created)
    expected = kind in ("PersistentVolume", "PersistentVolumeClaim", "token") or (kind == "ServiceAccount" and created)
    assert bool(said) == expected
    for each in said:
        golden(each)
