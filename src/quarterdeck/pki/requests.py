"""Certificate signing requests (PKCS #10), as far as an approver needs them."""

from __future__ import annotations

import re
import secrets as entropy
import string
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """The content of a request. ``others``: whether it asks for anything else."""

    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...] = ()
    ip_addresses: tuple[str, ...] = ()
    others: bool = False


def requested(pem: bytes) -> Requested | None:
    """The content of a request (PEM); None if it is invalid, or not signed by its own key."""
    try:
        found = x509.load_pem_x509_csr(pem)
        if not found.is_signature_valid:
            return None
        names = _alternative_names(found)
    except (ValueError, UnsupportedAlgorithm, x509.UnsupportedGeneralNameType):
        return None
    subject: dict[x509.ObjectIdentifier, list[str]] = {NameOID.COMMON_NAME: [], NameOID.ORGANIZATION_NAME: []}
    others = any(each.oid not in subject for each in found.subject)
    for each in found.subject:
        subject.setdefault(each.oid, []).append(str(each.value))
    dns = tuple(each.value for each in names if isinstance(each, x509.DNSName))
    addresses = tuple(str(each.value) for each in names if isinstance(each, x509.IPAddress))
    return Requested(
        common_name=",".join(subject[NameOID.COMMON_NAME]),
        organizations=tuple(subject[NameOID.ORGANIZATION_NAME]),
        dns_names=dns,
        ip_addresses=addresses,
        others=others or len(dns) + len(addresses) < len(names),
    )


def _alternative_names(request: x509.CertificateSigningRequest) -> tuple[x509.GeneralName, ...]:
    try:
        return tuple(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return ()


# Bootstrap tokens: what a node presents before it has a certificate.

_ALPHABET = string.ascii_lowercase + string.digits
_ID, _SECRET = 6, 16  # kubernetes: cluster-bootstrap/token/api


@dataclass(frozen=True, slots=True)
class BootstrapToken:
    """A token: its public ``id``, and its secret."""

    id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """The token as a node presents it; contains the secret."""
        return f"{self.id}.{self.secret}"


def create_token() -> BootstrapToken:
    """A new one, at random: 31 bits of id, 83 of secret."""
    return BootstrapToken(_random(_ID), _random(_SECRET))


def is_token_id(text: str) -> bool:
    """Whether that is a valid id of a token."""
    return re.fullmatch(rf"[a-z0-9]{{{_ID}}}", text) is not None


def _random(length: int) -> str:
    return "".join(entropy.choice(_ALPHABET) for _ in range(length))
