"""Manifests of admission that apiservers read from files: policies, their bindings, and webhooks.

The rules are upstream's for such files (KEP-5793; kubernetes: apiserver/pkg/admission/plugin/manifest, and the loaders
of policy/manifest and webhook/manifest), so that what would keep an apiserver from starting is refused in advance. Only
the apiserver itself checks the rest, such as CEL expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import JsonValue

from quarterdeck.api.names import dns_name, shortened

Manifest: TypeAlias = dict[str, JsonValue]

API_VERSION = "admissionregistration.k8s.io/v1"
#: The admission plugin that reads each kind.
PLUGINS: Mapping[str, str] = {
    "MutatingAdmissionPolicy": "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding": "MutatingAdmissionPolicy",
    "MutatingWebhookConfiguration": "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy": "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding": "ValidatingAdmissionPolicy",
    "ValidatingWebhookConfiguration": "ValidatingAdmissionWebhook",
}
#: The end of all names; nobody can create objects with such names by the API.
SUFFIX = ".static.k8s.io"
_BINDING = "Binding"


def manifest_problems(manifests: Sequence[Manifest]) -> Iterator[tuple[str, str]]:
    """The path of each problem below the list, and the problem."""
    ids = [(each.get("kind"), _part(each, "metadata").get("name")) for each in manifests]
    for number, each in enumerate(manifests):
        for path, problem in _problems(each, ids):
            yield f"[{number}].{path}", problem
        if ids[number] in ids[:number]:
            yield f"[{number}].metadata.name", f"{shortened(ids[number][1])} is there twice"


def _problems(manifest: Manifest, ids: Sequence[tuple[object, object]]) -> Iterator[tuple[str, str]]:
    kind = manifest.get("kind")
    if manifest.get("apiVersion") != API_VERSION:
        yield "apiVersion", f"must be {API_VERSION}, not {shortened(manifest.get('apiVersion'))}"
    if not isinstance(kind, str) or kind not in PLUGINS:
        yield "kind", f"{shortened(kind)} is not one of {', '.join(PLUGINS)}"
        return
    if problem := _name_problem(_part(manifest, "metadata").get("name")):
        yield "metadata.name", problem
    spec = _part(manifest, "spec")
    if kind.endswith("WebhookConfiguration"):
        yield from _of_webhooks(manifest.get("webhooks"))
    elif kind.endswith(_BINDING):
        if "paramRef" in spec:
            yield "spec.paramRef", "may not be set: such a policy has no parameters"
        if (kind.removesuffix(_BINDING), spec.get("policyName")) not in ids:
            yield "spec.policyName", f"{shortened(spec.get('policyName'))} is no policy of these manifests"
    elif "paramKind" in spec:
        yield "spec.paramKind", "may not be set: such a policy has no parameters"


def _name_problem(name: object) -> str:
    if not isinstance(name, str) or not name.endswith(SUFFIX):
        return f"{shortened(name)} does not end with {SUFFIX}"
    try:
        dns_name(name)
    except ValueError as error:
        return str(error)
    return ""


def _of_webhooks(webhooks: JsonValue) -> Iterator[tuple[str, str]]:
    for number, webhook in enumerate(webhooks if isinstance(webhooks, list) else ()):
        client, path = _part(webhook, "clientConfig"), f"webhooks[{number}].clientConfig"
        if "service" in client:
            yield f"{path}.service", "may not be set: it is called before there are Services; set url"
        elif not client.get("url"):
            yield f"{path}.url", "required"


def _part(of: JsonValue, name: str) -> Mapping[str, Any]:
    """A mapping inside of a document; empty where there is none."""
    found = of.get(name) if isinstance(of, dict) else None
    return found if isinstance(found, dict) else {}
