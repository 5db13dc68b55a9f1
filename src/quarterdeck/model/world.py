"""The observation: everything the planner may know of one plane at one moment.

Unknown is not zero: a fact that could not be read is ``None`` (or ``UNKNOWN``), never a default.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.bounds import Settings
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaChange, ReplicaPrograms
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.epochs import Consent, MemberWord
from quarterdeck.model.leadership import Leadership
from quarterdeck.model.membership import EtcdMinor, MemberData, MemberFact, Membership, WrongData
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.base import Step
from quarterdeck.model.units import MachineState, UnitState


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFact:
    """The observed facts about one recorded replica. Those about its member are about the main cluster."""

    name: str
    machine: MachineState
    #: The state of the unit of each component.
    units: tuple[tuple[Component, UnitState], ...]
    #: Whether etcd's peer port answers.
    peer_up: bool = False
    #: The apiserver's /readyz; None: unknown.
    ready: bool | None = False
    #: Whether the member's data folder holds a write-ahead log; None: unknown.
    has_data: bool | None = None
    #: Why its machine does not start its etcd; "": it does.
    refused: str = ""
    #: Programs that have exited several times since they were started.
    crash_looping: frozenset[Component] = frozenset()
    #: Why the programs that do not run exited, in their own words.
    endings: tuple[tuple[Component, str], ...] = ()
    #: Programs that run, are unhealthy, and report nothing new, each with its last error
    #: (``engine/observation/quiet_programs.py``).
    quiet: tuple[tuple[Component, str], ...] = ()
    #: Programs that run and do not report that they are healthy.
    silent: frozenset[Component] = frozenset()
    #: The silent ones that were healthy as the same process, or have been that process for long.
    hung: frozenset[Component] = frozenset()
    #: The silent managers of controller sets whose locks are about to pass to others.
    frozen: frozenset[Component] = frozenset()
    #: Programs whose files or flags were changed by hand since they were started.
    altered: frozenset[Component] = frozenset()
    #: The revisions that match the files that its apiserver reports to have loaded; None: it did not report any.
    loaded: frozenset[str] | None = None
    #: The revisions whose files its running apiserver was given.
    given: frozenset[str] = frozenset()
    #: The given revisions whose files it did not load in time.
    stuck: frozenset[str] = frozenset()
    #: The facts about its member of the events' cluster.
    events: MemberData = field(default_factory=MemberData)
    #: Whether all of its volumes can be attached to other machines.
    reattachable: bool = False
    #: Another machine that one of its volumes is observed on, or on its way to; "": none.
    volume_at: str = ""
    #: Why its machine does not answer, or is slow to, for people.
    why: str = ""

    def unit(self, component: Component) -> UnitState:
        """The state of one unit; ABSENT when nothing was ever started."""
        return dict(self.units).get(component, UnitState.ABSENT)

    def complaint(self, component: Component) -> str | None:
        """The last error of a program that reports nothing new ("": it wrote none); None for other programs."""
        return dict(self.quiet).get(component) if self.quiet else None

    def of(self, cluster: Cluster) -> ReplicaFact:
        """The same facts, with those of its member of that cluster in place of the main one."""
        if cluster is Cluster.MAIN:
            return self
        seen = self.events
        return replace(self, peer_up=seen.peer_up, has_data=seen.has_data, refused=seen.refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFact:
    """A machine that can host replicas."""

    name: str
    site: str
    zone: str
    state: MachineState
    #: Machines of one host fail together; "": it is a host of its own.
    host: str = ""
    #: It gets no new replicas.
    cordoned: bool = False
    #: For people: why it does not answer ("": unknown), or that a drain is about to cordon it.
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A step (without its reason) that keeps failing, and is in backoff. ``error``: the step and its last error, in one
    line for people.
    """

    step: Step
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One plane, observed. Facts about etcd are about the main cluster, unless their name begins with ``events``."""

    #: The slots that the spec asks for.
    slots: tuple[Slot, ...]
    memory: Memory
    #: When the observation began, in seconds on the memory's timeline, which no jump of a wall clock moves.
    now: float
    #: For commands that messages suggest.
    plane_name: str = ""
    #: The wanted revision.
    revision: str = ""
    #: Intermediate revisions that replicas may have to run first, the one nearest to the goal last.
    via: tuple[str, ...] = ()
    #: Pairs of revisions whose controllers, except the scheduler, must not run at the same time.
    apart: frozenset[frozenset[str]] = frozenset()
    #: The storage class of wanted volumes.
    storage_class: str = ""
    #: The change that brings a replica from one revision (the first) to another.
    changes: tuple[tuple[str, str, ReplicaChange], ...] = ()
    #: By revision, the minor version of its etcd; a revision that is not named is never compared with others.
    etcd_minors: tuple[tuple[str, EtcdMinor], ...] = ()
    #: One replica keeps its older minor version of etcd: the cluster works as that version meanwhile.
    keeps_one: bool = False
    #: Replicas that a person wants replaced, healthy or not.
    condemned: tuple[str, ...] = ()
    #: Replicas that a person excluded from healing and changes.
    cordoned: tuple[str, ...] = ()
    #: Replicas whose members have certificates that have expired. Only looked for where a member is not healthy.
    expired: frozenset[str] = frozenset()
    #: None: it could not be read from a quorum.
    membership: Membership | None = None
    #: Replicas whose etcd has data that is not the plane's; ``membership`` has nothing from their answers.
    wrong: tuple[WrongData, ...] = ()
    replicas: tuple[ReplicaFact, ...] = ()
    balancers: tuple[BalancerFact, ...] = ()
    machines: tuple[MachineFact, ...] = ()
    #: The site to whose load balancer the plane's name resolves, or ``APISERVERS``; None: no record.
    record: str | None = None
    record_known: bool = True
    #: Why the record is unknown, for people.
    record_trouble: str = ""
    #: Why the record belongs to another owner and must not be changed, for people; "": it does not.
    foreign: str = ""
    #: Which authoritative servers answer differently from the first one, for people; "": none.
    torn: str = ""
    #: Why the record must be set again although it leads to the right site, for people; "": it is correct.
    amiss: str = ""
    #: The sites to which the differing servers lead.
    also: tuple[str, ...] = ()
    #: The record carries this driver's token, so no change by an older driver can still arrive.
    stamped: bool = True
    #: The record's time to live in seconds; None: unknown, or the one of the spec.
    record_ttl: float | None = None
    #: How many DNS servers return the record; None: unknown; 0: clients need none.
    name_servers: int | None = None
    #: The site of the one load balancer at a fixed address, for endpoints with an address and no name.
    front: str | None = None
    #: The name must lead to the apiservers themselves.
    direct: bool = False
    #: The apiservers to which the name leads by itself, in the form of a load balancer.
    apiservers: BalancerFact = field(default_factory=lambda: BalancerFact(site=APISERVERS, running=False))
    #: Replicas whose apiserver listens at another port than clients of the name use.
    elsewhere: frozenset[str] = frozenset()
    #: The address at ``front`` is promoted: it leads to the only replica itself, or to the load balancer there.
    promoted: bool = False
    deleting: bool = False
    #: The programs that the replicas of each revision have.
    programs: ReplicaPrograms = field(default_factory=ReplicaPrograms)
    #: The storage class of the events' cluster in the wanted revision.
    events_class: str = ""
    events_membership: Membership | None = None
    events_wrong: tuple[WrongData, ...] = ()
    #: The members' reports about themselves, if no quorum answers.
    words: tuple[MemberWord, ...] = ()
    #: Whether a new epoch may begin then.
    consent: Consent = field(default_factory=Consent)
    #: The leader of each kind of controllers, as an apiserver reports it. No step follows from it: no program is
    #: restarted because something keeps it from leading.
    leading: tuple[Leadership, ...] = ()
    #: Whether a kubelet has renewed its Lease in the present epoch of etcd, or there are none of them; None: unknown.
    kubelets_back: bool | None = None
    #: The place of the standby that the spec asks for; None: it asks for none.
    standby: Slot | None = None
    #: The steps in backoff.
    failing: tuple[Failing, ...] = ()
    settings: Settings = field(default_factory=Settings)

    def controllers(self, replica: Replica) -> tuple[Component, ...]:
        """The programs of a replica that need an apiserver and do not serve clients."""
        return tuple(each for each in self.programs.of(replica.revision) if each.is_controller)

    def keeps_events_apart(self, revision: str) -> bool:
        """Whether apiservers of a revision store events in a separate cluster."""
        return Component.EVENTS_ETCD in self.programs.of(revision)

    def stops(self, change: ReplicaChange) -> frozenset[Component]:
        """The programs that must not run while a change is made: those that are restarted, and their dependents."""
        return self.programs.with_dependents(change.restart)

    def with_memory(self, memory: Memory) -> World:
        """The same observation with a newer memory. What it says of etcd is about the epoch in which it was made."""
        if memory.epoch == self.memory.epoch:
            return replace(self, memory=memory)
        return replace(self, memory=memory, membership=None, events_membership=None, words=())

    def of(self, cluster: Cluster) -> World:
        """The same world, with that cluster in place of the main one."""
        if cluster is Cluster.MAIN:
            return self
        return replace(
            self,
            memory=self.memory.of(cluster),
            storage_class=self.events_class,
            membership=self.membership_of(cluster),
            wrong=self.events_wrong,
            replicas=tuple(each.of(cluster) for each in self.replicas),
        )

    def membership_of(self, cluster: Cluster) -> Membership | None:
        """The membership of a cluster; None if it could not be read, or if the cluster does not exist."""
        if cluster is Cluster.MAIN:
            return self.membership
        return self.events_membership if self.memory.events.exists else None

    @property
    def goal(self) -> str:
        """The site that the spec asks for: all slots are there."""
        return self.slots[0].site

    @property
    def fixed(self) -> bool:
        """Whether clients have an address that always leads to the same load balancer."""
        return self.front is not None and not self.promoted

    @property
    def led_straight(self) -> bool:
        """Whether the name or address must lead to apiservers themselves. A promoted address goes to a replica's
        machine as long as only one replica is wanted, at the address's site, and each there can be reached at it.
        """
        if not self.promoted:
            return self.direct
        alone = len(self.slots) == 1 and self.goal == self.front
        return alone and not any(
            each.site == self.front and each.name in self.elsewhere for each in self.memory.replicas
        )

    @property
    def lifetime(self) -> float:
        """For how many seconds clients may hold an address: the time to live of the spec, or a longer one as long as
        a previous answer may be held.
        """
        longer = self.memory.longer
        handed_out = [self.settings.ttl, self.record_ttl or 0.0]
        if longer is not None and (longer.until is None or self.now - longer.until < longer.ttl):
            handed_out.append(longer.ttl)
        return max(handed_out)

    @property
    def doors(self) -> tuple[BalancerFact, ...]:
        """The load balancers, and the name itself where it leads to apiservers."""
        return (*self.balancers, self.apiservers) if self.apiservers.running else self.balancers

    @property
    def unled(self) -> tuple[Leadership, ...]:
        """The kinds of controllers without a leader that may have one; empty for a plane in deletion."""
        held = Component.CONTROLLER_MANAGER if self.awaits_kubelets else None
        unled = (each for each in self.leading if each.led is False and each.component is not held)
        return () if self.deleting else tuple(unled)

    @property
    def awaits_kubelets(self) -> bool:
        """Whether kube-controller-manager of a new epoch has to wait for a kubelet; for a bounded time."""
        seed, most = self.memory.seed, self.settings.kubelets
        return seed is not None and not self.kubelets_back and (seed.served is None or self.now - seed.served < most)

    @property
    def controls(self) -> bool:
        """Whether all kinds of controllers work, as far as known; true for a plane in deletion."""
        return self.deleting or all(each.works for each in self.leading)

    def is_kept_from_leading(self, component: Component) -> bool:
        """Whether something outside the plane's programs keeps all of them from leading: they exit repeatedly then,
        and no other machine would help.
        """
        return any(each.component == component and each.hindered for each in self.leading)

    @property
    def memberships(self) -> tuple[Membership, ...]:
        """The memberships of all clusters that could be read."""
        return tuple(each for each in map(self.membership_of, Cluster) if each is not None)

    def member(self, replica: str, cluster: Cluster = Cluster.MAIN) -> MemberFact | None:
        """A replica's member of a cluster; None if it has none, or if the membership could not be read."""
        membership = self.membership_of(cluster)
        return membership.of(replica) if membership is not None else None

    def change(self, before: str, after: str) -> ReplicaChange:
        """The change that brings a replica from one revision to another; an empty one if it is unknown."""
        return next((each for one, other, each in self.changes if (one, other) == (before, after)), ReplicaChange())

    def etcd_minor(self, revision: str) -> EtcdMinor | None:
        """The minor version of the etcd of a revision; None if it is unknown."""
        return next((minor for name, minor in self.etcd_minors if name == revision), None)

    def command(self, words: str, *arguments: str) -> str:
        """A quarterdeck command for this plane, in quotes, as a person types it."""
        return f"'{' '.join(('quarterdeck', words, self.plane_name or 'NAME', *arguments))}'"

    def may_run_beside(self, one: str, other: str) -> bool:
        """Whether controllers of two revisions may run at the same time."""
        return not self.apart or frozenset((one, other)) not in self.apart

    def replica(self, name: str) -> ReplicaFact:
        """The facts of a recorded replica; raises KeyError for one that is not recorded."""
        for fact in self.replicas:
            if fact.name == name:
                return fact
        raise KeyError(name)

    def balancer(self, site: str) -> BalancerFact:
        """The load balancer of a site; one that does not run if none was observed."""
        if site == APISERVERS:
            return self.apiservers
        for fact in self.balancers:
            if fact.site == site:
                return fact
        return BalancerFact(site=site, running=False)
