"""One replica of real programs with every setting of a user that is more than a flag."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import JsonValue
from support.authorizer import Authorizer, authorizer
from support.replica_processes import OneReplica, binaries, one_replica, until
from support.templates import but, template

from quarterdeck.api.plane.apiserver import Admission
from quarterdeck.api.plane.authorization import Authorization
from quarterdeck.api.plane.scheduler import Scheduler
from quarterdeck.api.plane.service_accounts import OWN_ISSUER
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.controller import scheduler
from quarterdeck.components.credentials import KeyPair
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.pki.authority import issue
from quarterdeck.pki.certificate import CertificateRequest, Usage
from quarterdeck.upstream.catalog import UpstreamProgram

__all__ = ["binaries"]

#: On one worker: the replica is started once.
pytestmark = pytest.mark.xdist_group("settings")

PLANE = but(template(), kubernetes_version="v1.37.2", etcd={"version": "3.7.3"}, endpoint_name="byhand.test")
ANSWERS: Mapping[str, Mapping[str, bool]] = {
    "friend": {"allowed": True},
    "late": {"allowed": True},
    "outcast": {"denied": True},
}


ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
#: Nobody may have a ConfigMap of that name.
POLICY = "names.static.k8s.io"
MANIFESTS: tuple[dict[str, JsonValue], ...] = (
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ]
            },
            "validations": [{"expression": "object.metadata.name != 'forbidden'", "message": "not that name"}],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY},
        "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
    },
)
ISSUERS = ("https://tokens.example/alpha", OWN_ISSUER)
SCHEDULER: dict[str, JsonValue] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"qps": 70},
    "profiles": [
        {"schedulerName": "default-scheduler"},
        {
            "schedulerName": "packer",
            "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
        },
    ],
}


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authorizer]:
    with authorizer(tmp_path_factory.mktemp("authorizer"), ANSWERS) as made:
        yield made


def wanted(guard: Authorizer) -> ReplicaTemplate:
    shared = {"server": guard.server(), "failurePolicy": "Deny"}
    not_late = [{"expression": "request.user != 'late'"}]
    webhooks = [
        {"name": "guard", **shared, "position": "BeforeRBAC", "matchConditions": not_late},
        {"name": "last", **shared},
    ]
    authorization = Authorization.model_validate({"webhooks": webhooks}, strict=False)
    return but(
        PLANE,
        authorization=authorization,
        admission=Admission(manifests=MANIFESTS),
        scheduler=Scheduler(configuration=SCHEDULER),
        service_account_issuers=ISSUERS,
    )


@pytest.fixture(scope="module")
def replica(
    tmp_path_factory: pytest.TempPathFactory, binaries: Mapping[UpstreamProgram, Path], guard: Authorizer
) -> Iterator[OneReplica]:
    with one_replica(tmp_path_factory.mktemp("replica"), binaries, wanted(guard)) as made:
        for component in (Component.ETCD, Component.APISERVER, Component.SCHEDULER):
            made.start_and_await(component)
        yield made


def user(replica: OneReplica, name: str, *groups: str) -> KeyPair:
    """A client certificate of that user."""
    request = CertificateRequest(
        common_name=name, usage=Usage.CLIENT, organizations=groups, lifetime=timedelta(hours=1)
    )
    return issue(replica.secrets.kubernetes_ca.issuer, request, datetime.now(UTC))


def applied(replica: OneReplica, path: str, api: str, kind: str, **content: object) -> dict[str, Any]:
    """An object as it is stored, applied by an administrator."""
    name = path.rpartition("/")[2]
    body = {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **content}
    url = f"{path}?fieldManager=test&force=true"
    status, answer = replica.send("PATCH", url, body, "application/apply-patch+yaml")
    assert status in (200, 201), answer
    found: dict[str, Any] = json.loads(answer)
    return found


def test_webhooks_allow_and_deny_around_rbac_and_are_not_asked_about_the_planes_own_work(
    replica: OneReplica, guard: Authorizer
) -> None:
    """Every user may read the version by RBAC, which knows no rule while an apiserver starts."""
    guard.asked.clear()
    for name, answer in (("friend", 200), ("late", 200), ("stranger", 403), ("outcast", 403)):
        assert replica.get("/api/v1/namespaces", client=user(replica, name))[0] == answer, name
    for name, answer in (("stranger", 200), ("outcast", 403), ("system:kube-scheduler", 200)):
        assert replica.get("/version", client=user(replica, name))[0] == answer, name
    assert replica.get("/readyz")[0] == 200
    assert {*guard.asked} == {"friend", "late", "stranger", "outcast"}


def test_a_scheduler_has_the_profiles_of_its_configuration_and_what_flags_said(replica: OneReplica) -> None:
    manager = replica.secrets.manager
    applied(replica, ACCOUNT, "v1", "ServiceAccount")
    applied(replica, "/api/v1/nodes/node-1", "v1", "Node")
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}]
    status = {"status": {"capacity": room, "allocatable": room, "conditions": ready}}
    assert replica.send("PATCH", "/api/v1/nodes/node-1/status", status, "application/merge-patch+json")[0] == 200
    pods = "/api/v1/namespaces/default/pods"
    container = {"name": "web", "image": "example.test/web"}
    tolerations = [{"operator": "Exists"}]
    for name, by in (("packed", "packer"), ("lost", "nobody")):
        spec = {"schedulerName": by, "containers": [container], "tolerations": tolerations}
        applied(replica, f"{pods}/{name}", "v1", "Pod", spec=spec)

    def node_of(pod: str) -> str:
        found = json.loads(replica.get(f"{pods}/{pod}", client=manager)[1])
        return str(found["spec"].get("nodeName", ""))

    until(lambda: node_of("packed") == "node-1", "the pod is bound")
    assert node_of("lost") == ""
    config = json.loads(replica.get("/configz", client=manager, at=PortName.SCHEDULER)[1])
    (found,) = config.values()
    assert (found["enableProfiling"], found["clientConnection"]["qps"]) == (False, 70)
    assert (found["leaderElection"]["leaderElect"], found["leaderElection"]["resourceName"]) == (True, scheduler.LEASE)


def review(replica: OneReplica, token: str) -> dict[str, Any]:
    """What the apiserver thinks of a token."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    found: dict[str, Any] = json.loads(replica.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)[1])
    return found["status"]


def test_the_first_issuer_is_in_new_tokens_and_tokens_of_the_others_are_accepted(replica: OneReplica) -> None:
    applied(replica, ACCOUNT, "v1", "ServiceAccount")
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = str(json.loads(replica.send("POST", f"{ACCOUNT}/token", asked)[1])["status"]["token"])
    head, body, _ = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    assert (claims["iss"], claims["aud"]) == (ISSUERS[0], [*ISSUERS])
    assert review(replica, token)["authenticated"]
    for issuer, accepted in ((ISSUERS[1], True), ("https://other.example", False)):
        other = signed(replica, head, {**claims, "iss": issuer})
        assert review(replica, other).get("authenticated", False) is accepted, issuer


def signed(replica: OneReplica, head: str, claims: Mapping[str, Any]) -> str:
    """A token with these claims, signed with the key of the plane (ES256)."""
    key = load_pem_private_key(replica.secrets.service_account[0].private, password=None)
    text = f"{head}.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}"
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    r, s = utils.decode_dss_signature(key.sign(text.encode(), ec.ECDSA(SHA256())))
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def test_policies_of_manifests_bind_administrators_too_and_are_out_of_reach_of_the_api(replica: OneReplica) -> None:
    for name, status, words in (("allowed", 201, "allowed"), ("forbidden", 422, "not that name")):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        found, answer = replica.send("POST", "/api/v1/namespaces/default/configmaps", body)
        assert (found, words in answer) == (status, True), answer
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    assert replica.get(f"{path}/{POLICY}", client=replica.secrets.manager)[0] == 404
    assert replica.send("POST", path, MANIFESTS[0])[0] == 422


def test_services_get_addresses_of_a_second_range_that_is_added_later(replica: OneReplica) -> None:
    """The apiserver restarts: the last test."""
    replica.plane = but(replica.plane, secondary_service_cidr="fd00:10:96::/112")
    replica.stop(Component.APISERVER)
    replica.start_and_await(Component.APISERVER)
    path = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes"
    cidrs = json.loads(replica.get(path, client=replica.secrets.manager)[1])["spec"]["cidrs"]
    assert cidrs == ["10.96.0.0/16", "fd00:10:96::/112"]
    ports, services = [{"port": 80}], "/api/v1/namespaces/default/services"
    asked = {"ipFamilyPolicy": "RequireDualStack", "ports": ports}
    both = applied(replica, f"{services}/both", "v1", "Service", spec=asked)["spec"]["clusterIPs"]
    assert all(ip_address(each) in ip_network(cidr) for each, cidr in zip(both, cidrs, strict=True))
    plain = applied(replica, f"{services}/plain", "v1", "Service", spec={"ports": ports})
    assert len(plain["spec"]["clusterIPs"]) == 1
