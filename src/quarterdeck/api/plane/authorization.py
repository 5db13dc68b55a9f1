"""Authorization by webhooks besides Node and RBAC: upstream's AuthorizationConfiguration, as far as users write it.

The rules are upstream's (kubernetes: apiserver/pkg/apis/apiserver/validation, ValidateWebhookConfiguration), so that
what would keep an apiserver from starting is refused in advance. Only the apiserver itself checks CEL expressions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.names import DNS_NAME_MAX, dns_name, shortened
from quarterdeck.api.plane.authentication import HttpsUrl, Text, certificates
from quarterdeck.api.schema import NAME, InSchema, refuse_if_any
from quarterdeck.api.values import Seconds

#: Upstream's limit of match conditions is 64; quarterdeck adds one (``components/authorization.py``).
CONDITIONS_MAX = 63
#: The names of the authorizers that every apiserver has.
_OWN_NAMES = ("node", "rbac")
#: Seconds. Go writes shorter times in other units.
_SHORTEST = 0.001


def _webhook_name(name: str) -> str:
    if name in _OWN_NAMES:
        raise ValueError(f"{name!r} is an authorizer that every apiserver has")
    return dns_name(name)


def _private_key(text: str) -> str:
    """The text, if it is a private key in PEM without a password. Its content is in no message."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # slow to load

    try:
        load_pem_private_key(text.encode(), password=None)
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("is not a private key in PEM without a password (-----BEGIN PRIVATE KEY-----)") from error
    return text


def _token(text: str) -> str:
    if not text or any(each.isspace() for each in text):
        raise ValueError("is empty, or has spaces or line breaks")
    return text


_IS_PEM = InSchema({"pattern": "-----BEGIN CERTIFICATE-----"})
_IS_KEY = InSchema({"pattern": "PRIVATE KEY-----"})
_IS_TOKEN = InSchema({"pattern": r"^\S+$"})


class WebhookPosition(StrEnum):
    """When an apiserver asks a webhook. Node always comes first."""

    #: Before RBAC: the webhook can deny what RBAC would allow. It is not asked about requests of the control plane.
    BEFORE_RBAC = "BeforeRBAC"
    #: After RBAC: the webhook can allow what RBAC does not.
    AFTER_RBAC = "AfterRBAC"


class FailurePolicy(StrEnum):
    """What happens when a webhook does not answer, or a match condition fails."""

    #: The authorizers after it decide.
    NO_OPINION = "NoOpinion"
    #: The request is refused.
    DENY = "Deny"


class WebhookServer(Model):
    """The server of a webhook. Apiservers identify themselves with a client certificate, a token, or not at all."""

    #: The URL that apiservers post SubjectAccessReviews to.
    url: HttpsUrl
    #: The certificates (PEM) of the authorities of the server; without it, those of the machine.
    certificate_authority: Annotated[str, AfterValidator(certificates), _IS_PEM] | None = None
    #: The client certificate (PEM); it needs `clientKey`.
    client_certificate: Annotated[str, AfterValidator(certificates), _IS_PEM] | None = None
    #: The private key (PEM) of the client certificate.
    client_key: Annotated[str, AfterValidator(_private_key), _IS_KEY] | None = None
    #: A bearer token.
    token: Annotated[str, AfterValidator(_token), _IS_TOKEN] | None = None

    @model_validator(mode="after")
    def _has_one_identity(self) -> WebhookServer:
        problems: list[tuple[str, str]] = []
        if self.client_certificate is not None and self.client_key is None:
            problems.append(("clientKey", "required where there is a clientCertificate"))
        if self.client_key is not None and self.client_certificate is None:
            problems.append(("clientCertificate", "required where there is a clientKey"))
        if self.token is not None and self.client_certificate is not None:
            problems.append(("token", "contradicts clientCertificate; give one of them"))
        if not problems and not self._is_a_pair():
            problems.append(("clientKey", "is not the key of clientCertificate"))
        refuse_if_any(problems)
        return self

    def _is_a_pair(self) -> bool:
        """Whether the key is that of the first certificate, as Go requires it (crypto/tls: X509KeyPair)."""
        if self.client_certificate is None or self.client_key is None:
            return True
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from cryptography.x509 import load_pem_x509_certificates

        key = load_pem_private_key(self.client_key.encode(), password=None)
        return load_pem_x509_certificates(self.client_certificate.encode())[0].public_key() == key.public_key()


class MatchCondition(Model):
    """A condition for asking a webhook about a request."""

    #: A CEL expression; `request` is the spec of a SubjectAccessReview (v1).
    expression: Text


class AuthorizationWebhook(Model):
    """A webhook that takes part in the authorization of requests."""

    #: The name of the webhook, also in the metrics of apiservers.
    name: Annotated[str, AfterValidator(_webhook_name), NAME, Field(max_length=DNS_NAME_MAX)]
    #: The server of the webhook.
    server: WebhookServer
    #: When apiservers ask the webhook.
    position: WebhookPosition = WebhookPosition.AFTER_RBAC
    #: What happens when the webhook does not answer.
    failure_policy: FailurePolicy
    #: How long apiservers wait for an answer.
    timeout: Annotated[Seconds, Field(ge=_SHORTEST, le=30)] = 3.0
    #: How long apiservers keep an answer that allows a request.
    authorized_ttl: Annotated[Seconds, Field(ge=_SHORTEST, le=86_400, alias="authorizedTTL")] = 300.0
    #: How long apiservers keep an answer that does not allow a request.
    unauthorized_ttl: Annotated[Seconds, Field(ge=_SHORTEST, le=86_400, alias="unauthorizedTTL")] = 30.0
    #: Conditions that must all be true of a request; without any, the webhook is asked about each.
    match_conditions: Annotated[tuple[MatchCondition, ...], Field(max_length=CONDITIONS_MAX)] = ()

    @model_validator(mode="after")
    def _conditions_are_distinct(self) -> AuthorizationWebhook:
        given = [each.expression for each in self.match_conditions]
        refuse_if_any(
            [
                (f"matchConditions[{number}].expression", f"{shortened(each)} is there twice")
                for number, each in enumerate(given)
                if each in given[:number]
            ]
        )
        return self


class Authorization(Model):
    """Who may do what, besides Node and RBAC, which always decide as well."""

    #: The webhooks. Those of one position are asked in this order; the first that allows or denies decides.
    webhooks: tuple[AuthorizationWebhook, ...] = ()

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Authorization:
        names = [each.name for each in self.webhooks]
        refuse_if_any(
            [
                (f"webhooks[{number}].name", f"{each!r} is there twice")
                for number, each in enumerate(names)
                if each in names[:number]
            ]
        )
        return self
