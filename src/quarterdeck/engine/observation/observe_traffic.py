"""The observation of a plane's traffic: its load balancers and their edges, and its name."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quarterdeck.actions.addresses import apiservers, backend_address
from quarterdeck.actions.plane import Plane
from quarterdeck.endpoint.dns.claims import CONSENT, stranger
from quarterdeck.endpoint.port import FindsAddresses, LoadBalancer, SeenFromOutside
from quarterdeck.engine.observation.assemble import Dated
from quarterdeck.engine.observation.observe_sites import SeenSites
from quarterdeck.engine.observation.queries import or_none
from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.edges import EdgeSeen, in_use
from quarterdeck.model.endpoints import APISERVERS, BackendAddress, BalancerStatus, DnsRecord, NameFact, Sighting
from quarterdeck.model.site_facts import SiteFacts

#: Seconds for which an edge may be silent before the name leads only to others.
PATIENCE = 5.0


@dataclass(slots=True)
class Edges:
    """Times on the steady clock: when an edge last answered (``heard``), and when a DNS server may last have returned
    an address. New ones count from now on.
    """

    heard: dict[tuple[str, str], float] = field(default_factory=dict)
    handed_out: dict[str, float] = field(default_factory=dict)

    def judged(
        self, seen: Sequence[EdgeSeen], in_answers: frozenset[str] | None, lifetime: float, at: float
    ) -> tuple[EdgeSeen, ...]:
        """The edges of a site, with what follows from the observation. ``in_answers``: the addresses that DNS servers
        return (None: unknown). A single edge is never given up: there is no other.
        """
        for each in seen:
            if each.status is not None or _key(each) not in self.heard:
                self.heard[_key(each)] = at
            if in_answers is None or each.address in in_answers or each.address not in self.handed_out:
                self.handed_out[each.address] = at
        others_lead = any(each.status is not None and each.status.healthy for each in seen)
        used = in_use(seen, {each.address for each in seen if at - self.handed_out[each.address] < lifetime})
        return tuple(
            replace(
                each,
                may_be_used=each.name in used,
                given_up=others_lead and each.status is None and at - self.heard[_key(each)] >= PATIENCE,
            )
            for each in seen
        )


def _key(edge: EdgeSeen) -> tuple[str, str]:
    """The key of an edge: edges of several sites can share a name, those of one site an address."""
    return edge.name, edge.address


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficObserver:
    """Observes the load balancers of one plane, at the sites that may have one."""

    plane: Plane
    edges: Edges = field(default_factory=Edges)

    async def observe(
        self, names: Sequence[str], sites: SeenSites, name: NameFact, lifetime: float
    ) -> Mapping[str, Dated[tuple[EdgeSeen, ...]]]:
        """One observation of each. ``lifetime``: seconds for which clients may keep using an address at most."""
        at = self.plane.steady()
        asked = [site for site in names if site in self.plane.balancers]
        found = await asyncio.gather(*(self._looks(site, sites[site].answer) for site in asked))
        judged = {
            site: self.edges.judged(looks, name.handed_out, lifetime, at)
            for site, looks in zip(asked, found, strict=True)
        }
        return {site: Dated(at, edges) for site, edges in judged.items()}

    async def _looks(self, site: str, facts: SiteFacts | None) -> tuple[EdgeSeen, ...]:
        edges = self.plane.balancers[site]
        found = await asyncio.gather(*(self._look(each, name, facts) for name, each in edges.items()))
        seen = tuple(
            EdgeSeen(name=name, address=each.address.ip, status=status, floats=each.floats)
            for (name, each), status in zip(edges.items(), found, strict=True)
        )
        astray = {each.address for each in seen if each.floats} - {each.address for each in seen if each.at_home}
        return tuple(await asyncio.gather(*(_finding(edges[each.name], each, astray) for each in seen)))

    async def _look(self, balancer: LoadBalancer, name: str, site: SiteFacts | None) -> BalancerStatus | None:
        machine = site.machine(name) if site is not None else None
        if machine is not None and machine.units is None:
            return None  # querying it would only time out again
        status = await or_none(
            balancer.look(self._backends) if isinstance(balancer, SeenFromOutside) else balancer.observe(site)
        )
        return status.without(self._moved(status)) if status is not None and status.at else status

    @property
    def _backends(self) -> Mapping[str, BackendAddress]:
        """The address of each replica's apiserver."""
        records = (each for each in self.plane.memory.replicas if each.seat is not None)
        return {each.name: backend_address(each) for each in records}

    def _moved(self, status: BalancerStatus) -> frozenset[str]:
        """The replicas whose address in a load balancer is outdated."""
        records = {each.name: each for each in self.plane.memory.replicas if each.seat is not None}
        known = ((name, at, records[name]) for name, at in status.at if name in records)
        return frozenset(name for name, at, record in known if backend_address(record) != at)


async def _finding(balancer: LoadBalancer, edge: EdgeSeen, astray: Collection[str]) -> EdgeSeen:
    """An observed edge, with the addresses of other edges that it has now."""
    if not isinstance(balancer, FindsAddresses) or edge.status is None or not edge.status.running:
        return edge
    others = [each for each in astray if each != edge.address]
    has = await asyncio.gather(*map(balancer.has, others))
    return replace(edge, has=frozenset(each for each, here in zip(others, has, strict=True) if here))


async def see_name(plane: Plane) -> NameFact:
    """One observation of the name. Any error makes it unknown, with the reason: a server that does not answer, an
    unreadable key, an alias instead of an address.
    """
    try:
        seen = await plane.dns.look(plane.resource.host)
    except QuarterdeckError as error:
        return NameFact(known=False, trouble=str(error))
    claim = plane.claim
    why = stranger(seen, claim)
    others = {site for each in seen.others if (site := _site_of(plane, each)) is not None}
    site = _site_of(plane, seen.record)
    replicas, stray = _led_to(plane, seen.record) if site == APISERVERS else (frozenset[str](), False)
    return NameFact(
        site=site,
        replicas=replicas,
        stray=stray,
        ttl=_other_ttl(plane, seen),
        servers=seen.servers,
        foreign=f"{why}; {CONSENT}" if why else "",
        torn=seen.torn,
        uneven=seen.uneven,
        addresses=_addresses(seen.record) if not seen.by_hand else None,
        handed_out=_handed_out(seen),
        also=tuple(sorted(others - {site})),
        stamped=seen.by_hand or plane.guard is None or seen.ownership == claim.ownership,
    )


def _led_to(plane: Plane, record: DnsRecord | None) -> tuple[frozenset[str], bool]:
    """The replicas whose own addresses a record has, and whether it has other addresses as well."""
    own, has = apiservers(plane), _addresses(record)
    named = frozenset(name for name, at in own.items() if at.host in has)
    return named, not {at.host for at in own.values()}.issuperset(has)


def _addresses(record: DnsRecord | None) -> tuple[str, ...]:
    return record.addresses if record is not None else ()


def _handed_out(seen: Sighting) -> frozenset[str] | None:
    """The addresses that all servers return, if they agree."""
    return frozenset(_addresses(seen.record)) if not seen.torn else None


def _other_ttl(plane: Plane, seen: Sighting) -> float | None:
    """The time to live of returned addresses, if it differs from the spec. A person may choose a shorter one."""
    wanted, found = plane.resource.spec.endpoint.ttl, [each for each in (seen.record, *seen.others) if each is not None]
    longest = max((each.ttl for each in found), default=wanted)
    return None if longest == wanted or (seen.by_hand and longest < wanted) else float(longest)


def _site_of(plane: Plane, record: DnsRecord | None) -> str | None:
    """The plane's site to which a record leads, or ``APISERVERS``; None for other addresses."""
    if record is None:
        return None
    for site, edges in plane.balancers.items():
        if any(each.address.ip in record.addresses for each in edges.values()):
            return site
    own = {each.host for each in apiservers(plane).values()}
    return None if own.isdisjoint(record.addresses) else APISERVERS
