"""The keys of kube-apiserver in etcd: which object each of them is. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

#: Where kube-apiserver stores its objects (``--etcd-prefix``).
PREFIX = "/registry"


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """The object that a key of kube-apiserver is. ``namespace`` is "" for objects without one; ``group`` is "" for
    resources that are built in, whose keys do not say it.
    """

    group: str
    resource: str
    namespace: str
    name: str

    @property
    def qualified_resource(self) -> str:
        """The resource with its group, as ``widgets.example.com``."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @override
    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.qualified_resource} {name}"


#: What kube-apiserver calls resources in its keys, where that is not their name (kubernetes: pkg/registry/core/rest).
_RESOURCES = {
    "minions": "nodes",
    "controllers": "replicationcontrollers",
    "ingress": "ingresses",
    "services/specs": "services",
    "services/endpoints": "endpoints",
}


def resource_path(key: bytes, *, prefix: str = PREFIX) -> ResourcePath | None:
    """The object of a key below ``prefix``; None for a key of another kind."""
    text = key.decode(errors="replace")
    if not text.startswith(f"{prefix}/"):
        return None
    words = text[len(prefix) + 1 :].split("/")
    group = words.pop(0) if "." in words[0] else ""
    if not group:
        if words[:2] in (["services", "specs"], ["services", "endpoints"]):
            words[:2] = ["/".join(words[:2])]
        words[0] = _RESOURCES.get(words[0], words[0])
    match words:
        case [resource, name] if resource and name:
            return ResourcePath(group, resource, "", name)
        case [resource, namespace, name] if resource and namespace and name:
            return ResourcePath(group, resource, namespace, name)
        case _:
            return None
