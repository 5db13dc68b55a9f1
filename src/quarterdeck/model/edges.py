"""The load balancer of a site runs on one or more edges: the observed facts of each, joined for the planner. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from quarterdeck.model.balancers import BalancerFact, EdgeFact
from quarterdeck.model.endpoints import APISERVERS, BalancerStatus, NameFact
from quarterdeck.model.world import ReplicaFact


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSeen:
    """A load balancer on one machine of a site."""

    name: str
    address: str
    #: None: it does not answer.
    status: BalancerStatus | None
    #: Another edge can have its address; of those that share one, all but one stand by.
    floats: bool = False
    #: Addresses of other edges that lead to it now.
    has: frozenset[str] = frozenset()
    #: Clients may be led to it.
    may_be_used: bool = True
    #: It has been silent for so long that no client must be led there.
    given_up: bool = False

    @property
    def at_home(self) -> bool:
        """Whether it answers, and its address leads to it."""
        return self.status is not None and self.status.at_home


@dataclass(frozen=True, slots=True)
class Where:
    """The zone and the host of an edge's machine, and why it does not answer, as in ``EdgeFact``."""

    zone: str = ""
    host: str = ""
    why: str = ""


def in_use(edges: Sequence[EdgeSeen], held: Collection[str]) -> frozenset[str]:
    """The names of the edges that clients may be led to; ``held`` are addresses that clients may hold. Where one of
    these floats and is observed at no edge, each edge may have it.
    """
    home = {each.address for each in edges if each.at_home}.union(*(each.has for each in edges))
    astray = any(each.floats and each.address in held and each.address not in home for each in edges)
    return frozenset(each.name for each in edges if astray or _used(each, held, home))


def _used(edge: EdgeSeen, held: Collection[str], home: Collection[str]) -> bool:
    """Whether it has an address that clients may hold. A floating one counts where it is observed."""
    if not edge.has.isdisjoint(held):
        return True
    return edge.address in held and (edge.at_home or not edge.floats or edge.address not in home)


def joined(
    site: str, edges: Sequence[EdgeSeen], record: Collection[str], places: Mapping[str, Where] | None = None
) -> BalancerFact:
    """A site's load balancer, from the facts of its edges; ``record`` are the addresses that the name has."""
    heard = [each.status for each in edges if each.status is not None]
    running = [each for each in heard if each.running]
    backends = frozenset[str]().union(*(each.backends | each.unsure for each in running))
    where = places or {}
    return BalancerFact(
        site=site,
        running=bool(running),
        left=any(each.left for each in heard),
        reachable=bool(heard) and not any(each.status is None and each.may_be_used for each in edges),
        backends=backends,
        healthy=frozenset.intersection(*(each.healthy for each in running)) if running else frozenset(),
        alike=not running or all(each.running and not each.unsure and each.backends == backends for each in heard),
        common=frozenset.intersection(*(each.backends for each in heard)) if heard else frozenset(),
        connections=sum(each.connections for each in running),
        edges=tuple(
            _edge(each, where.get(each.name, Where()), _named(each, edges, backends, record)) for each in edges
        ),
    )


def _named(seen: EdgeSeen, edges: Sequence[EdgeSeen], backends: frozenset[str], record: Collection[str]) -> bool:
    """Whether the name must have an edge. It is added when it leads to the same backends as the others, and removed
    when it is given up. A name without any of them gets every edge that leads to a ready apiserver.
    """
    if seen.given_up or seen.address in record:
        return not seen.given_up
    first = all(each.address not in record for each in edges)
    return seen.status is not None and bool(seen.status.healthy) and (first or seen.status.backends == backends)


def _edge(seen: EdgeSeen, where: Where, named: bool) -> EdgeFact:
    unrouted = seen.status.unrouted if seen.status is not None else ""
    leads = None if seen.status is None else bool(seen.status.healthy) and not unrouted
    return EdgeFact(
        name=seen.name,
        named=named,
        leads=leads,
        unrouted=unrouted,
        zone=where.zone,
        host=where.host,
        why=where.why if leads is None else "",
    )


def amiss(name: NameFact, edges: Sequence[EdgeSeen], fact: BalancerFact | None) -> str:
    """Why a name that leads to a site must be set again; "" if it is correct."""
    if name.uneven:
        return "a DNS server that was unreachable at the last change must get it as well"
    if name.stray:
        return "it must lead to apiservers only"
    named = {each.name for each in fact.edges if each.named} if fact is not None else set[str]()
    wanted = {each.address for each in edges if each.name in named}
    if name.addresses is None or not wanted or wanted == {*name.addresses}:
        return ""
    return f"it must lead to {' and '.join(sorted(named))} only"


def by_itself(name: NameFact, replicas: Sequence[ReplicaFact]) -> BalancerFact:
    """The name that leads to apiservers themselves, in the form of a load balancer: it has no health check."""
    if not name.known or name.site != APISERVERS:
        return BalancerFact(site=APISERVERS, running=False, reachable=name.known)
    ready = {each.name for each in replicas if each.ready}
    return BalancerFact(
        site=APISERVERS,
        running=True,
        backends=name.replicas,
        healthy=name.replicas & ready,
        alike=not name.torn and not name.stray,
        common=name.replicas,
    )
