"""Which types each minor of kube-apiserver decodes: made by ``scripts/stored-types`` from upstream's schemes.

They are the types with metadata of each version of an API that is registered there, also of those that are not served.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MINORS: Final = ((1, 33), (1, 34), (1, 35), (1, 36), (1, 37))

#: By apiVersion, the kinds that each of them decodes.
ALWAYS: Final[Mapping[str, str]] = {
    "admissionregistration.k8s.io/v1": (
        "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
        "ValidatingWebhookConfiguration"
    ),
    "admissionregistration.k8s.io/v1alpha1": (
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy "
        "ValidatingAdmissionPolicyBinding"
    ),
    "admissionregistration.k8s.io/v1beta1": (
        "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
        "ValidatingWebhookConfiguration"
    ),
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "apiextensions.k8s.io/v1beta1": "CustomResourceDefinition",
    "apiregistration.k8s.io/v1": "APIService",
    "apiregistration.k8s.io/v1beta1": "APIService",
    "apps/v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "apps/v1beta1": "ControllerRevision Deployment Scale StatefulSet",
    "apps/v1beta2": "ControllerRevision DaemonSet Deployment ReplicaSet Scale StatefulSet",
    "authentication.k8s.io/v1": "SelfSubjectReview TokenRequest TokenReview",
    "authentication.k8s.io/v1alpha1": "SelfSubjectReview",
    "authentication.k8s.io/v1beta1": "SelfSubjectReview TokenReview",
    "authorization.k8s.io/v1": (
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"
    ),
    "authorization.k8s.io/v1beta1": (
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"
    ),
    "autoscaling/v1": "HorizontalPodAutoscaler Scale",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "CronJob Job",
    "batch/v1beta1": "CronJob",
    "certificates.k8s.io/v1": "CertificateSigningRequest",
    "certificates.k8s.io/v1alpha1": "ClusterTrustBundle",
    "certificates.k8s.io/v1beta1": "CertificateSigningRequest ClusterTrustBundle",
    "coordination.k8s.io/v1": "Lease",
    "coordination.k8s.io/v1alpha2": "LeaseCandidate",
    "coordination.k8s.io/v1beta1": "Lease LeaseCandidate",
    "discovery.k8s.io/v1": "EndpointSlice",
    "discovery.k8s.io/v1beta1": "EndpointSlice",
    "events.k8s.io/v1": "Event",
    "events.k8s.io/v1beta1": "Event",
    "extensions/v1beta1": "DaemonSet Deployment Ingress NetworkPolicy ReplicaSet Scale",
    "flowcontrol.apiserver.k8s.io/v1": "FlowSchema PriorityLevelConfiguration",
    "flowcontrol.apiserver.k8s.io/v1beta1": "FlowSchema PriorityLevelConfiguration",
    "flowcontrol.apiserver.k8s.io/v1beta2": "FlowSchema PriorityLevelConfiguration",
    "flowcontrol.apiserver.k8s.io/v1beta3": "FlowSchema PriorityLevelConfiguration",
    "imagepolicy.k8s.io/v1alpha1": "ImageReview",
    "internal.apiserver.k8s.io/v1alpha1": "StorageVersion",
    "networking.k8s.io/v1": "IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
    "networking.k8s.io/v1beta1": "IPAddress Ingress IngressClass ServiceCIDR",
    "node.k8s.io/v1": "RuntimeClass",
    "node.k8s.io/v1alpha1": "RuntimeClass",
    "node.k8s.io/v1beta1": "RuntimeClass",
    "policy/v1": "Eviction PodDisruptionBudget",
    "policy/v1beta1": "Eviction PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "rbac.authorization.k8s.io/v1alpha1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "rbac.authorization.k8s.io/v1beta1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io/v1alpha3": "DeviceTaintRule",
    "resource.k8s.io/v1beta1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    "resource.k8s.io/v1beta2": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    "scheduling.k8s.io/v1": "PriorityClass",
    "scheduling.k8s.io/v1beta1": "PriorityClass",
    "storage.k8s.io/v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
    "storage.k8s.io/v1alpha1": "CSIStorageCapacity VolumeAttachment VolumeAttributesClass",
    "storage.k8s.io/v1beta1": (
        "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass"
    ),
    "v1": (
        "Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume "
        "PersistentVolumeClaim Pod PodTemplate RangeAllocation ReplicationController ResourceQuota Secret "
        "Service ServiceAccount"
    ),
}

#: By minor, the other kinds that it decodes.
ONLY: Final[Mapping[tuple[int, int], Mapping[str, str]]] = {
    (1, 33): {
        "autoscaling/v2beta1": "HorizontalPodAutoscaler",
        "autoscaling/v2beta2": "HorizontalPodAutoscaler",
        "networking.k8s.io/v1alpha1": "IPAddress ServiceCIDR",
        "resource.k8s.io/v1alpha3": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
        "scheduling.k8s.io/v1alpha1": "PriorityClass",
        "storagemigration.k8s.io/v1alpha1": "StorageVersionMigration",
        "v1": "PodStatusResult",
    },
    (1, 34): {
        "admissionregistration.k8s.io/v1beta1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
        "autoscaling/v2beta1": "HorizontalPodAutoscaler",
        "autoscaling/v2beta2": "HorizontalPodAutoscaler",
        "certificates.k8s.io/v1alpha1": "PodCertificateRequest",
        "resource.k8s.io/v1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
        "scheduling.k8s.io/v1alpha1": "PriorityClass",
        "storage.k8s.io/v1": "VolumeAttributesClass",
        "storagemigration.k8s.io/v1alpha1": "StorageVersionMigration",
        "v1": "PodStatusResult",
    },
    (1, 35): {
        "admissionregistration.k8s.io/v1beta1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
        "autoscaling/v2beta1": "HorizontalPodAutoscaler",
        "autoscaling/v2beta2": "HorizontalPodAutoscaler",
        "certificates.k8s.io/v1beta1": "PodCertificateRequest",
        "resource.k8s.io/v1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
        "scheduling.k8s.io/v1alpha1": "PriorityClass Workload",
        "storage.k8s.io/v1": "VolumeAttributesClass",
        "storagemigration.k8s.io/v1beta1": "StorageVersionMigration",
        "v1": "PodStatusResult",
    },
    (1, 36): {
        "admissionregistration.k8s.io/v1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io/v1beta1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
        "certificates.k8s.io/v1beta1": "PodCertificateRequest",
        "resource.k8s.io/v1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
        "resource.k8s.io/v1alpha3": "ResourcePoolStatusRequest",
        "resource.k8s.io/v1beta2": "DeviceTaintRule",
        "scheduling.k8s.io/v1alpha2": "PodGroup Workload",
        "storage.k8s.io/v1": "VolumeAttributesClass",
        "storagemigration.k8s.io/v1beta1": "StorageVersionMigration",
        "v1": "PodStatusResult",
    },
    (1, 37): {
        "admissionregistration.k8s.io/v1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io/v1beta1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
        "certificates.k8s.io/v1": "ClusterTrustBundle PodCertificateRequest",
        "certificates.k8s.io/v1beta1": "PodCertificateRequest",
        "lifecycle.k8s.io/v1alpha1": "Eviction EvictionRequest",
        "resource.k8s.io/v1": "DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice",
        "resource.k8s.io/v1alpha3": "ResourcePoolStatusRequest",
        "resource.k8s.io/v1beta2": "DeviceTaintRule",
        "scheduling.k8s.io/v1alpha3": "CompositePodGroup PodGroup Workload",
        "scheduling.k8s.io/v1beta1": "PodGroup Workload",
        "storage.k8s.io/v1": "VolumeAttributesClass",
        "storagemigration.k8s.io/v1": "StorageVersionMigration",
        "storagemigration.k8s.io/v1beta1": "StorageVersionMigration",
    },
}
