"""Opening stores, and clients of a plane's processes: from a home's folder, or a plane, to a port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from quarterdeck.backup.objects.port import ObjectStore
from quarterdeck.backup.objects.stores import open_store as open_objects
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.port import EtcdCluster
from quarterdeck.etcd.real import RealEtcd
from quarterdeck.http import Http
from quarterdeck.kube.http import HttpKube
from quarterdeck.kube.port import Kube
from quarterdeck.pki.tls import client_context
from quarterdeck.stores.key_seal import Key
from quarterdeck.stores.port import Store
from quarterdeck.stores.sqlite import SqliteStore


def store_file(folder: Path) -> Path:
    """The path of a home's SQLite store."""
    return folder / "quarterdeck.db"


def _sqlite(folder: Path, key: Key | None) -> Store:
    return SqliteStore(store_file(folder), key=key)


STORE_DRIVERS: Mapping[str, Callable[[Path, Key | None], Store]] = {"sqlite": _sqlite}


def open_store(folder: Path, *, key: Key | None = None, kind: str = "sqlite") -> Store:
    """The store of the home in ``folder``. ``key`` seals its secrets. Raises Corrupt for a damaged one or one of a
    newer version, Unavailable when it cannot be written, PreconditionFailed when it is sealed with another key.
    """
    return STORE_DRIVERS[kind](folder, key)


def open_backup_store(url: str, options: Mapping[str, str]) -> ObjectStore:
    """The backup store at a URL. Raises InvalidInput."""
    return open_objects(url, options)


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
