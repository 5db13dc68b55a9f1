"""The configuration files of an apiserver."""

from __future__ import annotations

import base64
from functools import cache, lru_cache

import yaml

from quarterdeck.components.upstream_versions import authentication_api

#: What anybody may ask: whether it is alive. Exact paths; ``/readyz/etcd`` is not among them.
ANONYMOUS_PATHS = ("/healthz", "/livez", "/readyz")


@cache
def authentication_configuration(kubernetes: str) -> str:
    """An AuthenticationConfiguration that lets anonymous requests see the health paths and nothing else."""
    return yaml.safe_dump(
        {
            "apiVersion": authentication_api(kubernetes),
            "kind": "AuthenticationConfiguration",
            "anonymous": {"enabled": True, "conditions": [{"path": path} for path in ANONYMOUS_PATHS]},
        }
    )


@lru_cache(maxsize=8)
def encryption_configuration(key: bytes, *, encrypt: bool) -> str:
    """An EncryptionConfiguration that stores Secrets with XSalsa20 and Poly1305 (``key``: 32 bytes), or as they are.

    Names and bytes must be equal on all replicas. The first provider writes; the second reads what was stored
    before encryption was turned on or off.
    """
    keys = [{"name": "key1", "secret": base64.b64encode(key).decode()}]
    providers: list[dict[str, object]] = [{"secretbox": {"keys": keys}}, {"identity": {}}]
    return yaml.safe_dump(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "EncryptionConfiguration",
            "resources": [{"resources": ["secrets"], "providers": providers if encrypt else providers[::-1]}],
        }
    )
