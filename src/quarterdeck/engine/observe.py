"""The observation: everything that the planner may know, asked of everyone at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from quarterdeck.actions.plane import Plane
from quarterdeck.components.etcd import WRITE_AHEAD_LOG, holds_a_log
from quarterdeck.errors import NotFound, Unavailable
from quarterdeck.etcd.facts import ListedMember, MemberStatus
from quarterdeck.model.endpoints import Record
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.slots import Slot
from quarterdeck.model.units import Machine, MachineRole, MachineState, UnitState
from quarterdeck.model.world import (
    BalancerFact,
    Component,
    Health,
    MachineFact,
    MemberFact,
    Membership,
    ReplicaFact,
    Settings,
    World,
)

T = TypeVar("T")

#: Seconds for which a member may fail to answer before it counts as down. Longer than an election, and than the
#: pause of a machine that is busy; short enough that a dead member does not cost tolerance for long.
GRACE = 8.0
#: Seconds that a member needs at most to serve clients once it has applied its own publication.
PUBLISHED = 0.5
#: Seconds for an answer from one that may be just starting.
SOON = 0.3


async def or_none(asked: Awaitable[T]) -> T | None:
    """The answer, or None when it is not known: the one place where not answering becomes not knowing."""
    try:
        return await asked
    except Unavailable:
        return None


async def soon_or_none(asked: Awaitable[T]) -> T | None:
    """``or_none`` for one that may be just starting, and then accepts what it does not answer: not waited for."""
    try:
        return await asyncio.wait_for(or_none(asked), SOON)
    except TimeoutError:
        return None


@dataclass(frozen=True, slots=True)
class _Heard:
    """What one member said: of itself (if it did), or at least how much it has applied (if it did)."""

    status: MemberStatus | None
    applied: int | None


@dataclass(kw_only=True)
class Observer:
    """Observes one plane, again and again. It remembers only since when members are silent, and who was ready."""

    plane: Plane
    settings: Settings
    slots: tuple[Slot, ...]
    deleting: bool = False
    front: str | None = None
    _silent: dict[int, float] = field(default_factory=dict)
    _published: dict[int, float] = field(default_factory=dict)
    _were_ready: set[str] = field(default_factory=set)

    async def observe(self) -> World:
        """One observation. Raises only what is not a matter of somebody not answering."""
        plane = self.plane
        memory = plane.memory
        machines, membership, balancers, record = await asyncio.gather(
            self._machines(memory), self._membership(memory), self._balancers(memory), self._record()
        )
        states = {(machine.site, machine.name): machine.state for machine in machines}
        replicas = await asyncio.gather(*(self._replica(each, states) for each in memory.replicas))
        known, site = record
        return World(
            slots=self.slots,
            memory=memory,
            now=plane.clock(),
            membership=membership,
            replicas=tuple(replicas),
            balancers=balancers,
            machines=tuple(
                MachineFact(name=each.name, site=each.site, zone=each.zone, state=each.state)
                for each in machines
                if each.role is MachineRole.CONTROL
            ),
            record=site,
            record_known=known,
            front=self.front,
            deleting=self.deleting,
            settings=self.settings,
        )

    def _sites(self, memory: Memory) -> tuple[str, ...]:
        names = {slot.site for slot in self.slots} | {record.site for record in memory.replicas}
        names |= {site for site, _ in memory.held} | ({memory.served_site} if memory.served_site else set())
        return tuple(sorted(names))

    async def _machines(self, memory: Memory) -> tuple[Machine, ...]:
        found = await asyncio.gather(*(self.plane.site(name).machines() for name in self._sites(memory)))
        return tuple(machine for machines in found for machine in machines)

    async def _replica(self, record: Replica, states: dict[tuple[str, str], MachineState]) -> ReplicaFact:
        plane = self.plane
        machine = states.get((record.site, record.machine), MachineState.UNREACHABLE)
        site = plane.site(record.site)
        if machine is not MachineState.UP:
            return _unknown(record, machine)
        units, has_data, peer, ready = await asyncio.gather(
            or_none(site.units(record.machine)),
            self._has_data(record),
            self._peer_up(record),
            self._ready(record),
        )
        if units is None:
            return _unknown(record, MachineState.UNREACHABLE)
        by_name = {unit.name: unit.state for unit in units}
        etcd = plane.unit(record, Component.ETCD)
        return ReplicaFact(
            name=record.name,
            machine=machine,
            units=tuple((each, by_name.get(plane.unit(record, each), UnitState.ABSENT)) for each in Component),
            peer_up=peer,
            ready=ready,
            has_data=has_data,
            refused=next((unit.refused for unit in units if unit.name == etcd), ""),
        )

    async def _has_data(self, record: Replica) -> bool | None:
        site, volume = self.plane.site(record.site), self.plane.volume(record)
        try:
            return holds_a_log(await site.list_volume(record.machine, volume, WRITE_AHEAD_LOG))
        except NotFound:
            return False  # not even a volume
        except Unavailable:
            return None

    async def _peer_up(self, record: Replica) -> bool:
        if record.started:
            return True  # asked only of those that join: others wait for nobody
        asked = self.plane.etcd.peer_version_answers(self.plane.peer_url(record))
        return await soon_or_none(asked) or False

    async def _ready(self, record: Replica) -> bool | None:
        """One that is just starting accepts connections and answers none: only one that was ready is waited for."""
        founded = self.plane.memory.served_site is not None
        asked = self.plane.kube.readyz(self.plane.apiserver(record), founded=founded)
        answer = await (asked if record.name in self._were_ready else soon_or_none(asked))
        ready = answer.ok if answer is not None else None
        (self._were_ready.add if ready else self._were_ready.discard)(record.name)
        return ready

    async def _membership(self, memory: Memory) -> Membership | None:
        plane = self.plane
        urls = plane.client_urls()
        if not urls:
            return None
        listed = await or_none(plane.etcd.members(urls))
        if listed is None:
            return None
        by_peer = {plane.peer_url(record): record for record in memory.replicas}
        records = [next((by_peer[each] for each in member.peer_urls if each in by_peer), None) for member in listed]
        heard = await asyncio.gather(
            *(self._hear(member, record) for member, record in zip(listed, records, strict=True))
        )
        leader = _leader(listed, heard)
        if leader is None:
            return None
        facts = [
            self._member(member, record.name if record else member.name, said, leader)
            for member, record, said in zip(listed, records, heard, strict=True)
        ]
        names = {fact.id: fact.replica for fact in facts}
        alarms = tuple(sorted({text for said in heard if said.status for text in said.status.errors}))
        return Membership(members=tuple(facts), leader=names.get(leader.member_id), alarms=alarms)

    async def _hear(self, member: ListedMember, record: Replica | None) -> _Heard:
        if record is None:
            return _Heard(None, None)
        # Until it was seen healthy once, its client port may be bound and not yet served: not waited for.
        patient = or_none if record.started else soon_or_none
        status = await patient(self.plane.etcd.status(self.plane.client_url(record))) if member.started else None
        applied = None
        if status is None and member.is_learner:
            # A joiner's client port opens late, but its metrics are there from the first moment.
            applied = await soon_or_none(self.plane.etcd.applied_index(self.plane.metrics_url(record)))
        return _Heard(status, applied)

    def _member(self, member: ListedMember, name: str, said: _Heard, leader: MemberStatus) -> MemberFact:
        well = said.status is not None and said.status.leader_id == leader.member_id
        applied = said.status.raft_applied_index if said.status is not None else said.applied
        now = self.plane.clock()
        if well:
            self._silent.pop(member.id, None)
            health = Health.HEALTHY
        else:
            since = self._silent.setdefault(member.id, now)
            health = Health.DOWN if now - since >= GRACE else Health.SUSPECT
        lag = None if applied is None else max(0, leader.raft_index - applied)
        published = member.started and now - self._published.setdefault(member.id, now) >= PUBLISHED
        return MemberFact(
            id=member.id, replica=name, learner=member.is_learner, health=health, lag=lag, published=published
        )

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

    async def _record(self) -> tuple[bool, str | None]:
        """Whether it is known what the plane's name resolves to, and the site that it leads to."""
        try:
            record = await self.plane.dns.observe(self.plane.resource.host)
        except Unavailable:
            return False, None
        return True, self._site_of(record)

    def _site_of(self, record: Record | None) -> str | None:
        if record is None:
            return None
        for site, balancer in self.plane.balancers.items():
            if balancer.address.ip in record.addresses:
                return site
        return None


def _unknown(record: Replica, machine: MachineState) -> ReplicaFact:
    return ReplicaFact(
        name=record.name,
        machine=machine,
        units=tuple((component, UnitState.UNKNOWN) for component in Component),
        ready=None,
    )


def _leader(listed: tuple[ListedMember, ...], heard: list[_Heard]) -> MemberStatus | None:
    """The status of the member that leads: one that says so itself, in the highest term."""
    ids = {member.id for member in listed}
    leaders = [said.status for said in heard if said.status and said.status.is_leader and said.status.member_id in ids]
    return max(leaders, key=lambda status: status.raft_term, default=None)
