"""The secrets of a plane: made once, and added to as replicas come."""

from __future__ import annotations

import ipaddress
import secrets as entropy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from quarterdeck.components.credentials import (
    Authority,
    EncryptionKey,
    KeyPair,
    PlaneSecrets,
    ReplicaSecrets,
    SigningKeys,
)
from quarterdeck.pki.authority import Request, Usage, create_authority, create_signing_key, issue

LEAF_LIFETIME = timedelta(days=365)
ADMIN_LIFETIME = timedelta(days=30)
ADMIN = "kubernetes-admin"
#: The name of the key that a plane begins to encrypt with; planes from before keys had names have it too.
FIRST_KEY = "key1"

#: The group that RBAC lets do everything (kubernetes: rbac/bootstrappolicy).
_MASTERS = "system:masters"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaNames:
    """What the certificates of a replica answer for.

    ``addresses`` are its seat's and its machine's. ``endpoint_names`` and ``endpoint_addresses`` are what clients may
    reach the plane by: its DNS name, and the addresses of the load balancers that are known. ``service_ip`` and
    ``cluster_domain`` are of the Service ``kubernetes``.
    """

    replica: str
    addresses: tuple[str, ...]
    service_ip: str
    cluster_domain: str = "cluster.local"
    endpoint_names: tuple[str, ...] = ()
    endpoint_addresses: tuple[str, ...] = ()


def create_plane_secrets(plane: str, now: datetime, *, lifetime: timedelta = LEAF_LIFETIME) -> PlaneSecrets:
    """Authorities and keys for a new plane. ``now`` is an aware datetime, ``lifetime`` that of client certificates."""
    kubernetes_ca = Authority(create_authority(f"{plane}-kubernetes-ca", now))
    etcd_ca = Authority(create_authority(f"{plane}-etcd-ca", now))
    manager, etcd_manager = _managers(kubernetes_ca, etcd_ca, now, lifetime)
    return PlaneSecrets(
        kubernetes_ca=kubernetes_ca,
        etcd_ca=etcd_ca,
        front_proxy_ca=Authority(create_authority(f"{plane}-front-proxy-ca", now)),
        service_account=SigningKeys(create_signing_key()),
        encryption_keys=(EncryptionKey(FIRST_KEY, entropy.token_bytes(32)),),
        manager=manager,
        etcd_manager=etcd_manager,
    )


def _managers(
    kubernetes_ca: Authority, etcd_ca: Authority, now: datetime, lifetime: timedelta
) -> tuple[KeyPair, KeyPair]:
    """Quarterdeck's own: towards the apiservers, and towards etcd."""
    manager = Request(common_name="quarterdeck", organizations=(_MASTERS,), usage=Usage.CLIENT, lifetime=lifetime)
    etcd_manager = Request(common_name="quarterdeck", usage=Usage.CLIENT, lifetime=lifetime)
    return issue(kubernetes_ca.issuer, manager, now), issue(etcd_ca.issuer, etcd_manager, now)


def with_manager(
    plane: PlaneSecrets, generation: int, now: datetime, *, lifetime: timedelta = LEAF_LIFETIME
) -> PlaneSecrets:
    """``plane`` with certificates of quarterdeck's own of that generation; ``plane`` itself if they are. The
    authorities stay, so that those of before are accepted as well, until they end.
    """
    if plane.generation() >= generation:
        return plane
    manager, etcd_manager = _managers(plane.kubernetes_ca, plane.etcd_ca, now, lifetime)
    return replace(plane, manager=manager, etcd_manager=etcd_manager, generations=_counted(plane, "", generation))


def with_replica(
    plane: PlaneSecrets,
    names: ReplicaNames,
    now: datetime,
    *,
    generation: int = 0,
    lifetime: timedelta = LEAF_LIFETIME,
) -> PlaneSecrets:
    """``plane`` with certificates for a replica; ``plane`` itself if the replica has some of that generation already,
    or of a later one.

    So a replica's unit specs never change by themselves. Store the result before a unit is started with it.
    """
    name = names.replica
    if plane.replica(name) is not None and plane.generation(name) >= generation:
        return plane
    others = without_replica(plane, name)
    issued = _issue_replica(plane, names, now, lifetime)
    return replace(plane, replicas=(*others.replicas, (name, issued)), generations=_counted(plane, name, generation))


def _counted(plane: PlaneSecrets, name: str, generation: int) -> tuple[tuple[str, int], ...]:
    """The generations, with one of them changed; 0 need not be said."""
    kept = tuple(each for each in plane.generations if each[0] != name)
    return (*kept, (name, generation)) if generation else kept


def without_replica(plane: PlaneSecrets, replica: str) -> PlaneSecrets:
    """``plane`` without what was issued for a replica that is gone: names are never used again."""
    replicas = tuple(each for each in plane.replicas if each[0] != replica)
    return replace(plane, replicas=replicas, generations=_counted(plane, replica, 0))


def issue_admin(
    plane: PlaneSecrets, now: datetime, *, name: str = ADMIN, lifetime: timedelta = ADMIN_LIFETIME
) -> KeyPair:
    """A client certificate for a person who may do everything. Certificates cannot be withdrawn: keep them short."""
    request = Request(common_name=name, organizations=(_MASTERS,), usage=Usage.CLIENT, lifetime=lifetime)
    return issue(plane.kubernetes_ca.issuer, request, now)


def _issue_replica(plane: PlaneSecrets, names: ReplicaNames, now: datetime, lifetime: timedelta) -> ReplicaSecrets:
    own = _own_addresses(names.addresses)

    def member(usage: Usage) -> KeyPair:
        # IP addresses only: with DNS names etcd would look peers up in reverse (etcd: client/pkg/transport).
        wanted = Request(common_name=names.replica, usage=usage, lifetime=lifetime, ip_addresses=own)
        return issue(plane.etcd_ca.issuer, wanted, now)

    def client(authority: Authority, user: str, *groups: str) -> KeyPair:
        wanted = Request(common_name=user, organizations=groups, usage=Usage.CLIENT, lifetime=lifetime)
        return issue(authority.issuer, wanted, now)

    def serving(common_name: str) -> KeyPair:
        wanted = Request(
            common_name=common_name,
            usage=Usage.SERVER,
            lifetime=lifetime,
            dns_names=(common_name, "localhost"),
            ip_addresses=own,
        )
        return issue(plane.kubernetes_ca.issuer, wanted, now)

    return ReplicaSecrets(
        etcd_server=member(Usage.SERVER | Usage.CLIENT),
        etcd_peer=member(Usage.SERVER | Usage.CLIENT),
        etcd_client=client(plane.etcd_ca, "kube-apiserver-etcd-client"),
        apiserver=issue(plane.kubernetes_ca.issuer, _apiserver(names, lifetime), now),
        kubelet_client=client(plane.kubernetes_ca, "kube-apiserver-kubelet-client", _MASTERS),
        front_proxy=client(plane.front_proxy_ca, "front-proxy-client"),
        controller_manager=serving("kube-controller-manager"),
        controller_manager_client=client(plane.kubernetes_ca, "system:kube-controller-manager"),
        scheduler=serving("kube-scheduler"),
        scheduler_client=client(plane.kubernetes_ca, "system:kube-scheduler"),
    )


def _apiserver(names: ReplicaNames, lifetime: timedelta) -> Request:
    return Request(
        common_name="kube-apiserver",
        usage=Usage.SERVER,
        lifetime=lifetime,
        dns_names=(
            *names.endpoint_names,
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            f"kubernetes.default.svc.{names.cluster_domain}",
            "localhost",
        ),
        ip_addresses=(*_own_addresses(names.addresses), names.service_ip, *names.endpoint_addresses),
    )


def _own_addresses(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Where a replica's connections come from: on loopback the kernel takes 127.0.0.1, whatever it listens on."""
    loopback = [each for each in map(ipaddress.ip_address, addresses) if each.is_loopback]
    return (*addresses, *dict.fromkeys("127.0.0.1" if each.version == 4 else "::1" for each in loopback))
