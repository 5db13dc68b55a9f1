"""Authentication with tokens of other issuers: upstream's AuthenticationConfiguration, as far as users write it.

The shape and the rules are upstream's (kubernetes: apiserver/pkg/apis/apiserver/validation), so that what would keep an
apiserver from starting is refused in advance. Only the apiserver itself checks CEL expressions.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from quarterdeck.api.base import EMPTY_MEANS_SOMETHING, Model
from quarterdeck.api.names import dns_name, shortened
from quarterdeck.api.schema import HTTPS, InSchema, refuse_if_any

# Certificates in PEM, as Kubernetes accepts them (client-go: util/cert/pem.go), but for blocks of other kinds. Text
# between the blocks is a comment: ``openssl`` writes ``subject=`` lines, bundles name each authority. Kubernetes skips
# a block that is not a certificate; here it is refused, since it may be a key.

_CERTIFICATE = "CERTIFICATE"
_BEGIN = re.compile(r"-----BEGIN ([^\n]*?)-----[ \t\r]*(?:\n|$)")


def certificates(text: str) -> str:
    """The text, if it has certificates and no other blocks. Raises ValueError that names the block and its line."""
    if not list(_bodies(text)):  # all of them are checked
        raise ValueError("has no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    return text


def _bodies(text: str) -> Iterator[bytes]:
    from cryptography.x509 import load_der_x509_certificate  # slow to load

    for number, begin in enumerate(_BEGIN.finditer(text), start=1):
        block = f"block {number} (line {text.count(chr(10), 0, begin.start()) + 1})"
        if begin[1] != _CERTIFICATE:
            raise ValueError(f"{block} is not a certificate but {begin[1] or 'a block without a name'}; remove it")
        body, end, _ = text[begin.end() :].partition(f"-----END {_CERTIFICATE}-----")
        if not end or "-----BEGIN" in body:
            raise ValueError(f"{block} has no line -----END {_CERTIFICATE}-----")
        try:
            content = base64.b64decode("".join(body.split()), validate=True)
        except binascii.Error as error:
            raise ValueError(f"{block} is not a certificate: what is in it is not base64") from error
        try:
            load_der_x509_certificate(content)
        except ValueError as error:
            raise ValueError(f"{block} is not a certificate: {' '.join(str(error).split())}") from error
        yield content


#: Upstream's limit.
ISSUERS_MAX = 64
_RESERVED = ("k8s.io", "kubernetes.io")


def _https(text: str) -> str:
    parsed = urlsplit(text)
    if parsed.scheme != "https" or not parsed.hostname:
        raise ValueError(f"{shortened(text)} is not a URL of the form https://issuer.example")
    if "@" in parsed.netloc:
        raise ValueError("must not hold a user name or a password")
    if parsed.query or parsed.fragment:
        raise ValueError(f"{shortened(text)} must not have a query or a fragment")
    return text


def _extra_key(key: str) -> str:
    domain, _, path = key.partition("/")
    if not path:
        raise ValueError(f"{shortened(key)} has no domain in front, as example.com/team has")
    if key != key.lower():
        raise ValueError(f"{shortened(key)} must be in lower case")
    if any(domain == each or domain.endswith(f".{each}") for each in _RESERVED):
        raise ValueError(f"{shortened(key)} is in a domain that Kubernetes keeps to itself")
    dns_name(domain)
    return key


_IS_PEM = InSchema({"pattern": "-----BEGIN CERTIFICATE-----"})
HttpsUrl = Annotated[str, AfterValidator(_https), HTTPS]
Text = Annotated[str, Field(min_length=1)]


class Issuer(Model):
    """The issuer of tokens."""

    #: The URL of the issuer, as in the tokens.
    url: HttpsUrl
    #: The URL of the discovery document; without it, the one that follows from `url`.
    discovery_url: Annotated[HttpsUrl | None, Field(alias="discoveryURL")] = None
    #: The certificates (PEM) of the authorities of the issuer's server; without it, those of the machine.
    certificate_authority: Annotated[str, AfterValidator(certificates), _IS_PEM] | None = None
    #: The audiences that tokens must be for.
    audiences: Annotated[tuple[Text, ...], Field(min_length=1)]
    #: How audiences are compared; required with more than one.
    audience_match_policy: Literal["MatchAny"] | None = None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Issuer:
        problems: list[tuple[str, str]] = []
        if self.discovery_url is not None and self.discovery_url.rstrip("/") == self.url.rstrip("/"):
            problems.append(("discoveryURL", "is the same as url; omit it"))
        if len(set(self.audiences)) < len(self.audiences):
            problems.append(("audiences", "names an audience twice"))
        if len(self.audiences) > 1 and self.audience_match_policy is None:
            problems.append(("audienceMatchPolicy", "must be MatchAny where there are several audiences"))
        refuse_if_any(problems)
        return self


class ClaimValidationRule(Model):
    """A claim that a token must have, or an expression that must be true."""

    #: The name of the claim.
    claim: Text | None = None
    #: The value of the claim.
    required_value: str | None = None
    #: A CEL expression.
    expression: Text | None = None
    #: The message when the expression is false.
    message: str | None = None

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> ClaimValidationRule:
        problems = _claim_xor_expression(self.claim, self.expression)
        if self.claim is not None and self.message is not None:
            problems.append(("message", "belongs to an expression, not to a claim"))
        if self.expression is not None and self.required_value is not None:
            problems.append(("requiredValue", "belongs to a claim, not to an expression"))
        refuse_if_any(problems)
        return self


class PrefixedClaim(Model):
    """A claim with a prefix, or an expression."""

    #: The name of the claim.
    claim: Text | None = None
    #: The prefix of the value; required with a claim, and empty for none.
    prefix: Annotated[str | None, EMPTY_MEANS_SOMETHING] = None
    #: A CEL expression.
    expression: Text | None = None

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> PrefixedClaim:
        problems = _claim_xor_expression(self.claim, self.expression)
        if self.claim is not None and self.prefix is None:
            problems.append(("prefix", "required where there is a claim; '' for none"))
        if self.expression is not None and self.prefix is not None:
            problems.append(("prefix", "belongs to a claim, not to an expression"))
        refuse_if_any(problems)
        return self


class PlainClaim(Model):
    """A claim, or an expression."""

    #: The name of the claim.
    claim: Text | None = None
    #: A CEL expression.
    expression: Text | None = None

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> PlainClaim:
        refuse_if_any(_claim_xor_expression(self.claim, self.expression))
        return self


class ExtraMapping(Model):
    """An extra attribute of the user."""

    #: The key of the attribute, with a domain in front.
    key: Annotated[str, AfterValidator(_extra_key), InSchema({"pattern": "^[^A-Z/]+/[^A-Z]+$"})]
    #: A CEL expression.
    value_expression: Text


class ClaimMappings(Model):
    """How the claims of a token become a Kubernetes user."""

    #: The name of the user.
    username: PrefixedClaim
    #: The groups of the user.
    groups: PrefixedClaim | None = None
    #: The uid of the user.
    uid: PlainClaim | None = None
    #: Extra attributes of the user.
    extra: tuple[ExtraMapping, ...] = ()

    @model_validator(mode="after")
    def _keys_are_distinct(self) -> ClaimMappings:
        refuse_if_any(_twice("extra", "key", [each.key for each in self.extra]))
        return self


class UserValidationRule(Model):
    """An expression that must be true of the user."""

    #: A CEL expression.
    expression: Text
    #: The message when the expression is false.
    message: str | None = None


class JwtAuthenticator(Model):
    """One issuer, and the meaning of its tokens."""

    #: The issuer of the tokens.
    issuer: Issuer
    #: What must be true of the claims.
    claim_validation_rules: tuple[ClaimValidationRule, ...] = ()
    #: How claims become a user.
    claim_mappings: ClaimMappings
    #: What must be true of the user.
    user_validation_rules: tuple[UserValidationRule, ...] = ()

    @model_validator(mode="after")
    def _rules_are_distinct(self) -> JwtAuthenticator:
        rules = self.claim_validation_rules
        refuse_if_any(
            [
                *_twice("claimValidationRules", "claim", [each.claim for each in rules]),
                *_twice("claimValidationRules", "expression", [each.expression for each in rules]),
                *_twice("userValidationRules", "expression", [each.expression for each in self.user_validation_rules]),
            ]
        )
        return self


class Authentication(Model):
    """The tokens that apiservers accept besides those of the plane."""

    #: The issuers. The fields have the meaning that Kubernetes gives them in its AuthenticationConfiguration.
    jwt: Annotated[tuple[JwtAuthenticator, ...], Field(max_length=ISSUERS_MAX)] = ()

    @model_validator(mode="after")
    def _issuers_are_distinct(self) -> Authentication:
        issuers = [each.issuer for each in self.jwt]
        refuse_if_any(
            [
                *_twice("jwt", "issuer.url", [each.url for each in issuers]),
                *_twice("jwt", "issuer.discoveryURL", [each.discovery_url for each in issuers]),
            ]
        )
        return self


def _claim_xor_expression(claim: str | None, expression: str | None) -> list[tuple[str, str]]:
    if claim is not None and expression is not None:
        return [("expression", "contradicts claim; give one of them")]
    return [("claim", "required, or an expression")] if claim is None and expression is None else []


def _twice(items: str, path: str, values: Sequence[str | None]) -> list[tuple[str, str]]:
    """A problem for each duplicate value."""
    return [
        (f"{items}[{number}].{path}", f"{shortened(value)} is there twice")
        for number, value in enumerate(values)
        if value is not None and value in values[:number]
    ]
