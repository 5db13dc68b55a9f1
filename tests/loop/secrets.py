"""Secrets that cost nothing: what certificates say is tested elsewhere, here only that they are kept and handed on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from unittest.mock import patch

from quarterdeck.api.plane.certificates import Signer
from quarterdeck.components.credentials import (
    Authority,
    EncryptionKey,
    KeyPair,
    NumberedAuthority,
    ReplicaSecrets,
    SharedSecrets,
    SigningKey,
)
from quarterdeck.pki.issuance import ReplicaNames, has_all

_PAIR = KeyPair(b"certificate", b"key")


def plane_secrets(plane: str, now: datetime, **of_a_document: object) -> SharedSecrets:
    return SharedSecrets(
        kubernetes_ca=Authority.of(_PAIR),
        etcd_ca=Authority.of(_PAIR),
        front_proxy_ca=Authority.of(_PAIR),
        service_account=(SigningKey(b"public", b"private"),),
        encryption_keys=(EncryptionKey("key1", bytes(32)),),
        manager=_PAIR,
        etcd_manager=_PAIR,
    )


def with_replica(plane: SharedSecrets, names: ReplicaNames, now: datetime, *, generation: int = 0) -> SharedSecrets:
    assert generation == 0, "no life renews certificates"
    if has_all(plane, names):
        return plane
    own = f"certificate of {names.replica}".encode()
    issued = {
        name: KeyPair(own, b"key", plane.authority(each.signer).use.issuer) for name, each in names.certificates.items()
    }
    others = tuple(each for each in plane.replicas if each[0] != names.replica)
    return replace(plane, replicas=(*others, (names.replica, ReplicaSecrets(issued))))


def with_authorities(
    plane: str, secrets: SharedSecrets, needed: Mapping[Signer, frozenset[int]], now: datetime
) -> SharedSecrets:
    complete = {
        each: replace(secrets.authority(each), known=tuple(NumberedAuthority(one, _PAIR) for one in sorted(numbers)))
        for each, numbers in needed.items()
        if not numbers <= {one.number for one in secrets.authority(each).known}
    }
    return secrets.with_authorities(complete) if complete else secrets


def with_manager(plane: SharedSecrets, generation: int, now: datetime) -> SharedSecrets:
    used = plane.kubernetes_ca.use.issuer, plane.etcd_ca.use.issuer
    if (plane.manager.issuer, plane.etcd_manager.issuer) == used:
        return plane
    manager, etcd_manager = (replace(_PAIR, issuer=each) for each in used)
    return replace(plane, manager=manager, etcd_manager=etcd_manager)


@contextmanager
def cheap_secrets() -> Iterator[None]:
    """Within the block nothing is signed."""
    with (
        patch("quarterdeck.engine.workspace.belongings.create_plane_secrets", plane_secrets),
        patch("quarterdeck.actions.certificates.with_replica", with_replica),
        patch("quarterdeck.engine.workspace.secrets_in_use.with_authorities", with_authorities),
        patch("quarterdeck.engine.workspace.secrets_in_use.with_manager", with_manager),
        patch("quarterdeck.engine.background.certificates.certificates", lambda secrets: ()),
        patch("quarterdeck.engine.observation.observe.expired_replicas", lambda plane, world: frozenset()),
    ):
        yield
