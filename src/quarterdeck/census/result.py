"""What a census has found, and which of that a minor of Kubernetes cannot decode. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from quarterdeck.census.stored_types import ALWAYS, MINORS, ONLY
from quarterdeck.census.value_types import StoredType
from quarterdeck.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class TypeCount:
    """How many values of a resource are stored as one type. ``resource``: as ``pods``, or ``widgets.example.com`` where
    the key has a group. ``examples``: the first of their keys.
    """

    resource: str
    type: StoredType
    number: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnreadableCount:
    """How many values have a type that cannot be told. ``why``: what they are, in words. ``examples``: the first of
    their keys.
    """

    why: str
    number: int
    examples: tuple[str, ...]


def _number(counts: Sequence[TypeCount] | Sequence[UnreadableCount]) -> int:
    return sum(each.number for each in counts)


@dataclass(frozen=True, slots=True)
class Census:
    """The types of all values below ``/registry/`` at one revision of etcd. Both tuples are in the order of what they
    count. ``custom``: the names of the CustomResourceDefinitions among them, such as ``widgets.example.com``.
    """

    revision: int
    types: tuple[TypeCount, ...]
    unreadable: tuple[UnreadableCount, ...]
    custom: frozenset[str]

    @property
    def number(self) -> int:
        """How many values there are."""
        return _number(self.types) + _number(self.unreadable)


@dataclass(frozen=True, slots=True)
class Undecodable:
    """What a minor cannot decode, and what it is not known to: a value whose type cannot be told is never taken for one
    that can be decoded.
    """

    minor: tuple[int, int]
    types: tuple[TypeCount, ...]
    unreadable: tuple[UnreadableCount, ...]

    @property
    def number(self) -> int:
        """How many values these are: with 0, that minor decodes everything."""
        return _number(self.types) + _number(self.unreadable)


def undecodable(census: Census, minor: tuple[int, int]) -> Undecodable:
    """What of a census a minor, such as (1, 35), cannot decode. Custom resources are decoded by every minor: no binary
    knows their types. Raises InvalidInput for a minor that ``MINORS`` does not have.
    """
    known = decoded_by(minor)
    types = (each for each in census.types if each.type not in known and not _is_custom(each, census.custom))
    return Undecodable(minor, tuple(types), census.unreadable)


def lost(census: Census, minor: tuple[int, int], now: tuple[int, int]) -> Undecodable:
    """What of a census the minor ``now`` decodes, or may decode, and ``minor`` does not: what going back loses. Raises
    as ``undecodable`` does.
    """
    left, already = undecodable(census, minor), undecodable(census, now).types
    return replace(left, types=tuple(each for each in left.types if each not in already))


@lru_cache(maxsize=len(MINORS))
def decoded_by(minor: tuple[int, int]) -> frozenset[StoredType]:
    """The built-in types that kube-apiserver of a minor decodes. Raises as ``undecodable`` does."""
    if minor not in MINORS:
        names = [f"{each[0]}.{each[1]}" for each in (minor, MINORS[0], MINORS[-1])]
        seen = f"the types of Kubernetes {names[1]} to {names[2]} are known"
        raise InvalidInput(f"looking up what Kubernetes {names[0]} decodes", seen, "choose one of these")
    tables: tuple[Mapping[str, str], ...] = (ALWAYS, ONLY[minor])
    return frozenset(
        StoredType(version, kind) for table in tables for version, kinds in table.items() for kind in kinds.split()
    )


def _is_custom(count: TypeCount, custom: frozenset[str]) -> bool:
    return count.resource in custom and count.resource.partition(".")[2] == count.type.group
