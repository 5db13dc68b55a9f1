"""The observation of what replicas' own processes answer: apiservers whether they are ready, joiners at all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from quarterdeck.actions.addresses import apiserver_address, peer_url
from quarterdeck.actions.plane import Plane
from quarterdeck.engine.observation.asking import SOON
from quarterdeck.engine.observation.assemble import Dated, ServerFacts
from quarterdeck.engine.observation.observe_sites import SeenSites, machine_of
from quarterdeck.engine.observation.reloads import Loads
from quarterdeck.kube.port import HealthAnswer
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.memory import Memory, Replica


@dataclass(kw_only=True)
class ServersObserver:
    """Observes those of one plane, again and again. It remembers who was ready, and what each said it has loaded."""

    plane: Plane
    _were_ready: set[str] = field(default_factory=set)
    _loads: Loads = field(init=False)

    def __post_init__(self) -> None:
        self._loads = Loads(plane=self.plane)

    async def observe(self, memory: Memory, sites: SeenSites) -> Mapping[str, Dated[ServerFacts]]:
        """One look at those whose machines answer."""
        asked = [record for record in memory.replicas if machine_of(record, sites) is not None]
        at = self.plane.steady()
        found = await asyncio.gather(*(self._look(memory, record) for record in asked))
        return {record.name: Dated(at, facts) for record, facts in zip(asked, found, strict=True)}

    async def _look(self, memory: Memory, record: Replica) -> ServerFacts:
        main, events, health = await asyncio.gather(
            self._peer_up(record, Cluster.MAIN), self._peer_up(record, Cluster.EVENTS), self._health(record)
        )
        ready = health.ok
        loaded = await self._loads.of(memory, record, ready=ready)
        given, stuck = self._loads.given(record)
        return ServerFacts(
            ready=ready,
            unready=health.detail,
            peer_up=main,
            events_peer_up=events,
            loaded=loaded,
            given=given,
            stuck=stuck,
        )

    async def _peer_up(self, record: Replica, cluster: Cluster) -> bool:
        if cluster is Cluster.EVENTS and record.events is None:
            return False
        if self.plane.memory.of(cluster).replica(record.name).started:
            return True  # asked only of those that join: others wait for nobody
        return await self.plane.etcd.peer_version_answers(peer_url(record, cluster), within=SOON)

    async def _health(self, record: Replica) -> HealthAnswer:
        """One that is just starting accepts connections and answers none: only one that was ready is waited for."""
        founded = self.plane.memory.served_site is not None
        within = None if record.name in self._were_ready else SOON
        health = await self.plane.kube.readyz(apiserver_address(record), founded=founded, within=within)
        (self._were_ready.add if health.ok else self._were_ready.discard)(record.name)
        return health
