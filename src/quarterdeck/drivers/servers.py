"""What runs of a plane, as its manager reaches it: with the manager's certificates, over connections that are kept."""

from __future__ import annotations

from contextlib import AsyncExitStack

from quarterdeck.components.credentials import PlaneSecrets
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.port import Etcd
from quarterdeck.etcd.real import RealEtcd
from quarterdeck.http import Http
from quarterdeck.kube.http import HttpKube
from quarterdeck.kube.port import Kube
from quarterdeck.pki.tls import client_context


def open_etcd(secrets: PlaneSecrets, stack: AsyncExitStack) -> Etcd:
    """The plane's etcd, until ``stack`` ends."""
    etcd = RealEtcd(ClientTls(ca=secrets.etcd_ca.bundle, client=secrets.etcd_manager))
    stack.push_async_callback(etcd.close)
    return etcd


def open_kube(secrets: PlaneSecrets, stack: AsyncExitStack) -> Kube:
    """The plane's apiservers and controllers."""
    kube = HttpKube(secrets.kubernetes_ca.bundle, secrets.manager)
    stack.push_async_callback(kube.close)
    return kube


def open_http(secrets: PlaneSecrets, stack: AsyncExitStack) -> Http:
    """Connections to what else of the plane has a certificate of its Kubernetes authority: its load balancers."""
    http = Http(client_context(secrets.kubernetes_ca.bundle, secrets.manager))
    stack.push_async_callback(http.close)
    return http
