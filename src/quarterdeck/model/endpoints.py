"""What is true of a plane's endpoint: its backends, its load balancers, its DNS record."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TypeAlias

from typing_extensions import override

#: In the place of a site, where the name leads to the apiservers themselves. No site is called so.
APISERVERS = "the apiservers"


@dataclass(frozen=True, slots=True, order=True)
class BackendAddress:
    """Where a replica's apiserver listens, or a load balancer does. ``ip`` is an IPv4 or IPv6 address."""

    ip: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerStatus:
    """What a running load balancer says of itself. ``left``: it does not run, and its machine knows of it: a supervisor
    may start it at any moment, or its files are there.

    ``backends`` are the replicas that it was told to send new connections to, ``healthy`` those of them that
    pass the active check (only these really get any), ``at`` where it looks for each, ``connections`` the connections
    of clients open now (also those that still lead to a backend taken out), ``accepted_total`` all accepted since it
    started. ``at_home``: its address leads to it; another edge can have one that floats. ``unrouted``: why none that
    floats can come to it ("": it can, or none floats). ``unsure``: those of which it is not known whether it sends to
    them, where it can be looked at from outside alone.
    """

    running: bool
    left: bool = False
    backends: frozenset[str] = frozenset()
    healthy: frozenset[str] = frozenset()
    at: tuple[tuple[str, BackendAddress], ...] = ()
    connections: int = 0
    accepted_total: int = 0
    at_home: bool = True
    unrouted: str = ""
    unsure: frozenset[str] = frozenset()

    def without(self, names: Collection[str]) -> BalancerStatus:
        """The same, as if it had not been told of some."""
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
    """One of the user's own: its ``addresses``, and the ``command`` that sets it (None: a person does)."""

    addresses: tuple[str, ...]
    command: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class DnsRecord:
    """The address records of one name: IPv4 and IPv6 addresses, sorted, with one time to live in seconds."""

    addresses: tuple[str, ...]
    ttl: int


@dataclass(frozen=True, slots=True)
class Ownership:
    """What is written beside a record: whose it is, and the token of the lease under which it was last changed."""

    owner: str
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordClaim:
    """In whose name a record is changed. ``addresses`` are the claimer's own: an unclaimed record that leads to one of
    them is taken for its own. ``take_over``: the user allows to take what is somebody else's.
    """

    owner: str
    token: int
    addresses: frozenset[str] = frozenset()
    take_over: bool = False

    @property
    def ownership(self) -> Ownership:
        """What is written beside the record."""
        return Ownership(self.owner, self.token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What the DNS servers say of a name at one moment.

    ``record`` is the answer of the server that changes are sent to (None: no record). ``others`` are the answers of
    further authoritative servers that differ from it, and ``torn`` says in words which those are, or which do not
    answer ("" when all answer the same). ``uneven``: one that answers otherwise learns what it was not told from nobody
    but us. ``by_hand``: a person changes it, who knows whose it is. ``servers``: how many
    servers give clients an answer (None: not known, since clients ask others; 0: clients need none).
    """

    record: DnsRecord | None
    ownership: Ownership | None = None
    others: tuple[DnsRecord | None, ...] = ()
    torn: str = ""
    uneven: bool = False
    by_hand: bool = False
    servers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFact:
    """What is known of the name: mostly fields of ``model.world.World``. ``addresses`` are those of its record, if we
    can change it (None: we cannot, or do not know); ``handed_out`` those that any DNS server hands out (None: of some
    server that is not known). ``uneven`` as in ``Sighting``. ``replicas``: those whose own addresses its record has,
    and ``stray``: whether it has others besides.
    """

    known: bool = True
    site: str | None = None
    trouble: str = ""
    foreign: str = ""
    torn: str = ""
    uneven: bool = False
    replicas: frozenset[str] = frozenset()
    stray: bool = False
    addresses: tuple[str, ...] | None = None
    handed_out: frozenset[str] | None = None
    also: tuple[str, ...] = ()
    stamped: bool = True
    ttl: float | None = None
    servers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonMust:
    """A change that only a person can make: what the name should resolve to, and what was seen instead."""

    name: str
    wanted: DnsRecord | None
    seen: DnsRecord | None

    @override
    def __str__(self) -> str:
        now = "nothing" if self.seen is None else f"{' '.join(self.seen.addresses)} (ttl {self.seen.ttl} s)"
        return f"{self.wish}; {self.name} now resolves to {now}"

    @property
    def asked(self) -> str:
        """What the lines are."""
        return "it waits for these records:"

    @property
    def wish(self) -> str:
        """What is waited for, whatever is seen meanwhile."""
        if self.wanted is None:
            return f"waiting for the records of {self.name} to be deleted"
        return f"waiting for these records: {'; '.join(self.lines)}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The records wanted, one line each, as a zone file has them."""
        if self.wanted is None:
            return ()
        return tuple(
            f"{self.name.rstrip('.')}. {self.wanted.ttl} IN {'AAAA' if ':' in address else 'A'} {address}"
            for address in self.wanted.addresses
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendsMust:
    """A change that only a person can make: where a load balancer of the user's own, at the addresses ``at``, is to
    send the clients of a plane (to nobody: it is not to lead to it any more). ``seen`` is what was seen instead.
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
        """What the lines are."""
        return "the load balancer is to have these backends, and no others:"

    @property
    def wish(self) -> str:
        """What is waited for, whatever is seen meanwhile."""
        where = " and ".join(f"{each.ip}:{each.port}" for each in self.at)
        if not self.wanted:
            return f"waiting for the load balancer at {where} to lead to {self.name} no more"
        names = " ".join(f"{name} {at.ip}:{at.port}" for name, at in self.wanted)
        return f"waiting for the load balancer at {where} to have these backends alone: {names}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The backends, one line each, and how each is to be asked whether it serves."""
        if not self.wanted:
            return ()
        return (*(f"{at.ip}:{at.port}  {name}" for name, at in self.wanted), self.check)


#: What a person must do before a step can be carried out.
Must: TypeAlias = PersonMust | BackendsMust
