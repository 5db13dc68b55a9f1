"""Authorities and certificates."""

from __future__ import annotations

import ipaddress
import json
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from support.components import ALWAYS
from support.golden import Golden

from quarterdeck.api.plane.keys import KeyPurpose, KeyUse
from quarterdeck.components.apiserver import encryption_configuration
from quarterdeck.components.credentials import KeyPair, ReplicaSecrets, SharedSecrets, in_use
from quarterdeck.errors import Corrupt, PreconditionFailed
from quarterdeck.model.components import NAMED, Component
from quarterdeck.pki.authority import create_authority, issue
from quarterdeck.pki.certificate import BACKDATED, CertificateRequest, Usage
from quarterdeck.pki.codec import decode, encode
from quarterdeck.pki.issuance import (
    LEAF_LIFETIME,
    ReplicaNames,
    create_plane_secrets,
    with_keys,
    with_manager,
    with_replica,
    without_program,
    without_replica,
)
from quarterdeck.pki.tls import client_context
from quarterdeck.pki.validity import certificates, check_certificate, check_secrets, expiry

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = ReplicaNames(
    replica="demo-1",
    addresses=("10.1.2.3",),
    service_ip="10.96.0.1",
    programs=ALWAYS,
    endpoint_names=("demo.planes.test",),
    endpoint_addresses=("10.1.0.9", "10.2.0.9"),
)


@pytest.fixture(scope="module")
def empty() -> SharedSecrets:
    return create_plane_secrets("demo", NOW)


@pytest.fixture(scope="module")
def plane(empty: SharedSecrets) -> SharedSecrets:
    return with_replica(empty, NAMES, NOW)


@pytest.fixture(scope="module")
def issued(plane: SharedSecrets) -> ReplicaSecrets:
    found = plane.replica("demo-1")
    assert found is not None
    return found


def parsed(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def names(pair: KeyPair) -> tuple[set[str], set[str]]:
    """DNS names and addresses."""
    found = parsed(pair).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(found.get_values_for_type(x509.DNSName)), {
        str(each) for each in found.get_values_for_type(x509.IPAddress)
    }


def purposes(pair: KeyPair) -> set[x509.ObjectIdentifier]:
    return set(parsed(pair).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def subject(pair: KeyPair, attribute: x509.ObjectIdentifier) -> list[str]:
    return [str(each.value) for each in parsed(pair).subject.get_attributes_for_oid(attribute)]


def test_a_plane_has_authorities_of_its_own(empty: SharedSecrets) -> None:
    other = create_plane_secrets("demo", NOW)
    authorities = {
        pair.certificate
        for secrets in (empty, other)
        for pair in (secrets.kubernetes_ca.issuer, secrets.etcd_ca.issuer, secrets.front_proxy_ca.issuer)
    }
    assert len(authorities) == 6
    assert len(empty.encryption_keys[0].secret) == 32
    assert empty.encryption_keys[0].secret != other.encryption_keys[0].secret
    assert empty.service_account[0].private != other.service_account[0].private


@pytest.mark.parametrize("authority", ["kubernetes_ca", "etcd_ca", "front_proxy_ca"])
def test_an_authority_may_sign_leafs_and_its_successor(empty: SharedSecrets, authority: str) -> None:
    certificate = parsed(getattr(empty, authority).issuer)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert constraints.value.ca
    assert constraints.value.path_length == 1


@pytest.mark.parametrize(
    ("field", "authority"),
    [
        ("etcd_server", "etcd_ca"),
        ("etcd_peer", "etcd_ca"),
        ("etcd_client", "etcd_ca"),
        ("apiserver", "kubernetes_ca"),
        ("kubelet_client", "kubernetes_ca"),
        ("front_proxy", "front_proxy_ca"),
        ("controller_manager", "kubernetes_ca"),
        ("controller_manager_client", "kubernetes_ca"),
        ("scheduler", "kubernetes_ca"),
        ("scheduler_client", "kubernetes_ca"),
    ],
)
def test_each_certificate_is_signed_by_the_authority_that_is_asked_for_it(
    plane: SharedSecrets, issued: ReplicaSecrets, field: str, authority: str
) -> None:
    leaf = parsed(issued.pairs[field])
    leaf.verify_directly_issued_by(parsed(getattr(plane, authority).issuer))
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_etcd_certificates_name_addresses_only_so_that_peers_are_not_looked_up_in_reverse(
    issued: ReplicaSecrets,
) -> None:
    for pair in (issued.pairs["etcd_server"], issued.pairs["etcd_peer"]):
        assert names(pair) == (set(), {"10.1.2.3"})
        assert purposes(pair) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def test_on_loopback_a_peer_may_come_from_the_first_loopback_address(empty: SharedSecrets) -> None:
    local = ReplicaNames(replica="demo-2", addresses=("127.11.0.2",), service_ip="10.96.0.1", programs=ALWAYS)
    found = with_replica(empty, local, NOW).replica("demo-2")
    assert found is not None
    assert names(found.pairs["etcd_peer"]) == (set(), {"127.11.0.2", "127.0.0.1"})


def test_an_apiserver_answers_for_every_way_to_reach_the_plane(issued: ReplicaSecrets) -> None:
    dns, addresses = names(issued.pairs["apiserver"])
    assert dns == {
        "demo.planes.test",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
    }
    assert addresses == {"10.1.2.3", "10.96.0.1", "10.1.0.9", "10.2.0.9"}
    assert purposes(issued.pairs["apiserver"]) == {ExtendedKeyUsageOID.SERVER_AUTH}


@pytest.mark.parametrize(
    ("field", "user", "groups"),
    [
        ("etcd_client", "kube-apiserver-etcd-client", []),
        ("kubelet_client", "kube-apiserver-kubelet-client", ["system:masters"]),
        ("front_proxy", "front-proxy-client", []),
        ("controller_manager_client", "system:kube-controller-manager", []),
        ("scheduler_client", "system:kube-scheduler", []),
    ],
)
def test_clients_have_the_names_that_rbac_knows(
    issued: ReplicaSecrets, field: str, user: str, groups: list[str]
) -> None:
    pair = issued.pairs[field]
    assert subject(pair, NameOID.COMMON_NAME) == [user]
    assert subject(pair, NameOID.ORGANIZATION_NAME) == groups
    assert purposes(pair) == {ExtendedKeyUsageOID.CLIENT_AUTH}


def test_certificates_are_valid_from_a_little_before_they_were_issued(issued: ReplicaSecrets) -> None:
    certificate = parsed(issued.pairs["apiserver"])
    assert certificate.not_valid_before_utc == NOW - BACKDATED
    assert certificate.not_valid_after_utc == NOW + LEAF_LIFETIME


def test_a_leaf_never_outlives_its_authority() -> None:
    authority = create_authority("short", NOW, lifetime=timedelta(days=2))
    wanted = CertificateRequest(common_name="leaf", usage=Usage.CLIENT, lifetime=timedelta(days=9))
    assert expiry(issue(authority, wanted, NOW).certificate) == expiry(authority.certificate)


def test_a_replicas_certificates_are_issued_once_and_kept(plane: SharedSecrets) -> None:
    assert with_replica(plane, NAMES, NOW + timedelta(days=30)) is plane


def test_a_cloud_controller_manager_that_comes_to_a_replica_gets_certificates_and_they_go_with_it(
    plane: SharedSecrets,
) -> None:
    names_then = replace(NAMES, programs=NAMED)
    renewed = with_replica(plane, NAMES, NOW, generation=3)
    for before in (plane, renewed):
        after = with_replica(before, names_then, NOW, generation=before.generation("demo-1"))
        one, other = before.replica("demo-1"), after.replica("demo-1")
        assert one is not None
        assert other is not None
        client, serving = other.pairs["cloud_controller_manager_client"], other.pairs["cloud_controller_manager"]
        assert subject(client, NameOID.COMMON_NAME) == ["system:cloud-controller-manager"]
        assert names(serving) == ({"cloud-controller-manager", "localhost"}, {"10.1.2.3"})
        assert {name: other.pairs[name] for name in one.pairs} == one.pairs, "all others stay"
        assert after.generation("demo-1") == before.generation("demo-1")
        assert with_replica(after, names_then, NOW) is after
        assert with_replica(after, NAMES, NOW) is after
        assert without_program(after, "demo-1", Component.CLOUD_CONTROLLER_MANAGER).replica("demo-1") == one
        assert without_program(before, "demo-1", Component.CLOUD_CONTROLLER_MANAGER) is before
        assert decode(encode(after)) == after
    assert "cloud_controller_manager" not in encode(plane)


def test_certificates_are_issued_again_once_for_each_generation_by_the_same_authorities(plane: SharedSecrets) -> None:
    later = NOW + timedelta(days=30)
    renewed = with_manager(with_replica(plane, NAMES, later, generation=1), 1, later)
    before, after = plane.replica("demo-1"), renewed.replica("demo-1")
    assert before is not None
    assert after is not None
    assert before.pairs.keys() == after.pairs.keys()
    for name, one in before.pairs.items():
        other = after.pairs[name]
        assert expiry(other.certificate) - expiry(one.certificate) == timedelta(days=30), name
        assert one.key != other.key
    assert expiry(renewed.manager.certificate) - expiry(plane.manager.certificate) == timedelta(days=30)
    assert renewed.etcd_manager != plane.etcd_manager
    assert (renewed.kubernetes_ca, renewed.etcd_ca) == (plane.kubernetes_ca, plane.etcd_ca)
    assert with_replica(renewed, NAMES, later, generation=1) is renewed
    assert with_replica(renewed, NAMES, later) is renewed, "who goes back keeps the new ones"
    assert with_manager(renewed, 1, later) is renewed
    assert decode(encode(renewed)) == renewed
    assert without_replica(renewed, "demo-1").generation("demo-1") == 0


def test_what_a_replica_that_is_gone_had_is_forgotten(plane: SharedSecrets) -> None:
    assert without_replica(plane, "demo-1").replica("demo-1") is None
    assert without_replica(plane, "demo-2") == plane


def test_secrets_survive_the_way_through_a_store(plane: SharedSecrets) -> None:
    assert decode(encode(plane)) == plane


@pytest.mark.parametrize("change", ["", "{", "[]", '{"version": 1}', "null", '"text"'])
def test_what_is_not_secrets_is_corrupt(change: str) -> None:
    with pytest.raises(Corrupt):
        decode(change)


def test_secrets_of_a_newer_version_are_refused_by_name(plane: SharedSecrets, golden: Golden) -> None:
    document = json.loads(encode(plane))
    document["version"] = 3
    with golden.raises(Corrupt):
        decode(json.dumps(document))


def test_all_known_keys_are_kept(plane: SharedSecrets) -> None:
    needed = {each: frozenset({0, 1}) for each in KeyPurpose}
    more = with_keys(plane, needed)
    assert decode(encode(more)) == more
    assert with_keys(more, needed) is more
    assert more.service_account[0] == plane.service_account[0]
    assert len({each.public for each in more.service_account}) == 2
    keys = in_use(more.encryption_keys, KeyUse(current=1, also=0))
    written = yaml.safe_load(encryption_configuration(keys, encrypt=True))
    found = written["resources"][0]["providers"][0]["secretbox"]["keys"]
    assert [each["name"] for each in found] == ["key2", "key1"]
    with pytest.raises(Corrupt):
        in_use(more.encryption_keys, KeyUse(current=2))


def test_an_error_about_broken_secrets_shows_none_of_them(plane: SharedSecrets) -> None:
    text = encode(plane).replace("kubernetes_ca", "other")
    with pytest.raises(Corrupt) as caught:
        decode(text)
    assert "PRIVATE" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_keys_are_never_in_a_representation(plane: SharedSecrets) -> None:
    text = repr(plane)
    assert "PRIVATE" not in text
    assert repr(plane.encryption_keys[0].secret) not in text


def test_an_expired_certificate_is_named_with_its_dates(plane: SharedSecrets, golden: Golden) -> None:
    check_secrets(plane, NOW)
    with pytest.raises(PreconditionFailed) as caught:
        check_secrets(plane, NOW + LEAF_LIFETIME)
    assert "manager" in caught.value.doing
    golden(caught.value.seen)


def test_a_clock_that_was_set_back_is_told_from_an_expired_certificate(issued: ReplicaSecrets) -> None:
    check_certificate("demo-1/apiserver", issued.pairs["apiserver"].certificate, NOW - BACKDATED)
    with pytest.raises(PreconditionFailed) as caught:
        check_certificate("demo-1/apiserver", issued.pairs["apiserver"].certificate, NOW - timedelta(days=1))
    assert "demo-1/apiserver" in caught.value.doing
    assert "2026-02-28 12:00:00 UTC" in caught.value.seen
    assert "set back" in caught.value.next_step


def test_every_certificate_of_a_plane_is_checked(plane: SharedSecrets) -> None:
    found = [name for name, _ in certificates(plane)]
    assert found[:5] == ["kubernetes-ca", "etcd-ca", "front-proxy-ca", "manager", "etcd-manager"]
    assert len(found) == len(set(found)) == 15
    assert "demo-1/etcd-peer" in found


def test_a_client_context_trusts_one_authority_and_shows_its_certificate(
    plane: SharedSecrets, issued: ReplicaSecrets
) -> None:
    context = client_context(plane.kubernetes_ca.bundle, issued.pairs["scheduler_client"])
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1


def test_addresses_are_the_same_however_they_are_written(empty: SharedSecrets) -> None:
    local = ReplicaNames(
        replica="demo-3",
        addresses=("fd00::3",),
        service_ip="fd01::1",
        programs=ALWAYS,
        endpoint_addresses=("fd00:0:0::3",),
    )
    found = with_replica(empty, local, NOW).replica("demo-3")
    assert found is not None
    assert names(found.pairs["apiserver"])[1] == {str(ipaddress.ip_address(each)) for each in ("fd00::3", "fd01::1")}
