"""The certificates of a replica's programs as data: who signs each, what it is for, and for whom it is issued."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto


class Signer(StrEnum):
    """The authority of a plane that signs a certificate: the name of its field in ``PlaneSecrets``."""

    KUBERNETES = "kubernetes_ca"
    ETCD = "etcd_ca"
    FRONT_PROXY = "front_proxy_ca"


class Kind(Enum):
    """What a certificate is shown for."""

    CLIENT = auto()  # a user towards a server
    SERVER = auto()  # a server on the replica's own addresses
    MEMBER = auto()  # a member of etcd, which serves its peers and is their client
    APISERVER = auto()  # a server at all that clients may reach the plane by


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate that each replica with a program has. ``name`` is its key in stored secrets, ``purpose`` is for
    people. ``user`` and ``groups`` are whom it names (of a member: the replica, whatever is given).
    """

    name: str
    purpose: str
    kind: Kind
    signer: Signer
    user: str = ""
    groups: tuple[str, ...] = ()


#: The group that RBAC lets do everything (kubernetes: rbac/bootstrappolicy).
MASTERS = "system:masters"


def serving(program: str, name: str) -> Certificate:
    """What a program shows those who ask its port, on the addresses of its replica."""
    return Certificate(name=name, purpose=f"{program} serves", kind=Kind.SERVER, signer=Signer.KUBERNETES, user=program)


def asking(program: str, name: str) -> Certificate:
    """What a program shows its own apiserver: the user ``system:PROGRAM``."""
    return Certificate(
        name=name,
        purpose=f"{program} to its apiserver",
        kind=Kind.CLIENT,
        signer=Signer.KUBERNETES,
        user=f"system:{program}",
    )
