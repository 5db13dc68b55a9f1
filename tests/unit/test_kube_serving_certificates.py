"""Which kubelet gets the certificate that it asks for: one that asks for itself, and for nothing else."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from support.golden import Golden
from support.joining_lab import signing_request

from quarterdeck.kube.nodes import Node, ReservedNames, SigningRequest, objection
from quarterdeck.pki.requests import requested

TAKEN = ReservedNames(frozenset({"10.0.0.1", "demo.quarterdeck.internal", "kubernetes"}), ("cluster.local", "svc"))
USER = "system:node:n1"


def node(name: str, **addresses: str) -> Node:
    found = [{"type": kind, "address": address} for kind, address in addresses.items()]
    return Node.model_validate({"metadata": {"name": name}, "status": {"addresses": found}})


NODES = (
    node("n1", InternalIP="10.0.9.1", Hostname="n1", InternalDNS="n1.example"),
    node("n2", InternalIP="10.0.9.2", Hostname="n2"),
)


def request(pem: bytes, **spec: Any) -> SigningRequest:
    fields = {
        "request": base64.b64encode(pem).decode(),
        "signerName": "kubernetes.io/kubelet-serving",
        "username": USER,
        "groups": ["system:nodes", "system:authenticated"],
        "usages": ["digital signature", "server auth"],
        **spec,
    }
    return SigningRequest.model_validate({"metadata": {"name": "csr-1", "uid": "u"}, "spec": fields})


def why_not(pem: bytes, nodes: tuple[Node, ...] = NODES, **spec: Any) -> str:
    return objection(request(pem, **spec), requested(pem), nodes, TAKEN)


GOOD = signing_request(USER, names=("n1",), addresses=("10.0.9.1",))


@pytest.mark.parametrize("names", [(), ("n1",), ("n1", "n1.example")])
def test_a_node_gets_one_for_its_own_names_and_addresses(names: tuple[str, ...]) -> None:
    assert why_not(signing_request(USER, names=names, addresses=("10.0.9.1",))) == ""
    assert why_not(GOOD, usages=["digital signature", "key encipherment", "server auth"]) == ""


@pytest.mark.parametrize(
    "spec",
    [
        {"username": "admin"},
        {"username": ""},
        {"groups": ["system:authenticated"]},
        {"usages": ["digital signature"]},
        {"usages": ["server auth", "client auth"]},
        {"username": "system:node:n2"},
    ],
)
def test_others_do_not_and_no_node_gets_one_for_anything_else(spec: dict[str, Any], golden: Golden) -> None:
    golden(why_not(GOOD, **spec))


@pytest.mark.parametrize(
    "pem",
    [
        b"no request",
        signing_request(USER),
        signing_request(USER, groups=("system:masters",), addresses=("10.0.9.1",)),
        signing_request(USER, groups=("system:nodes", "x"), addresses=("10.0.9.1",)),
        signing_request("system:node:n2", addresses=("10.0.9.1",)),
        signing_request(USER, addresses=("10.0.9.1",), others=(x509.RFC822Name("a@example"),)),
        signing_request(USER, addresses=("10.0.9.1",), extra=(x509.NameAttribute(NameOID.COUNTRY_NAME, "DE"),)),
        signing_request(USER, addresses=("10.0.9.1", "10.0.9.7")),
        signing_request(USER, names=("else",), addresses=("10.0.9.1",)),
    ],
)
def test_what_is_asked_for_must_be_the_nodes_own(pem: bytes, golden: Golden) -> None:
    golden(why_not(pem))


@pytest.mark.parametrize(
    ("address", "hostname"),
    [
        ("10.0.0.1", "n1"),
        ("10.0.9.1", "Demo.Quarterdeck.Internal"),
        ("10.0.9.1", "kubernetes.default.svc"),
        ("10.0.9.1", "a.cluster.local"),
        ("10.0.9.2", "n1"),
        ("10.0.9.1", "n2"),
    ],
)
def test_a_kubelet_that_says_it_is_somebody_else_gets_none(address: str, hostname: str, golden: Golden) -> None:
    nodes = (node("n1", InternalIP=address, Hostname=hostname), NODES[1])
    golden(why_not(signing_request(USER, names=(hostname,), addresses=(address,)), nodes))


def test_a_node_that_is_not_there_gets_none(golden: Golden) -> None:
    golden(why_not(GOOD, NODES[1:]))
