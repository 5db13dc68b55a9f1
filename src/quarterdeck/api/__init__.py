"""What users declare."""

from quarterdeck.api.apiserver import Admission, AdmissionPlugin, Tracing
from quarterdeck.api.authentication import Authentication
from quarterdeck.api.base import API_VERSION, Metadata, Model, OwnerReference, Resource, instant, owner_reference
from quarterdeck.api.conditions import Condition, ConditionStatus, find_condition, with_condition
from quarterdeck.api.controlplane import (
    Audit,
    Certificates,
    ControlPlane,
    ControlPlaneSpec,
    ControlPlaneStatus,
    Encryption,
    Etcd,
    ExtraArgs,
    OnFailure,
    Placement,
    Rollout,
    new_control_plane,
)
from quarterdeck.api.documents import DECLARED, Declared, dump_json, dump_yaml, load, parse
from quarterdeck.api.endpoint import Endpoint, EndpointMode, Rfc2136, Tsig, TsigAlgorithm
from quarterdeck.api.memory import MemoryStatus, memory_from_status, memory_to_status
from quarterdeck.api.operation import (
    Goal,
    Operation,
    OperationPhase,
    OperationSpec,
    OperationStatus,
    OperationType,
)
from quarterdeck.api.revision import ReplicaRevision, ReplicaTemplate, revision_of
from quarterdeck.api.secrets import PlaneSecrets
from quarterdeck.api.site import Isolation, Site, SiteSpec, SiteStatus, StorageClass, default_sites

__all__ = [
    "API_VERSION",
    "DECLARED",
    "Admission",
    "AdmissionPlugin",
    "Audit",
    "Authentication",
    "Certificates",
    "Condition",
    "ConditionStatus",
    "ControlPlane",
    "ControlPlaneSpec",
    "ControlPlaneStatus",
    "Declared",
    "Encryption",
    "Endpoint",
    "EndpointMode",
    "Etcd",
    "ExtraArgs",
    "Goal",
    "Isolation",
    "MemoryStatus",
    "Metadata",
    "Model",
    "OnFailure",
    "Operation",
    "OperationPhase",
    "OperationSpec",
    "OperationStatus",
    "OperationType",
    "OwnerReference",
    "Placement",
    "PlaneSecrets",
    "ReplicaRevision",
    "ReplicaTemplate",
    "Resource",
    "Rfc2136",
    "Rollout",
    "Site",
    "SiteSpec",
    "SiteStatus",
    "StorageClass",
    "Tracing",
    "Tsig",
    "TsigAlgorithm",
    "default_sites",
    "dump_json",
    "dump_yaml",
    "find_condition",
    "instant",
    "load",
    "memory_from_status",
    "memory_to_status",
    "new_control_plane",
    "owner_reference",
    "parse",
    "revision_of",
    "with_condition",
]
