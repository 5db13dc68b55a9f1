"""Secrets that cost nothing: what certificates say is tested elsewhere, here only that they are kept and handed on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from unittest.mock import patch

from quarterdeck.components.credentials import (
    Authority,
    EncryptionKey,
    KeyPair,
    ReplicaSecrets,
    SharedSecrets,
    SigningKey,
    SigningKeys,
)
from quarterdeck.pki.issuance import ReplicaNames, has_all

_PAIR = KeyPair(b"certificate", b"key")


def plane_secrets(plane: str, now: datetime) -> SharedSecrets:
    return SharedSecrets(
        kubernetes_ca=Authority(_PAIR),
        etcd_ca=Authority(_PAIR),
        front_proxy_ca=Authority(_PAIR),
        service_account=SigningKeys(SigningKey(b"public", b"private")),
        encryption_keys=(EncryptionKey("key1", bytes(32)),),
        manager=_PAIR,
        etcd_manager=_PAIR,
    )


def with_replica(plane: SharedSecrets, names: ReplicaNames, now: datetime, *, generation: int = 0) -> SharedSecrets:
    assert generation == 0, "no life renews certificates"
    if has_all(plane, names):
        return plane
    own = KeyPair(f"certificate of {names.replica}".encode(), b"key")
    issued = dict.fromkeys(names.certificates, own)
    others = tuple(each for each in plane.replicas if each[0] != names.replica)
    return replace(plane, replicas=(*others, (names.replica, ReplicaSecrets(issued))))


@contextmanager
def cheap_secrets() -> Iterator[None]:
    """Within the block nothing is signed."""
    with (
        patch("quarterdeck.engine.workspace.belongings.create_plane_secrets", plane_secrets),
        patch("quarterdeck.actions.certificates.with_replica", with_replica),
        patch("quarterdeck.engine.background.certificates.certificates", lambda secrets: ()),
    ):
        yield
