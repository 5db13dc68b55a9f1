"""Certificate authorities and the certificates that they issue: ECDSA P-256, X.509 v3.

``x509`` makes them; the first call loads its library, which takes long, and most commands issue nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from quarterdeck.components.credentials import KeyPair, SigningKey
from quarterdeck.pki.certificate import CA_LIFETIME, CertificateRequest


def subject_of(pair: KeyPair) -> str:
    """The subject of a certificate, as RFC 4514 writes it."""
    from quarterdeck.pki import x509

    return x509.subject_of(pair)


def public_key_hash(certificate: bytes) -> str:
    """The hash of a certificate's (PEM) key, as ``kubeadm join`` pins it: ``sha256:`` and 64 digits."""
    from quarterdeck.pki import x509

    return x509.public_key_hash(certificate)


def create_authority(common_name: str, now: datetime, *, lifetime: timedelta = CA_LIFETIME) -> KeyPair:
    """A self-signed CA that may issue leaf certificates, and sign its successor. ``now`` is an aware datetime."""
    from quarterdeck.pki import x509

    return x509.create_authority(common_name, now, lifetime=lifetime)


def may_sign_authorities(certificate: bytes) -> bool:
    """Whether those who trust a CA (PEM) accept another CA that it signed (RFC 5280, 4.2.1.9)."""
    from quarterdeck.pki import x509

    return x509.may_sign_authorities(certificate)


def cross_signed(authority: KeyPair, by: KeyPair, now: datetime) -> bytes:
    """The certificate (PEM) of ``authority`` as another CA signs it: with it, those who trust only that other CA can
    verify what ``authority`` issues. It never outlives either of them. ``now`` is an aware datetime.
    """
    from quarterdeck.pki import x509

    return x509.cross_signed(authority, by, now)


def issue(authority: KeyPair, request: CertificateRequest, now: datetime) -> KeyPair:
    """A leaf certificate with a new key, signed by ``authority``. ``now`` is an aware datetime.

    It never outlives its authority.
    """
    from quarterdeck.pki import x509

    return x509.issue(authority, request, now)


def create_signing_key() -> SigningKey:
    """A key pair for service account tokens (ES256)."""
    from quarterdeck.pki import x509

    return x509.create_signing_key()
