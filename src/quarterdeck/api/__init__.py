"""What users declare."""

from quarterdeck.api.base import API_VERSION, Metadata, Model, OwnerReference, Resource, instant, owner_reference
from quarterdeck.api.conditions import Condition, ConditionStatus, find_condition, with_condition
from quarterdeck.api.controlplane import (
    Audit,
    ControlPlane,
    ControlPlaneSpec,
    ControlPlaneStatus,
    Encryption,
    Etcd,
    ExtraArgs,
    Placement,
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
from quarterdeck.api.secrets import PlaneSecrets
from quarterdeck.api.site import Isolation, Site, SiteSpec, SiteStatus, StorageClass, default_sites

__all__ = [
    "API_VERSION",
    "DECLARED",
    "Audit",
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
    "Operation",
    "OperationPhase",
    "OperationSpec",
    "OperationStatus",
    "OperationType",
    "OwnerReference",
    "Placement",
    "PlaneSecrets",
    "Resource",
    "Rfc2136",
    "Site",
    "SiteSpec",
    "SiteStatus",
    "StorageClass",
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
    "with_condition",
]
