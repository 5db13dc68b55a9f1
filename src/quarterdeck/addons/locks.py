"""What a kube-controller-manager may do besides, to hold locks of sets of controllers, as an add-on.

Its own role lets it create leases, and read and write the one that is called as it is (kubernetes: plugin/pkg/auth/
authorizer/rbac/bootstrappolicy). A cloud controller manager's lets it hold any (``addons.cloud``).
"""

from __future__ import annotations

from functools import lru_cache

from quarterdeck.addons.content import Content
from quarterdeck.addons.objects import Manifest, wanted_of
from quarterdeck.addons.rbac import RBAC, binding
from quarterdeck.api.plane.addons import LOCKS_ADDON

_NAME, _NAMESPACE = "quarterdeck:controller-locks", "kube-system"
#: The name in its certificate (``pki.issuing``).
_USER = "system:kube-controller-manager"


@lru_cache(maxsize=64)
def for_locks(locks: tuple[str, ...]) -> Content:
    """The objects, for locks that are in kube-system."""
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
    manifests = (role, binding(_NAMESPACE, _NAME, "Role", _NAME, {"User": (_USER,)}))
    found = (wanted_of(each, "", {}) for each in manifests)
    return Content(LOCKS_ADDON, tuple(sorted(found, key=lambda each: each.ref)))
