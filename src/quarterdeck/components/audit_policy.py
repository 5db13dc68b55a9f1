"""What an apiserver writes into its audit log unless the user gives a policy.

Who did what to which object, when, from where, and how it was answered: no Secret's content and no token. All writes,
and those reads that give away secrets or open a way into a pod; other reads are many and change nothing. The noise of
the control plane itself is left out: leases, events, health.

The one body that is written is that of a controller's patch or update of a Node (not of its status). Controllers of
both managers share the client name ``node-controller`` (kubernetes: cmd/kube-controller-manager/app/core.go,
k8s.io/cloud-provider: app/controllermanager.go), and only what they set says which of them it was. Nodes hold no
secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import TypeAlias

from quarterdeck.yaml_text import dumped

Rule: TypeAlias = Mapping[str, object]

_CONTROL_PLANE = ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
_READS = ["get", "list", "watch"]
_LEASES = [{"group": "coordination.k8s.io", "resources": ["leases"]}]
#: Whoever reads these holds keys, or is inside of a pod or a node.
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

#: The first rule that fits a request decides.
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
