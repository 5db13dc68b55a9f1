"""The state of a simulated world: machines, members, units, load balancers, and the facts that follow from them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, TypeVar

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.bounds import HealingBounds, Settings
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaChange, ReplicaPrograms
from quarterdeck.model.epochs import Consent
from quarterdeck.model.membership import EtcdMinor
from quarterdeck.model.memory import Memory
from quarterdeck.model.seats import Slot
from quarterdeck.planner.quorum import Voter, quorum, quorum_site
from quarterdeck.planner.simulated.no_faults import NoFaults
from quarterdeck.planner.simulated.parts import (
    ETCD,
    NOTHING,
    Power,
    SimMachine,
    SimMember,
    SimReplica,
    apiserver_of,
    edge,
    etcd_of,
)


@dataclass(frozen=True, kw_only=True)
class Truth(NoFaults):
    """All that is true; what follows from it is worked out once, when it is first asked for.

    ``balancers`` are the backends that each site's load balancer sends to, ``checked`` those of them that it held for
    healthy at its last check. ``front`` is the site of a fixed address: then there is no name, and ``record`` is that
    site always, unless it is ``promoted``. ``named`` are the replicas whose own addresses the name has while ``record``
    is ``APISERVERS``. ``full``: etcd has raised NOSPACE, and takes no writes. ``events_leader`` and ``events_full`` are
    those of the events' cluster. ``reattachable``: volumes can go to other machines. ``kubelets``: they renew their
    Leases, or there are none. ``expired``: replicas, each with the revision whose certificates have expired there: no
    other member talks with one that runs with these. ``works_as`` and ``downgrade`` are as in ``Membership``, other
    fields as in ``World``.

    Machines may be off here, programs crashed or hung, and members behind: an observation says so, and a dry run
    starts from it. Tests inject all other faults, in a subclass that overrides the methods of ``NoFaults``.
    """

    slots: tuple[Slot, ...]
    memory: Memory
    machines: tuple[SimMachine, ...]
    replicas: tuple[tuple[str, SimReplica], ...] = ()
    balancers: tuple[tuple[str, frozenset[str]], ...] = ()
    checked: tuple[tuple[str, frozenset[str]], ...] = ()
    record: str | None = None
    front: str | None = None
    direct: bool = False
    promoted: bool = False
    named: frozenset[str] = frozenset()
    leader: str | None = None
    next_member: int = 1
    now: float = 0.0
    deleting: bool = False
    revision: str = ""
    via: tuple[str, ...] = ()
    apart: frozenset[frozenset[str]] = frozenset()
    changes: tuple[tuple[str, str, ReplicaChange], ...] = ()
    condemned: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    programs: ReplicaPrograms = field(default_factory=ReplicaPrograms)
    events_leader: str | None = None
    full: bool = False
    events_full: bool = False
    etcd_minors: tuple[tuple[str, EtcdMinor], ...] = ()
    keeps_one: bool = False
    works_as: EtcdMinor | None = None
    downgrade: EtcdMinor | None = None
    events_works_as: EtcdMinor | None = None
    events_downgrade: EtcdMinor | None = None
    reattachable: bool = False
    kubelets: bool = True
    expired: frozenset[tuple[str, str]] = frozenset()
    consent: Consent = field(default_factory=Consent)
    standby: Slot | None = None
    settings: Settings = field(
        default_factory=lambda: Settings(
            ttl=2.0,
            drain=1.0,
            start=3.0,
            first_start=2.0,
            first_ready=3.0,
            history=1.0,
            kubelets=2.0,
            healing=HealingBounds(budget=0),
        )
    )

    @property
    def fixed(self) -> bool:
        """As in ``World``."""
        return self.front is not None and not self.promoted

    def of(self, cluster: Cluster) -> Self:
        """The same truth, with that cluster in place of the main one."""
        return self if cluster is Cluster.MAIN else self._events

    @cached_property
    def _events(self) -> Self:
        return replace(
            self,
            memory=self.memory.of(Cluster.EVENTS),
            replicas=tuple((name, each.of_events()) for name, each in self.replicas),
            leader=self.events_leader,
            full=self.events_full,
            works_as=self.events_works_as,
            downgrade=self.events_downgrade,
        )

    def with_events(self, changed: Truth) -> Self:
        """This truth, with the members, their data and the leader of the events' cluster as in ``changed``, which came
        of ``of``.
        """
        replicas = {
            name: replace(self.replica(name), events=each.member, events_data=each.data)
            for name, each in changed.replicas
        }
        # A member that no record names is all that there is of it.
        rest = {name: each for name, each in self.replicas if name not in replicas and each.member is not None}
        return replace(
            self,
            replicas=tuple(sorted((replicas | rest).items(), key=lambda entry: entry[0])),
            events_leader=changed.leader,
            events_full=changed.full,
            events_works_as=changed.works_as,
            events_downgrade=changed.downgrade,
            next_member=changed.next_member,
        )

    @cached_property
    def _by_name(self) -> dict[str, SimReplica]:
        return dict(self.replicas)

    @cached_property
    def _sites(self) -> dict[str, str]:
        return {record.name: record.site for record in self.memory.replicas}

    @cached_property
    def _machines(self) -> dict[str, SimMachine]:
        by_name = {machine.name: machine for machine in self.machines}
        return {record.name: by_name[record.machine] for record in self.memory.replicas}

    @property
    def recorded(self) -> Collection[str]:
        """The names of the replicas in the memory."""
        return self._sites.keys()

    @cached_property
    def reloads(self) -> bool:
        """Whether there are revisions that differ in files which running programs reload."""
        return any(change.reload for _, _, change in self.changes)

    def replica(self, name: str) -> SimReplica:
        """The content of a replica's machine."""
        return self._by_name.get(name, NOTHING)

    def with_replica(self, name: str, replica: SimReplica | None) -> Self:
        """The same truth with one replica changed, or removed."""
        changed = dict(self.replicas)
        changed.pop(name, None)
        if replica is not None:
            changed[name] = replica
        return replace(self, replicas=tuple(sorted(changed.items(), key=lambda entry: entry[0])))

    def machine_of(self, name: str) -> SimMachine:
        """The machine of a recorded replica."""
        return self._machines[name]

    def site_of(self, name: str) -> str:
        """The site of a recorded replica; "" for a member that no record names."""
        return self._sites.get(name, "")

    def up(self, name: str) -> bool:
        """Whether the machine of a replica runs; False for a member that no record names."""
        return name in self._machines and self._machines[name].power is Power.ON

    def answers(self, name: str) -> bool:
        """Whether its machine also answers the manager."""
        return self.up(name) and self._machines[name].name not in self.unreachable

    def etcd_answers(self, name: str) -> bool:
        """Whether its member answers the manager, healthy or not."""
        if name not in self._sites or name not in self._live:
            return False  # nobody asks a member that no record names
        return not self.is_mute(etcd_of(name), self._sites[name])

    @cached_property
    def tells_members(self) -> bool:
        """Whether the manager can read the membership: from the leader; or from a follower, where the leader is a
        member that no record names.
        """
        if self.elected is None or self.is_mute(ETCD):
            return False
        asked = {self.elected} if self.elected in self._sites else self.following
        return any(map(self.etcd_answers, asked))

    def apiserver_answers(self, name: str) -> bool:
        """Whether the manager can reach its apiserver."""
        return not self.is_mute(apiserver_of(name), self.site_of(name))

    def edge_answers(self, site: str) -> bool:
        """Whether the machine of a site's load balancer answers the manager."""
        return not self.is_mute(edge(site), site)

    @cached_property
    def members(self) -> dict[str, SimMember]:
        """The members by replica."""
        return {name: replica.member for name, replica in self.replicas if replica.member is not None}

    def taken_for(self, name: str) -> str:
        """The replica that the manager takes a member for ("": none): that of which its id was noted; before that, the
        one whose peer URL it has, or, if it has begun, whose name.
        """
        if name not in self._sites:
            return ""
        record, member = self.memory.replica(name), self.members[name]
        if record.member_id:
            return name if record.member_id == member.id else ""
        return name if not member.found_at or record.started or name in self.memory.bootstrap else ""

    @cached_property
    def displacing(self) -> dict[str, int]:
        """By replica, the id of the member of another one that the others look for at its peer URL."""
        return {each.found_at: each.id for each in self.members.values() if each.found_at}

    def with_id(self, number: int) -> str | None:
        """The replica whose member has this id."""
        return next((name for name, member in self.members.items() if member.id == number), None)

    @cached_property
    def _live(self) -> frozenset[str]:
        """The members whose etcd runs on its data, with certificates that others accept. One that no record names does
        so on a machine of somebody's.
        """
        return frozenset(
            name
            for name, replica in self.replicas
            if replica.member is not None and replica.data and replica.runs(Component.ETCD)
            if self.up(name) or name not in self._sites
            if not self.hangs(replica, Component.ETCD)
            if not self.expired or (name, dict(replica.shapes).get(Component.ETCD, "")) not in self.expired
        )

    @cached_property
    def etcds(self) -> dict[str, EtcdMinor]:
        """By member, the minor version of the etcd that it was started with; a member without one may have any."""
        minors = dict(self.etcd_minors)
        shapes = ((name, dict(replica.shapes).get(Component.ETCD, "")) for name, replica in self.replicas)
        return {name: minors[shape] for name, shape in shapes if shape in minors and name in self.members}

    @cached_property
    def electable(self) -> tuple[str, ...]:
        """The voters that a quorum can follow; one that lags only where no other can (raft: a vote is given to none
        whose log is older).
        """
        votes = sorted(name for name, member in self.members.items() if not member.learner)
        able = tuple(
            name
            for name in votes
            if name in self._live and len(self._followers(name).intersection(votes)) >= quorum(len(votes))
        )
        return tuple(name for name in able if not self.members[name].behind) or able

    @cached_property
    def elected(self) -> str | None:
        """The leader: the previous one if it can still lead, else the first member that can be elected."""
        return self.leader if self.leader in self.electable else next(iter(self.electable), None)

    @cached_property
    def following(self) -> frozenset[str]:
        """The members that follow a leader which a quorum follows."""
        return self._followers(self.elected) if self.elected is not None else frozenset()

    def lags(self, name: str) -> bool:
        """Whether a member is behind a leader that it hears, and never catches up."""
        slow = Component.ETCD in self.replica(name).slow
        return slow and bool(self.members[name].behind) and name in self.following and name != self.elected

    @cached_property
    def healthy(self) -> frozenset[str]:
        """The members that follow, and serve clients."""
        return frozenset(name for name in self.following if not self.members[name].unserved)

    @cached_property
    def voters(self) -> frozenset[Voter]:
        """The voters, for quorum arithmetic."""
        return frozenset(
            Voter(name, self.site_of(name), name in self.healthy)
            for name, member in self.members.items()
            if not member.learner
        )

    @cached_property
    def quorum_site(self) -> str | None:
        """The site that holds a quorum by itself."""
        return quorum_site(self.voters)

    @cached_property
    def separate(self) -> frozenset[str]:
        """The revisions whose apiservers keep events in a cluster of their own."""
        return self.programs.having(Component.EVENTS_ETCD)

    def keeps_events_apart(self, name: str) -> bool:
        """Whether the apiserver that is started for a replica has the events' cluster for them."""
        return dict(self.replica(name).shapes).get(Component.APISERVER, "") in self.separate

    @cached_property
    def serving(self) -> frozenset[str]:
        """The replicas whose apiserver answers clients with 200 on /readyz."""
        return frozenset(
            name
            for name, replica in self.replicas
            if replica.warm
            and replica.runs(Component.APISERVER)
            and Component.APISERVER not in replica.hung
            and name in self.healthy
            and replica.member is not None
            and not replica.member.learner
        )

    @cached_property
    def well_behind(self) -> dict[str, frozenset[str]]:
        """Per load balancer that runs, its backends that serve and that it can talk with."""
        return {
            site: frozenset(name for name in names & self.serving if self.connected(site, self._sites[name]))
            for site, names in self.balancers
            if self.balances(site)
        }

    # What tests override too

    def _followers(self, leader: str) -> frozenset[str]:
        """The live members that talk with the would-be leader, itself included."""
        return self._live

    def hangs(self, replica: SimReplica, component: Component) -> bool:
        """Whether a program runs, and never becomes ready (again)."""
        return component in replica.hung

    @property
    def alarms(self) -> tuple[str, ...]:
        """The alarms of etcd, as it reports them."""
        return ("alarm:NOSPACE",) * self.full

    def balancer_facts(self) -> tuple[BalancerFact, ...]:
        """The load balancers as a manager sees them."""
        held_healthy = dict(self.checked)
        return tuple(
            BalancerFact(site=site, running=True, backends=names, healthy=held_healthy.get(site, frozenset()))
            for site, names in self.balancers
        )


#: What is of one class before and after something happens.
AnyTruth = TypeVar("AnyTruth", bound=Truth)
