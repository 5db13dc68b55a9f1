"""Which admission webhooks are called for writes of the leases that a plane lives by: those of its controllers, in
kube-system, and those of its nodes, in kube-node-lease.

The rules are the apiserver's (k8s.io/apiserver: pkg/admission/plugin/webhook/predicates).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue
from typing_extensions import override

from quarterdeck.addons.content import Content
from quarterdeck.addons.objects import Manifest, group_kind, items, mapping, text_of

GROUP = "admissionregistration.k8s.io"
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
CONTROLLERS, NODES = "kube-system", "kube-node-lease"
#: The label that every namespace has, with its name.
NAMESPACE_NAME = "kubernetes.io/metadata.name"
_LEASES = ("coordination.k8s.io", "v1", "leases")
_WRITES = frozenset({"CREATE", "UPDATE", "*"})
_DEFAULT_TIMEOUT_S = 10

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseWebhook:
    """A webhook that is called for leases in ``namespaces``. ``policy``: what becomes of a write when it does not
    answer within ``timeout_s`` seconds (Fail or Ignore). ``conditional``: it has match conditions, which may leave
    leases out.
    """

    kind: str
    configuration: str
    name: str
    namespaces: tuple[str, ...]
    policy: str
    timeout_s: int
    conditional: bool

    @override
    def __str__(self) -> str:
        """The webhook, for people."""
        return f"webhook {self.name} of {self.kind} {self.configuration}"


def lease_webhooks(manifest: Manifest, labels: Mapping[str, Labels] | None = None) -> tuple[LeaseWebhook, ...]:
    """The webhooks of a configuration that are called for leases; none for an object of another kind. ``labels``: those
    of namespaces, by name, where they are known; each has its own name besides.
    """
    kind = group_kind(manifest)
    if kind.group != GROUP or kind.kind not in KINDS:
        return ()
    name = text_of(mapping(manifest.get("metadata")).get("name"))
    found = []
    for webhook in items(manifest.get("webhooks")):
        namespaces = tuple(
            each for each in (CONTROLLERS, NODES) if _selects(webhook, each, (labels or {}).get(each, {}))
        )
        if not namespaces or not any(map(_is_for_leases, _rules(webhook))):
            continue
        timeout = webhook.get("timeoutSeconds")
        found.append(
            LeaseWebhook(
                kind=kind.kind,
                configuration=name,
                name=text_of(webhook.get("name")),
                namespaces=namespaces,
                policy=text_of(webhook.get("failurePolicy")) or "Fail",
                timeout_s=timeout if isinstance(timeout, int) else _DEFAULT_TIMEOUT_S,
                conditional=bool(webhook.get("matchConditions")),
            )
        )
    return tuple(found)


def warnings_of(contents: Iterable[Content]) -> Iterator[tuple[str, str]]:
    """Warnings about add-ons with such webhooks: the add-on's name, and a sentence."""
    for content in contents:
        found = [each for wanted in content.objects for each in lease_webhooks(wanted.manifest)]
        for each in found:
            unless = ", unless its matchConditions exclude them" if each.conditional else ""
            where = " and ".join(each.namespaces)
            words = (
                f"{each} is called for every write of leases in {where}{unless}: while it does not answer, or is"
                f" slow, {_harm(each)} (failurePolicy {each.policy}, timeout {each.timeout_s} s); exclude {where} in"
                f" its namespaceSelector, by the label {NAMESPACE_NAME}"
            )
            yield content.addon, words


def _harm(webhook: LeaseWebhook) -> str:
    harms = {CONTROLLERS: "no controller leads", NODES: "nodes count as dead"}
    return " and ".join(harms[each] for each in webhook.namespaces)


def _rules(webhook: Manifest) -> Iterator[tuple[Manifest, bool]]:
    """Its rules, each with whether only that very version counts: others are converted for it by default."""
    exact = webhook.get("matchPolicy") == "Exact"
    for rule in items(webhook.get("rules")):
        yield rule, exact


def _is_for_leases(of: tuple[Manifest, bool]) -> bool:
    rule, exact = of
    group, version, resource = _LEASES
    versions = {version, "*"} if exact else None
    return (
        bool(_WRITES & _texts(rule.get("operations")))
        and bool({group, "*"} & _texts(rule.get("apiGroups")))
        and (versions is None or bool(versions & _texts(rule.get("apiVersions"))))
        and bool({resource, f"{resource}/*", "*", "*/*"} & _texts(rule.get("resources")))
        and text_of(rule.get("scope")) in ("", "*", "Namespaced")
    )


def _selects(webhook: Manifest, namespace: str, labels: Labels) -> bool:
    """Whether a webhook is called for leases of a namespace. Leases themselves have no labels."""
    of_namespace = {**labels, NAMESPACE_NAME: namespace}
    return _matches(webhook.get("namespaceSelector"), of_namespace) and _matches(webhook.get("objectSelector"), {})


def _matches(selector: JsonValue, labels: Labels) -> bool:
    """Whether a label selector takes what has these labels; one that is not there takes all."""
    fields = mapping(selector)
    equal = mapping(fields.get("matchLabels"))
    return all(labels.get(key) == value for key, value in equal.items()) and all(
        _meets(each, labels) for each in items(fields.get("matchExpressions"))
    )


def _meets(requirement: Manifest, labels: Labels) -> bool:
    value, values = labels.get(text_of(requirement.get("key"))), _texts(requirement.get("values"))
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return True  # the apiserver accepts no other one: a needless warning is harmless


def _texts(value: JsonValue) -> frozenset[str]:
    return frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list) else frozenset()
