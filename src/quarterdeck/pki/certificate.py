"""The properties of a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Flag, auto

#: Certificates are valid from a little in the past: machines' clocks differ.
BACKDATED = timedelta(minutes=10)
CA_LIFETIME = timedelta(days=3650)


class Usage(Flag):
    """The uses of a certificate."""

    SERVER = auto()
    CLIENT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRequest:
    """A certificate to issue. ``organizations`` are the groups of a Kubernetes user."""

    common_name: str
    usage: Usage
    lifetime: timedelta
    organizations: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    ip_addresses: tuple[str, ...] = ()
