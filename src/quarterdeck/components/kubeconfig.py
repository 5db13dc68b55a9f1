"""kubeconfig files."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import lru_cache

from quarterdeck.components.credentials import KeyPair
from quarterdeck.yaml_text import dumped


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """An apiserver, or the endpoint of a plane, as a client needs it.

    ``url`` is ``https://host:port``. ``tls_name`` is the name to expect in its certificate where ``url`` has
    another, "" to expect what ``url`` says. ``proxy_url``: an HTTP proxy to go through, "" for none.
    """

    url: str
    ca: bytes
    tls_name: str = ""
    proxy_url: str = ""


@lru_cache(maxsize=64)
def kubeconfig(cluster: str, user: str, server: Server, client: KeyPair) -> str:
    """A kubeconfig (YAML) with one cluster, user and context. It holds the client's private key."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": _cluster(server)}],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _encoded(client.certificate),
                    "client-key-data": _encoded(client.key),
                },
            }
        ],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
        "current-context": cluster,
    }
    return dumped(config, sort_keys=False)


def token_kubeconfig(cluster: str, user: str, server: Server, token: str) -> str:
    """The same with a token: for a kubelet that has no certificate yet."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": _cluster(server)}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
        "current-context": cluster,
    }
    return dumped(config, sort_keys=False)


def webhook_kubeconfig(url: str, *, authority: bytes, certificate: bytes, key: bytes, token: str) -> str:
    """A kubeconfig (YAML) with which an apiserver calls a webhook. What is empty is left out; PEM is in it as data."""
    user = {
        "client-certificate-data": _encoded(certificate),
        "client-key-data": _encoded(key),
        "token": token,
    }
    cluster = {"server": url, "certificate-authority-data": _encoded(authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "webhook", "cluster": {name: value for name, value in cluster.items() if value}}],
        "users": [{"name": "kube-apiserver", "user": {name: value for name, value in user.items() if value}}],
        "contexts": [{"name": "webhook", "context": {"cluster": "webhook", "user": "kube-apiserver"}}],
        "current-context": "webhook",
    }
    return dumped(config, sort_keys=False)


def _cluster(server: Server) -> dict[str, str]:
    where = {"server": server.url, "certificate-authority-data": _encoded(server.ca)}
    if server.tls_name:
        where["tls-server-name"] = server.tls_name
    if server.proxy_url:
        where["proxy-url"] = server.proxy_url
    return where


def _encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
