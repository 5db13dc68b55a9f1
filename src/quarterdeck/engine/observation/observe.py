"""The observation: all facts for the planner, with one observer for each source, queried concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from quarterdeck.actions.addresses import elsewhere
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.volumes import volume_name
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.transitions.etcd_path import settings_of
from quarterdeck.engine.observation.assemble import Dated, EtcdFacts, ReplicaPlace, Seen, ServerFacts, assemble
from quarterdeck.engine.observation.expiry import expired_replicas
from quarterdeck.engine.observation.liveness import Liveness
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.engine.observation.observe_kubelets import KubeletsObserver
from quarterdeck.engine.observation.observe_leaders import LeadersObserver
from quarterdeck.engine.observation.observe_servers import ServersObserver
from quarterdeck.engine.observation.observe_sites import SitesObserver
from quarterdeck.engine.observation.observe_traffic import TrafficObserver, see_name
from quarterdeck.engine.observation.quiet_programs import Heard, Quiet
from quarterdeck.engine.workspace import site_use
from quarterdeck.engine.workspace.places import site_as_known
from quarterdeck.engine.workspace.settings import (
    ResolvedSpec,
    consent_of,
    endpoint_port,
    front_site,
    goal_of,
    leads_to_apiservers,
    planner_settings,
)
from quarterdeck.model.bounds import Settings
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.endpoints import APISERVERS, NameFact
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner.members import was_removed
from quarterdeck.planner.revisions import wanted_revision

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One observation of a plane: the facts, and the ``places`` of its replicas, by which they are found."""

    places: Mapping[str, ReplicaPlace]
    seen: Seen


@dataclass(kw_only=True)
class Observer:
    """Observes one plane repeatedly. It remembers only silent members, programs that were ready or healthy, programs
    that exit repeatedly, and programs that report nothing new.
    """

    plane: Plane
    settings: Settings
    goal: ResolvedSpec
    deleting: bool = False
    front: str | None = None
    promoted: bool = False
    _sites: SitesObserver = field(init=False)
    _etcd: Mapping[Cluster, EtcdObserver] = field(init=False)
    _servers: ServersObserver = field(init=False)
    _traffic: TrafficObserver = field(init=False)
    _liveness: Liveness = field(init=False)
    _quiet: Quiet = field(init=False)
    _leaders: LeadersObserver = field(init=False)
    _kubelets: KubeletsObserver = field(init=False)

    def __post_init__(self) -> None:
        self._sites = SitesObserver(plane=self.plane)
        self._etcd = {
            each: EtcdObserver(plane=self.plane, cluster=each, lag_bound=self.settings.lag_bound) for each in Cluster
        }
        self._servers = ServersObserver(plane=self.plane)
        self._traffic = TrafficObserver(plane=self.plane)
        self._liveness = Liveness(plane=self.plane)
        self._quiet = Quiet(plane=self.plane)
        self._leaders = LeadersObserver(plane=self.plane)
        self._kubelets = KubeletsObserver(plane=self.plane, within=self.settings.kubelets)

    async def observe(self) -> World:
        """One observation. A source that does not answer raises nothing."""
        known = self._known(self.plane.memory, self.plane.now())
        return await self._world(known, await self._look(known))

    async def observe_with(self, other: Observer) -> tuple[World, World]:
        """One observation, with the goal of this plane and that of the ``other`` one, which is the same plane."""
        known = self._known(self.plane.memory, self.plane.now())
        look = await self._look(known, *other.goal.sites)
        return await self._world(known, look), await other._world(other._known(known.memory, known.now), look)

    async def _world(self, known: World, look: Look) -> World:
        """The world from the ``known`` state and the observed facts."""
        sites = await site_use.declared(self.plane.store)
        world = assemble(known, look.places, look.seen, self.plane.steady())
        membership = world.membership
        there = (each for each in known.memory.replicas if not (known.memory.is_former(each) or each.standby))
        there = (each for each in there if membership is None or not was_removed(membership, each))
        machines = site_use.marked(world.machines, sites)
        expired = expired_replicas(self.plane, world)
        return replace(world, slots=self.goal.slots(there), machines=machines, expired=expired)

    def _known(self, memory: Memory, now: float) -> World:
        """The known state before an observation: the wanted state, and the memory."""
        plane = self.plane
        known = World(
            plane_name=self.plane.name,
            slots=(),
            revision=plane.revisions.goal,
            via=plane.revisions.via,
            apart=plane.revisions.apart,
            changes=plane.revisions.changes,
            etcd_minors=plane.revisions.etcd_minors,
            keeps_one=settings_of(plane.resource.spec).keep_one,
            programs=plane.revisions.programs,
            condemned=plane.resource.spec.replace_replicas,
            consent=consent_of(plane.resource),
            cordoned=plane.resource.spec.cordoned,
            memory=memory,
            now=now,
            front=self.front,
            direct=leads_to_apiservers(plane.resource),
            promoted=self.promoted,
            elsewhere=elsewhere(plane, endpoint_port(plane.resource), self.front if self.promoted else None),
            deleting=self.deleting,
            standby=self.goal.standby,
            settings=self.settings,
        )
        # The wanted revision may be rejected: then volumes follow the previous one.
        template = plane.revisions.template(wanted_revision(known))
        events = template.etcd.events
        return replace(
            known,
            storage_class=template.etcd.storage_class,
            events_class=events.storage_class if events is not None else "",
        )

    async def _look(self, known: World, *also: str) -> Look:
        """Observe the sites that the plane uses, and also these sites."""
        places = {record.name: self._place(record) for record in known.memory.replicas}
        return Look(places=places, seen=await self._seen(known, places, also))

    async def _seen(self, known: World, places: Mapping[str, ReplicaPlace], also: Iterable[str]) -> Seen:
        """All facts. Programs on machines that do not answer are not queried: that would only time out."""
        memory = known.memory
        names = self._names(memory, also)
        sites, etcd, events, name = await asyncio.gather(
            self._sites.observe(names),
            self._dated(partial(self._etcd_facts, memory, Cluster.MAIN)),
            self._dated(partial(self._etcd_facts, memory, Cluster.EVENTS)),
            self._dated(partial(see_name, self.plane)),
        )
        fact = name.answer or NameFact(known=False)
        lifetime = replace(known, record_ttl=fact.ttl).lifetime + known.settings.drain
        servers, balancers = await asyncio.gather(
            self._servers.observe(memory, sites), self._traffic.observe(names, sites, fact, lifetime)
        )
        crash_looping = self._sites.crash_looping(memory, places, sites)
        endings = await self._sites.endings(memory, places, sites, crash_looping)
        answers = {Cluster.MAIN: etcd.answer, Cluster.EVENTS: events.answer}
        memberships = {cluster: facts.membership if facts is not None else None for cluster, facts in answers.items()}
        silent, leading, kubelets_back = await asyncio.gather(
            self._liveness.observe(memory, places, sites, servers, memberships),
            self._leaders.observe(memory, _ready(servers)),
            self._kubelets.observe(memory, _ready(servers), known.now),
        )
        heard = Heard(servers=servers, memberships=memberships, silent=silent)
        quiet = await self._quiet.observe(memory, places, sites, heard)
        return Seen(
            sites=sites,
            etcd=etcd,
            events=events,
            servers=servers,
            balancers=balancers,
            name=name,
            crash_looping=crash_looping,
            endings=endings,
            quiet=quiet,
            silent=silent,
            leading=leading,
            kubelets_back=kubelets_back,
        )

    async def sure(self, world: World) -> World:
        """An observation for a caller without a later one: it waits until the leaders of the controllers are known, for
        some seconds.
        """
        if world.deleting or world.memory.served_site is None:
            return world  # its controllers do not exist yet, or are being removed
        up = {each.name: each.ready for each in world.replicas if each.machine is MachineState.UP}
        return replace(world, leading=await self._leaders.sure(self.plane.memory, up))

    async def _etcd_facts(self, memory: Memory, cluster: Cluster) -> EtcdFacts:
        """The facts of one cluster; without members nothing is queried."""
        observer = self._etcd[cluster]
        membership = await observer.observe(memory.of(cluster))
        return EtcdFacts(membership=membership, wrong=observer.wrong, words=observer.words)

    async def _dated(self, ask: Callable[[], Awaitable[T]]) -> Dated[T]:
        at = self.plane.steady()
        return Dated(at, await ask())

    def _names(self, memory: Memory, also: Iterable[str]) -> tuple[str, ...]:
        """The sites with present, wanted or left parts of the plane, and ``also`` these."""
        names = {*self.goal.sites, *also} | {record.site for record in memory.replicas}
        names |= {each.site for each in memory.kept} | {each.site for each in memory.left}
        names |= {site for site, _ in memory.held} | {*memory.unsettled}
        names |= {each for each in (memory.served_site, self.front) if each}
        return tuple(sorted(names - {APISERVERS}))

    def _place(self, record: Replica) -> ReplicaPlace:
        return ReplicaPlace(
            units={component: self.plane.unit(record, component) for component in CATALOGUE},
            volume=volume_name(self.plane, record),
            storage_class=record.storage_class,
            events=self._events_volume(record),
        )

    def _events_volume(self, record: Replica) -> tuple[str, str] | None:
        if record.events is None or record.events.epoch != self.plane.memory.events.epoch:
            return None
        return volume_name(self.plane, record, Cluster.EVENTS), record.events.storage_class


def _ready(servers: Mapping[str, Dated[ServerFacts]]) -> Mapping[str, bool | None]:
    """Whether the apiservers are ready, for replicas whose machines answer."""
    return {name: each.answer.ready if each.answer is not None else None for name, each in servers.items()}


# The observer of a plane, for its present spec.


async def observer_of(plane: Plane) -> Observer:
    """An observer of a plane, for its present spec."""
    resource = plane.resource
    site = await site_as_known(plane.store, resource)
    return Observer(
        plane=plane,
        settings=planner_settings(resource),
        goal=goal_of(resource, site),
        deleting=resource.metadata.deletion_timestamp is not None,
        front=front_site(resource, plane.sites),
        promoted=resource.spec.endpoint.promoted,
    )
