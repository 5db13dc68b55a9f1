"""What a cloud controller manager may do in a plane, as an add-on.

The rules are those that upstream's documents give one (kubernetes.io: Cloud Controller Manager, Authorization) and what
its controllers do besides (k8s.io/cloud-provider 0.33 to 0.36): it holds leases, tells events as ``events.k8s.io`` has
them too, has tokens made for controllers that are given accounts of their own, and asks who may read its port.
"""

from __future__ import annotations

from functools import cache

from pydantic import JsonValue

from quarterdeck.addons.content import Content
from quarterdeck.addons.objects import Manifest, wanted_of
from quarterdeck.addons.rbac import RBAC, binding
from quarterdeck.api.plane.addons import CLOUD_ADDON

#: The name in its certificate (``pki.issuing``).
_USER = "system:cloud-controller-manager"

#: API group, resources, what may be done to them.
_RULES = (
    ("", ("events",), ("create", "patch", "update")),
    ("events.k8s.io", ("events",), ("create", "patch", "update")),
    ("", ("nodes",), ("*",)),
    ("", ("nodes/status",), ("patch", "update")),
    ("", ("services",), ("get", "list", "patch", "update", "watch")),
    ("", ("services/status",), ("patch", "update")),
    ("", ("serviceaccounts",), ("create", "get")),
    ("", ("serviceaccounts/token",), ("create",)),
    ("", ("persistentvolumes",), ("get", "list", "update", "watch")),
    ("", ("endpoints",), ("create", "get", "list", "update", "watch")),
    ("coordination.k8s.io", ("leases",), ("create", "get", "list", "update", "watch")),
    ("authentication.k8s.io", ("tokenreviews",), ("create",)),
    ("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
)


@cache
def for_cloud() -> Content:
    """The objects."""
    rules: list[JsonValue] = [
        {"apiGroups": [group], "resources": [*resources], "verbs": [*verbs]} for group, resources, verbs in _RULES
    ]
    role: Manifest = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _USER},
        "rules": rules,
    }
    manifests = (role, binding("", _USER, "ClusterRole", _USER, {"User": (_USER,)}))
    found = (wanted_of(each, "", {}) for each in manifests)
    return Content(CLOUD_ADDON, tuple(sorted(found, key=lambda each: each.ref)))
