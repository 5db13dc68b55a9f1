"""One replica of real programs with every setting of a user that is more than a flag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.authorizer import Authorizer, authorizer
from support.replica_processes import OneReplica, binaries, one_replica
from support.templates import but, template

from quarterdeck.api.plane.authorization import Authorization
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.credentials import KeyPair
from quarterdeck.model.components import Component
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
    return but(PLANE, authorization=authorization)


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
