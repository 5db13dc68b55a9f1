"""A policy that leaves out what controllers do makes a log that proves nothing."""

from __future__ import annotations

import pytest
from support.lock_histories import KCM, SET

from quarterdeck.api.plane.controllers import ControllerSetSpec
from quarterdeck.components.audit_policy import default_audit_policy
from quarterdeck.handover.policies import left_out
from quarterdeck.yaml_text import dumped

CLOUD = ControllerSetSpec(
    name="cloud",
    lock="cloud",
    owner=KCM,
    controllers=(
        "cloud-node-controller",
        "cloud-node-lifecycle-controller",
        "node-route-controller",
        "service-lb-controller",
        "node-lifecycle-controller",
        "job-controller",
    ),
)
ALL = {"level": "Metadata"}


def policy(*rules: dict[str, object], **more: object) -> str:
    return dumped({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more})


def test_the_default_policy_leaves_out_nothing() -> None:
    assert left_out(default_audit_policy(), (SET, CLOUD)) == ()


@pytest.mark.parametrize(
    "made",
    [
        policy(),
        policy({"level": "None"}, ALL),
        policy({"level": "None", "verbs": ["patch"]}, ALL),
        policy({"level": "None", "resources": [{"group": "", "resources": ["nodes"]}]}, ALL),
        policy({"level": "None", "resources": [{"group": "", "resources": ["nodes"], "resourceNames": ["a"]}]}, ALL),
        policy({"level": "None", "resources": [{"group": ""}]}, ALL),
        policy({"level": "None", "resources": [{"group": "*", "resources": ["*"]}]}, ALL),
        policy({"level": "None", "resources": [{"resources": ["nodes/*"]}]}, ALL),
        policy({"level": "None", "users": ["system:serviceaccount:kube-system:node-controller"]}, ALL),
        policy({"level": "None", "users": ["system:cloud-controller-manager"]}, ALL),
        policy({"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]}, ALL),
        policy({"level": "Metadata", "namespaces": ["a"]}),
        policy({"level": "Metadata", "omitStages": ["ResponseComplete"]}),
        policy(ALL, omitStages=["ResponseComplete"]),
        "rules: [",
        "a word",
    ],
)
def test_what_may_be_left_out_is_said(made: str) -> None:
    assert left_out(made, (SET,))


@pytest.mark.parametrize(
    "rule",
    [
        {"level": "None", "users": ["jane"]},
        {"level": "None", "verbs": ["get"]},
        {"level": "None", "userGroups": ["system:nodes"]},
        {"level": "None", "resources": [{"group": "", "resources": ["nodes/status", "pods"]}]},
        {"level": "None", "resources": [{"group": "apps"}]},
        {"level": "None", "nonResourceURLs": ["/*"]},
        {"level": "None", "namespaces": ["kube-system"]},
        {"level": "Request", "resources": [{"group": "", "resources": ["*"]}]},
    ],
)
def test_what_is_of_others_leaves_out_nothing(rule: dict[str, object]) -> None:
    assert left_out(policy(rule, ALL), (SET,)) == ()
    assert left_out(policy(ALL, {"level": "None"}), (SET,)) == (), "the first that fits decides"


def test_statuses_are_resources_of_their_own() -> None:
    found = left_out(policy({"level": "None", "resources": [{"group": "", "resources": ["*/status"]}]}, ALL), (CLOUD,))
    assert {each.rpartition(": ")[2] for each in found} == {
        "patch nodes/status",
        "update nodes/status",
        "patch services/status",
    }
