"""The kube port: what quarterdeck asks apiservers and controllers, one named process at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from pydantic import JsonValue

from quarterdeck.errors import QuarterdeckError


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Where a process listens."""

    host: str
    port: int


# Objects of any kind, asked of one apiserver: the half of the kube port that add-ons need.


@dataclass(frozen=True, slots=True)
class ApiResource:
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

    resources: Sequence[ApiResource]
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

    async def metadata(self, apiserver: Address, resource: ApiResource, selector: str) -> tuple[Meta, ...]:
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


class Witness(Protocol):
    """Connections to an apiserver."""

    @property
    def told(self) -> bool:
        """Whether all of them were told that the apiserver ends. True too of one that answered nothing when they were
        made.
        """
        ...


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """What a health path said. ``ok`` is None when nothing is known: no answer within the deadline.

    A refused connection is a plain no: nothing listens there. ``detail`` is one line for a person.
    """

    ok: bool | None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderLease:
    """A coordination.k8s.io Lease in kube-system that a leader holds.

    ``holder`` is "" when it was released. ``renewed`` is when the holder last renewed it (seconds since the epoch,
    by the holder's clock; None if never), ``duration`` for how long that counts, in seconds.
    """

    name: str
    holder: str
    renewed: float | None
    duration: float
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLease(LeaderLease):
    """The same, with what tells one tenure from the next. ``transitions`` grows with each holder, ``acquired`` is when
    this one began (seconds since the epoch, by the holder's clock; None if never). ``manager``: the program that wrote
    who holds it, as it calls itself ("" unknown). ``deleted``: there is no such lease any more, this is its last word.

    By the apiserver's clock (seconds since the epoch; None: not known): ``written_at`` is when the renewal was written,
    ``answered_at`` when this was read. Neither depends on the clock of the holder.
    """

    acquired: float | None = None
    transitions: int = 0
    manager: str = ""
    deleted: bool = False
    written_at: float | None = None
    answered_at: float | None = None

    @property
    def age_s(self) -> float | None:
        """Seconds since the renewal was written, by the apiserver's clock; None if that is not known."""
        if self.written_at is None or self.answered_at is None:
            return None
        return max(0.0, self.answered_at - self.written_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTrial:
    """What came of a trial write of a lease, of which nothing was stored. ``refusal``: why it was refused ("": it was
    not); ``late``: there was no answer within the deadline.
    """

    refusal: str = ""
    late: bool = False


class Kube(Objects, Protocol):
    """The apiservers and controllers of one plane, and the objects that apiservers keep. Every call has its own
    deadline and never retries.
    """

    async def readyz(self, apiserver: Address, *, founded: bool = False, within: float | None = None) -> HealthAnswer:
        """Whether the apiserver would serve. Asked anonymously; never raises for what the apiserver does.

        ``founded``: another apiserver of the plane was ready before, so that the default roles are there; saves the
        second that an apiserver waits before it looks after them. ``within`` is a shorter deadline in seconds, for one
        that may be just starting: it accepts connections and answers none.
        """
        ...

    async def ping(self, apiserver: Address) -> HealthAnswer:
        """Whether the apiserver answers at all, also during its graceful shutdown. Asked over a connection that is
        kept, so that a second one takes next to no time. Never raises for what the apiserver does.
        """
        ...

    async def livez(self, apiserver: Address, *, within: float | None = None) -> HealthAnswer:
        """Whether the apiserver works, ready or not, as whoever would start it anew asks. Never raises for what the
        apiserver does. ``within`` is a shorter deadline in seconds.
        """
        ...

    async def healthz(self, controller: Address, *, within: float | None = None) -> HealthAnswer:
        """The same of a controller manager or a scheduler."""
        ...

    async def listens(self, server: Address) -> bool | None:
        """Whether anything accepts connections there, ready or not; None when half a second does not tell. Never
        raises.
        """
        ...

    def witness(self, apiserver: Address) -> AbstractAsyncContextManager[Witness]:
        """Within the block connections stand as clients have them, which see when the apiserver has told its clients
        that it ends. Never raises for what the apiserver does.
        """
        ...

    async def version(self, apiserver: Address) -> str:
        """Its release, as ``1.36.3``. Raises Unavailable."""
        ...

    async def loaded(self, apiserver: Address) -> str | None:
        """The hash of the authentication file that the apiserver goes by, as it says (``sha256:...``); None if it does
        not say. Raises Unavailable.
        """
        ...

    async def leads(self, controller: Address, lease: str) -> bool | None:
        """Whether this controller manager or scheduler itself says that it holds ``lease``; None if unknown."""
        ...

    async def leader_lease(self, apiserver: Address, name: str) -> SeenLease | None:
        """The lease ``name``; None if there is none. Raises Unavailable."""
        ...

    def lease_changes(self, apiserver: Address) -> AsyncGenerator[SeenLease, None]:
        """All leases in kube-system as they are, and then each change of any of them, in the order in which they came
        about, for as long as the apiserver answers; close it. Where it does not know any more what came since, or
        nothing did for some seconds, all are told again as they are. Raises Unavailable, also when it is silent for
        some 10 s.
        """
        ...

    async def may_hold(self, apiserver: Address, user: str, lease: str) -> bool:
        """Whether an apiserver lets a user write the lease ``lease`` in kube-system. Raises Unavailable."""
        ...

    async def try_lease(self, apiserver: Address, name: str, *, within: float) -> WriteTrial:
        """Write the lease ``name`` in kube-system as a holder does, or create it, as a dry run: admission is asked,
        nothing is stored. ``within``: seconds that it may take. Raises Unavailable.
        """
        ...

    async def release_lease(self, apiserver: Address, name: str, holder: str) -> bool:
        """Empty the lease if ``holder`` still has it, so that a standby need not wait until it runs out.

        Only for a holder whose process is seen to be gone. False, and nothing changed, if somebody else has it or
        it changed meanwhile. Raises Unavailable.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
