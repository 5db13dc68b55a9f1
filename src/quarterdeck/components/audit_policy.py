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

from functools import cache

from quarterdeck.yaml_text import dumped

_CONTROL_PLANE = ("system:apiserver", "system:kube-controller-manager", "system:kube-scheduler")
_READS = ("get", "list", "watch")
_OF_NODES = (
    "system:serviceaccount:kube-system:node-controller",
    "system:kube-controller-manager",
    "system:cloud-controller-manager",
)


@cache
def default_audit_policy() -> str:
    """The YAML of an audit.k8s.io/v1 Policy; the first rule that fits a request decides."""
    bodies = {
        "level": "Request",
        "users": list(_OF_NODES),
        "verbs": ["patch", "update"],
        "resources": _of("", "nodes"),
    }
    return dumped(
        {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "omitManagedFields": True,
            "rules": [
                {
                    "level": "None",
                    "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/metrics", "/openapi/*", "/version"],
                },
                {"level": "None", "resources": _of("coordination.k8s.io", "leases"), "users": list(_CONTROL_PLANE)},
                {
                    "level": "None",
                    "resources": _of("coordination.k8s.io", "leases"),
                    "userGroups": ["system:nodes"],
                },
                {"level": "None", "resources": [*_of("", "events"), *_of("events.k8s.io", "events")]},
                bodies,
                {"level": "None", "users": list(_CONTROL_PLANE), "verbs": list(_READS)},
                {
                    # Whoever reads these holds keys, or is inside of a pod or a node.
                    "level": "Metadata",
                    "resources": [
                        *_of(
                            "",
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
                        ),
                        *_of("authentication.k8s.io", "tokenreviews"),
                        *_of("certificates.k8s.io", "certificatesigningrequests"),
                        {"group": "rbac.authorization.k8s.io"},
                    ],
                },
                {"level": "None", "verbs": list(_READS)},
                {"level": "Metadata"},
            ],
        },
        sort_keys=False,
    )


def _of(group: str, *resources: str) -> list[dict[str, object]]:
    return [{"group": group, "resources": list(resources)}]
