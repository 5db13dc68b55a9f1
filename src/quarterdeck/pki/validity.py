"""Whether certificates are valid now."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from datetime import datetime

from cryptography import x509

from quarterdeck.api.plane.certificates import Signer
from quarterdeck.components.credentials import Authority, KeyPair, SharedSecrets
from quarterdeck.errors import PreconditionFailed


@dataclass(frozen=True, slots=True)
class Validity:
    """The validity period of a certificate (aware datetimes, UTC)."""

    not_before: datetime
    not_after: datetime

    def due(self, now: datetime) -> bool:
        """Whether less than a third of its lifetime is left."""
        return self.not_after - now < (self.not_after - self.not_before) / 3


def validity(certificate: bytes) -> Validity:
    """The validity period of a certificate (PEM)."""
    parsed = x509.load_pem_x509_certificate(certificate)
    return Validity(parsed.not_valid_before_utc, parsed.not_valid_after_utc)


def expiry(certificate: bytes) -> datetime:
    """When a certificate (PEM) expires."""
    return validity(certificate).not_after


def check_certificate(name: str, certificate: bytes, now: datetime) -> None:
    """Raises PreconditionFailed, with ``name`` and the dates, if the certificate is not valid at ``now``."""
    valid = validity(certificate)
    if now < valid.not_before:
        raise PreconditionFailed(
            f"checking the certificate {name}",
            f"it is valid from {_date(valid.not_before)} on, and the clock says {_date(now)}",
            "set the clock right: it seems to have been set back",
        )
    if now >= valid.not_after:
        raise PreconditionFailed(
            f"checking the certificate {name}",
            f"it expired on {_date(valid.not_after)}, and the clock says {_date(now)}",
            "rotate it, or set the clock right",
        )


def check_secrets(secrets: SharedSecrets, now: datetime) -> None:
    """Check every certificate of a plane. Raises PreconditionFailed for the first that is not valid at ``now``."""
    for name, certificate in certificates(secrets):
        check_certificate(name, certificate, now)


def check_authorities(secrets: SharedSecrets, now: datetime) -> None:
    """Check the authorities that issue a plane's certificates: what they issue ends with them. Raises
    PreconditionFailed for the first that is not valid at ``now``.
    """
    for each in fields(secrets):
        if isinstance(found := getattr(secrets, each.name), Authority):
            check_certificate(shown_as(each.name), found.issuer.certificate, now)


def certificates(secrets: SharedSecrets) -> tuple[tuple[str, bytes], ...]:
    """Every certificate of a plane (PEM) with a name for people: ``etcd-ca``, ``demo-1/apiserver``."""
    found: list[tuple[str, bytes]] = []
    for each in fields(secrets):
        name, value = shown_as(each.name), getattr(secrets, each.name)
        if isinstance(value, Authority):
            found += [(_numbered(name, each.number), each.pair.certificate) for each in value.known]
        elif isinstance(value, KeyPair):
            found.append((name, value.certificate))
    for replica, issued in secrets.replicas:
        found += [(f"{replica}/{shown_as(name)}", pair.certificate) for name, pair in issued.pairs.items()]
    return tuple(found)


_OF_AUTHORITIES = re.compile(r"(.*-ca)(-\d+)?")


def shown_authority(signer: Signer, number: int) -> str:
    """The name that people see of a certificate of an authority."""
    return _numbered(f"{signer}-ca", number)


def _numbered(name: str, number: int) -> str:
    return f"{name}-{number}" if number else name


def is_authority(name: str) -> bool:
    """Whether the certificate with that name is of an authority."""
    return _OF_AUTHORITIES.fullmatch(name) is not None


def unnumbered(name: str) -> str:
    """The name of a certificate without the number of its authority."""
    found = _OF_AUTHORITIES.fullmatch(name)
    return found[1] if found is not None else name


def shown_as(name: str) -> str:
    """The name that people see of a stored certificate."""
    return name.replace("_", "-")


def _date(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
