"""Opening clients of a plane's processes: from its secrets to a port."""

from __future__ import annotations

from contextlib import AsyncExitStack

from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.port import EtcdCluster
from quarterdeck.etcd.real import RealEtcd
from quarterdeck.http import Http
from quarterdeck.kube.http import HttpKube
from quarterdeck.kube.port import Kube
from quarterdeck.pki.tls import client_context


def open_etcd(secrets: SharedSecrets, stack: AsyncExitStack) -> EtcdCluster:
    """The plane's etcd, until ``stack`` ends."""
    etcd = RealEtcd(ClientTls(ca=secrets.etcd_ca.bundle, client=secrets.etcd_manager))
    stack.push_async_callback(etcd.close)
    return etcd


def open_kube(secrets: SharedSecrets, stack: AsyncExitStack) -> Kube:
    """The plane's apiservers and controllers."""
    kube = HttpKube(secrets.kubernetes_ca.bundle, secrets.manager)
    stack.push_async_callback(kube.close)
    return kube


def open_http(secrets: SharedSecrets, stack: AsyncExitStack) -> Http:
    """Connections to other servers of the plane with a certificate of its Kubernetes authority: its load balancers."""
    http = Http(client_context(secrets.kubernetes_ca.bundle, secrets.manager))
    stack.push_async_callback(http.close)
    return http
