"""The certificates of a plane, and the certificate authorities that issue them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.schema import refuse


class Signer(StrEnum):
    """The purpose of certificate authorities of a plane."""

    #: Apiservers and their clients.
    KUBERNETES = "kubernetes"
    #: etcd and its clients.
    ETCD = "etcd"
    #: Requests that apiservers pass on to aggregated apiservers.
    FRONT_PROXY = "front-proxy"

    @property
    def field(self) -> str:
        """The name of its field in ``Certificates``."""
        return self.replace("-", "_")


#: Authorities are counted; the first one of a plane has the number 0.
AuthorityNumber = Annotated[int, Field(ge=0)]


class AuthorityUse(Model):
    """Which certificate authorities are trusted, and which issue certificates. `quarterdeck certs rotate-ca` writes
    it.
    """

    #: The number of the authority that issues certificates.
    issuer: AuthorityNumber = 0
    #: The number of another authority that is trusted as well: the former or the next one.
    also: AuthorityNumber | None = None
    #: The number of the authority that issues the certificates of servers; without it, `issuer`.
    serving: AuthorityNumber | None = None

    @model_validator(mode="after")
    def _uses_what_it_trusts(self) -> AuthorityUse:
        if self.also == self.issuer:
            refuse(("also", f"is {self.also}, as issuer is; omit it"))
        if self.servers not in self.trusted:
            refuse(("serving", f"is {self.serving}, which is neither issuer nor also: nobody would trust the servers"))
        return self

    @property
    def trusted(self) -> frozenset[int]:
        """The numbers of the trusted authorities."""
        return frozenset({self.issuer} if self.also is None else {self.issuer, self.also})

    @property
    def servers(self) -> int:
        """The number of the authority that issues the certificates of servers."""
        return self.issuer if self.serving is None else self.serving


#: What planes begin with.
FIRST_AUTHORITY = AuthorityUse()


class Certificates(Model):
    """The certificates of the plane."""

    #: A greater number renews all leaf certificates once.
    generation: Annotated[int, Field(ge=0)] = 0
    #: The authorities of the apiservers and their clients; without it, the first one.
    kubernetes: AuthorityUse | None = None
    #: The authorities of etcd and its clients; without it, the first one.
    etcd: AuthorityUse | None = None
    #: The authorities of requests that apiservers pass on to aggregated apiservers; without it, the first one.
    front_proxy: AuthorityUse | None = None

    def use(self, signer: Signer) -> AuthorityUse:
        """How the authorities of one purpose are used."""
        found: AuthorityUse | None = getattr(self, signer.field)
        return found or FIRST_AUTHORITY
