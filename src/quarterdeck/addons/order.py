"""The order in which the objects of add-ons are applied, and what must exist before one counts or is safe.

Dependencies come first; removal has the reverse order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from pydantic import JsonValue

from quarterdeck.addons.lease_webhooks import GROUP, KINDS
from quarterdeck.addons.objects import CRD, DesiredObject, Manifest, Ref, group_kind, items, mapping, text_of

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
    """The position of an object in the order."""
    return _RANK.get(ref.kind.kind, _OTHERS)


def in_order(wanted: Iterable[DesiredObject]) -> tuple[tuple[DesiredObject, ...], ...]:
    """Objects in the order of application: in groups, each of which needs only earlier ones."""
    ordered = sorted(wanted, key=lambda each: (rank(each.ref), each.ref))
    return tuple(tuple(group) for _, group in groupby(ordered, key=lambda each: rank(each.ref)))


def for_removal(refs: Iterable[Ref]) -> Sequence[Ref]:
    """Objects in the order of removal: dependents first."""
    return sorted(refs, key=lambda each: (-rank(each), each))


def services(manifest: Manifest) -> tuple[tuple[str, str], ...]:
    """The services that a webhook configuration calls, by namespace and name, without which requests are refused."""
    kind = group_kind(manifest)
    if kind.group != GROUP or kind.kind not in KINDS:
        return ()
    found = []
    for webhook in items(manifest.get("webhooks")):
        service = mapping(mapping(webhook.get("clientConfig")).get("service"))
        if service and webhook.get("failurePolicy", "Fail") != "Ignore":
            found.append((text_of(service.get("namespace")), text_of(service.get("name"))))
    return tuple(dict.fromkeys(found))


def has_ready(slices: JsonValue) -> bool:
    """Whether a list of EndpointSlices has a ready endpoint (one without a condition is ready)."""
    endpoints = (endpoint for each in items(mapping(slices).get("items")) for endpoint in items(each.get("endpoints")))
    return any(mapping(each.get("conditions")).get("ready") is not False for each in endpoints)


def established(definition: JsonValue) -> bool:
    """Whether a CustomResourceDefinition is served."""
    return any((each.get("type"), each.get("status")) == ("Established", "True") for each in _conditions(definition))


def unestablished(definition: JsonValue) -> str:
    """Why it is not, as the end of a sentence; "" if that is unknown."""
    for each in _conditions(definition):
        if (each.get("type"), each.get("status")) == ("NamesAccepted", "False"):
            return f" ({text_of(each.get('message'))})"
    return ""


def _conditions(definition: JsonValue) -> list[Manifest]:
    return [*items(mapping(mapping(definition).get("status")).get("conditions"))]
