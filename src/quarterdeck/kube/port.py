"""The kube port: calls of apiservers and controllers, one named process at a time."""

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
    """The address of a process."""

    host: str
    port: int


# Objects of any kind, over one apiserver: the half of the kube port that add-ons need.


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A kind that an apiserver serves in some version, under ``plural`` in its paths. ``singular`` and ``short_names``
    are what else people call it.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    singular: str = field(default="", compare=False)
    short_names: tuple[str, ...] = field(default=(), compare=False)

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path of one object, or without a ``name`` of all: those of one namespace, or of all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{within}/{self.plural}" + (f"/{name}" if name else "")


@dataclass(frozen=True, slots=True)
class Discovered:
    """All kinds that are served, the preferred version of each group first. ``silent``: groups (with their version)
    whose own apiserver does not answer: their kinds are unknown, and the others are not affected.
    """

    resources: Sequence[ApiResource]
    silent: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """The metadata of an object, without its content. ``managed``: its ``managedFields``."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    managed: JsonValue = None
    deleting: bool = False


class Refusal(Enum):
    """Why an apiserver refuses something."""

    OWNED = auto()  # another manager owns fields with other values
    INVALID = auto()  # for good: the content is invalid, or cannot be changed
    LATER = auto()  # for now: something else must exist, or be deleted, first


class Refused(QuarterdeckError):
    """An apiserver refused the request. ``fields`` are those that ``owners`` own."""

    def __init__(self, doing: str, seen: str, why: Refusal, *, fields: Sequence[str] = (), owners: str = "") -> None:
        super().__init__(doing, seen)
        self.why, self.fields, self.owners = why, tuple(fields), owners


class Objects(Protocol):
    """Objects of one plane. Every call has its own deadline and never retries. All raise Unavailable."""

    async def discover(self, apiserver: Address) -> Discovered:
        """The kinds that are served now."""
        ...

    async def read(self, apiserver: Address, path: str) -> JsonValue:
        """An object, or a list of them with ``?labelSelector=`` in the path; None if there is none."""
        ...

    async def metadata(self, apiserver: Address, resource: ApiResource, selector: str) -> tuple[Meta, ...]:
        """The metadata of all objects of a kind, in all namespaces, that a label selector matches; none when the kind
        is not served.
        """
        ...

    async def apply(
        self, apiserver: Address, path: str, manifest: Mapping[str, JsonValue], *, manager: str, force: bool = False
    ) -> Meta:
        """Server-side apply: the object gets the manifest's fields, and ``manager`` owns them; fields that it owned
        before and no longer names are removed. ``force``: also fields that another manager owns. Raises Refused.
        """
        ...

    async def preview(
        self, apiserver: Address, path: str, manifest: Mapping[str, JsonValue], *, manager: str
    ) -> JsonValue:
        """The object that ``apply`` with ``force`` would make: admission runs, nothing is stored. Raises Refused."""
        ...

    async def rewrite(self, apiserver: Address, path: str) -> bool:
        """Have an object stored again, unchanged: with the storage version and the encryption key of now, where these
        are others than it is stored with. False when there is none. Raises Refused.
        """
        ...

    async def delete(self, apiserver: Address, path: str, *, uid: str) -> bool:
        """Delete an object, and its dependents in the background, if it still is the one with that ``uid``. False when
        it is deleted already. Raises Refused.
        """
        ...


class Witness(Protocol):
    """Connections to an apiserver."""

    @property
    def informed(self) -> bool:
        """Whether all of them learned that the apiserver shuts down. True too for an apiserver that answered nothing
        when they were opened.
        """
        ...


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """The answer of a health path. ``ok`` is None when it is unknown: no answer within the deadline.

    A refused connection counts as False: nothing listens there. ``detail`` is one line for people.
    """

    ok: bool | None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderLease:
    """A coordination.k8s.io Lease in kube-system that a leader holds.

    ``holder`` is "" when it was released. ``renewed`` is when the holder last renewed it (seconds since the epoch, by
    the holder's clock; None if never), ``duration`` for how long that counts, in seconds.
    """

    name: str
    holder: str
    renewed: float | None
    duration: float
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLease(LeaderLease):
    """The same, with the identity of a tenure."""

    #: When this tenure began (seconds since the epoch, by the holder's clock; None if never).
    acquired: float | None = None
    #: Grows with each holder.
    transitions: int = 0
    #: The program that wrote the holder, by its field manager; "": unknown.
    manager: str = ""
    #: Whether the lease was deleted; this is its last state.
    deleted: bool = False
    #: When the renewal was written, by the apiserver's clock (seconds since the epoch; None: not known).
    written_at: float | None = None
    #: When this was read, by the apiserver's clock.
    answered_at: float | None = None

    @property
    def age_s(self) -> float | None:
        """Seconds since the renewal was written, by the apiserver's clock; None if that is not known."""
        if self.written_at is None or self.answered_at is None:
            return None
        return max(0.0, self.answered_at - self.written_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTrial:
    """The result of a trial write of a lease, of which nothing was stored. ``refusal``: why it was refused ("": it was
    not); ``late``: there was no answer within the deadline.
    """

    refusal: str = ""
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeprecatedUse:
    """A deprecated API that clients have asked for. ``subresource``: "" for the resource itself; ``removed``: the minor
    version of Kubernetes that no longer has it (None: not decided).
    """

    group: str
    version: str
    resource: str
    subresource: str = ""
    removed: tuple[int, int] | None = None

    @property
    def words(self) -> str:
        """It as people write it: ``flowschemas.v1beta3.flowcontrol.apiserver.k8s.io``."""
        path = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return ".".join(filter(None, (path, self.version, self.group)))


class Kube(Objects, Protocol):
    """The apiservers and controllers of one plane, and the objects of its API. Every call has its own deadline and
    never retries.
    """

    async def readyz(self, apiserver: Address, *, founded: bool = False, within: float | None = None) -> HealthAnswer:
        """Whether the apiserver is ready to serve. Checked anonymously; never raises for what the apiserver does.

        ``founded``: another apiserver of the plane was ready before, so that the default roles exist; saves the second
        for which an apiserver waits before it checks them. ``within`` is a shorter deadline in seconds, for one that
        may be just starting: it accepts connections and does not answer.
        """
        ...

    async def ping(self, apiserver: Address) -> HealthAnswer:
        """Whether the apiserver answers at all, also during its graceful shutdown. Over a kept connection, so that a
        second one takes hardly any time. Never raises for what the apiserver does.
        """
        ...

    async def livez(self, apiserver: Address, *, within: float | None = None) -> HealthAnswer:
        """Whether the apiserver works, ready or not, by the check that decides about a restart. Never raises for what
        the apiserver does. ``within`` is a shorter deadline in seconds.
        """
        ...

    async def healthz(self, controller: Address, *, within: float | None = None) -> HealthAnswer:
        """The same of a controller manager or a scheduler."""
        ...

    async def listens(self, server: Address) -> bool | None:
        """Whether anything accepts connections there, ready or not; None when half a second does not show it. Never
        raises.
        """
        ...

    def witness(self, apiserver: Address) -> AbstractAsyncContextManager[Witness]:
        """Within the block, connections stand like those of clients, which see when the apiserver has announced its
        shutdown to its clients. Never raises for what the apiserver does.
        """
        ...

    async def version(self, apiserver: Address) -> str:
        """Its release, as ``1.36.3``. Raises Unavailable."""
        ...

    async def loaded(self, apiserver: Address) -> str | None:
        """The hash of the authentication file that the apiserver uses, as it reports it (``sha256:...``); None if it
        does not. Raises Unavailable.
        """
        ...

    async def deprecated_uses(self, apiserver: Address) -> tuple[DeprecatedUse, ...]:
        """The deprecated APIs that clients have asked this apiserver for since it started. Raises Unavailable."""
        ...

    async def leads(self, controller: Address, lease: str) -> bool | None:
        """Whether this controller manager or scheduler itself reports that it holds ``lease``; None if unknown."""
        ...

    async def leader_lease(self, apiserver: Address, name: str) -> SeenLease | None:
        """The lease ``name``; None if there is none. Raises Unavailable."""
        ...

    def lease_changes(self, apiserver: Address) -> AsyncGenerator[SeenLease, None]:
        """All leases in kube-system, and then each change of any of them, in the order in which they occurred, for as
        long as the apiserver answers; close it. After a gap in its history, or some seconds without changes, all are
        reported again. Raises Unavailable, also when it is silent for some 10 s.
        """
        ...

    async def may_hold(self, apiserver: Address, user: str, lease: str) -> bool:
        """Whether an apiserver authorizes a user to write the lease ``lease`` in kube-system. Raises Unavailable."""
        ...

    async def try_lease(self, apiserver: Address, name: str, *, within: float) -> WriteTrial:
        """Write the lease ``name`` in kube-system as a holder does, or create it, as a dry run: admission runs, nothing
        is stored. ``within``: seconds that it may take. Raises Unavailable.
        """
        ...

    async def release_lease(self, apiserver: Address, name: str, holder: str) -> bool:
        """Empty the lease if ``holder`` still has it, so that a standby need not wait until it expires.

        Only for a holder whose process is known to have ended. False, and nothing changed, if another process has it or
        it has changed since. Raises Unavailable.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
