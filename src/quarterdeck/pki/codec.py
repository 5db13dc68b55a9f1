"""Secrets of a plane as JSON, for a store. The text holds private keys."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.credentials import (
    Authority,
    CertificateSpec,
    EncryptionKey,
    KeyPair,
    ReplicaSecrets,
    SharedSecrets,
    SigningKey,
    SigningKeys,
)
from quarterdeck.errors import Corrupt

_VERSION = 1
_AUTHORITIES = ("kubernetes_ca", "etcd_ca", "front_proxy_ca")
_PAIRS = ("manager", "etcd_manager")


def encode(secrets: SharedSecrets) -> str:
    """The JSON of ``secrets``."""
    document: dict[str, object] = {"version": _VERSION}
    document |= {name: _authority_out(getattr(secrets, name)) for name in _AUTHORITIES}
    document |= {name: _pair_out(getattr(secrets, name)) for name in _PAIRS}
    account = secrets.service_account
    document["service_account"] = {
        "public": account.signing.public.decode(),
        "private": account.signing.private.decode(),
        "also": [each.decode() for each in account.also],
    }
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
        if document["version"] != _VERSION:
            raise Corrupt(
                "reading the secrets of a plane",
                f"they are of version {document['version']!r}, not {_VERSION}",
                "use the version of quarterdeck that wrote them",
            )
        signing = document["service_account"]
        key = SigningKey(signing["public"].encode(), signing["private"].encode())
        return SharedSecrets(
            kubernetes_ca=_authority_in(document["kubernetes_ca"]),
            etcd_ca=_authority_in(document["etcd_ca"]),
            front_proxy_ca=_authority_in(document["front_proxy_ca"]),
            manager=_pair_in(document["manager"]),
            etcd_manager=_pair_in(document["etcd_manager"]),
            service_account=SigningKeys(key, _texts_in(signing)),
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


def _pair_out(pair: KeyPair) -> dict[str, str]:
    return {"certificate": pair.certificate.decode(), "key": pair.key.decode()}


def _pair_in(document: Mapping[str, str]) -> KeyPair:
    return KeyPair(document["certificate"].encode(), document["key"].encode())


def _authority_out(authority: Authority) -> dict[str, object]:
    return {**_pair_out(authority.issuer), "also": [each.decode() for each in authority.also]}


def _authority_in(document: Mapping[str, Any]) -> Authority:
    return Authority(_pair_in(document), _texts_in(document))


def _texts_in(document: Mapping[str, Any]) -> tuple[bytes, ...]:
    return tuple(each.encode() for each in document["also"])


def _replica_in(document: Mapping[str, Mapping[str, str]]) -> ReplicaSecrets:
    """Every replica has its certificates; those of optional programs may be missing."""
    needed = (each.name for each in _certificates(optional=False))
    known = (each.name for each in _certificates(optional=True) if each.name in document)
    return ReplicaSecrets({name: _pair_in(document[name]) for name in (*needed, *known)})


def _certificates(*, optional: bool) -> Iterator[CertificateSpec]:
    for component, spec in CATALOGUE.items():
        if component.optional is optional:
            yield from spec.certificates
