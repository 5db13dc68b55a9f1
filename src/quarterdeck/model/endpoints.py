"""Facts about a plane's endpoint: its backends, its load balancers, its DNS record."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TypeAlias

from typing_extensions import override

#: Stands for a site where the name leads to the apiservers themselves. No site has this name.
APISERVERS = "the apiservers"


@dataclass(frozen=True, slots=True, order=True)
class BackendAddress:
    """Where the apiserver of a replica, or a load balancer, listens. ``ip`` is an IPv4 or IPv6 address."""

    ip: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerStatus:
    """The status of a load balancer on one edge."""

    running: bool
    #: It does not run, but its unit or files are there: a supervisor may start it at any moment.
    left: bool = False
    #: The replicas to which it is configured to send new connections.
    backends: frozenset[str] = frozenset()
    #: The backends that pass the active health check; only these get connections.
    healthy: frozenset[str] = frozenset()
    #: The address that it uses for each backend.
    at: tuple[tuple[str, BackendAddress], ...] = ()
    #: Open connections of clients, also to removed backends.
    connections: int = 0
    #: All connections accepted since it started.
    accepted_total: int = 0
    #: Its address leads to it; another edge can have a floating one.
    at_home: bool = True
    #: Why no floating address can move to it; "": one can, or none floats.
    unrouted: str = ""
    #: Replicas that may or may not be backends, where it can only be observed from outside.
    unsure: frozenset[str] = frozenset()

    def without(self, names: Collection[str]) -> BalancerStatus:
        """The same, without some replicas."""
        if not names:
            return self
        return replace(
            self,
            backends=self.backends.difference(names),
            healthy=self.healthy.difference(names),
            unsure=self.unsure.difference(names),
        )


@dataclass(frozen=True, slots=True)
class ExternalLoadBalancer:
    """A load balancer of the user: its ``addresses``, and the ``command`` that configures it (None: a person does)."""

    addresses: tuple[str, ...]
    command: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class DnsRecord:
    """The address records of one name: IPv4 and IPv6 addresses, sorted, with one time to live in seconds."""

    addresses: tuple[str, ...]
    ttl: int


@dataclass(frozen=True, slots=True)
class Ownership:
    """The mark beside a record: its owner, and the token of the lease under which it was last changed."""

    owner: str
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordClaim:
    """The owner for whom a record is changed. ``addresses`` are the owner's: an unmarked record that leads to one of
    them counts as its own. ``take_over``: the user allows to take a record of another owner.
    """

    owner: str
    token: int
    addresses: frozenset[str] = frozenset()
    take_over: bool = False

    @property
    def ownership(self) -> Ownership:
        """The mark beside the record."""
        return Ownership(self.owner, self.token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """The answers of the DNS servers for a name at one moment."""

    #: The answer of the server to which changes are sent; None: no record.
    record: DnsRecord | None
    ownership: Ownership | None = None
    #: Different answers of further authoritative servers.
    others: tuple[DnsRecord | None, ...] = ()
    #: Which servers differ, or do not answer, for people; "": all answer the same.
    torn: str = ""
    #: A differing server gets missed changes only from quarterdeck.
    uneven: bool = False
    #: A person changes the record, and knows its owner.
    by_hand: bool = False
    #: How many servers answer clients; None: unknown, because clients use others; 0: clients need none.
    servers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFact:
    """The facts about the name: mostly fields of ``model.world.World``."""

    known: bool = True
    site: str | None = None
    trouble: str = ""
    foreign: str = ""
    torn: str = ""
    #: As in ``Sighting``.
    uneven: bool = False
    #: The replicas whose own addresses its record has.
    replicas: frozenset[str] = frozenset()
    #: Its record has other addresses as well.
    stray: bool = False
    #: The addresses of its record, if quarterdeck can change it; None: it cannot, or they are unknown.
    addresses: tuple[str, ...] | None = None
    #: The addresses that any DNS server returns; None: unknown for some server.
    handed_out: frozenset[str] | None = None
    also: tuple[str, ...] = ()
    stamped: bool = True
    ttl: float | None = None
    servers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonMust:
    """A change that only a person can make: the wanted record of a name, and the record found instead."""

    name: str
    wanted: DnsRecord | None
    seen: DnsRecord | None

    @override
    def __str__(self) -> str:
        now = "nothing" if self.seen is None else f"{' '.join(self.seen.addresses)} (ttl {self.seen.ttl} s)"
        return f"{self.wish}; {self.name} now resolves to {now}"

    @property
    def asked(self) -> str:
        """The heading of the lines."""
        return "it waits for these records:"

    @property
    def wish(self) -> str:
        """What is waited for, without the present state."""
        if self.wanted is None:
            return f"waiting for the records of {self.name} to be deleted"
        return f"waiting for these records: {'; '.join(self.lines)}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The wanted records, one line each, in the format of a zone file."""
        if self.wanted is None:
            return ()
        return tuple(
            f"{self.name.rstrip('.')}. {self.wanted.ttl} IN {'AAAA' if ':' in address else 'A'} {address}"
            for address in self.wanted.addresses
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendsMust:
    """A change that only a person can make: the ``wanted`` backends of a load balancer of the user, at the addresses
    ``at`` (empty: it must no longer lead to the plane). ``seen`` is the state found instead.
    """

    name: str
    at: tuple[BackendAddress, ...]
    wanted: tuple[tuple[str, BackendAddress], ...]
    check: str
    seen: str

    @override
    def __str__(self) -> str:
        return f"{self.wish}; {self.seen}"

    @property
    def asked(self) -> str:
        """The heading of the lines."""
        return "the load balancer must have exactly these backends:"

    @property
    def wish(self) -> str:
        """What is waited for, without the present state."""
        where = " and ".join(f"{each.ip}:{each.port}" for each in self.at)
        if not self.wanted:
            return f"waiting for the load balancer at {where} to stop leading to {self.name}"
        names = " ".join(f"{name} {at.ip}:{at.port}" for name, at in self.wanted)
        return f"waiting for the load balancer at {where} to have exactly these backends: {names}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The backends, one line each, and the health check for each."""
        if not self.wanted:
            return ()
        return (*(f"{at.ip}:{at.port}  {name}" for name, at in self.wanted), self.check)


#: A change that a person must make before a step can be carried out.
Must: TypeAlias = PersonMust | BackendsMust
