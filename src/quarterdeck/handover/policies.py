"""Whether an audit policy (audit.k8s.io/v1 Policy) omits writes of controllers: then a log proves nothing.

The first rule that fits decides (apiserver/pkg/audit/policy/checker.go). Only writes are asked about of which it is
known that a controller makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.errors import InvalidInput
from quarterdeck.handover.clients import client_of
from quarterdeck.yaml_text.streams import first_document

#: By controller: verbs, and resources of the core group.
_WRITES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "node-ipam-controller": (("patch", "nodes"),),
    "node-lifecycle-controller": (("patch", "nodes"), ("update", "nodes/status")),
    "cloud-node-controller": (("update", "nodes"), ("patch", "nodes"), ("patch", "nodes/status")),
    "cloud-node-lifecycle-controller": (("delete", "nodes"), ("patch", "nodes")),
    "node-route-controller": (("patch", "nodes/status"),),
    "service-lb-controller": (("patch", "services"), ("patch", "services/status")),
}
_GROUPS = ("system:authenticated",)
_OF_ACCOUNTS = (*_GROUPS, "system:serviceaccounts", "system:serviceaccounts:kube-system")
_ANSWERED = "ResponseComplete"


def left_out(policy: str, sets: Iterable[ControllerSetSpec]) -> tuple[str, ...]:
    """The writes of the sets that are, or may be, missing in a log with this policy, in sentences."""
    try:
        document = first_document(policy, "the audit policy")
    except InvalidInput:
        document = None
    if not isinstance(document, dict):
        return ("the audit policy cannot be read",)
    names = sorted({name for each in sets for name in each.controllers})
    return tuple(line for name in names for line in _left_out(document, name))


def _left_out(policy: Mapping[str, Any], controller: str) -> Iterator[str]:
    for verb, resource in _WRITES.get(controller, ()):
        account = f"system:serviceaccount:kube-system:{client_of(controller)}"
        for user, groups in ((account, _OF_ACCOUNTS), (f"system:{ControllerProgram.CLOUD}", _GROUPS)):
            if not _written(policy, user, groups, verb, resource):
                yield f"the audit policy omits writes of {controller} as {user}: {verb} {resource}"


def _written(policy: Mapping[str, Any], user: str, groups: Sequence[str], verb: str, resource: str) -> bool:
    """Whether the response of such a request is certainly in the log."""
    if _ANSWERED in (policy.get("omitStages") or ()):
        return False
    for rule in policy.get("rules") or ():
        if rule.get("nonResourceURLs") or not _may_fit(rule, user, groups, verb, resource):
            continue
        if rule.get("level") == "None" or _ANSWERED in (rule.get("omitStages") or ()):
            return False
        if not rule.get("namespaces") and not any(each.get("resourceNames") for each in rule.get("resources") or ()):
            return True
    return False


def _may_fit(rule: Mapping[str, Any], user: str, groups: Sequence[str], verb: str, resource: str) -> bool:
    """Whether a rule matches such a request, at least for some names and namespaces."""
    users, theirs, verbs, resources = (rule.get(each) or () for each in ("users", "userGroups", "verbs", "resources"))
    spaces = rule.get("namespaces") or ()
    return (
        (not users or user in users)
        and (not theirs or bool(set(groups) & set(theirs)))
        and (not verbs or verb in verbs)
        and (not resources or any(_names(each, resource) for each in resources))
        and (not spaces or "" in spaces or not resource.startswith("nodes"))  # nodes are in none
    )


def _names(rule: Mapping[str, Any], resource: str) -> bool:
    """Whether the part of a rule about resources has one of the core group."""
    kind, _, below = resource.partition("/")
    every = {resource, "*", f"{kind}/*", *([f"*/{below}"] if below else ())}
    listed = rule.get("resources") or ()
    return (rule.get("group") or "") in ("", "*") and (not listed or bool(every & set(listed)))
