"""Objects of any kind, asked of one apiserver: the half of the kube port that add-ons need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from pydantic import JsonValue

from quarterdeck.errors import QuarterdeckError
from quarterdeck.kube.address import Address


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind that an apiserver serves in some version, under ``plural`` in its paths."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "") -> str:
        """Of one object, or without a ``name`` of all: those of one namespace, or of all of them."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{within}/{self.plural}" + (f"/{name}" if name else "")


@dataclass(frozen=True, slots=True)
class Discovered:
    """All that is served, the preferred version of each group first. ``silent``: groups (with their version) whose own
    apiserver does not answer: of these nothing is known, and nothing else suffers from that.
    """

    resources: Sequence[Resource]
    silent: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """The metadata of an object, and nothing of what it holds. ``managed``: its ``managedFields``."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    managed: JsonValue = None
    deleting: bool = False


class Refusal(Enum):
    """Why an apiserver does not take something."""

    OWNED = auto()  # somebody else owns fields that say something else
    INVALID = auto()  # it never will: what is said makes no sense, or cannot be changed
    LATER = auto()  # it may when something else is there, or gone


class Refused(QuarterdeckError):
    """An apiserver answered that it does not do what was asked. ``fields`` are those that ``owners`` own."""

    def __init__(self, doing: str, seen: str, why: Refusal, *, fields: Sequence[str] = (), owners: str = "") -> None:
        super().__init__(doing, seen)
        self.why, self.fields, self.owners = why, tuple(fields), owners


class Objects(Protocol):
    """Objects of one plane. Every call has its own deadline and never retries. All raise Unavailable."""

    async def discover(self, apiserver: Address) -> Discovered:
        """What is served now."""
        ...

    async def read(self, apiserver: Address, path: str) -> JsonValue:
        """An object, or a list of them with ``?labelSelector=`` in the path; None if there is none."""
        ...

    async def metadata(self, apiserver: Address, resource: Resource, selector: str) -> tuple[Meta, ...]:
        """The metadata of all objects of a kind, in all namespaces, whose labels a selector takes; none when
        the kind is not served.
        """
        ...

    async def apply(
        self, apiserver: Address, path: str, manifest: Mapping[str, JsonValue], *, manager: str, force: bool = False
    ) -> Meta:
        """Server-side apply: the object has what the manifest says, and ``manager`` owns these fields; those that it
        owned before and does not name any more go. ``force``: also those that somebody else owns. Raises Refused.
        """
        ...

    async def delete(self, apiserver: Address, path: str, *, uid: str) -> bool:
        """Have an object deleted, with what depends on it in the background, if it still is the one with that ``uid``.
        False when it is gone already. Raises Refused.
        """
        ...
