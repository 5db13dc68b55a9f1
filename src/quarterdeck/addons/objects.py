"""Kubernetes objects of add-ons: plain data, and their references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue
from typing_extensions import override

Manifest: TypeAlias = Mapping[str, JsonValue]

CRD = "CustomResourceDefinition"
CRD_GROUP = "apiextensions.k8s.io"

#: Upstream kinds without a namespace.
_CLUSTER_WIDE = frozenset(
    {
        "APIService",
        "CSIDriver",
        "CSINode",
        "CertificateSigningRequest",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterTrustBundle",
        CRD,
        "DeviceClass",
        "FlowSchema",
        "IngressClass",
        "IPAddress",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "RuntimeClass",
        "ServiceCIDR",
        "StorageClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
        "VolumeAttributesClass",
    }
)


@dataclass(frozen=True, slots=True, order=True)
class GroupKind:
    """A kind, in any version."""

    group: str
    kind: str

    @override
    def __str__(self) -> str:
        """The kind in the format of an ApplySet's annotations."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @classmethod
    def parse(cls, text: str) -> GroupKind:
        """The kind from that format."""
        kind, _, group = text.partition(".")
        return cls(group, kind)


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """A reference to an object, unique in a plane. ``namespace`` is "" for one without."""

    kind: GroupKind
    namespace: str
    name: str

    @override
    def __str__(self) -> str:
        """Such as ``Deployment.apps kube-system/coredns``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class DesiredObject:
    """An object of an add-on. ``version``: that of its API, ``manifest``: what is applied."""

    ref: Ref
    version: str
    manifest: Manifest

    @property
    def api_version(self) -> str:
        """As its manifest has it."""
        group = self.ref.kind.group
        return f"{group}/{self.version}" if group else self.version


def text_of(value: JsonValue) -> str:
    """A text; "" for all else."""
    return value if isinstance(value, str) else ""


def mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    """A mapping; an empty one for all else."""
    return value if isinstance(value, dict) else {}


def items(value: JsonValue) -> list[Mapping[str, JsonValue]]:
    """The mappings of a list; none for all else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def group_kind(manifest: Manifest) -> GroupKind:
    """The group and the kind of a manifest."""
    group, slash, _ = text_of(manifest.get("apiVersion")).partition("/")
    return GroupKind(group if slash else "", text_of(manifest.get("kind")))


def defined(manifest: Manifest) -> tuple[GroupKind, bool] | None:
    """The kind that a CustomResourceDefinition defines, and whether its objects are in a namespace."""
    if group_kind(manifest) != GroupKind(CRD_GROUP, CRD):
        return None
    spec = mapping(manifest.get("spec"))
    kind = GroupKind(text_of(spec.get("group")), text_of(mapping(spec.get("names")).get("kind")))
    return kind, spec.get("scope") == "Namespaced"


def wanted_of(manifest: Manifest, namespace: str, scopes: Mapping[GroupKind, bool]) -> DesiredObject:
    """The object that a manifest declares. ``namespace``: where it is if it names none; ``scopes``: whether objects of
    a kind are in one, as the definitions beside it say.
    """
    kind = group_kind(manifest)
    metadata = mapping(manifest.get("metadata"))
    version = text_of(manifest.get("apiVersion")).rpartition("/")[2]
    # Groups that are not upstream's may call a kind of their own the same.
    upstream = "." not in kind.group or kind.group.endswith(".k8s.io")
    within = scopes.get(kind, not (upstream and kind.kind in _CLUSTER_WIDE))
    where = (text_of(metadata.get("namespace")) or namespace) if within else ""
    return DesiredObject(Ref(kind, where, text_of(metadata.get("name"))), version, manifest)
