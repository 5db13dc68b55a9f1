"""How clients find the plane: load balancers, its name, and addresses that clients may still hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from quarterdeck.model.memory import Lifetime, Memory, Replica, since
from quarterdeck.model.steps.base import Base


def served(record: Replica, backends: tuple[str, ...]) -> Replica:
    """A replica once clients are led to these."""
    return replace(record, served=True) if record.name in backends and not record.served else record


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBackends(Base):
    """Have a site's load balancer run, and send new connections to exactly these replicas."""

    backends: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"load balancer {self.site}: {', '.join(self.backends)}"

    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, replicas=tuple(served(each, self.backends) for each in memory.replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class StopBalancer(Base):
    """Take down a load balancer whose address nobody can hold any more."""

    undoable: ClassVar[bool] = False

    @property
    def words(self) -> str:
        return f"take down the load balancer at {self.site}"

    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, held=tuple(entry for entry in memory.held if entry[0] != self.site))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRecord(Base):
    """Lead the plane's name to the load balancer of ``to``."""

    to: str

    @property
    def words(self) -> str:
        return f"lead the name to {self.to}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadTo(Base):
    """Lead the plane's name to the apiservers of exactly these replicas, without a load balancer between."""

    backends: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"lead the name to the apiservers of {', '.join(self.backends)}"

    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, replicas=tuple(served(each, self.backends) for each in memory.replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRecord(Base):
    """Take the plane's name out of DNS: only when the plane is deleted."""

    undoable: ClassVar[bool] = False

    @property
    def words(self) -> str:
        return "remove the name"

    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, served_site=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRecord(Base):
    """Write down where the name leads, and that the address before may still be held by clients: once all servers lead
    to one site, what they handed out before begins to expire.
    """

    to: str

    @property
    def words(self) -> str:
        return f"note that the name leads to {self.to}"

    def remembered(self, memory: Memory, now: float) -> Memory:
        before = [memory.served_site] if memory.served_site is not None else []
        before += [site for site in memory.unsettled if site != memory.served_site]
        held = [entry for entry in memory.held if entry[0] not in (self.to, *before)]
        held += [(site, now) for site in before if site != self.to]
        return replace(memory, served_site=self.to, held=tuple(held), unsettled=())


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteUnsettled(Base):
    """Write down that some DNS server may hand out the addresses of these sites: their time to live does not begin
    before all servers answer the same.
    """

    sites: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"note that some DNS server may lead to {', '.join(self.sites)}"

    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, unsettled=tuple(sorted({*memory.unsettled, *self.sites})))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteLifetime(Base):
    """Write down that addresses are handed out for ``ttl`` seconds, longer than wanted; or (``over``) no more from now
    on.
    """

    ttl: float
    over: bool

    @property
    def words(self) -> str:
        return f"note that addresses are handed out for {self.ttl:g} s{' no more' if self.over else ''}"

    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, longer=Lifetime(ttl=self.ttl, until=now if self.over else None))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDraining(Base):
    """Write down that no load balancer sends new connections to these replicas (or that one does again)."""

    draining: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"note that {', '.join(self.draining) or 'nobody'} drains"

    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, draining=since(memory.draining, self.draining, now))
