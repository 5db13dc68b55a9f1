"""Secrets of a plane as JSON, for a store that keeps them. The text holds private keys."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import fields

from quarterdeck.components.credentials import KeyPair, PlaneSecrets, ReplicaSecrets, SigningKey
from quarterdeck.errors import Corrupt

_VERSION = 1
_PAIRS = ("kubernetes_ca", "etcd_ca", "front_proxy_ca", "manager", "etcd_manager")


def encode(secrets: PlaneSecrets) -> str:
    """The JSON of ``secrets``."""
    document: dict[str, object] = {"version": _VERSION}
    document |= {name: _pair_out(getattr(secrets, name)) for name in _PAIRS}
    document["service_account"] = {
        "public": secrets.service_account.public.decode(),
        "private": secrets.service_account.private.decode(),
    }
    document["encryption_key"] = base64.b64encode(secrets.encryption_key).decode()
    document["replicas"] = {
        name: {each.name: _pair_out(getattr(issued, each.name)) for each in fields(issued)}
        for name, issued in secrets.replicas
    }
    document["generations"] = dict(secrets.generations)
    return json.dumps(document, indent=1)


def decode(text: str) -> PlaneSecrets:
    """What ``encode`` wrote. Raises Corrupt for anything else, without showing any of it."""
    try:
        document = json.loads(text)
        if document["version"] != _VERSION:
            raise Corrupt(
                "reading the secrets of a plane",
                f"they are of version {document['version']!r}, not {_VERSION}",
                "use the version of quarterdeck that wrote them",
            )
        signing = document["service_account"]
        pairs = {name: _pair_in(document[name]) for name in _PAIRS}
        return PlaneSecrets(
            **pairs,
            service_account=SigningKey(signing["public"].encode(), signing["private"].encode()),
            encryption_key=base64.b64decode(document["encryption_key"], validate=True),
            replicas=tuple((name, _replica_in(issued)) for name, issued in document["replicas"].items()),
            generations=tuple((name, int(number)) for name, number in document.get("generations", {}).items()),
        )
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as broken:
        # The message of the cause may quote a key: only its kind is told.
        raise Corrupt(
            "reading the secrets of a plane",
            f"they are not what was written ({type(broken).__name__})",
            "restore the store from a backup",
        ) from None


def _pair_out(pair: KeyPair) -> dict[str, str]:
    return {"certificate": pair.certificate.decode(), "key": pair.key.decode()}


def _pair_in(document: Mapping[str, str]) -> KeyPair:
    return KeyPair(document["certificate"].encode(), document["key"].encode())


def _replica_in(document: Mapping[str, Mapping[str, str]]) -> ReplicaSecrets:
    return ReplicaSecrets(**{each.name: _pair_in(document[each.name]) for each in fields(ReplicaSecrets)})
