"""The issuers of service account tokens of a revision, and how another one takes over without refusing a token."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.plane.service_accounts import OWN_ISSUER
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.arguments import boolean

_EXTEND = "service-account-extend-token-expiration"


def issuers_of(template: ReplicaTemplate) -> tuple[str, ...]:
    """The accepted issuers, the one that signs first."""
    return template.service_account_issuers or (OWN_ISSUER,)


def written_issuers(spec: ControlPlaneSpec) -> tuple[str, ...] | None:
    """The issuers as a revision has them: None for the usual one, so that equal programs have equal revisions."""
    issuers = spec.service_accounts.issuers
    return None if issuers == (OWN_ISSUER,) else issuers


def apart(one: ReplicaTemplate, other: ReplicaTemplate) -> bool:
    """Whether an apiserver of one of these revisions signs tokens that one of the other refuses."""
    first, second = issuers_of(one), issuers_of(other)
    return first[0] not in second or second[0] not in first


def stops(start: ReplicaTemplate, goal: ReplicaTemplate) -> Iterator[ReplicaTemplate]:
    """The revisions between two with other issuers, nearest to ``start`` first: the content of ``start``, which accepts
    the issuers of both, and signs first as before, then as the goal. None where issuers are equal.
    """
    before, after = issuers_of(start), issuers_of(goal)
    if before != after:
        for order in ((*before, *after), (*after, *before)):
            yield start.model_copy(update={"service_account_issuers": tuple(dict.fromkeys(order))})


def dropped(before: ControlPlaneSpec, after: ControlPlaneSpec) -> str:
    """What a change that no longer accepts an issuer means for tokens, as a sentence; "" if it accepts all of them.

    An apiserver lets tokens of pods live for an hour, or for a year where it extends them (kubernetes:
    serviceaccount/claims.go, ExpirationExtensionSeconds).
    """
    gone = [each for each in before.service_accounts.issuers if each not in after.service_accounts.issuers]
    if not gone:
        return ""
    extends = before.extra_args.kube_apiserver.get(_EXTEND, "").lower() == boolean(True)
    life = f"a year (--{_EXTEND})" if extends else "an hour"
    return (
        f"tokens of {', '.join(gone)} are refused once this change is done: those of pods live for {life}, others"
        " for as long as was asked for; accept an issuer until all tokens that it has signed have ended"
    )
