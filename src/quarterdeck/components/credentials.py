"""Keys and certificates of components, as data. They are created in ``quarterdeck.pki``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Authority:
    """An issuer of certificates, and the trusted CAs: the issuer, and ``also`` (certificates, PEM) previous and future
    issuers. A new issuer is trusted everywhere before it issues anything.
    """

    issuer: KeyPair
    also: tuple[bytes, ...] = ()

    @property
    def bundle(self) -> bytes:
        """The certificates that are trusted, PEM, the issuer's first."""
        return b"".join((self.issuer.certificate, *self.also))


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The key pair that service account tokens are signed with, both PEM."""

    public: bytes
    private: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The key that signs tokens, and ``also`` further accepted public keys (PEM)."""

    signing: SigningKey
    also: tuple[bytes, ...] = ()

    @property
    def public(self) -> bytes:
        """The public keys, PEM, that of the signing one first."""
        return b"".join((self.signing.public, *self.also))


@dataclass(frozen=True, slots=True)
class EncryptionKey:
    """A key of 32 bytes for Secrets at rest. Stored data names it, so its name is never used for another key."""

    name: str
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ReplicaSecrets:
    """The certificates of one replica: issued once and kept, so that its unit specs stay the same. ``pairs`` has those
    of each program that the replica has, by name.
    """

    pairs: Mapping[str, KeyPair]

    def of(self, certificate: CertificateSpec) -> KeyPair:
        """One certificate; raises KeyError for one that was not issued."""
        return self.pairs[certificate.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSecrets:
    """The secrets that are created once per plane and must be equal on all its replicas.

    ``encryption_keys``: the first writes, all read. ``manager`` and ``etcd_manager`` are quarterdeck's own
    client certificates for the apiservers and etcd. ``replicas`` maps names to the certificates issued for them.
    ``generations``: the generation of the certificates, by replica, and of the manager as ``""``.
    """

    kubernetes_ca: Authority
    etcd_ca: Authority
    front_proxy_ca: Authority
    service_account: SigningKeys
    encryption_keys: tuple[EncryptionKey, ...]
    manager: KeyPair
    etcd_manager: KeyPair
    replicas: tuple[tuple[str, ReplicaSecrets], ...] = ()
    generations: tuple[tuple[str, int], ...] = ()

    def replica(self, name: str) -> ReplicaSecrets | None:
        """The certificates of a replica; None if none were issued."""
        return dict(self.replicas).get(name)

    def generation(self, name: str = "") -> int:
        """The generation of the certificates of a replica, or of quarterdeck itself."""
        return dict(self.generations).get(name, 0)


# The certificates of a replica's programs as data: the signer of each, its purpose and its subject.


class Signer(StrEnum):
    """The authority of a plane that signs a certificate: the name of its field in ``SharedSecrets``."""

    KUBERNETES = "kubernetes_ca"
    ETCD = "etcd_ca"
    FRONT_PROXY = "front_proxy_ca"


class CertificateKind(Enum):
    """The use of a certificate."""

    CLIENT = auto()  # a user, to a server
    SERVER = auto()  # a server on the replica's own addresses
    MEMBER = auto()  # a member of etcd, which serves its peers and is their client
    APISERVER = auto()  # a server on all addresses and names of the plane


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateSpec:
    """A certificate that each replica with a program has. ``name`` is its key in stored secrets, ``purpose`` is for
    people. ``user`` and ``groups`` are its subject (of a member: always the replica).
    """

    name: str
    purpose: str
    kind: CertificateKind
    signer: Signer
    user: str = ""
    groups: tuple[str, ...] = ()


#: The group with all RBAC permissions (kubernetes: rbac/bootstrappolicy).
MASTERS = "system:masters"


def serving(program: str, name: str) -> CertificateSpec:
    """The serving certificate of a program's port, for the addresses of its replica."""
    return CertificateSpec(
        name=name, purpose=f"{program} serves", kind=CertificateKind.SERVER, signer=Signer.KUBERNETES, user=program
    )


def asking(program: str, name: str) -> CertificateSpec:
    """The client certificate of a program for its own apiserver: the user ``system:PROGRAM``."""
    return CertificateSpec(
        name=name,
        purpose=f"{program} to its apiserver",
        kind=CertificateKind.CLIENT,
        signer=Signer.KUBERNETES,
        user=f"system:{program}",
    )
