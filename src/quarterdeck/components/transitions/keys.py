"""Keys side by side: which revisions accept each other's, and the stops between two of them.

A key is accepted by all replicas before one of them uses it, and for as long as one of them does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic.alias_generators import to_camel

from quarterdeck.api.plane.keys import FIRST_KEY, KeyPurpose, Keys, KeyUse
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.transitions.authorities import succession_problem


def apart(one: ReplicaTemplate, other: ReplicaTemplate) -> bool:
    """Whether replicas of two revisions must not run at the same time: one does not accept the other's current key."""
    pairs = ((one.key_use(each), other.key_use(each)) for each in KeyPurpose)
    return any(its.current not in others.accepted or others.current not in its.accepted for its, others in pairs)


def drops(before: ReplicaTemplate, after: ReplicaTemplate) -> bool:
    """Whether the second revision cannot read all that the first one may have stored."""
    its, others = (set(each.key_use(KeyPurpose.ENCRYPTION).accepted) for each in (before, after))
    return not its <= others


def stops(start: ReplicaTemplate, goal: ReplicaTemplate) -> Iterator[ReplicaTemplate]:
    """The revisions that lie between two revisions with other keys, nearest to ``start`` first: the content of
    ``start``, first with both keys accepted, then with that of the goal in use.
    """
    for turned in (False, True):
        yield with_keys(start, {each: _both(start.key_use(each), goal.key_use(each), turned) for each in KeyPurpose})


def _both(start: KeyUse, goal: KeyUse, turned: bool) -> KeyUse:
    if start.current == goal.current:
        return goal
    former, latter = (goal.current, start.current) if turned else (start.current, goal.current)
    return KeyUse(current=former, also=latter)


def with_keys_of(start: ReplicaTemplate, goal: ReplicaTemplate) -> ReplicaTemplate:
    """The content of ``start`` with the keys of the goal."""
    return with_keys(start, {each: goal.key_use(each) for each in KeyPurpose})


def with_keys(template: ReplicaTemplate, uses: Mapping[KeyPurpose, KeyUse]) -> ReplicaTemplate:
    """A template with other uses of the keys."""
    return template.model_copy(
        update={
            "encryption_key": written(uses[KeyPurpose.ENCRYPTION]),
            "service_account_key": written(uses[KeyPurpose.SERVICE_ACCOUNT]),
        }
    )


def keys_of(template: ReplicaTemplate) -> Keys:
    """The keys of a template, as a spec has them."""
    return Keys(encryption=template.encryption_key, service_account=template.service_account_key)


def written(use: KeyUse) -> KeyUse | None:
    """A use as specs and revisions have it: None for the first key, so that equal programs have equal revisions."""
    return None if use == FIRST_KEY else use


def with_use(keys: Keys, purpose: KeyPurpose, use: KeyUse) -> Keys:
    """``keys`` with another use of those of one purpose."""
    return keys.model_copy(update={purpose.field: written(use)})


def objections(before: Keys, after: Keys) -> tuple[str, ...]:
    """Why these keys cannot follow others, with the path of each field."""
    found = (
        (each.field, succession_problem(before.use(each).accepted, after.use(each).accepted, "key"))
        for each in KeyPurpose
    )
    return tuple(f"spec.keys.{to_camel(field)}: {why}" for field, why in found if why)
