"""Audit policies: the default one, and the validation of the user's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from typing import TypeAlias

from quarterdeck.api.names import shortened
from quarterdeck.yaml_text import dumped

Rule: TypeAlias = Mapping[str, object]

_CONTROL_PLANE = ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
_READS = ["get", "list", "watch"]
_LEASES = [{"group": "coordination.k8s.io", "resources": ["leases"]}]
#: Their readers get keys, or access to a pod or a node.
_SECRET = [
    {
        "group": "",
        "resources": [
            "secrets",
            "configmaps",
            "serviceaccounts/token",
            "pods/attach",
            "pods/exec",
            "pods/portforward",
            "pods/proxy",
            "pods/ephemeralcontainers",
            "services/proxy",
            "nodes/proxy",
        ],
    },
    {"group": "authentication.k8s.io", "resources": ["tokenreviews"]},
    {"group": "certificates.k8s.io", "resources": ["certificatesigningrequests"]},
    {"group": "rbac.authorization.k8s.io"},
]

#: The first rule that matches a request decides.
_RULES: tuple[Rule, ...] = (
    {
        "level": "None",
        "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/metrics", "/openapi/*", "/version"],
    },
    {"level": "None", "resources": _LEASES, "users": _CONTROL_PLANE},
    {"level": "None", "resources": _LEASES, "userGroups": ["system:nodes"]},
    {
        "level": "None",
        "resources": [{"group": "", "resources": ["events"]}, {"group": "events.k8s.io", "resources": ["events"]}],
    },
    {
        "level": "Request",
        "users": [
            "system:serviceaccount:kube-system:node-controller",
            "system:kube-controller-manager",
            "system:cloud-controller-manager",
        ],
        "verbs": ["patch", "update"],
        "resources": [{"group": "", "resources": ["nodes"]}],
    },
    {"level": "None", "users": _CONTROL_PLANE, "verbs": _READS},
    {"level": "Metadata", "resources": _SECRET},
    {"level": "None", "verbs": _READS},
    {"level": "Metadata"},
)


@cache
def default_audit_policy() -> str:
    """The YAML of an audit.k8s.io/v1 Policy."""
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": True,
        # Each rule is a copy of its own: YAML would write a value that is there twice as an alias.
        "rules": [deepcopy(rule) for rule in _RULES],
    }
    return dumped(policy, sort_keys=False)


API_VERSION = "audit.k8s.io/v1"
_LEVELS = ("None", "Metadata", "Request", "RequestResponse")
_STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def policy_problems(policy: Mapping[str, object]) -> tuple[str, ...]:
    """``path: problem`` for each problem of an audit policy, parsed from YAML; empty for a valid one."""
    return tuple(_problems(policy))


def _problems(policy: Mapping[str, object]) -> Iterator[str]:
    if policy.get("apiVersion") != API_VERSION:
        yield f"apiVersion: must be {API_VERSION}, not {shortened(policy.get('apiVersion'))}"
    rules = policy.get("rules")
    if not isinstance(rules, list) or not rules:
        yield "rules: must be a list with at least one rule"
        rules = []
    yield from _stages("omitStages", policy.get("omitStages"))
    for number, rule in enumerate(rules):
        path = f"rules[{number}]"
        if isinstance(rule, dict):
            yield from _rule(path, rule)
        else:
            yield f"{path}: must be a mapping, not {shortened(rule)}"


def _rule(path: str, rule: Mapping[str, object]) -> Iterator[str]:
    if (level := rule.get("level")) not in _LEVELS:
        seen = "is missing" if level is None else f"{shortened(level)} is not one of the levels"
        yield f"{path}.level: {seen}; write {', '.join(_LEVELS)}"
    yield from _stages(f"{path}.omitStages", rule.get("omitStages"))
    urls = _listed(rule.get("nonResourceURLs"))
    for number, url in enumerate(urls):
        if url != "*" and (not isinstance(url, str) or not url.startswith("/") or "*" in url[:-1]):
            yield f"{path}.nonResourceURLs[{number}]: {shortened(url)} must begin with / and have * only at its end"
    resources = _listed(rule.get("resources"))
    if urls and (resources or _listed(rule.get("namespaces"))):
        yield f"{path}.nonResourceURLs: a rule is either for these or for resources and namespaces; write two rules"
    for number, each in enumerate(resources):
        if isinstance(each, dict):
            yield from _resources(f"{path}.resources[{number}]", each)


def _resources(path: str, each: Mapping[str, object]) -> Iterator[str]:
    group = each.get("group") or ""
    if group not in ("", "*") and (not isinstance(group, str) or _SUBDOMAIN.fullmatch(group) is None):
        yield f"{path}.group: {shortened(group)} is not the name of an API group, which has no version"
    if _listed(each.get("resourceNames")) and not _listed(each.get("resources")):
        yield f"{path}.resourceNames: is given without resources"


def _stages(path: str, value: object) -> Iterator[str]:
    for number, stage in enumerate(_listed(value)):
        if stage not in _STAGES:
            yield f"{path}[{number}]: {shortened(stage)} is not a stage; there are {', '.join(_STAGES)}"


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()
