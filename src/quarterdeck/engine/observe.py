"""The observation: everything that the planner may know, asked of everyone at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from quarterdeck.actions.plane import Plane
from quarterdeck.components.etcd import WRITE_AHEAD_LOG, holds_a_log
from quarterdeck.engine.asking import SOON, or_none
from quarterdeck.engine.name_seen import see_name
from quarterdeck.engine.observe_etcd import EtcdObserver
from quarterdeck.engine.restless import Restless
from quarterdeck.engine.settings import Goal
from quarterdeck.errors import NotFound, Unavailable
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.units import Machine, MachineRole, MachineState, UnitState
from quarterdeck.model.world import BalancerFact, MachineFact, Membership, ReplicaFact, Settings, World


@dataclass(kw_only=True)
class Observer:
    """Observes one plane, again and again. It remembers only who is silent, and who was ready."""

    plane: Plane
    settings: Settings
    goal: Goal
    deleting: bool = False
    front: str | None = None
    _etcd: EtcdObserver = field(init=False)
    _were_ready: set[str] = field(default_factory=set)
    _restless: Restless = field(default_factory=Restless)

    def __post_init__(self) -> None:
        self._etcd = EtcdObserver(plane=self.plane)

    async def observe(self) -> World:
        """One observation. Raises only what is not a matter of somebody not answering."""
        plane = self.plane
        memory, now = plane.memory, plane.now()
        machines, classes, membership, balancers, name = await asyncio.gather(
            self._machines(memory),
            self._classes(memory),
            self._etcd.observe(memory),
            self._balancers(memory),
            see_name(plane),
        )
        states = {(machine.site, machine.name): machine.state for machine in machines}
        replicas = await asyncio.gather(*(self._replica(each, states, classes[each.site]) for each in memory.replicas))
        removed = _removed(memory, membership)
        return World(
            slots=self.goal.slots(each for each in memory.replicas if each.name not in removed),
            storage_class=self.goal.storage_class,
            memory=memory,
            now=now,
            membership=membership,
            wrong=self._etcd.wrong,
            replicas=tuple(replicas),
            balancers=balancers,
            machines=tuple(
                MachineFact(name=each.name, site=each.site, zone=each.zone, state=each.state)
                for each in machines
                if each.role is MachineRole.CONTROL and each.declared
            ),
            record=name.site,
            record_known=name.known,
            record_trouble=name.trouble,
            foreign=name.foreign,
            torn=name.torn,
            also=name.also,
            stamped=name.stamped,
            record_ttl=name.ttl,
            front=self.front,
            deleting=self.deleting,
            settings=self.settings,
        )

    def _sites(self, memory: Memory) -> tuple[str, ...]:
        names = {self.goal.site} | {record.site for record in memory.replicas}
        names |= {site for site, _ in memory.held} | {*memory.unsettled}
        names |= {memory.served_site} if memory.served_site else set()
        return tuple(sorted(names))

    async def _machines(self, memory: Memory) -> tuple[Machine, ...]:
        found = await asyncio.gather(*(self.plane.site(name).machines() for name in self._sites(memory)))
        return tuple(machine for machines in found for machine in machines)

    async def _classes(self, memory: Memory) -> dict[str, tuple[str, ...]]:
        """The storage classes of each site that has replicas."""
        sites = dict.fromkeys(record.site for record in memory.replicas)
        return {name: await self.plane.site(name).storage_classes() for name in sites}

    async def _replica(
        self, record: Replica, states: dict[tuple[str, str], MachineState], classes: tuple[str, ...]
    ) -> ReplicaFact:
        plane = self.plane
        machine = states.get((record.site, record.machine), MachineState.UNREACHABLE)
        site = plane.site(record.site)
        if machine is not MachineState.UP:
            return _unknown(record, machine)
        units, has_data, peer, ready = await asyncio.gather(
            or_none(site.units(record.machine)),
            self._has_data(record, classes),
            self._peer_up(record),
            self._ready(record),
        )
        if units is None:
            return _unknown(record, MachineState.UNREACHABLE)
        by_name = {unit.name: unit.state for unit in units}
        restarts = {unit.name: unit.restarts for unit in units}
        names = {component: plane.unit(record, component) for component in Component}
        now = plane.steady()
        restless = (
            component
            for component, name in names.items()
            if self._restless.note((record.site, name), restarts.get(name, 0), now)
        )
        etcd = plane.unit(record, Component.ETCD)
        return ReplicaFact(
            name=record.name,
            machine=machine,
            units=tuple((each, by_name.get(plane.unit(record, each), UnitState.ABSENT)) for each in Component),
            peer_up=peer,
            ready=ready,
            has_data=has_data,
            refused=next((unit.refused for unit in units if unit.name == etcd), ""),
            restless=frozenset(restless),
        )

    async def _has_data(self, record: Replica, classes: tuple[str, ...]) -> bool | None:
        site, volume = self.plane.site(record.site), self.plane.volume(record)
        if record.storage_class not in classes:
            return None  # it is somewhere that the site does not tell any more
        try:
            return holds_a_log(await site.list_volume(record.machine, volume, WRITE_AHEAD_LOG))
        except NotFound:
            return False  # not even a volume
        except Unavailable:
            return None

    async def _peer_up(self, record: Replica) -> bool:
        if record.started:
            return True  # asked only of those that join: others wait for nobody
        return await self.plane.etcd.peer_version_answers(self.plane.peer_url(record), within=SOON)

    async def _ready(self, record: Replica) -> bool | None:
        """One that is just starting accepts connections and answers none: only one that was ready is waited for."""
        founded = self.plane.memory.served_site is not None
        within = None if record.name in self._were_ready else SOON
        ready = (await self.plane.kube.readyz(self.plane.apiserver(record), founded=founded, within=within)).ok
        (self._were_ready.add if ready else self._were_ready.discard)(record.name)
        return ready

    async def _balancers(self, memory: Memory) -> tuple[BalancerFact, ...]:
        sites = [site for site in self._sites(memory) if site in self.plane.balancers]
        return tuple(await asyncio.gather(*(self._balancer(site) for site in sites)))

    async def _balancer(self, site: str) -> BalancerFact:
        status = await or_none(self.plane.balancers[site].observe())
        if status is None:
            return BalancerFact(site=site, running=False, reachable=False)
        return BalancerFact(
            site=site,
            running=status.running,
            backends=status.backends,
            healthy=status.healthy,
            connections=status.connections,
        )


def _removed(memory: Memory, membership: Membership | None) -> frozenset[str]:
    """The replicas that were members once, and are none now."""
    if membership is None:
        return frozenset()
    return frozenset(each.name for each in memory.replicas if each.listed and membership.of(each.name) is None)


def _unknown(record: Replica, machine: MachineState) -> ReplicaFact:
    return ReplicaFact(
        name=record.name,
        machine=machine,
        units=tuple((component, UnitState.UNKNOWN) for component in Component),
        ready=None,
    )
