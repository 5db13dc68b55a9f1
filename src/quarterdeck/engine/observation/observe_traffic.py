"""The observation of the load balancers of a plane."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quarterdeck.actions.addresses import backend_address
from quarterdeck.actions.plane import Plane
from quarterdeck.endpoint.port import FindsAddresses, LoadBalancer, SeenFromOutside
from quarterdeck.engine.observation.asking import or_none
from quarterdeck.engine.observation.assemble import Dated
from quarterdeck.engine.observation.edges import Edges
from quarterdeck.engine.observation.observe_sites import SeenSites
from quarterdeck.model.edges import EdgeSeen
from quarterdeck.model.endpoints import BackendAddress, BalancerStatus, NameFact
from quarterdeck.model.site_facts import SiteFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficObserver:
    """Observes those of one plane, at the sites that may have one."""

    plane: Plane
    edges: Edges = field(default_factory=Edges)

    async def observe(
        self, names: Sequence[str], sites: SeenSites, name: NameFact, lifetime: float
    ) -> Mapping[str, Dated[tuple[EdgeSeen, ...]]]:
        """One look at each. ``lifetime``: seconds for which clients may go on using an address at most."""
        at = self.plane.steady()
        asked = [site for site in names if site in self.plane.balancers]
        found = await asyncio.gather(*(self._looks(site, sites[site].said) for site in asked))
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
            return None  # it would be waited for as long again
        status = await or_none(
            balancer.look(self._backends) if isinstance(balancer, SeenFromOutside) else balancer.observe(site)
        )
        return status.without(self._moved(status)) if status is not None and status.at else status

    @property
    def _backends(self) -> Mapping[str, BackendAddress]:
        """Where each replica's apiserver is."""
        records = (each for each in self.plane.memory.replicas if each.seat is not None)
        return {each.name: backend_address(each) for each in records}

    def _moved(self, status: BalancerStatus) -> frozenset[str]:
        """The replicas that a load balancer looks for where they are not any more."""
        records = {each.name: each for each in self.plane.memory.replicas if each.seat is not None}
        known = ((name, at, records[name]) for name, at in status.at if name in records)
        return frozenset(name for name, at, record in known if backend_address(record) != at)


async def _finding(balancer: LoadBalancer, edge: EdgeSeen, astray: Collection[str]) -> EdgeSeen:
    """What was seen of an edge, with those addresses that it has though they are others', and not with these."""
    if not isinstance(balancer, FindsAddresses) or edge.status is None or not edge.status.running:
        return edge
    others = [each for each in astray if each != edge.address]
    has = await asyncio.gather(*map(balancer.has, others))
    return replace(edge, has=frozenset(each for each, here in zip(others, has, strict=True) if here))
