"""The configuration files of an apiserver."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

from quarterdeck.api.plane.apiserver import Tracing
from quarterdeck.api.plane.authentication import JwtAuthenticator
from quarterdeck.components.credentials import EncryptionKey
from quarterdeck.components.upstream_versions import authentication_api, tracing_api
from quarterdeck.yaml_text import dumped

#: What anybody may ask: whether it is alive. Exact paths; ``/readyz/etcd`` is not among them.
ANONYMOUS_PATHS = ("/healthz", "/livez", "/readyz")
#: What a node asks before it has a certificate, and knows whom to trust: the CA, signed with each token. RBAC lets it
#: read this one object and no more.
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"


def authentication_hash(kubernetes: str, authenticators: tuple[JwtAuthenticator, ...], *, nodes: bool) -> str:
    """As what an apiserver tells the file that it goes by."""
    file = authentication_configuration(kubernetes, authenticators, nodes=nodes)
    return f"sha256:{hashlib.sha256(file.encode()).hexdigest()}"


@lru_cache(maxsize=8)
def authentication_configuration(
    kubernetes: str, authenticators: tuple[JwtAuthenticator, ...] = (), *, nodes: bool = False
) -> str:
    """An AuthenticationConfiguration that lets anonymous requests see the health paths and, where ``nodes`` join with
    tokens, what these look for first; nothing else. It lets those in who show a token of one of the user's issuers.
    """
    paths = (*ANONYMOUS_PATHS, CLUSTER_INFO) if nodes else ANONYMOUS_PATHS
    document: dict[str, object] = {
        "apiVersion": authentication_api(kubernetes),
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": True, "conditions": [{"path": path} for path in paths]},
    }
    if authenticators:
        document["jwt"] = [each.model_dump(mode="json", exclude_none=True) for each in authenticators]
    return dumped(document)


def tracing_configuration(kubernetes: str, tracing: Tracing) -> str:
    """A TracingConfiguration."""
    said = tracing.model_dump(mode="json", exclude_none=True)
    return dumped({"apiVersion": tracing_api(kubernetes), "kind": "TracingConfiguration", **said})


@lru_cache(maxsize=8)
def encryption_configuration(keys: tuple[EncryptionKey, ...], *, encrypt: bool) -> str:
    """An EncryptionConfiguration that stores Secrets with XSalsa20 and Poly1305 by the first key, or as they are.

    Names and bytes must be equal on all replicas. The first provider writes; the second reads what was stored
    before encryption was turned on or off.
    """
    known = [{"name": each.name, "secret": base64.b64encode(each.secret).decode()} for each in keys]
    providers: list[dict[str, object]] = [{"secretbox": {"keys": known}}, {"identity": {}}]
    return dumped(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "EncryptionConfiguration",
            "resources": [{"resources": ["secrets"], "providers": providers if encrypt else providers[::-1]}],
        }
    )
