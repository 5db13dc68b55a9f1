"""The secrets of a plane: created once, and extended as replicas join."""

from __future__ import annotations

import ipaddress
import secrets as entropy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.credentials import (
    MASTERS,
    Authority,
    CertificateKind,
    CertificateSpec,
    EncryptionKey,
    KeyPair,
    ReplicaSecrets,
    SharedSecrets,
    SigningKeys,
)
from quarterdeck.components.settings import CLUSTER_DOMAIN
from quarterdeck.model.components import Component
from quarterdeck.pki.authority import create_authority, create_signing_key, issue
from quarterdeck.pki.certificate import CertificateRequest, Usage

LEAF_LIFETIME = timedelta(days=365)
#: The name of the first encryption key of a plane.
FIRST_KEY = "key1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaNames:
    """The names in the certificates of a replica."""

    replica: str
    #: Those of its seat and its machine.
    addresses: tuple[str, ...]
    #: The address of the Service ``kubernetes``.
    service_ip: str
    #: The programs of the replica.
    programs: tuple[Component, ...]
    #: The plane's DNS name.
    endpoint_names: tuple[str, ...] = ()
    #: The addresses of the known load balancers.
    endpoint_addresses: tuple[str, ...] = ()

    @property
    def certificates(self) -> Mapping[str, CertificateSpec]:
        """The certificates of its programs, by name."""
        return {each.name: each for program in self.programs for each in CATALOGUE[program].certificates}


def create_plane_secrets(plane: str, now: datetime, *, lifetime: timedelta = LEAF_LIFETIME) -> SharedSecrets:
    """Authorities and keys for a new plane. ``now`` is an aware datetime, ``lifetime`` that of client certificates."""
    kubernetes_ca = Authority(create_authority(f"{plane}-kubernetes-ca", now))
    etcd_ca = Authority(create_authority(f"{plane}-etcd-ca", now))
    manager, etcd_manager = _managers(kubernetes_ca, etcd_ca, now, lifetime)
    return SharedSecrets(
        kubernetes_ca=kubernetes_ca,
        etcd_ca=etcd_ca,
        front_proxy_ca=Authority(create_authority(f"{plane}-front-proxy-ca", now)),
        service_account=SigningKeys(create_signing_key()),
        encryption_keys=(EncryptionKey(FIRST_KEY, entropy.token_bytes(32)),),
        manager=manager,
        etcd_manager=etcd_manager,
    )


def copied_secrets(
    plane: str, source: SharedSecrets, generation: int, now: datetime, *, lifetime: timedelta = LEAF_LIFETIME
) -> SharedSecrets:
    """The secrets of a new plane with the data of another one. What the data was written with stays the same: the keys
    that encrypt Secrets and sign tokens, and the authorities that clients trust. etcd has an authority of its own, so
    that no member of one plane is a peer of the other's. Nothing was issued for its replicas yet.
    """
    etcd_ca = Authority(create_authority(f"{plane}-etcd-ca", now))
    manager, etcd_manager = _managers(source.kubernetes_ca, etcd_ca, now, lifetime)
    return replace(
        source,
        etcd_ca=etcd_ca,
        manager=manager,
        etcd_manager=etcd_manager,
        replicas=(),
        generations=(("", generation),) if generation else (),
    )


def _managers(
    kubernetes_ca: Authority, etcd_ca: Authority, now: datetime, lifetime: timedelta
) -> tuple[KeyPair, KeyPair]:
    """Quarterdeck's own certificates: for the apiservers, and for etcd."""
    manager = CertificateRequest(
        common_name="quarterdeck", organizations=(MASTERS,), usage=Usage.CLIENT, lifetime=lifetime
    )
    etcd_manager = CertificateRequest(common_name="quarterdeck", usage=Usage.CLIENT, lifetime=lifetime)
    return issue(kubernetes_ca.issuer, manager, now), issue(etcd_ca.issuer, etcd_manager, now)


def with_manager(
    plane: SharedSecrets, generation: int, now: datetime, *, lifetime: timedelta = LEAF_LIFETIME
) -> SharedSecrets:
    """``plane`` with quarterdeck's own certificates of that generation; unchanged if it has them. The authorities stay,
    so that the previous certificates are accepted as well, until they expire.
    """
    if plane.generation() >= generation:
        return plane
    manager, etcd_manager = _managers(plane.kubernetes_ca, plane.etcd_ca, now, lifetime)
    return replace(plane, manager=manager, etcd_manager=etcd_manager, generations=_counted(plane, "", generation))


def with_replica(
    plane: SharedSecrets,
    names: ReplicaNames,
    now: datetime,
    *,
    generation: int = 0,
    lifetime: timedelta = LEAF_LIFETIME,
) -> SharedSecrets:
    """``plane`` with certificates for a replica; unchanged if the replica has some of that generation already, or of a
    later one. Those of a program that is added later are issued then.

    So a replica's unit specs never change by themselves. Store the result before a unit is started with it.
    """
    if has_all(plane, names, generation):
        return plane
    issuer, name = _Issuer(plane, names, now, lifetime), names.replica
    known = plane.replica(name)
    if known is None or plane.generation(name) < generation:
        known = ReplicaSecrets({})
        plane = replace(plane, generations=_counted(plane, name, generation))
    missing = (each for called, each in names.certificates.items() if called not in known.pairs)
    return _with_issued(plane, name, {**known.pairs, **{each.name: issuer.issued(each) for each in missing}})


def has_all(plane: SharedSecrets, names: ReplicaNames, generation: int = 0) -> bool:
    """Whether a replica has certificates for all its programs, of that generation or a later one."""
    issued = plane.replica(names.replica)
    if issued is None or plane.generation(names.replica) < generation:
        return False
    return names.certificates.keys() <= issued.pairs.keys()


def without_program(plane: SharedSecrets, replica: str, program: Component) -> SharedSecrets:
    """``plane`` without the certificates of a program that a replica no longer has."""
    others = {each.name for spec in CATALOGUE.values() if spec.component != program for each in spec.certificates}
    issued, gone = plane.replica(replica), {each.name for each in CATALOGUE[program].certificates} - others
    if issued is None or not gone & issued.pairs.keys():
        return plane
    return _with_issued(plane, replica, {name: pair for name, pair in issued.pairs.items() if name not in gone})


def _with_issued(plane: SharedSecrets, name: str, issued: Mapping[str, KeyPair]) -> SharedSecrets:
    others = tuple(each for each in plane.replicas if each[0] != name)
    return replace(plane, replicas=(*others, (name, ReplicaSecrets(issued))))


def _counted(plane: SharedSecrets, name: str, generation: int) -> tuple[tuple[str, int], ...]:
    """The generations, with one of them changed; 0 is omitted."""
    kept = tuple(each for each in plane.generations if each[0] != name)
    return (*kept, (name, generation)) if generation else kept


def without_replica(plane: SharedSecrets, replica: str) -> SharedSecrets:
    """``plane`` without the certificates of a deleted replica: names are never used again."""
    replicas = tuple(each for each in plane.replicas if each[0] != replica)
    return replace(plane, replicas=replicas, generations=_counted(plane, replica, 0))


def issue_etcd_user(plane: SharedSecrets, user: str, now: datetime, *, lifetime: timedelta) -> KeyPair:
    """A client certificate for a user of etcd's own authentication."""
    return issue(plane.etcd_ca.issuer, CertificateRequest(common_name=user, usage=Usage.CLIENT, lifetime=lifetime), now)


@dataclass(frozen=True, slots=True)
class _Issuer:
    """Issues the certificates of one replica."""

    plane: SharedSecrets
    names: ReplicaNames
    now: datetime
    lifetime: timedelta

    def issued(self, certificate: CertificateSpec) -> KeyPair:
        match certificate.kind:
            case CertificateKind.MEMBER:
                request = self._member()
            case CertificateKind.CLIENT:
                request = CertificateRequest(
                    common_name=certificate.user,
                    organizations=certificate.groups,
                    usage=Usage.CLIENT,
                    lifetime=self.lifetime,
                )
            case CertificateKind.SERVER:
                request = self._serving(certificate.user)
            case CertificateKind.APISERVER:
                request = _apiserver(self.names, self.lifetime)
        authority: Authority = getattr(self.plane, certificate.signer)
        return issue(authority.issuer, request, self.now)

    def _member(self) -> CertificateRequest:
        # IP addresses only: with DNS names etcd would look peers up in reverse (etcd: client/pkg/transport).
        return CertificateRequest(
            common_name=self.names.replica,
            usage=Usage.SERVER | Usage.CLIENT,
            lifetime=self.lifetime,
            ip_addresses=_own_addresses(self.names.addresses),
        )

    def _serving(self, common_name: str) -> CertificateRequest:
        return CertificateRequest(
            common_name=common_name,
            usage=Usage.SERVER,
            lifetime=self.lifetime,
            dns_names=(common_name, "localhost"),
            ip_addresses=_own_addresses(self.names.addresses),
        )


def _apiserver(names: ReplicaNames, lifetime: timedelta) -> CertificateRequest:
    return CertificateRequest(
        common_name="kube-apiserver",
        usage=Usage.SERVER,
        lifetime=lifetime,
        dns_names=(
            *names.endpoint_names,
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            f"kubernetes.default.svc.{CLUSTER_DOMAIN}",
            "localhost",
        ),
        ip_addresses=(*_own_addresses(names.addresses), names.service_ip, *names.endpoint_addresses),
    )


def _own_addresses(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """The source addresses of a replica's connections: on loopback the kernel takes 127.0.0.1, whatever it
    listens on.
    """
    loopback = [each for each in map(ipaddress.ip_address, addresses) if each.is_loopback]
    return (*addresses, *dict.fromkeys("127.0.0.1" if each.version == 4 else "::1" for each in loopback))
