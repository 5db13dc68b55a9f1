"""Webhooks of authorization: what upstream would refuse is refused by path, and keys are in no message."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import JsonValue
from support.golden import Golden

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.documents import parse
from quarterdeck.api.plane.authorization import AuthorizationWebhook, FailurePolicy, WebhookPosition
from quarterdeck.errors import InvalidInput
from quarterdeck.pki.authority import create_authority

OWN, OTHER = (create_authority(name, datetime.now(UTC)) for name in ("own", "other"))
WEBHOOK: dict[str, Any] = {
    "name": "guard.example",
    "server": {
        "url": "https://guard.example:8443/authorize",
        "certificateAuthority": OTHER.certificate.decode(),
        "clientCertificate": OWN.certificate.decode(),
        "clientKey": OWN.key.decode(),
    },
    "position": "BeforeRBAC",
    "failurePolicy": "Deny",
    "timeout": "500ms",
    "authorizedTTL": "1m",
    "unauthorizedTTL": 10,
    "matchConditions": [{"expression": "has(request.resourceAttributes)"}],
}


def read(*webhooks: dict[str, Any]) -> tuple[AuthorizationWebhook, ...]:
    document: JsonValue = {
        "apiVersion": "quarterdeck.dev/v1alpha1",
        "kind": "ControlPlane",
        "metadata": {"name": "a"},
        "spec": {"placement": {"site": "east"}, "authorization": {"webhooks": list(webhooks)}},
    }
    plane = parse(ControlPlane, document, "reading it")
    assert plane.spec.authorization is not None
    return plane.spec.authorization.webhooks


def changed(path: str, value: object) -> dict[str, Any]:
    """The webhook with the value at that path; None: without it."""
    document = copy.deepcopy(WEBHOOK)
    place: Any = document
    *above, last = path.split(".")
    for each in above:
        place = place[int(each) if each.isdigit() else each]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return document


def test_a_webhook_says_all_that_upstream_lets_it_say() -> None:
    (found,) = read(WEBHOOK)
    assert (found.position, found.failure_policy) == (WebhookPosition.BEFORE_RBAC, FailurePolicy.DENY)
    assert (found.timeout, found.authorized_ttl, found.unauthorized_ttl) == (0.5, 60.0, 10.0)


def test_a_webhook_can_only_add_rights_unless_it_says_otherwise() -> None:
    (found,) = read({"name": "a", "server": {"url": "https://a.example"}, "failurePolicy": "NoOpinion"})
    assert found.position is WebhookPosition.AFTER_RBAC


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", "rbac"),
        ("name", "a_b"),
        ("failurePolicy", None),
        ("failurePolicy", "Allow"),
        ("position", "BeforeNode"),
        ("timeout", "31s"),
        ("timeout", 0),
        ("authorizedTTL", 0),
        ("unauthorizedTTL", "2d"),
        ("server.url", "http://guard.example"),
        ("server.certificateAuthority", "none"),
        ("server.clientCertificate", None),
        ("server.clientKey", None),
        ("server.clientKey", "secret"),
        ("server.clientKey", OTHER.key.decode()),
        ("server.token", "secret"),
        ("server.token", "secret secret"),
        ("matchConditions", [{"expression": ""}]),
        ("matchConditions", [{"expression": "true"}] * 2),
        ("matchConditions", [{"expression": str(each)} for each in range(64)]),
        ("connectionInfo", {"kubeConfigFile": "/etc/webhook"}),
    ],
)
def test_what_an_apiserver_would_refuse_is_refused_by_path(path: str, value: object, golden: Golden) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(changed(path, value))
    assert "spec.authorization.webhooks[0]." in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "BEGIN EC" not in str(refused.value)
    golden(refused.value)


def test_two_webhooks_have_two_names(golden: Golden) -> None:
    with golden.raises(InvalidInput):
        read(WEBHOOK, WEBHOOK)
