"""The endpoint ports: what leads clients to a plane. A load balancer per site, and the plane's DNS record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, Protocol, runtime_checkable

from quarterdeck.errors import QuarterdeckError, Unavailable
from quarterdeck.model.endpoints import (
    BackendAddress,
    BackendsMust,
    BalancerStatus,
    DnsRecord,
    PersonMust,
    RecordClaim,
    Sighting,
)
from quarterdeck.model.site_facts import SiteFacts


class LoadBalancer(Protocol):
    """One plane's load balancer at one site. Every call is idempotent and has its own deadline."""

    @property
    def address(self) -> BackendAddress:
        """The address that clients connect to."""
        ...

    @property
    def floats(self) -> bool:
        """Whether another edge of its site can take over that address (``BalancerStatus.at_home``)."""
        ...

    @property
    def can_hold(self) -> bool:
        """Whether it can be paused."""
        ...

    async def apply(self, backends: Mapping[str, BackendAddress]) -> BackendsMust | None:
        """Run it, and send new connections to exactly these backends (replica name to address).

        Returns when the running process has loaded the set, or what a person must do for that (call it again later).
        Connections to a removed backend stay open until either end closes them. While one of the former backends
        serves, new connections always find one: the former set stays with the new one until one of the new passes its
        health check.

        Raises TimedOut when the process does not start or does not load the set, and when none of the new backends
        becomes healthy while former ones are (these are kept then); Unavailable as the site does.
        """
        ...

    async def observe(self, site: SiteFacts | None = None) -> BalancerStatus:
        """Its current status; ``running`` is false when none runs, and then ``left`` says what is left of it. ``site``
        is the observed state of its site, if the caller has it: then the site is not queried again.

        Raises Unavailable when the machine, or a load balancer that should run, does not answer.
        """
        ...

    async def hold(self, seconds: float) -> None:
        """Pause for at most ``seconds``: clients' data waits, and is passed on afterwards. It resumes by itself when
        the time is over, even if the caller is dead. Nothing happens if there is none, or if it cannot be paused.
        """
        ...

    async def let_go(self) -> None:
        """Resume now."""
        ...

    async def remove(self) -> BackendsMust | None:
        """Stop it, which cuts its remaining connections, and delete it; or what a person must do for that."""
        ...


class Dns(Protocol):
    """Address records of a server or provider. Names are absolute, with or without the last dot."""

    async def check(self, name: str) -> None:
        """Check, without changing anything, whether ``set`` can work for ``name``.

        Raises PreconditionFailed or InvalidInput with the problem, Unavailable when no server answers.
        """
        ...

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: RecordClaim | None = None
    ) -> PersonMust | None:
        """Make ``name`` resolve to exactly these addresses, with a time to live of ``ttl`` seconds, on behalf of
        ``claim`` (None: only for unclaimed names).

        None: every authoritative server now answers so, as queries showed. Otherwise only a person can edit the record:
        what they must do (call it again later). Raises Conflict when another program changed the record at the same
        time or a newer driver of the same owner did before, PreconditionFailed when the record has another owner (see
        ``claims.stranger``) or the change is refused, TimedOut when it was accepted but is not visible.
        """
        ...

    async def observe(self, name: str) -> DnsRecord | None:
        """The server's current answer; None when there is no such record.

        Raises Unavailable when it does not answer or answers with an error: unknown is not none.
        """
        ...

    async def look(self, name: str) -> Sighting:
        """The same, with the record's owner, and the answers of the other authoritative servers."""
        ...

    async def remove(self, name: str, claim: RecordClaim | None = None) -> PersonMust | None:
        """Make ``name`` resolve to nothing; returns and raises as ``set`` does."""
        ...


@runtime_checkable
class SeenFromOutside(Protocol):
    """An additional capability of a load balancer that can be observed only by connecting through it."""

    async def look(self, replicas: Mapping[str, BackendAddress]) -> BalancerStatus:
        """See ``LoadBalancer.observe``: it may send to any of ``replicas``, or to none of them."""
        ...


@runtime_checkable
class FindsAddresses(Protocol):
    """An additional capability of a load balancer whose edge can have the addresses of others."""

    async def has(self, address: str) -> bool:
        """Whether that address, which is of another edge of its site, leads to it now."""
        ...


@runtime_checkable
class HoldsClients(Protocol):
    """An additional capability of a DNS port whose address leads clients to apiservers directly."""

    async def hold(self, seconds: float) -> None:
        """See ``LoadBalancer.hold``: for clients that are connected to apiservers themselves."""
        ...

    async def let_go(self) -> None:
        """See ``LoadBalancer.let_go``."""
        ...


@runtime_checkable
class OwnServer(Protocol):
    """An additional capability of a DNS port whose servers are quarterdeck's own."""

    async def start(self) -> None:
        """Start the servers; running ones are not changed. Raises Unavailable when no machine answers."""
        ...


# The DNS port of an endpoint without a usable driver, such as one whose key is missing: the name is not known.


@dataclass(frozen=True, slots=True)
class UnusableDns:
    """Raises ``error`` in every call; its observation is unknown, so that what runs is visible and waits."""

    error: QuarterdeckError

    async def check(self, name: str) -> None:
        """See ``Dns.check``."""
        raise self.error

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: RecordClaim | None = None
    ) -> PersonMust | None:
        """See ``Dns.set``."""
        self._refuse()

    async def observe(self, name: str) -> DnsRecord | None:
        """See ``Dns.observe``."""
        self._refuse()

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``."""
        self._refuse()

    async def remove(self, name: str, claim: RecordClaim | None = None) -> PersonMust | None:
        """See ``Dns.remove``."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Unavailable(self.error.doing, self.error.seen, self.error.next_step) from self.error
