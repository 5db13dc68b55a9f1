"""The implementation of ``authority`` with the library cryptography."""

from __future__ import annotations

import hashlib
import ipaddress
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from quarterdeck.components.credentials import KeyPair, SigningKey
from quarterdeck.pki.certificate import BACKDATED, CA_LIFETIME, CertificateRequest, Usage


def subject_of(pair: KeyPair) -> str:
    """The subject of a certificate, as RFC 4514 writes it."""
    return x509.load_pem_x509_certificate(pair.certificate).subject.rfc4514_string()


def public_key_hash(certificate: bytes) -> str:
    """The SHA-256 of a certificate's public key (RFC 7469), as ``sha256:`` and 64 digits."""
    key = x509.load_pem_x509_certificate(certificate).public_key()
    encoded = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(encoded).hexdigest()}"


def create_authority(common_name: str, now: datetime, *, lifetime: timedelta = CA_LIFETIME) -> KeyPair:
    """A self-signed CA that may issue leaf certificates, and sign its successor. ``now`` is an aware datetime."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    own = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    builder = _authority(_builder(subject, subject, key.public_key(), now, lifetime), identifier, own)
    return _pair(builder.sign(key, hashes.SHA256()), key)


def may_sign_authorities(certificate: bytes) -> bool:
    """Whether those who trust a CA (PEM) accept another CA that it signed (RFC 5280, 4.2.1.9)."""
    constraints = x509.load_pem_x509_certificate(certificate).extensions.get_extension_for_class(x509.BasicConstraints)
    return constraints.value.ca and constraints.value.path_length != 0


def cross_signed(authority: KeyPair, by: KeyPair, now: datetime) -> bytes:
    """The certificate (PEM) of ``authority`` as another CA signs it: with it, those who trust only that other CA can
    verify what ``authority`` issues. It never outlives either of them. ``now`` is an aware datetime.
    """
    signed, issuer = (x509.load_pem_x509_certificate(each.certificate) for each in (authority, by))
    public = signed.public_key()
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise TypeError("a certificate authority's key is not an ECDSA key")
    identifier, own = (
        each.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value for each in (signed, issuer)
    )
    lifetime = min(signed.not_valid_after_utc, issuer.not_valid_after_utc) - now
    builder = _authority(
        _builder(signed.subject, issuer.subject, public, now, lifetime),
        identifier,
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own),
        path_length=0,
    )
    return builder.sign(_private_key(by), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _authority(
    builder: x509.CertificateBuilder,
    identifier: x509.SubjectKeyIdentifier,
    issuer: x509.AuthorityKeyIdentifier,
    *,
    path_length: int = 1,
) -> x509.CertificateBuilder:
    """With the extensions of a CA."""
    return (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(issuer, critical=False)
    )


def issue(authority: KeyPair, request: CertificateRequest, now: datetime) -> KeyPair:
    """A leaf certificate with a new key, signed by ``authority``. ``now`` is an aware datetime.

    It never outlives its authority.
    """
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = _private_key(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in request.organizations]
    attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, request.common_name))
    lifetime = min(request.lifetime, issuer.not_valid_after_utc - now)
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        _builder(x509.Name(attributes), issuer.subject, key.public_key(), now, lifetime)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(_purposes(request.usage)), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
    )
    names = _alternative_names(request)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _pair(builder.sign(issuer_key, hashes.SHA256()), key)


def create_signing_key() -> SigningKey:
    """A key pair for service account tokens (ES256)."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return SigningKey(public=public, private=_key_pem(key))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + lifetime)
    )


def _purposes(usage: Usage) -> list[x509.ObjectIdentifier]:
    purposes: list[x509.ObjectIdentifier] = []
    if Usage.SERVER in usage:
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
    if Usage.CLIENT in usage:
        purposes.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    return purposes


def _alternative_names(request: CertificateRequest) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in dict.fromkeys(request.dns_names)]
    addresses = dict.fromkeys(ipaddress.ip_address(each) for each in request.ip_addresses)
    return names + [x509.IPAddress(address) for address in addresses]


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _private_key(authority: KeyPair) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(authority.key, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("a certificate authority's key is not an ECDSA key")
    return key


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """SEC 1, which etcd, Kubernetes and OpenSSL all read."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
