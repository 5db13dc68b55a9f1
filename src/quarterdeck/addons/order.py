"""In which order the objects of add-ons come: what others need first; they go the other way round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from quarterdeck.addons.objects import CRD, Ref, Wanted

#: Kinds, those first that others need. All that are not named are workloads, or objects of other kinds, and come after
#: the last but one: before what stands in everybody's way.
_RANKS: tuple[tuple[str, ...], ...] = (
    ("Namespace",),
    (CRD,),
    ("PriorityClass", "RuntimeClass", "StorageClass", "IngressClass", "CSIDriver", "FlowSchema"),
    ("PriorityLevelConfiguration", "NetworkPolicy", "ResourceQuota", "LimitRange"),
    ("ServiceAccount",),
    ("ClusterRole", "Role"),
    ("ClusterRoleBinding", "RoleBinding"),
    ("ConfigMap", "Secret", "PersistentVolume", "PersistentVolumeClaim"),
    ("Service",),
    ("Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "ReplicationController", "Pod", "Job", "CronJob"),
    (),
    (
        "APIService",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    ),
)
_RANK = {kind: rank for rank, kinds in enumerate(_RANKS) for kind in kinds}
_OTHERS = _RANKS.index(())


def rank(ref: Ref) -> int:
    """How late it comes."""
    return _RANK.get(ref.kind.kind, _OTHERS)


def in_order(wanted: Iterable[Wanted]) -> tuple[tuple[Wanted, ...], ...]:
    """Objects as they are applied: in groups, of which each needs only those before it."""
    ordered = sorted(wanted, key=lambda each: (rank(each.ref), each.ref))
    return tuple(tuple(group) for _, group in groupby(ordered, key=lambda each: rank(each.ref)))


def for_removal(refs: Iterable[Ref]) -> Sequence[Ref]:
    """Objects as they are removed: what needs others first."""
    return sorted(refs, key=lambda each: (-rank(each), each))
