"""The certificates of a plane: their owner, purpose and expiry."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.credentials import uses
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.pki.validity import (
    Validity,
    certificates,
    is_authority,
    shown_as,
    shown_authority,
    unnumbered,
    validity,
)

#: The purpose of the plane's own certificates.
_PURPOSES = {
    "kubernetes-ca": "signs apiservers and their clients",
    "etcd-ca": "signs etcd and its clients",
    "front-proxy-ca": "signs towards aggregated apiservers",
    "manager": "quarterdeck to apiservers",
    "etcd-manager": "quarterdeck to etcd",
}


def purposes() -> Mapping[str, str]:
    """The purpose of each certificate, by the name that people see."""
    replicas = {each.name: each.purpose for spec in CATALOGUE.values() for each in spec.certificates}
    return {**_PURPOSES, **{shown_as(name): purpose for name, purpose in replicas.items()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate that the plane's programs use. ``replica``: its owner; "" for the plane's own. Times are aware."""

    replica: str
    name: str
    purpose: str
    begins: datetime
    ends: datetime

    @property
    def authority(self) -> bool:
        """Whether it signs others. ``certs renew`` does not replace authorities."""
        return is_authority(self.name)

    def days_left(self, now: datetime) -> int:
        """Whole days until it expires; negative when it has expired."""
        return (self.ends - now).days

    def due(self, now: datetime) -> bool:
        """Whether less than a third of its lifetime is left."""
        return Validity(self.begins, self.ends).due(now)


async def listed(home: Home, name: str) -> tuple[Certificate, ...]:
    """See ``Quarterdeck.certificates``."""
    plane = await recorded.existing(home.store, name)
    secrets = await secrets_of(home.store, plane)
    issuing = {shown_authority(signer, use.issuer) for signer, use in uses(plane.spec.certificates).items()}
    return tuple(_certificate(called, pem, issuing) for called, pem in certificates(secrets))


def _certificate(called: str, pem: bytes, issuing: Collection[str]) -> Certificate:
    """``issuing``: the names of the authorities that issue certificates now."""
    replica, _, name = called.rpartition("/")
    valid = validity(pem)
    begins, ends = valid.not_before.astimezone(UTC), valid.not_after.astimezone(UTC)
    purpose = purposes().get(unnumbered(name), "")
    if is_authority(name) and name not in issuing:
        purpose = f"{purpose} (issues no certificates now)"
    return Certificate(replica=replica, name=name, purpose=purpose, begins=begins, ends=ends)
