"""Which webhooks are called for leases, and what users of add-ons that have some are told."""

from __future__ import annotations

from typing import Any

import pytest
from support.golden import Golden

from quarterdeck.addons.content import contents
from quarterdeck.addons.lease_webhooks import lease_webhooks, warnings_of

NAME = "kubernetes.io/metadata.name"
ALL = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}
LEASES = {
    "apiGroups": ["coordination.k8s.io"],
    "apiVersions": ["v1"],
    "resources": ["leases"],
    "operations": ["UPDATE"],
}
BOTH, SYSTEM, NODES, NONE = ("kube-system", "kube-node-lease"), ("kube-system",), ("kube-node-lease",), ()


def configuration(rule: dict[str, Any] | None = None, **webhook: Any) -> dict[str, Any]:
    made = {"name": "all.example.com", "rules": [ALL if rule is None else rule], **webhook}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "example"},
        "webhooks": [made],
    }


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


@pytest.mark.parametrize(
    ("rule", "namespaces"),
    [
        (ALL, BOTH),
        (LEASES, BOTH),
        (ALL | {"resources": ["*/*"]}, BOTH),
        (LEASES | {"resources": ["leases/*"]}, BOTH),
        (LEASES | {"resources": ["pods", "leases"]}, BOTH),
        (LEASES | {"operations": ["CREATE"]}, BOTH),
        (LEASES | {"apiVersions": ["v1beta1"]}, BOTH),  # leases are converted for it
        (LEASES | {"scope": "Namespaced"}, BOTH),
        (LEASES | {"scope": "*"}, BOTH),
        (LEASES | {"scope": "Cluster"}, NONE),
        (LEASES | {"operations": ["DELETE", "CONNECT"]}, NONE),
        (LEASES | {"resources": ["leases/status"]}, NONE),
        (LEASES | {"resources": ["*/scale"]}, NONE),
        (LEASES | {"apiGroups": [""]}, NONE),
        (ALL | {"resources": ["pods"]}, NONE),
    ],
)
def test_a_rule_takes_leases_as_the_apiserver_reads_it(rule: dict[str, Any], namespaces: tuple[str, ...]) -> None:
    found = lease_webhooks(configuration(rule))
    assert [each.namespaces for each in found] == ([namespaces] if namespaces else [])


@pytest.mark.parametrize(
    ("webhook", "namespaces"),
    [
        ({}, BOTH),
        ({"namespaceSelector": {}}, BOTH),
        ({"namespaceSelector": expression(NAME, "NotIn", "kube-system")}, NODES),
        ({"namespaceSelector": expression(NAME, "NotIn", "kube-system", "kube-node-lease")}, NONE),
        ({"namespaceSelector": expression(NAME, "In", "kube-system", "mine")}, SYSTEM),
        ({"namespaceSelector": {"matchLabels": {NAME: "kube-system"}}}, SYSTEM),
        ({"namespaceSelector": {"matchLabels": {"webhook": "on"}}}, NONE),
        ({"namespaceSelector": expression("webhook", "Exists")}, NONE),
        ({"namespaceSelector": expression("control-plane", "DoesNotExist")}, BOTH),
        ({"objectSelector": {"matchLabels": {"app": "mine"}}}, NONE),
        ({"objectSelector": expression("skip", "DoesNotExist")}, BOTH),
        ({"matchPolicy": "Exact"}, BOTH),
    ],
)
def test_selectors_leave_namespaces_and_objects_out(webhook: dict[str, Any], namespaces: tuple[str, ...]) -> None:
    found = lease_webhooks(configuration(**webhook))
    assert [each.namespaces for each in found] == ([namespaces] if namespaces else [])


def test_only_the_very_version_counts_where_it_is_to_be_exact() -> None:
    assert not lease_webhooks(configuration(LEASES | {"apiVersions": ["v1beta1"]}, matchPolicy="Exact"))


def test_the_labels_that_a_namespace_has_count() -> None:
    marked = configuration(namespaceSelector=expression("control-plane", "DoesNotExist"))
    (found,) = lease_webhooks(marked, {"kube-system": {"control-plane": "yes"}})
    assert found.namespaces == NODES


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicy", "ConfigMap"])
def test_objects_of_other_kinds_have_no_webhooks(kind: str) -> None:
    assert not lease_webhooks({**configuration(), "kind": kind})
    assert not lease_webhooks({**configuration(), "apiVersion": "example.com/v1"})


def test_users_are_told_of_each_webhook_what_it_can_do_and_how_to_leave_leases_out(golden: Golden) -> None:
    safe = configuration(namespaceSelector=expression(NAME, "NotIn", *BOTH))
    risky = configuration(failurePolicy="Ignore", timeoutSeconds=30, matchConditions=[{"name": "a", "expression": "b"}])
    read = contents([("safe", "", [safe]), ("risky", "", [{**risky, "metadata": {"name": "other"}}])], "demo")
    ((addon, words),) = warnings_of(read)
    assert addon == "risky"
    golden(words)
