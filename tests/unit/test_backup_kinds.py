"""Which kind a person means, as kubectl takes types."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.kube import FakeApiserver, FakeKube
from support.golden import Golden

from quarterdeck.backup.kubernetes.kinds import ServedKinds, chosen_kind, served_kinds
from quarterdeck.errors import InvalidInput, NotFound
from quarterdeck.kube.port import Address, ApiResource

APISERVER = Address("127.0.0.1", 6443)


def kind(group: str, name: str, plural: str, *short: str, version: str = "v1") -> ApiResource:
    return ApiResource(group, version, name, plural, namespaced=True, singular=name.lower(), short_names=short)


SERVICE = kind("", "Service", "services", "svc")
DEPLOYMENT = kind("apps", "Deployment", "deployments", "deploy")
EVENT, OTHER_EVENT = kind("", "Event", "events", "ev"), kind("events.k8s.io", "Event", "events", "ev")
OLD, NEW = (kind("autoscaling", "Scaler", "scalers", version=each) for each in ("v1", "v2"))
KNATIVE = kind("serving.example", "Service", "services", "ksvc")
BACKUPS = [kind(f"{each}.example", "Backup", "backups", "bk") for each in ("one", "two")]
KINDS = ServedKinds((SERVICE, EVENT, DEPLOYMENT, NEW, OLD, OTHER_EVENT), (KNATIVE, *BACKUPS))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("services", SERVICE),
        ("service", SERVICE),
        ("Service", SERVICE),
        ("svc", SERVICE),
        ("services.serving.example", KNATIVE),
        ("ksvc", KNATIVE),
        ("deploy", DEPLOYMENT),
        ("deployments.apps", DEPLOYMENT),
        ("Deployment.v1.apps", DEPLOYMENT),
        ("ev", EVENT),
        ("events.events.k8s.io", OTHER_EVENT),
        ("scalers", NEW),
        ("scalers.v1.autoscaling", OLD),
        ("backups.two.example", BACKUPS[1]),
        ("bk.one.example", BACKUPS[0]),
    ],
)
def test_a_type_is_one_of_its_names_and_its_group_where_that_is_needed(text: str, meant: ApiResource) -> None:
    assert chosen_kind(KINDS, text, "reading") is meant


@pytest.mark.parametrize("text", ["bk", "backups", "Backup"])
def test_several_kinds_of_a_name_are_named(text: str, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        chosen_kind(KINDS, text, f"reading {text} one")


@pytest.mark.parametrize("text", ["", "gadgets", "services.apps", "deployments.v2.apps", "."])
def test_an_unknown_type_is_not_guessed(text: str) -> None:
    with pytest.raises(NotFound, match="there was no resource type"):
        chosen_kind(KINDS, text, "reading")


def definition(plural: str, *versions: tuple[str, bool, bool]) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{plural}.tests.example"},
        "spec": {
            "group": "tests.example",
            "scope": "Cluster",
            "names": {"plural": plural, "singular": "one", "kind": "One", "shortNames": ["o"]},
            "versions": [{"name": name, "served": served, "storage": stored} for name, served, stored in versions],
        },
    }


async def test_custom_kinds_are_read_from_their_definitions_in_the_version_that_is_stored() -> None:
    kube = FakeKube(apiservers={APISERVER: FakeApiserver()})
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for plural, versions in (
        ("ones", (("v2", True, False), ("v1", True, True), ("v0", False, False))),
        ("former", (("v1beta1", False, True), ("v1", True, False))),
        ("gone", (("v1", False, True),)),
    ):
        kube.objects.put(f"{path}/{plural}.tests.example", definition(plural, *versions))
    kube.objects.establish()
    kinds = await served_kinds(kube, APISERVER, f"{path}?resourceVersion=7&resourceVersionMatch=Exact")
    found = {each.plural: (each.version, each.singular, each.short_names, each.namespaced) for each in kinds.custom}
    assert found == {"ones": ("v1", "one", ("o",), False), "former": ("v1", "one", ("o",), False)}
    assert "ones" not in {each.plural for each in kinds.upstream}, "it is announced as well"
    assert chosen_kind(kinds, "cm", "reading").kind == "ConfigMap"
