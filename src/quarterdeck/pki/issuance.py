"""The secrets of a plane: created once, and extended as replicas join."""

from __future__ import annotations

import ipaddress
import secrets as entropy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from quarterdeck.api.plane.certificates import Certificates, Signer
from quarterdeck.api.plane.keys import KeyPurpose, Keys
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.credentials import (
    MASTERS,
    Authority,
    CertificateKind,
    CertificateSpec,
    EncryptionKey,
    KeyPair,
    NumberedAuthority,
    ReplicaSecrets,
    SharedSecrets,
    SigningKey,
    encryption_key_name,
    uses,
)
from quarterdeck.components.settings import CLUSTER_DOMAIN
from quarterdeck.model.components import Component
from quarterdeck.pki.authority import create_authority, create_signing_key, cross_signed, issue, may_sign_authorities
from quarterdeck.pki.certificate import CertificateRequest, Usage

LEAF_LIFETIME = timedelta(days=365)
_FIRST_KEYS = Keys()


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


def create_plane_secrets(
    plane: str,
    now: datetime,
    *,
    certificates: Certificates | None = None,
    keys: Keys = _FIRST_KEYS,
    lifetime: timedelta = LEAF_LIFETIME,
) -> SharedSecrets:
    """Authorities and keys for a new plane with such ``certificates`` and ``keys``. ``now`` is an aware datetime,
    ``lifetime`` that of client certificates.
    """
    used = uses(certificates or Certificates())
    kubernetes_ca, etcd_ca, front_proxy_ca = (
        _with_all(plane, each, Authority((), used[each]), used[each].trusted, now) for each in Signer
    )
    manager, etcd_manager = _managers(kubernetes_ca, etcd_ca, now, lifetime)
    return SharedSecrets(
        kubernetes_ca=kubernetes_ca,
        etcd_ca=etcd_ca,
        front_proxy_ca=front_proxy_ca,
        service_account=tuple(_signing_key(each) for each in sorted(keys.use(KeyPurpose.SERVICE_ACCOUNT).accepted)),
        encryption_keys=tuple(_encryption_key(each) for each in sorted(keys.use(KeyPurpose.ENCRYPTION).accepted)),
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
    etcd_ca = replace(
        source.etcd_ca,
        known=tuple(
            NumberedAuthority(each.number, create_authority(name_of(plane, Signer.ETCD, each.number), now))
            for each in source.etcd_ca.known
        ),
    )
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
    return (
        issued_by(kubernetes_ca, kubernetes_ca.use.issuer, manager, now),
        issued_by(etcd_ca, etcd_ca.use.issuer, etcd_manager, now),
    )


def issued_by(authority: Authority, number: int, request: CertificateRequest, now: datetime) -> KeyPair:
    """A certificate of the authority with that number (see ``issue``)."""
    return replace(issue(authority.at(number).pair, request, now), issuer=number)


def name_of(plane: str, signer: Signer, number: int) -> str:
    """The common name of an authority of a plane. Programs find the issuer of a certificate by it."""
    name = f"{plane}-{signer}-ca"
    return f"{name}-{number}" if number else name


def with_authorities(
    plane: str, secrets: SharedSecrets, needed: Mapping[Signer, frozenset[int]], now: datetime
) -> SharedSecrets:
    """``secrets`` with all authorities of these numbers; unchanged if they are known. A new one is also signed by the
    one before it that is needed, if that may sign authorities.
    """
    complete = {each: _with_all(plane, each, secrets.authority(each), numbers, now) for each, numbers in needed.items()}
    if all(authority is secrets.authority(each) for each, authority in complete.items()):
        return secrets
    return secrets.with_authorities(complete)


def _with_all(plane: str, signer: Signer, authority: Authority, numbers: frozenset[int], now: datetime) -> Authority:
    for number in sorted(numbers - {each.number for each in authority.known}):
        pair = create_authority(name_of(plane, signer, number), now)
        former = max((each for each in numbers if each < number), default=None)
        authority = with_issuer(authority, number, pair, former, now)
    return authority


def with_issuer(authority: Authority, number: int, pair: KeyPair, former: int | None, now: datetime) -> Authority:
    """``authority`` with another known one, which the ``former`` one in use signs, if there is one that may sign
    authorities.
    """
    signs = authority.at(former).pair if former is not None else None
    may = signs is not None and may_sign_authorities(signs.certificate)
    crossed = cross_signed(pair, signs, now) if signs is not None and may else b""
    known = (*authority.known, NumberedAuthority(number, pair, crossed))
    return replace(authority, known=tuple(sorted(known, key=lambda each: each.number)))


def with_keys(secrets: SharedSecrets, needed: Mapping[KeyPurpose, frozenset[int]]) -> SharedSecrets:
    """``secrets`` with all keys of these numbers; unchanged if they are known."""
    encryption = sorted(needed[KeyPurpose.ENCRYPTION] - {each.number for each in secrets.encryption_keys})
    signing = sorted(needed[KeyPurpose.SERVICE_ACCOUNT] - {each.number for each in secrets.service_account})
    if not encryption and not signing:
        return secrets
    return replace(
        secrets,
        encryption_keys=(*secrets.encryption_keys, *map(_encryption_key, encryption)),
        service_account=(*secrets.service_account, *map(_signing_key, signing)),
    )


def without_former_keys(secrets: SharedSecrets, needed: Mapping[KeyPurpose, frozenset[int]]) -> SharedSecrets:
    """``secrets`` without the keys before those that are needed."""
    first = {purpose: min(numbers) for purpose, numbers in needed.items()}
    encryption = tuple(each for each in secrets.encryption_keys if each.number >= first[KeyPurpose.ENCRYPTION])
    signing = tuple(each for each in secrets.service_account if each.number >= first[KeyPurpose.SERVICE_ACCOUNT])
    return replace(secrets, encryption_keys=encryption, service_account=signing)


def _encryption_key(number: int) -> EncryptionKey:
    return EncryptionKey(encryption_key_name(number), entropy.token_bytes(32))


def _signing_key(number: int) -> SigningKey:
    return replace(create_signing_key(), number=number)


def without_former(secrets: SharedSecrets, needed: Mapping[Signer, frozenset[int]]) -> SharedSecrets:
    """``secrets`` without the authorities before those that are needed."""
    kept = {
        signer: replace(found, known=tuple(each for each in found.known if each.number >= min(needed[signer])))
        for signer in Signer
        for found in (secrets.authority(signer),)
    }
    return secrets.with_authorities(kept)


def with_manager(
    plane: SharedSecrets, generation: int, now: datetime, *, lifetime: timedelta = LEAF_LIFETIME
) -> SharedSecrets:
    """``plane`` with quarterdeck's own certificates of that generation, and of the issuers that it uses; unchanged if
    it has them. Previous certificates are accepted as well, until they expire, or their issuer is no longer trusted.
    """
    of_issuers = (plane.manager.issuer, plane.etcd_manager.issuer) == (
        plane.kubernetes_ca.use.issuer,
        plane.etcd_ca.use.issuer,
    )
    if plane.generation() >= generation and of_issuers:
        return plane
    manager, etcd_manager = _managers(plane.kubernetes_ca, plane.etcd_ca, now, lifetime)
    generation = max(generation, plane.generation())
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
    later one, and of the issuers that ``plane`` uses. Those of a program that is added later are issued then.

    So a replica's unit specs never change by themselves. Store the result before a unit is started with it.
    """
    if has_all(plane, names, generation):
        return plane
    issuer, name = _Issuer(plane, names, now, lifetime), names.replica
    known = plane.replica(name)
    if known is None or plane.generation(name) < generation:
        known = ReplicaSecrets({})
        plane = replace(plane, generations=_counted(plane, name, generation))
    missing = (each for each in names.certificates.values() if not _has(plane, known, each))
    return _with_issued(plane, name, {**known.pairs, **{each.name: issuer.issued(each) for each in missing}})


def has_all(plane: SharedSecrets, names: ReplicaNames, generation: int = 0) -> bool:
    """Whether a replica has certificates for all its programs, of that generation or a later one, and of the issuers
    that ``plane`` uses.
    """
    issued = plane.replica(names.replica)
    if issued is None or plane.generation(names.replica) < generation:
        return False
    return all(_has(plane, issued, each) for each in names.certificates.values())


def _has(plane: SharedSecrets, issued: ReplicaSecrets, certificate: CertificateSpec) -> bool:
    pair = issued.pairs.get(certificate.name)
    return pair is not None and pair.issuer == _issuing_authority(plane, certificate)


def _issuing_authority(plane: SharedSecrets, certificate: CertificateSpec) -> int:
    """The number of the authority that issues a certificate."""
    use = plane.authority(certificate.signer).use
    serves = certificate.kind in (CertificateKind.SERVER, CertificateKind.APISERVER)
    return use.servers if serves else use.issuer


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
    request = CertificateRequest(common_name=user, usage=Usage.CLIENT, lifetime=lifetime)
    return issued_by(plane.etcd_ca, plane.etcd_ca.use.issuer, request, now)


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
        authority = self.plane.authority(certificate.signer)
        return issued_by(authority, _issuing_authority(self.plane, certificate), request, self.now)

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
