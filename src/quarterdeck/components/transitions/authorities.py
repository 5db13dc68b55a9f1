"""Certificate authorities side by side: which revisions trust each other, and the stops between two of them.

Everybody trusts everybody whom it may meet: an authority issues nothing before all replicas trust it, and is trusted
until nothing that it issued is used any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pydantic.alias_generators import to_camel

from quarterdeck.api.plane.certificates import FIRST_AUTHORITY, AuthorityUse, Certificates, Signer
from quarterdeck.api.revision import ReplicaTemplate


def apart(one: ReplicaTemplate, other: ReplicaTemplate) -> bool:
    """Whether replicas of two revisions must not run at the same time: one does not trust an issuer of the other."""
    return any(_strangers(one.certificates.use(each), other.certificates.use(each)) for each in Signer)


def _strangers(one: AuthorityUse, other: AuthorityUse) -> bool:
    return not (_issuers(one) <= other.trusted and _issuers(other) <= one.trusted)


def _issuers(use: AuthorityUse) -> frozenset[int]:
    return frozenset({use.issuer, use.servers})


def stops(start: ReplicaTemplate, goal: ReplicaTemplate) -> Iterator[ReplicaTemplate]:
    """The revisions that lie between two revisions that differ in their authorities, nearest to ``start`` first: the
    content of ``start``, first with the trust of both, then with the issuer of the goal, then with that of its servers.
    """
    between = {each: _between(start.certificates.use(each), goal.certificates.use(each)) for each in Signer}
    for number in range(max(map(len, between.values()))):
        at = {each: uses[min(number, len(uses) - 1)] for each, uses in between.items()}
        yield _with(start, at)


def with_authorities_of(start: ReplicaTemplate, goal: ReplicaTemplate) -> ReplicaTemplate:
    """The content of ``start`` with the authorities of the goal."""
    return _with(start, {each: goal.certificates.use(each) for each in Signer})


def _between(start: AuthorityUse, goal: AuthorityUse) -> tuple[AuthorityUse, ...]:
    former, latter = start.issuer, goal.issuer
    if former == latter:
        other = goal.also if start.also is None else start.also
        return (AuthorityUse(issuer=latter, also=other),)
    return (
        AuthorityUse(issuer=former, also=latter),
        AuthorityUse(issuer=latter, also=former, serving=former),
        AuthorityUse(issuer=latter, also=former),
    )


def _with(template: ReplicaTemplate, uses: Mapping[Signer, AuthorityUse]) -> ReplicaTemplate:
    return template.model_copy(update={"certificates": with_uses(template.certificates, uses)})


def with_uses(certificates: Certificates, uses: Mapping[Signer, AuthorityUse]) -> Certificates:
    """``certificates`` with other uses of the authorities."""
    changed = {each.field: None if use == FIRST_AUTHORITY else use for each, use in uses.items()}
    return certificates.model_copy(update=changed)


def common(certificates: Collection[Certificates]) -> Mapping[Signer, AuthorityUse]:
    """What a client uses that meets replicas with all of these certificates: it trusts the issuers of all of them, and
    its own certificate is of the newest authority that all of them trust. Replicas that meet trust such a one.
    """
    return {each: _common([one.use(each) for one in certificates] or [FIRST_AUTHORITY]) for each in Signer}


def _common(uses: Collection[AuthorityUse]) -> AuthorityUse:
    every = frozenset[int]().union(*(each.trusted for each in uses))
    shared = every.intersection(*(each.trusted for each in uses))
    issuer = max(shared or every)
    others = every - {issuer}
    return AuthorityUse(issuer=issuer, also=max(others) if others else None)


def objections(before: Certificates, after: Certificates) -> tuple[str, ...]:
    """Why these certificates cannot follow others, with the path of each field: somebody would meet a stranger, or an
    authority is asked for that no longer exists.
    """
    found = (
        (each.field, succession_problem(before.use(each).trusted, after.use(each).trusted, "authority"))
        for each in Signer
    )
    return tuple(f"spec.certificates.{to_camel(field)}: {why}" for field, why in found if why)


def succession_problem(before: Collection[int], after: Collection[int], what: str) -> str:
    """Why these accepted numbers cannot follow others; "" if they can. ``what``: what they count."""
    strange = set(after) - set(before)
    if any(each < max(before) for each in strange):
        return f"{what} {min(strange)} no longer exists"
    if not set(before) & set(after):
        return f"{what} {max(before)} would be accepted no longer; first accept both, with 'also: {max(before)}'"
    if strange and len(before) > 1:
        return f"{what} {min(before)} and {what} {max(before)} are accepted; first end that rotation"
    return ""
