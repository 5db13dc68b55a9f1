"""Permissions that quarterdeck gives: to cloud controller managers and holders of locks, in add-ons of its own, and to
administrators.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from pydantic import JsonValue

from quarterdeck.addons.content import Content
from quarterdeck.addons.objects import Manifest, wanted_of
from quarterdeck.api.plane.addons import CLOUD_ADDON, LOCKS_ADDON

#: The API group.
RBAC = "rbac.authorization.k8s.io"


def binding(namespace: str, name: str, kind: str, role: str, named: Mapping[str, tuple[str, ...]]) -> Manifest:
    """A RoleBinding, or in no ``namespace`` ("") a ClusterRoleBinding. ``named``: its users and groups, by kind."""
    subjects: JsonValue = [
        {"apiGroup": RBAC, "kind": each, "name": subject} for each, names in named.items() for subject in names
    ]
    metadata: dict[str, JsonValue] = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{'' if namespace else 'Cluster'}RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": subjects,
    }


#: The name in its certificate (``pki.issuance``).
_CLOUD_USER = "system:cloud-controller-manager"

#: API group, resources, verbs.
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
    """The add-on."""
    rules: list[JsonValue] = [
        {"apiGroups": [group], "resources": [*resources], "verbs": [*verbs]} for group, resources, verbs in _RULES
    ]
    role: Manifest = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _CLOUD_USER},
        "rules": rules,
    }
    manifests = (role, binding("", _CLOUD_USER, "ClusterRole", _CLOUD_USER, {"User": (_CLOUD_USER,)}))
    found = (wanted_of(each, "", {}) for each in manifests)
    return Content(CLOUD_ADDON, tuple(sorted(found, key=lambda each: each.ref)))


_NAME, _NAMESPACE = "quarterdeck:controller-locks", "kube-system"
#: The name in its certificate (``pki.issuance``).
_MANAGER = "system:kube-controller-manager"


@lru_cache(maxsize=64)
def for_locks(locks: tuple[str, ...]) -> Content:
    """The add-on, for locks in kube-system."""
    role: Manifest = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": _NAME, "namespace": _NAMESPACE},
        "rules": [
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": [*locks],
                "verbs": ["get", "update"],
            }
        ],
    }
    manifests = (role, binding(_NAMESPACE, _NAME, "Role", _NAME, {"User": (_MANAGER,)}))
    found = (wanted_of(each, "", {}) for each in manifests)
    return Content(LOCKS_ADDON, tuple(sorted(found, key=lambda each: each.ref)))


#: The group of people who administer a plane. A ClusterRoleBinding of the same name gives it ``cluster-admin``, so that
#: its permissions can be taken away (as kubeadm's ``kubeadm:cluster-admins``).
ADMINISTRATORS = "quarterdeck:cluster-admins"


def for_administrators() -> Manifest:
    """The ClusterRoleBinding of administrators. It is no add-on: one that a person deletes must not come back."""
    return binding("", ADMINISTRATORS, "ClusterRole", "cluster-admin", {"Group": (ADMINISTRATORS,)})
