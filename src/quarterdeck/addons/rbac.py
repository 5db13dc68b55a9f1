"""Who may do what, as quarterdeck's own add-ons say it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from quarterdeck.addons.objects import Manifest

#: The API group.
RBAC = "rbac.authorization.k8s.io"


def binding(namespace: str, name: str, kind: str, role: str, who: Mapping[str, tuple[str, ...]]) -> Manifest:
    """A RoleBinding, or in no ``namespace`` ("") a ClusterRoleBinding. ``who``: names of users and groups, by their
    kind.
    """
    subjects: JsonValue = [
        {"apiGroup": RBAC, "kind": each, "name": subject} for each, names in who.items() for subject in names
    ]
    metadata: dict[str, JsonValue] = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{'' if namespace else 'Cluster'}RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": subjects,
    }
