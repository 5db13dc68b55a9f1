"""What is true in the joined world, in the planner's own words: so the model's invariants are claimed of it as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fakes.etcd_cluster import Member
from model.clients import Clients
from model.faulty_truth import FaultyTruth
from model.invariants import check_blind, check_calm, check_step, claim

from loop.fake_world import Joined, Process
from loop.units import PLANE, owner_of, replica_of
from quarterdeck.actions.addresses import peer_url
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.api.revision import ReplicaRevision
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.components.template import Revisions
from quarterdeck.engine.workspace.settings import goal_of, planner_settings, standby_slot
from quarterdeck.model.bounds import Settings
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaPrograms
from quarterdeck.model.memory import Memory
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.members import RemoveMember
from quarterdeck.model.units import MachineRole, MachineState, UnitState
from quarterdeck.planner.simulated.parts import (
    ELSEWHERE,
    Power,
    SimMachine,
    SimMember,
    SimReplica,
    apiserver_of,
    edge,
    etcd_of,
)

_POWER = {MachineState.UP: Power.ON, MachineState.DOWN: Power.OFF, MachineState.UNREACHABLE: Power.FROZEN}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the store says of the plane."""

    memory: Memory
    slots: tuple[Slot, ...]
    standby: Slot | None
    settings: Settings
    revision: str
    condemned: tuple[str, ...]
    cordoned: tuple[str, ...]
    deleting: bool
    programs: ReplicaPrograms

    @property
    def machines(self) -> Mapping[str, str]:
        """Where each replica is."""
        return {each.name: each.machine for each in self.memory.replicas}


@dataclass(slots=True)
class Truths:
    """Watches over a world: each effect on it is a step, and the model's invariants hold of each step."""

    world: Joined
    clients: Clients = field(default_factory=Clients)
    calm: bool = True
    effects: int = 0
    _read: tuple[str, Wanted] | None = None
    _machines: dict[tuple[MachineState, ...], tuple[SimMachine, ...]] = field(default_factory=dict)
    _last: tuple[object, FaultyTruth] | None = None

    def wanted(self) -> Wanted | None:
        """None: there is no such plane (any more)."""
        body = self.world.store._bodies.get((ControlPlane.__name__, PLANE))
        if body is None:
            return None
        if self._read is None or self._read[0] is not body:
            plane = ControlPlane.model_validate_json(body, by_alias=True, by_name=False)
            revisions = self._revisions()
            site = SiteResource.model_validate_json(
                self.world.store._bodies[SiteResource.__name__, plane.spec.placement.site], by_alias=True, by_name=False
            )
            wanted = Wanted(
                memory=memory_from_status(plane.status.memory),
                slots=goal_of(plane, site).slots(memory_from_status(plane.status.memory).replicas),
                standby=standby_slot(plane),
                settings=planner_settings(plane),
                revision=plane.status.revision,
                condemned=plane.spec.replace_replicas,
                cordoned=plane.spec.cordoned,
                deleting=plane.metadata.deletion_timestamp is not None,
                programs=revisions.programs,
            )
            self._read = body, wanted
        return self._read[1]

    def _revisions(self) -> Revisions:
        """All that are stored."""
        stored = [body for (kind, _), body in self.world.store._bodies.items() if kind == ReplicaRevision.__name__]
        found = (ReplicaRevision.model_validate_json(body, by_alias=True, by_name=False) for body in stored)
        return Revisions(templates={each.metadata.name: each.spec for each in found})

    def now(self) -> FaultyTruth | None:
        """What is true now; None without a plane."""
        wanted = self.wanted()
        if wanted is None:
            return None
        world = self.world
        world.settle()
        key = (world.version, id(wanted))
        if self._last is None or self._last[0] != key:
            self._last = key, self._truth(wanted)
        elif self._last[1].now != world.clock.now:
            self._last = key, replace(self._last[1], now=world.clock.now)
        return self._last[1]

    def _truth(self, wanted: Wanted) -> FaultyTruth:
        world = self.world
        units = self._units(wanted)
        volumes = {path.parent.name for path in world.data}
        there = {Cluster.MAIN: True, Cluster.EVENTS: wanted.memory.events.exists}
        members = {kind: self._members(kind) if there[kind] else {} for kind in Cluster}
        apart, epoch = self._apart(wanted), wanted.memory.events.epoch
        warm, at = self._warm(wanted), wanted.machines
        replicas = {}
        for record in wanted.memory.replicas:
            on = units.get(record.name, {})
            replicas[record.name] = SimReplica(
                units=frozenset(on),
                crashed=frozenset(each for each, runs in on.items() if not runs),
                data=f"{PLANE}-{record.name}" in volumes,
                warm=record.name in warm,
                hung=frozenset(
                    each.component
                    for each in world.processes.values()
                    if each.stuck and (each.replica, each.seen.machine) == (record.name, record.machine)
                ),
                member=members[Cluster.MAIN].get(record.name),
                events=members[Cluster.EVENTS].get(record.name),
                events_data=f"{PLANE}-{record.name}-events-{epoch}" in volumes,
                shapes=apart.get(record.name, ()),
            )
        for name in {name for of in members.values() for name in of} - set(replicas):
            member, events = (members[kind].get(name) for kind in (Cluster.MAIN, Cluster.EVENTS))
            replicas[name] = SimReplica(member=member, events=events)
        return FaultyTruth(
            slots=wanted.slots,
            standby=wanted.standby,
            memory=wanted.memory,
            machines=self._sim_machines(),
            replicas=tuple(sorted(replicas.items())),
            balancers=tuple(
                (site, frozenset(each.backends)) for site, each in sorted(world.balancers.items()) if each.running
            ),
            checked=tuple(
                (site, frozenset(each._healthy(each.backends)))
                for site, each in sorted(world.balancers.items())
                if each.running
            ),
            dead_edges=frozenset(site for site, each in world.balancers.items() if not each.reachable),
            record=self.record(),
            leader=self._leader(Cluster.MAIN),
            events_leader=self._leader(Cluster.EVENTS),
            programs=wanted.programs,
            now=world.clock.monotonic(),
            cuts=frozenset((one, other) for pair in world.cuts for one in pair for other in pair - {one}),
            mute=_mute(world, wanted.memory),
            deleting=wanted.deleting,
            revision=wanted.revision,
            condemned=wanted.condemned,
            cordoned=wanted.cordoned,
            settings=wanted.settings,
            haunted=frozenset(
                (each.seen.machine, each.replica)
                for each in world.of(Component.ETCD)
                if at.get(each.replica, each.seen.machine) != each.seen.machine
            ),
        )

    def _members(self, kind: Cluster) -> dict[str, SimMember]:
        """The members of a cluster by replica, or by id where they are no replica's; of an epoch that is over nobody is
        one any more.
        """
        found = {}
        wanted = self.wanted()
        memory = wanted.memory.of(kind) if wanted is not None else Memory()
        former = {each.name for each in memory.replicas if memory.is_former(each)}
        for node in self.world.clusters[kind].cluster.nodes:
            name = self.name_of(kind, node)
            if name in former:
                continue
            unserved = int(node.up and (node.address is None or not node.address.client_url))
            found[name or f"{node.id:x}"] = SimMember(
                id=node.id,
                learner=node.learner,
                behind=int(node.behind > 0),
                unserved=unserved,
                found_at=_elsewhere(name, self.names(kind).get(node.peer_url, "")),
            )
        return found

    def _leader(self, kind: Cluster) -> str | None:
        cluster = self.world.clusters[kind].cluster
        leader = cluster.by_id(cluster.leader)
        return self.name_of(kind, leader) or None if leader is not None else None

    def _apart(self, wanted: Wanted) -> dict[str, tuple[tuple[Component, str], ...]]:
        """The replicas whose apiservers keep events apart, with the revision that says so."""
        own = {each.name: each.revision for each in wanted.memory.replicas}
        apart = wanted.programs.having(Component.EVENTS_ETCD)
        return {
            each.replica: (
                (
                    Component.APISERVER,
                    _one_of(apart, own.get(each.replica, "")),
                ),
            )
            for each in self._apiservers(wanted)
            if "etcd-servers-overrides" in each.flags
        }

    def _warm(self, wanted: Wanted) -> frozenset[str]:
        return frozenset(each.replica for each in self._apiservers(wanted) if each.warm)

    def _apiservers(self, wanted: Wanted) -> list[Process]:
        """Those of replicas where these are: not what is left where one was."""
        at = wanted.machines
        there = self.world.of(Component.APISERVER)
        return [each for each in there if at.get(each.replica, each.seen.machine) == each.seen.machine]

    def _units(self, wanted: Wanted) -> dict[str, dict[Component, bool]]:
        """The units that are wanted to run, by replica: whether each does."""
        found: dict[str, dict[Component, bool]] = {}
        at = wanted.machines
        for site in self.world.sites.values():
            for seen in site.everything():
                replica, component = replica_of(seen.spec.name)
                here = at.get(replica, seen.machine) == seen.machine
                if here and (seen.wanted or seen.state is UnitState.RUNNING):
                    found.setdefault(replica, {})[component] = seen.pid is not None or seen.power is MachineState.DOWN
        return found

    def names(self, kind: Cluster = Cluster.MAIN) -> dict[str, str]:
        """The replica of a peer URL of a cluster: of those that were given the seat, the one that came last."""
        wanted = self.wanted()
        records = wanted.memory.replicas if wanted is not None else ()
        return {peer_url(record, kind): record.name for record in records}

    def name_of(self, kind: Cluster, node: Member) -> str:
        """The replica of a member: the one that has its data; of one without data, the one where the others look for
        it, if that has no data either. "" for a member that is no replica's.
        """
        wanted, events = self.wanted(), kind is Cluster.EVENTS
        known = wanted.machines if wanted is not None else {}
        volumes = {path.parent.name: member for path, member in self.world.data.items()}
        owners = {owner_of(each): member for each, member in volumes.items() if ("-events-" in each) is events}
        found = next((name for name, member in owners.items() if member == node.id and name in known), None)
        there = self.names(kind).get(node.peer_url, "")
        return ("" if there in owners else there) if found is None else found

    def record(self) -> str | None:
        """The site that the plane's name leads to."""
        for record in self.world.dns.records.values():
            for site, balancer in self.world.balancers.items():
                if balancer.address.ip in record.addresses:
                    return site
        return None

    def _sim_machines(self) -> tuple[SimMachine, ...]:
        stands = [
            (name, stand, each.power(name))
            for each in self.world.sites.values()
            for name, stand in ((name, machine.stand) for name, machine in each._machines.items())
            if stand.role is MachineRole.CONTROL
        ]
        key = tuple(state for _, _, state in stands)
        if key not in self._machines:
            self._machines[key] = tuple(
                SimMachine(name=name, site=stand.place.site, zone=stand.place.zone, power=_POWER[state])
                for name, stand, state in stands
            )
        return self._machines[key]

    # --- claims ----------------------------------------------------------------------------------------------------

    def check(self, step: Step | None, before: FaultyTruth | None, *, swapping: bool, blind: bool) -> None:
        """After an effect: what it may do, and what must be so. ``blind``: something happened to the world since the
        look that it follows from.
        """
        claim(not self.world.broken, "; ".join(self.world.broken))
        after = self.now()
        if before is None or after is None:
            return
        if step is not None:
            self.effects += 1
            if blind:
                check_blind(before, step, after, swapping=swapping)
            else:
                self._check_seen(before, step)
                check_step(before, step, after, self.clients, swapping=swapping)
            self.clients = self.clients.after(before, step, after)
        if self.calm:
            check_calm(after, self.clients, swapping=swapping or after.quorum_site is None)

    def _check_seen(self, before: FaultyTruth, step: Step) -> None:
        """A voter that only we do not see is never taken out."""
        if isinstance(step, RemoveMember) and not before.deleting and step.replica in before.recorded:
            voter = not before.members[step.replica].learner if step.replica in before.members else False
            unseen = before.machine_of(step.replica).name in self.world.unseen
            claim(not (voter and unseen and step.replica in before.following), f"8: {step.replica} is only not seen")


def _one_of(separate: frozenset[str], own: str) -> str:
    return own if own in separate else min(separate, default="")


def _mute(world: Joined, memory: Memory) -> frozenset[str]:
    """What runs, and does not answer us, in the words of a truth."""
    if not world.unseen:
        return frozenset()
    names = [record.name for record in memory.replicas if record.machine in world.unseen]
    edges = {edge(site) for site in world.balancers if f"{site}-edge" in world.unseen}
    return world.unseen | edges | {*map(etcd_of, names), *map(apiserver_of, names)}


def _elsewhere(name: str, at: str) -> str:
    """Where the others look for a member, in words of ``SimMember.found_at``: ``at`` is whose peer URL it has."""
    return "" if at == name else at or ELSEWHERE
