"""Structured authentication, admission and tracing: what upstream would refuse is refused by path."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import JsonValue
from support.golden import Golden

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.documents import parse
from quarterdeck.errors import InvalidInput
from quarterdeck.pki.authority import create_authority

PEM = create_authority("test-ca", datetime.now(UTC)).certificate.decode()
ISSUER: dict[str, Any] = {
    "issuer": {
        "url": "https://login.example/realm",
        "discoveryURL": "https://inside.example/.well-known/openid-configuration",
        "certificateAuthority": PEM,
        "audiences": ["a", "b"],
        "audienceMatchPolicy": "MatchAny",
    },
    "claimValidationRules": [
        {"claim": "hd", "requiredValue": "example.com"},
        {"expression": "claims.exp - claims.nbf <= 86400", "message": "lives too long"},
    ],
    "claimMappings": {
        "username": {"claim": "sub", "prefix": ""},
        "groups": {"expression": "claims.roles.split(',')"},
        "uid": {"claim": "sub"},
        "extra": [{"key": "example.com/tenant", "valueExpression": "claims.tenant"}],
    },
    "userValidationRules": [{"expression": "!user.username.startsWith('system:')", "message": "reserved"}],
}
LIMITS: dict[str, JsonValue] = {
    "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1",
    "kind": "Configuration",
    "limits": [],
}


def read(**spec: JsonValue) -> ControlPlane:
    document = {
        "apiVersion": "quarterdeck.dev/v1alpha1",
        "kind": "ControlPlane",
        "metadata": {"name": "a"},
        "spec": {"placement": {"site": "east"}, **spec},
    }
    return parse(ControlPlane, document, "reading it")


def changed(path: str, value: JsonValue) -> dict[str, Any]:
    """The issuer with the value at that path; None: without it."""
    document = copy.deepcopy(ISSUER)
    place: Any = document
    *above, last = path.split(".")
    for each in above:
        place = place[int(each) if each.isdigit() else each]
    if value is None:
        del place[last]
    else:
        place[int(last) if last.isdigit() else last] = value
    return document


def test_what_upstream_documents_is_taken_and_written_as_it_was() -> None:
    plane = read(authentication={"jwt": [ISSUER]})
    assert plane.spec.authentication is not None
    written = plane.spec.authentication.model_dump(mode="json", exclude_none=True)
    assert written == {"jwt": [ISSUER]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("issuer.url", "http://login.example"),
        ("issuer.url", "https://me:secret@login.example"),
        ("issuer.url", "https://login.example?a=b"),
        ("issuer.url", "https://kubernetes.default.svc.cluster.local"),
        ("issuer.discoveryURL", "https://login.example/realm/"),
        ("issuer.certificateAuthority", "secret"),
        ("issuer.audiences", []),
        ("issuer.audiences", ["a", "a"]),
        ("issuer.audienceMatchPolicy", None),
        ("issuer.audienceMatchPolicy", "MatchAll"),
        ("issuer.audience", "a"),
        ("claimMappings.username", {}),
        ("claimMappings.username", {"claim": "sub"}),
        ("claimMappings.groups.prefix", "x:"),
        ("claimMappings.uid.expression", "claims.sub"),
        ("claimMappings.extra.0.key", "tenant"),
        ("claimMappings.extra.0.key", "example.com/Tenant"),
        ("claimMappings.extra.0.key", "a.k8s.io/tenant"),
        ("claimMappings.extra.0.valueExpression", ""),
        ("claimValidationRules.1.requiredValue", "x"),
        ("claimValidationRules.0.message", "x"),
        ("claimMappings", None),
    ],
)
def test_an_issuer_that_an_apiserver_would_refuse_is_refused_by_path(
    path: str, value: JsonValue, golden: Golden
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(authentication={"jwt": [changed(path, value)]})
    assert "spec.authentication.jwt[0]." in str(refused.value)
    golden(refused.value)
    assert "secret" not in str(refused.value)


def test_what_must_be_there_once_is_refused_where_it_comes_again(golden: Golden) -> None:
    with golden.raises(InvalidInput):
        read(authentication={"jwt": [ISSUER, ISSUER]})
    extra = changed("claimMappings.extra", ISSUER["claimMappings"]["extra"] * 2)
    with golden.raises(InvalidInput):
        read(authentication={"jwt": [extra]})
    rules = changed("claimValidationRules", [*ISSUER["claimValidationRules"], {"claim": "hd"}])
    with golden.raises(InvalidInput):
        read(authentication={"jwt": [rules]})


@pytest.mark.parametrize(
    "spec",
    [
        {"admission": {"plugins": [{"name": "EventRatelimit", "configuration": {}}]}},
        {"admission": {"plugins": [{"name": "ImagePolicyWebhook", "configuration": {}}]}},
        {"admission": {"plugins": [{"name": "EventRateLimit", "configuration": {"kind": "Configuration"}}]}},
        {"admission": {"plugins": [{"name": "EventRateLimit", "configuration": {**LIMITS, "kind": "Limits"}}]}},
        {"admission": {"plugins": [{"name": "EventRateLimit", "configuration": LIMITS}] * 2}},
        {"tracing": {"endpoint": "collector.example"}},
        {"tracing": {"endpoint": "http://collector.example:4317"}},
        {"tracing": {"endpoint": "collector.example:65536"}},
        {"tracing": {"endpoint": "[2001:db8::1]:4317", "samplingRatePerMillion": 1_000_001}},
        {"certificates": {"generation": -1}},
        {"replaceReplicas": ["a-1", "a-1"]},
        {"replaceReplicas": ["A 1"]},
        {"rollout": {"onFailure": "Panic"}},
    ],
)
def test_other_nonsense_is_refused_by_path(spec: dict[str, JsonValue], golden: Golden) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(**spec)
    golden(refused.value)


KEY = create_authority("test-ca", datetime.now(UTC)).key.decode()


@pytest.mark.parametrize(
    "bundle",
    [
        f"# the old one\n{PEM}\n# the new one, until 2031\n{PEM}",
        f"subject=CN = test-ca\nissuer=CN = test-ca\n{PEM}",
        PEM.replace("\n", "\r\n"),
        f"Bag Attributes\n    friendlyName: a\n{PEM}\n\n",
    ],
)
def test_a_bundle_of_certificates_may_have_comments(bundle: str) -> None:
    plane = read(authentication={"jwt": [changed("issuer.certificateAuthority", bundle)]})
    assert plane.spec.authentication is not None
    assert plane.spec.authentication.jwt[0].issuer.certificate_authority == bundle


@pytest.mark.parametrize(
    ("bundle", "says"),
    [
        (
            f"{PEM}-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
            "block 2 (line {after}) is not a certificate: ",
        ),
        (
            f"{PEM}-----BEGIN CERTIFICATE-----\n???\n-----END CERTIFICATE-----\n",
            "block 2 (line {after}) is not a certificate: what",
        ),
        (f"# a\n{KEY}", "block 1 (line 2) is not a certificate but EC PRIVATE KEY; remove it"),
        (
            f"{PEM}-----BEGIN X509 CRL-----\nAA==\n-----END X509 CRL-----",
            "block 2 (line {after}) is not a certificate but X509 CRL",
        ),
        (PEM.replace("-----END", "----END"), "block 1 (line 1) has no line -----END CERTIFICATE-----"),
        (PEM.replace("-----END CERTIFICATE-----", "") + PEM, "block 1 (line 1) has no line -----END CERTIFICATE-----"),
        ("# nothing", "has no certificate in PEM"),
    ],
)
def test_a_block_that_is_no_certificate_is_named_with_its_line(bundle: str, says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(authentication={"jwt": [changed("issuer.certificateAuthority", bundle)]})
    wanted = says.format(after=PEM.count("\n") + 1)
    assert f"spec.authentication.jwt[0].issuer.certificateAuthority: {wanted}" in str(refused.value)


def test_optional_texts_that_are_empty_are_not_set() -> None:
    """As an apiserver reads them: Go has no other text that is not there."""
    empty = copy.deepcopy(ISSUER)
    empty["issuer"] |= {"certificateAuthority": "", "discoveryURL": "", "audiences": ["a"], "audienceMatchPolicy": ""}
    empty["claimValidationRules"] = [{"claim": "hd", "requiredValue": "", "expression": "", "message": ""}]
    empty["claimMappings"]["groups"] = {"claim": "", "expression": "claims.roles.split(',')"}
    plane = read(authentication={"jwt": [empty]})
    assert plane.spec.authentication is not None
    (issuer,) = plane.spec.authentication.jwt
    assert (issuer.issuer.certificate_authority, issuer.issuer.discovery_url) == (None, None)
    assert issuer.claim_validation_rules[0].required_value is None
    assert issuer.claim_mappings.username.prefix == "", "an empty prefix says that there is none"
