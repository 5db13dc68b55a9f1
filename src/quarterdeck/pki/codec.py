"""Secrets of a plane as JSON, for a store. The text holds private keys."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.credentials import (
    Authority,
    CertificateSpec,
    EncryptionKey,
    KeyPair,
    NumberedAuthority,
    ReplicaSecrets,
    SharedSecrets,
    SigningKey,
)
from quarterdeck.errors import Corrupt

_VERSION = 2
_AUTHORITIES = ("kubernetes_ca", "etcd_ca", "front_proxy_ca")
_PAIRS = ("manager", "etcd_manager")


def encode(secrets: SharedSecrets) -> str:
    """The JSON of ``secrets``."""
    document: dict[str, object] = {"version": _VERSION}
    document |= {name: _authority_out(getattr(secrets, name)) for name in _AUTHORITIES}
    document |= {name: _pair_out(getattr(secrets, name)) for name in _PAIRS}
    document["service_account"] = [
        {"public": each.public.decode(), "private": each.private.decode(), "number": each.number}
        for each in secrets.service_account
    ]
    document["encryption_keys"] = [
        {"name": each.name, "secret": base64.b64encode(each.secret).decode()} for each in secrets.encryption_keys
    ]
    document["replicas"] = {
        name: {each: _pair_out(pair) for each, pair in issued.pairs.items()} for name, issued in secrets.replicas
    }
    document["generations"] = dict(secrets.generations)
    return json.dumps(document, indent=1)


def decode(text: str) -> SharedSecrets:
    """The output of ``encode``, parsed. Raises Corrupt for anything else, without showing any of it."""
    try:
        document = json.loads(text)
        if document["version"] in _MIGRATIONS:
            document = _MIGRATIONS[document["version"]](document)
        if document["version"] != _VERSION:
            raise Corrupt(
                "reading the secrets of a plane",
                f"they are of version {document['version']!r}, not {_VERSION}",
                "use the version of quarterdeck that wrote them",
            )
        return SharedSecrets(
            kubernetes_ca=_authority_in(document["kubernetes_ca"]),
            etcd_ca=_authority_in(document["etcd_ca"]),
            front_proxy_ca=_authority_in(document["front_proxy_ca"]),
            manager=_pair_in(document["manager"]),
            etcd_manager=_pair_in(document["etcd_manager"]),
            service_account=tuple(
                SigningKey(each["public"].encode(), each["private"].encode(), int(each["number"]))
                for each in document["service_account"]
            ),
            encryption_keys=tuple(
                EncryptionKey(each["name"], base64.b64decode(each["secret"], validate=True))
                for each in document["encryption_keys"]
            ),
            replicas=tuple((name, _replica_in(issued)) for name, issued in document["replicas"].items()),
            generations=tuple((name, int(number)) for name, number in document["generations"].items()),
        )
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as broken:
        # The message of the cause may quote a key: only its type is shown.
        raise Corrupt(
            "reading the secrets of a plane",
            f"they are damaged ({type(broken).__name__})",
            "restore the store from a backup",
        ) from None


def _from_first(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document of the first version, in which a plane had one authority for each purpose."""
    authorities = {name: [{**document[name], "issuer": 0, "number": 0, "crossed": ""}] for name in _AUTHORITIES}
    pairs = {name: {**document[name], "issuer": 0} for name in _PAIRS}
    replicas = {
        name: {each: {**pair, "issuer": 0} for each, pair in issued.items()}
        for name, issued in document["replicas"].items()
    }
    signing = [{**document["service_account"], "number": 0}]
    changed = {"replicas": replicas, "service_account": signing, "version": _VERSION}
    return {**document, **authorities, **pairs, **changed}


#: By the version that they start from.
_MIGRATIONS: Mapping[int, Callable[[Mapping[str, Any]], dict[str, Any]]] = {1: _from_first}


def _pair_out(pair: KeyPair) -> dict[str, object]:
    return {"certificate": pair.certificate.decode(), "key": pair.key.decode(), "issuer": pair.issuer}


def _pair_in(document: Mapping[str, Any]) -> KeyPair:
    return KeyPair(document["certificate"].encode(), document["key"].encode(), int(document["issuer"]))


def _authority_out(authority: Authority) -> list[dict[str, object]]:
    return [
        {**_pair_out(each.pair), "number": each.number, "crossed": each.crossed.decode()} for each in authority.known
    ]


def _authority_in(documents: Sequence[Mapping[str, Any]]) -> Authority:
    """How they are used is known from revisions."""
    return Authority(
        tuple(NumberedAuthority(int(each["number"]), _pair_in(each), each["crossed"].encode()) for each in documents)
    )


def _replica_in(document: Mapping[str, Mapping[str, Any]]) -> ReplicaSecrets:
    """Every replica has its certificates; those of optional programs may be missing."""
    needed = (each.name for each in _certificates(optional=False))
    known = (each.name for each in _certificates(optional=True) if each.name in document)
    return ReplicaSecrets({name: _pair_in(document[name]) for name in (*needed, *known)})


def _certificates(*, optional: bool) -> Iterator[CertificateSpec]:
    for component, spec in CATALOGUE.items():
        if component.optional is optional:
            yield from spec.certificates
