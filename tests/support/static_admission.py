"""Manifests of admission of every kind that apiservers read from files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAME = "a.static.k8s.io"
_PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
_MATCH = {"resourceRules": [_PODS]}
_LABEL = 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'


def _manifest(kind: str, **content: object) -> dict[str, Any]:
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}}
    return {**head, **content}


def _webhook() -> Mapping[str, object]:
    return {
        "name": "a.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [_PODS],
    }


def static_manifests() -> list[dict[str, Any]]:
    """One of each kind, two of which bind the policies."""
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": _LABEL}}
    mutating = {"matchConstraints": _MATCH, "reinvocationPolicy": "Never", "mutations": [mutation]}
    validating = {"matchConstraints": _MATCH, "validations": [{"expression": "true"}]}
    return [
        _manifest("ValidatingAdmissionPolicy", spec=validating),
        _manifest("ValidatingAdmissionPolicyBinding", spec={"policyName": NAME, "validationActions": ["Deny"]}),
        _manifest("MutatingAdmissionPolicy", spec=mutating),
        _manifest("MutatingAdmissionPolicyBinding", spec={"policyName": NAME}),
        _manifest("ValidatingWebhookConfiguration", webhooks=[_webhook()]),
        _manifest("MutatingWebhookConfiguration", webhooks=[_webhook()]),
    ]
