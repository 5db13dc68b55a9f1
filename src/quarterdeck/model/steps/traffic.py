"""How clients find the plane: load balancers, its name, and addresses that clients may still hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.memory import Lifetime, Memory, Replica, since
from quarterdeck.model.steps.base import Claim, Note, Step


def served(record: Replica, backends: tuple[str, ...]) -> Replica:
    """A replica once clients are led to these."""
    return replace(record, served=True) if record.name in backends and not record.served else record


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBackends(Step):
    """Have a site's load balancer run, and send new connections to exactly these replicas."""

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
    """Take down a load balancer whose address nobody can hold any more."""

    kind: ClassVar[str] = "stop-load-balancer"
    undoable: ClassVar[bool] = False

    @property
    @override
    def words(self) -> str:
        return f"take down the load balancer at {self.site}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, held=tuple(entry for entry in memory.held if entry[0] != self.site))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRecord(Step):
    """Lead the plane's name to the load balancer of ``to``."""

    kind: ClassVar[str] = "set-record"
    to: str

    @property
    @override
    def words(self) -> str:
        return f"lead the name to {self.to}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("record")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadTo(Step):
    """Lead the plane's name to the apiservers of exactly these replicas, without a load balancer between."""

    kind: ClassVar[str] = "set-record-to-apiservers"
    backends: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"lead the name to the apiservers of {', '.join(self.backends)}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("record")

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, replicas=tuple(served(each, self.backends) for each in memory.replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRecord(Step):
    """Take the plane's name out of DNS: only when the plane is deleted."""

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
    """Write down where the name leads, and that the address before may still be held by clients: once all servers lead
    to one site, what they handed out before begins to expire.
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
    """Write down that some DNS server may hand out the addresses of these sites: their time to live does not begin
    before all servers answer the same.
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
    """Write down that addresses are handed out for ``ttl`` seconds, longer than wanted; or (``over``) no more from now
    on.
    """

    kind: ClassVar[str] = "note-record-lifetime"
    ttl: float
    over: bool

    @property
    @override
    def words(self) -> str:
        return f"note that addresses are handed out for {self.ttl:g} s{' no more' if self.over else ''}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, longer=Lifetime(ttl=self.ttl, until=now if self.over else None))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDraining(Note):
    """Write down that no load balancer sends new connections to these replicas (or that one does again)."""

    kind: ClassVar[str] = "note-draining-replicas"
    draining: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"note that {', '.join(self.draining) or 'nobody'} drains"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, draining=since(memory.draining, self.draining, now))
