"""The endpoint ports in memory, for tests and simulations. They pass the same contract suites as the drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quarterdeck.endpoint.dns.claims import require_own
from quarterdeck.endpoint.dns.records import absolute, record_of
from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.model.endpoints import (
    BackendAddress,
    BalancerStatus,
    DnsRecord,
    Ownership,
    PersonMust,
    RecordClaim,
    Sighting,
)
from quarterdeck.model.site_facts import SiteFacts


@dataclass(slots=True, eq=False)
class FakeConnection:
    """A client's connection through a ``FakeBalancer``; ``backend`` is who it leads to."""

    backend: str
    address: BackendAddress
    open: bool = True

    def close(self) -> None:
        """Either end closes it."""
        self.open = False


@dataclass(slots=True, kw_only=True)
class FakeBalancer:
    """A load balancer in memory. ``ready`` answers as /readyz of a backend would, at any moment. ``unrouted``: why no
    address that floats can come to it; that is over when it is told anything. ``fails``: its program exits as soon as
    it is started, again and again; ``there``: its supervisor knows of it.
    """

    address: BackendAddress = field(default_factory=lambda: BackendAddress("192.0.2.1", 6443))
    ready: Callable[[BackendAddress], bool] = lambda _: True
    reachable: bool = True
    running: bool = False
    fails: bool = False
    backends: dict[str, BackendAddress] = field(default_factory=dict)
    connections: list[FakeConnection] = field(default_factory=list)
    accepted_total: int = 0
    floats: bool = False
    unrouted: str = ""
    can_hold: bool = True
    there: bool = False

    async def apply(self, backends: Mapping[str, BackendAddress]) -> None:
        """See ``LoadBalancer.apply``."""
        self._answer()
        former = {} if not self.running else self.backends
        if backends and self._healthy(former) and not self._healthy(backends):
            self.backends = {**former, **backends}
            raise TimedOut("waiting for a new backend to pass its health check", "none does; the former ones are kept")
        self.running, self.unrouted = not self.fails, ""
        self.backends, self.there = dict(backends), True
        if self.fails:
            raise TimedOut("waiting for it to take its backends", "it exits repeatedly")

    async def observe(self, site: SiteFacts | None = None) -> BalancerStatus:
        """See ``LoadBalancer.observe``."""
        self._answer()
        if not self.running:
            return BalancerStatus(running=False, left=self.there)
        return BalancerStatus(
            running=True,
            backends=frozenset(self.backends),
            healthy=frozenset(self._healthy(self.backends)),
            at=tuple(self.backends.items()),
            connections=len(self.live()),
            accepted_total=self.accepted_total,
            unrouted=self.unrouted,
        )

    async def hold(self, seconds: float) -> None:
        """See ``LoadBalancer.hold``: a fake passes nothing on anyway."""

    async def let_go(self) -> None:
        """See ``LoadBalancer.let_go``."""

    async def remove(self) -> None:
        """See ``LoadBalancer.remove``."""
        self._answer()
        self.crash()
        self.backends, self.there = {}, False

    def connect(self) -> FakeConnection:
        """What a client does; raises Unavailable where a real one would see its connection refused or closed."""
        healthy = self._healthy(self.backends) if self.running else {}
        if not healthy:
            raise Unavailable("connecting to the load balancer", "nobody serves")
        names = sorted(healthy)
        name = names[self.accepted_total % len(names)]
        self.accepted_total += 1
        connection = FakeConnection(name, healthy[name])
        self.connections.append(connection)
        return connection

    def live(self) -> list[FakeConnection]:
        """The connections open now: those to a backend that fails its check while it is in the set are closed."""
        for connection in self.connections:
            if connection.backend in self.backends and not self.ready(connection.address):
                connection.close()
        self.connections = [connection for connection in self.connections if connection.open]
        return self.connections

    def crash(self) -> None:
        """The process ends, and every connection with it."""
        for connection in self.connections:
            connection.close()
        self.connections = []
        self.accepted_total = 0
        self.running = False

    def _healthy(self, backends: Mapping[str, BackendAddress]) -> dict[str, BackendAddress]:
        return {name: address for name, address in backends.items() if self.ready(address)}

    def _answer(self) -> None:
        if not self.reachable:
            raise Unavailable("asking the load balancer", "its machine does not answer")


@dataclass(slots=True, kw_only=True)
class FakeDns:
    """DNS servers in memory. ``lagging`` has what a second authoritative server still answers for a name, ``deaf`` says
    that it does not answer.
    """

    records: dict[str, DnsRecord] = field(default_factory=dict)
    owners: dict[str, Ownership] = field(default_factory=dict)
    lagging: dict[str, DnsRecord | None] = field(default_factory=dict)
    deaf: bool = False
    reachable: bool = True

    async def check(self, name: str) -> None:
        """See ``Dns.check``."""
        self._answer()
        absolute(name)

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: RecordClaim | None = None
    ) -> PersonMust | None:
        """See ``Dns.set``."""
        self._change(absolute(name), record_of(addresses, ttl), claim)
        return None

    async def observe(self, name: str) -> DnsRecord | None:
        """See ``Dns.observe``."""
        self._answer()
        return self.records.get(absolute(name))

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``."""
        self._answer()
        full = absolute(name)
        record = self.records.get(full)
        other = self.lagging.get(full, record)
        torn = "the second DNS server gives no answer" if self.deaf else ""
        torn = torn or ("the second DNS server answers otherwise" if other != record else "")
        others = (other,) if other != record else ()
        answering = 1 if self.deaf else 2
        return Sighting(record=record, ownership=self.owners.get(full), others=others, torn=torn, servers=answering)

    async def remove(self, name: str, claim: RecordClaim | None = None) -> PersonMust | None:
        """See ``Dns.remove``."""
        self._change(absolute(name), None, claim)
        return None

    def _change(self, full: str, wanted: DnsRecord | None, claim: RecordClaim | None) -> None:
        self._answer()
        held = Sighting(record=self.records.get(full), ownership=self.owners.get(full))
        require_own(f"changing the record {full}", held, claim)
        self.records.pop(full, None)
        self.owners.pop(full, None)
        if wanted is not None:
            self.records[full] = wanted
            if claim is not None:
                self.owners[full] = claim.ownership
        if self.deaf or self.lagging.get(full, wanted) != wanted:
            raise TimedOut(f"waiting for all DNS servers to answer for {full}", "the second one does not")

    def _answer(self) -> None:
        if not self.reachable:
            raise Unavailable("asking the DNS server", "it does not answer")
