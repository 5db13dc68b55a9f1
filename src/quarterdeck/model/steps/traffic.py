"""Steps for traffic: load balancers, the plane's name, and addresses that clients may still hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.memory import Lifetime, Memory, Replica, since
from quarterdeck.model.steps.base import Claim, Note, Step


def served(record: Replica, backends: tuple[str, ...]) -> Replica:
    """The record of a replica after clients are led to ``backends``."""
    return replace(record, served=True) if record.name in backends and not record.served else record


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBackends(Step):
    """Run a site's load balancer, and send new connections to exactly these replicas."""

    kind: ClassVar[str] = "set-backends"
    recorded_first: ClassVar[bool] = True
    backends: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"load balancer {self.site}: {', '.join(self.backends)}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("backends", self.site)

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, replicas=tuple(served(each, self.backends) for each in memory.replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class StopBalancer(Step):
    """Stop a load balancer whose address no client can still hold."""

    kind: ClassVar[str] = "stop-load-balancer"
    undoable: ClassVar[bool] = False

    @property
    @override
    def words(self) -> str:
        return f"stop the load balancer at {self.site}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, held=tuple(entry for entry in memory.held if entry[0] != self.site))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRecord(Step):
    """Point the plane's name to the load balancer of ``to``."""

    kind: ClassVar[str] = "set-record"
    to: str

    @property
    @override
    def words(self) -> str:
        return f"point the name to {self.to}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("record")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadTo(Step):
    """Point the plane's name to the apiservers of exactly these replicas, without a load balancer between."""

    kind: ClassVar[str] = "set-record-to-apiservers"
    backends: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"point the name to the apiservers of {', '.join(self.backends)}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("record")

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, replicas=tuple(served(each, self.backends) for each in memory.replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRecord(Step):
    """Remove the plane's name from DNS: only when the plane is deleted."""

    kind: ClassVar[str] = "remove-record"
    undoable: ClassVar[bool] = False

    @property
    @override
    def words(self) -> str:
        return "remove the name"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("record")

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, served_site=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRecord(Note):
    """Record where the name leads, and that clients may still hold the previous address: once all servers lead to one
    site, the previous answers begin to expire.
    """

    kind: ClassVar[str] = "note-record"
    to: str

    @property
    @override
    def words(self) -> str:
        return f"note that the name leads to {self.to}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        before = [memory.served_site] if memory.served_site is not None else []
        before += [site for site in memory.unsettled if site != memory.served_site]
        held = [entry for entry in memory.held if entry[0] not in (self.to, *before)]
        held += [(site, now) for site in before if site != self.to]
        return replace(memory, served_site=self.to, held=tuple(held), unsettled=())


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteUnsettled(Note):
    """Record that some DNS server may return the addresses of these sites: their time to live does not begin before all
    servers answer the same.
    """

    kind: ClassVar[str] = "note-unsettled-record"
    sites: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"note that some DNS server may lead to {', '.join(self.sites)}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, unsettled=tuple(sorted({*memory.unsettled, *self.sites})))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteLifetime(Note):
    """Record that addresses are returned with a time to live of ``ttl`` seconds, longer than that of the spec; or
    (``over``) that they no longer are.
    """

    kind: ClassVar[str] = "note-record-lifetime"
    ttl: float
    over: bool

    @property
    @override
    def words(self) -> str:
        return f"note that addresses {'no longer ' if self.over else ''}have a time to live of {self.ttl:g} s"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, longer=Lifetime(ttl=self.ttl, until=now if self.over else None))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDraining(Note):
    """Record that no load balancer sends new connections to these replicas (or that one does again)."""

    kind: ClassVar[str] = "note-draining-replicas"
    draining: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"note that {', '.join(self.draining) or 'no replica'} drains"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, draining=since(memory.draining, self.draining, now))
