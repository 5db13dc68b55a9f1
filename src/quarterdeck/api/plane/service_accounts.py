"""Tokens of service accounts: who issues them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from quarterdeck.api.base import Model
from quarterdeck.api.names import shortened
from quarterdeck.api.plane.authentication import HttpsUrl
from quarterdeck.api.schema import SOME_ONCE

#: The issuer of a plane whose user names none.
OWN_ISSUER = "https://kubernetes.default.svc.cluster.local"


def _some_once(issuers: tuple[str, ...]) -> tuple[str, ...]:
    if not issuers:
        raise ValueError("is empty; omit it for the issuer of every plane")
    for number, each in enumerate(issuers):
        if each in issuers[:number]:
            raise ValueError(f"{shortened(each)} is there twice")
    return issuers


class ServiceAccounts(Model):
    """Tokens of service accounts."""

    #: The issuers of the tokens, as URLs. The first is in new tokens; tokens of all of them are accepted.
    issuers: Annotated[tuple[HttpsUrl, ...], AfterValidator(_some_once), SOME_ONCE] = (OWN_ISSUER,)
