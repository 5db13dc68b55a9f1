"""Keys and certificates of components, as data. They are created in ``quarterdeck.pki``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TypeVar

from quarterdeck.api.plane.certificates import FIRST_AUTHORITY, AuthorityUse, Certificates, Signer
from quarterdeck.api.plane.keys import KeyUse
from quarterdeck.errors import Corrupt


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM. ``issuer``: the number of the authority that signed it."""

    certificate: bytes
    key: bytes = field(repr=False)
    issuer: int = 0


@dataclass(frozen=True, slots=True)
class NumberedAuthority:
    """One certificate authority. ``crossed``: its certificate as its predecessor signed it (PEM), with which those who
    trust only that one can verify what it issues; b"" where there is none.
    """

    number: int
    pair: KeyPair
    crossed: bytes = b""


@dataclass(frozen=True, slots=True)
class Authority:
    """The known certificate authorities of one purpose, by ascending number, and how they are used."""

    known: tuple[NumberedAuthority, ...]
    use: AuthorityUse = FIRST_AUTHORITY

    @staticmethod
    def of(pair: KeyPair) -> Authority:
        """One that was not rotated yet."""
        return Authority((NumberedAuthority(0, pair),))

    def used(self, use: AuthorityUse) -> Authority:
        """The same authorities, used in another way."""
        return replace(self, use=use)

    def at(self, number: int) -> NumberedAuthority:
        """An authority by its number. Raises Corrupt for one that is not known."""
        found = next((each for each in self.known if each.number == number), None)
        if found is None:
            seen = f"certificate authority {number} of the plane is not in the store"
            raise Corrupt("reading the keys of a plane", seen, "restore a backup of the store that has it")
        return found

    @property
    def issuer(self) -> KeyPair:
        """The authority that issues certificates of clients."""
        return self.at(self.use.issuer).pair

    @property
    def bundle(self) -> bytes:
        """The certificates that are trusted, PEM, the issuer's first."""
        others = sorted(self.use.trusted - {self.use.issuer})
        return b"".join(self.at(each).pair.certificate for each in (self.use.issuer, *others))

    def chained(self, pair: KeyPair) -> KeyPair:
        """A certificate as its holder presents it: as long as several authorities are trusted, those who still trust
        only the former one can verify it.
        """
        crossed = self.at(pair.issuer).crossed if len(self.use.trusted) > 1 else b""
        return replace(pair, certificate=pair.certificate + crossed) if crossed else pair


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The key pair that service account tokens are signed with, both PEM."""

    public: bytes
    private: bytes = field(repr=False)
    number: int = 0


@dataclass(frozen=True, slots=True)
class EncryptionKey:
    """A key of 32 bytes for Secrets at rest. Stored data names it, so its name is never used for another key."""

    name: str
    secret: bytes = field(repr=False)

    @property
    def number(self) -> int:
        """Its number: the name of the first one is ``key1``."""
        return int(self.name.removeprefix(_KEY)) - 1


_KEY = "key"


def encryption_key_name(number: int) -> str:
    """The name of a key in stored data."""
    return f"{_KEY}{number + 1}"


_Numbered = TypeVar("_Numbered", SigningKey, EncryptionKey)


def in_use(keys: Sequence[_Numbered], use: KeyUse) -> tuple[_Numbered, ...]:
    """The accepted keys, the current one first. Raises Corrupt for one that is not known."""
    by_number = {each.number: each for each in keys}
    if missing := [each for each in use.accepted if each not in by_number]:
        seen = f"key {missing[0]} of the plane is not in the store"
        raise Corrupt("reading the keys of a plane", seen, "restore a backup of the store that has it")
    return tuple(by_number[each] for each in use.accepted)


@dataclass(frozen=True, slots=True)
class ReplicaSecrets:
    """The certificates of one replica: issued once and kept, so that its unit specs stay the same. ``pairs`` has those
    of each program that the replica has, by name.
    """

    pairs: Mapping[str, KeyPair]

    def of(self, certificate: CertificateSpec) -> KeyPair:
        """One certificate; raises KeyError for one that was not issued."""
        return self.pairs[certificate.name]


def uses(certificates: Certificates) -> Mapping[Signer, AuthorityUse]:
    """How the authorities of each purpose are used by replicas with these certificates."""
    return {signer: certificates.use(signer) for signer in Signer}


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSecrets:
    """The secrets that are created once per plane and must be equal on all its replicas.

    ``service_account`` and ``encryption_keys`` are all known keys. ``manager`` and ``etcd_manager`` are quarterdeck's
    own client certificates for the apiservers and etcd. ``replicas`` maps names to the certificates issued for them.
    ``generations``: the generation of the certificates, by replica, and of the manager as ``""``.
    """

    kubernetes_ca: Authority
    etcd_ca: Authority
    front_proxy_ca: Authority
    service_account: tuple[SigningKey, ...]
    encryption_keys: tuple[EncryptionKey, ...]
    manager: KeyPair
    etcd_manager: KeyPair
    replicas: tuple[tuple[str, ReplicaSecrets], ...] = ()
    generations: tuple[tuple[str, int], ...] = ()

    def authority(self, signer: Signer) -> Authority:
        """The authorities of one purpose."""
        match signer:
            case Signer.KUBERNETES:
                return self.kubernetes_ca
            case Signer.ETCD:
                return self.etcd_ca
            case Signer.FRONT_PROXY:
                return self.front_proxy_ca

    def with_authorities(self, changed: Mapping[Signer, Authority]) -> SharedSecrets:
        """The same secrets with other authorities."""
        return replace(
            self,
            kubernetes_ca=changed.get(Signer.KUBERNETES, self.kubernetes_ca),
            etcd_ca=changed.get(Signer.ETCD, self.etcd_ca),
            front_proxy_ca=changed.get(Signer.FRONT_PROXY, self.front_proxy_ca),
        )

    def used(self, uses: Mapping[Signer, AuthorityUse]) -> SharedSecrets:
        """The same secrets with other uses of the authorities."""
        return self.with_authorities({each: self.authority(each).used(use) for each, use in uses.items()})

    def replica(self, name: str) -> ReplicaSecrets | None:
        """The certificates of a replica; None if none were issued."""
        return dict(self.replicas).get(name)

    def generation(self, name: str = "") -> int:
        """The generation of the certificates of a replica, or of quarterdeck itself."""
        return dict(self.generations).get(name, 0)


# The certificates of a replica's programs as data: the signer of each, its purpose and its subject.


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
