"""The observation of replicas' own processes: ready apiservers, and peer ports of joining members."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from quarterdeck.actions.addresses import apiserver_address, peer_url
from quarterdeck.actions.plane import Plane
from quarterdeck.components.template import loaded_hash
from quarterdeck.engine.observation.assemble import Dated, ServerFacts
from quarterdeck.engine.observation.observe_sites import SeenSites, machine_of
from quarterdeck.engine.observation.queries import SOON, or_none
from quarterdeck.kube.port import HealthAnswer
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.memory import Memory, Replica

# The revisions of the files that apiservers report as loaded: queried only where that is not clear.

#: Seconds for an apiserver to load a new file. It notices it at once, requests the keys of each new issuer, and checks
#: whether all have answered: first too early, then every 10 s (kubernetes: updateAuthenticationConfig).
PATIENCE = 35.0


@dataclass(kw_only=True)
class Loads:
    """The reports of one plane's apiservers. Their answer is long, so only the driver queries it, once, and then again
    as long as a reload may be pending.
    """

    plane: Plane
    _digests: dict[str, str | None] = field(default_factory=dict)

    async def of(self, memory: Memory, record: Replica, *, ready: bool | None) -> frozenset[str] | None:
        """The revisions that match an apiserver's loaded files; None if it is not queried, or does not report them."""
        if self.plane.guard is None or not ready:
            self._digests.pop(record.name, None)  # it may start with other files
            return None
        own = self._hash(record.revision)
        if own is None:
            return None
        if self._digests.get(record.name) != own or self._may_change(memory, record):
            self._digests[record.name] = await or_none(self.plane.kube.loaded(apiserver_address(record)))
        digest = self._digests[record.name]
        return None if digest is None else frozenset(each for each in self._known() if self._hash(each) == digest)

    def given(self, record: Replica) -> tuple[frozenset[str], frozenset[str]]:
        """The revisions whose files a running replica was given: lately, and so long ago that it will not load them."""
        now = self.plane.steady()
        since = {revision: now - at for (name, revision), at in self.plane.given.items() if name == record.name}
        late = frozenset(revision for revision, passed in since.items() if passed > PATIENCE)
        return frozenset(since) - late, late

    def _may_change(self, memory: Memory, record: Replica) -> bool:
        """Whether a change of revision that it can reload is, or may be, pending."""
        wanted = {self.plane.revisions.goal, *(each.revision for each in memory.replicas)}
        changes = self.plane.revisions.changes
        return any(one == record.revision and other in wanted and change.reload for one, other, change in changes)

    def _known(self) -> tuple[str, ...]:
        return tuple(self.plane.revisions.templates)

    def _hash(self, revision: str) -> str | None:
        template = self.plane.revisions.templates.get(revision)
        return None if template is None else loaded_hash(template)


@dataclass(kw_only=True)
class ServersObserver:
    """Observes one plane's servers repeatedly. It remembers which were ready, and what each has loaded."""

    plane: Plane
    _were_ready: set[str] = field(default_factory=set)
    _loads: Loads = field(init=False)

    def __post_init__(self) -> None:
        self._loads = Loads(plane=self.plane)

    async def observe(self, memory: Memory, sites: SeenSites) -> Mapping[str, Dated[ServerFacts]]:
        """One observation of the replicas whose machines answer."""
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
            return True  # only the peer ports of joining members matter
        return await self.plane.etcd.peer_version_answers(peer_url(record, cluster), within=SOON)

    async def _health(self, record: Replica) -> HealthAnswer:
        """A starting apiserver accepts connections without answering: only one that was ready is waited for."""
        founded = self.plane.memory.served_site is not None
        within = None if record.name in self._were_ready else SOON
        health = await self.plane.kube.readyz(apiserver_address(record), founded=founded, within=within)
        (self._were_ready.add if health.ok else self._were_ready.discard)(record.name)
        return health
