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
        """Where clients connect to."""
        ...

    @property
    def floats(self) -> bool:
        """Whether another edge of its site can have that address meanwhile (``BalancerStatus.at_home``)."""
        ...

    @property
    def can_hold(self) -> bool:
        """Whether it can be held."""
        ...

    async def apply(self, backends: Mapping[str, BackendAddress]) -> BackendsMust | None:
        """Have it run, and send new connections to exactly these backends (replica name to address).

        Returns when the running process has taken the set, or what a person must do for that (ask again later).
        Connections that lead to a backend taken out live
        until either end closes them. While one of the former backends serves, new connections never find
        nobody: the former set stays beside the new one until one of the new passes its health check.

        Raises TimedOut when the process does not come up or does not take the set, and when none of the new
        backends gets healthy while former ones are (these are kept then); Unavailable as the site does.
        """
        ...

    async def observe(self, site: SiteFacts | None = None) -> BalancerStatus:
        """What it says of itself now; ``running`` is false when none runs, and ``left`` besides when there is none.
        ``site`` is what its site was just seen to have, where the caller knows: then the site is not asked again.

        Raises Unavailable when the machine, or a load balancer that should run, does not answer.
        """
        ...

    async def hold(self, seconds: float) -> None:
        """Pass nothing on for at most ``seconds``: what clients send waits, and is passed on afterwards. It goes on
        by itself when the time is over, even if the caller is dead. Nothing happens if there is none, or if it cannot
        be held.
        """
        ...

    async def let_go(self) -> None:
        """Go on now."""
        ...

    async def remove(self) -> BackendsMust | None:
        """Stop it, which cuts the connections that it still has, and forget it; or what a person must do for that."""
        ...


class Dns(Protocol):
    """Address records of a server or provider. Names are absolute, with or without the last dot."""

    async def check(self, name: str) -> None:
        """Find out, without changing anything, whether ``set`` can work for ``name``.

        Raises PreconditionFailed or InvalidInput with what is wrong, Unavailable when nobody answers.
        """
        ...

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: RecordClaim | None = None
    ) -> PersonMust | None:
        """Have ``name`` resolve to exactly these addresses, with a time to live of ``ttl`` seconds, in the name of
        ``claim`` (None: of nobody, which is only for names that nobody claims).

        None: every authoritative server now answers so, seen by asking them. Otherwise the record can only be made by a
        person: what they must do (ask again later). Raises Conflict when somebody else changed the record at the same
        time or a newer driver of the same owner did before, PreconditionFailed when the record is somebody else's (see
        ``claims.stranger``) or the change is refused, TimedOut when it was taken but does not show.
        """
        ...

    async def observe(self, name: str) -> DnsRecord | None:
        """What the server answers now; None when it says that there is no such record.

        Raises Unavailable when it does not answer or answers with an error: unknown is not none.
        """
        ...

    async def look(self, name: str) -> Sighting:
        """The same, with whose the record is, and what the other authoritative servers answer."""
        ...

    async def remove(self, name: str, claim: RecordClaim | None = None) -> PersonMust | None:
        """Have ``name`` resolve to nothing; returns and raises as ``set`` does."""
        ...


@runtime_checkable
class SeenFromOutside(Protocol):
    """What a load balancer offers besides that is looked at by its clients' way alone."""

    async def look(self, replicas: Mapping[str, BackendAddress]) -> BalancerStatus:
        """See ``LoadBalancer.observe``: it may send to any of ``replicas``, or to none of them."""
        ...


@runtime_checkable
class FindsAddresses(Protocol):
    """What a load balancer offers besides whose edge can have the addresses of others meanwhile."""

    async def has(self, address: str) -> bool:
        """Whether that address, which is of another edge of its site, leads to it now."""
        ...


@runtime_checkable
class HoldsClients(Protocol):
    """What a DNS port offers besides where clients come to apiservers by an address that it leads."""

    async def hold(self, seconds: float) -> None:
        """See ``LoadBalancer.hold``: of those who are connected to apiservers themselves."""
        ...

    async def let_go(self) -> None:
        """See ``LoadBalancer.let_go``."""
        ...


@runtime_checkable
class OwnServer(Protocol):
    """What a DNS port offers besides whose servers are quarterdeck's own."""

    async def start(self) -> None:
        """Have the servers run; nothing happens to those that do. Raises Unavailable when no machine answers."""
        ...


# The DNS port of an endpoint whose driver cannot be had, such as one whose key is gone: the name is not known.


@dataclass(frozen=True, slots=True)
class UnusableDns:
    """Says ``error`` to everything: to a look that nothing is known, so that what runs can be seen and waits."""

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
