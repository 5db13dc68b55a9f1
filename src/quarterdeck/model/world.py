"""The observation: everything the planner may know of one plane at one moment.

Unknown is not zero: a fact that could not be read is ``None`` (or ``UNKNOWN``), never a default.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from quarterdeck.model.bounds import Settings
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaChange, ReplicaPrograms
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.leadership import Leadership
from quarterdeck.model.membership import MemberData, MemberFact, Membership, WrongData
from quarterdeck.model.memory import MemberWord, Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.base import Step
from quarterdeck.model.units import MachineState, UnitState


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What the user says of a lost quorum: the ``epoch`` that may begin (None: none), also if others may live; and
    whether one may begin without being asked for, after a while.
    """

    epoch: int | None = None
    even_if_others_live: bool = False
    automatic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFact:
    """What was seen of one recorded replica.

    ``units`` has a state for each component; ``peer_up`` says whether etcd's peer port answers; ``ready`` is the
    apiserver's /readyz (None: unknown); ``has_data`` whether the member's data folder holds a write-ahead log (None:
    unknown); ``refused`` why its machine does not start its etcd ("" : it does); ``restless``: programs that have
    ended several times since they were started, ``endings`` why those that do not run ended, in their own words;
    ``quiet``: those that run, are not well, and of which nothing new is seen, each with what it last
    complained of (``engine/observation/quiet_programs.py``); ``silent``: those that run and are not well as far as
    they say, and ``hung`` those of them that were as the very process that they are, or have been that one for long;
    ``frozen`` the managers of sets of controllers among these whose locks will pass on to others. ``altered``: those
    of which somebody else has changed files or flags since they were started. ``loaded``: the revisions as which its
    apiserver says that it has its files (None: it was not asked, or does not say); ``given``: those whose files it was
    given while it runs; ``stuck``: those that it was given and did not take up. What is said of its member is said of
    that of the main cluster; ``events`` has the other one.
    ``reattachable``: all of its volumes can be attached to other machines. ``volume_at``: the machine that one of them
    is seen to be on, or on its way to, which is not its own. ``why``: why its machine does not answer, or
    is slow to, for people.
    """

    name: str
    machine: MachineState
    units: tuple[tuple[Component, UnitState], ...]
    peer_up: bool = False
    ready: bool | None = False
    has_data: bool | None = None
    refused: str = ""
    restless: frozenset[Component] = frozenset()
    endings: tuple[tuple[Component, str], ...] = ()
    quiet: tuple[tuple[Component, str], ...] = ()
    silent: frozenset[Component] = frozenset()
    hung: frozenset[Component] = frozenset()
    frozen: frozenset[Component] = frozenset()
    altered: frozenset[Component] = frozenset()
    loaded: frozenset[str] | None = None
    given: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    events: MemberData = field(default_factory=MemberData)
    reattachable: bool = False
    volume_at: str = ""
    why: str = ""

    def unit(self, component: Component) -> UnitState:
        """The state of one unit; ABSENT when nothing was ever started."""
        return dict(self.units).get(component, UnitState.ABSENT)

    def complaint(self, component: Component) -> str | None:
        """What a program last complained of of which nothing new is seen ("": it wrote nothing); None if it is none."""
        return dict(self.quiet).get(component) if self.quiet else None

    def of(self, cluster: Cluster) -> ReplicaFact:
        """The same facts, with what was seen of its member of that cluster where that of the main one stands."""
        if cluster is Cluster.MAIN:
            return self
        seen = self.events
        return replace(self, peer_up=seen.peer_up, has_data=seen.has_data, refused=seen.refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeFact:
    """One machine that a site's load balancer of this plane runs on. ``named``: clients are to be led to it.
    ``leads``: whoever is led to it is led somewhere (None: it does not answer; ``why``, for people). ``unrouted``: why
    nobody can be, though addresses float between it and others ("": clients can). ``zone`` and ``host``: "": of none,
    or of its own.
    """

    name: str
    named: bool = True
    leads: bool | None = True
    unrouted: str = ""
    zone: str = ""
    host: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerFact:
    """A site's load balancer for this plane, on all of its ``edges`` (none: it is on one, of which no more is known).
    ``backends`` are the replicas that any edge which answers sends new connections to, ``healthy`` those that pass the
    health check of each; one that does not run has neither. ``alike``: all of them run, and send to the same; where
    not, ``common`` is what every edge that answers sends to.
    ``reachable``: every edge that a client may be led to answers, so that it can be told something. ``left``: the
    machine of an edge knows of it, though it does not run there: its supervisor may start it at any moment.
    """

    site: str
    running: bool
    left: bool = False
    reachable: bool = True
    backends: frozenset[str] = frozenset()
    healthy: frozenset[str] = frozenset()
    alike: bool = True
    common: frozenset[str] = frozenset()
    connections: int = 0
    edges: tuple[EdgeFact, ...] = ()

    @property
    def there(self) -> bool:
        """Whether anything of it is on a machine: only what is not there is gone."""
        return self.running or self.left

    @property
    def ready(self) -> bool:
        """Whether it leads somewhere."""
        return bool(self.healthy)

    @property
    def everywhere(self) -> frozenset[str]:
        """The replicas that it is seen to send to wherever clients may be led to."""
        return self.backends if self.alike and self.reachable else frozenset()

    @property
    def listed(self) -> frozenset[str]:
        """The replicas that every edge which answers sends to."""
        return self.backends if self.alike else self.common

    @property
    def silent(self) -> frozenset[str]:
        """Its edges that do not answer."""
        return frozenset(each.name for each in self.edges if each.leads is None)

    @property
    def unrouted(self) -> tuple[str, ...]:
        """Its edges to which no address can come that floats between them."""
        return tuple(each.name for each in self.edges if each.unrouted)

    @property
    def on(self) -> tuple[EdgeFact, ...]:
        """Its edges; where no more is known of them there is one."""
        return self.edges or (EdgeFact(name=self.site, leads=self.ready if self.reachable else None),)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFact:
    """A machine that can host replicas. ``host``: machines of one share its fate ("": it is a host of its own).
    ``cordoned``: a person wants it to be given no new one. ``why``: for people, why it does not answer ("": not known),
    or that it is only to be cordoned, by a drain.
    """

    name: str
    site: str
    zone: str
    state: MachineState
    host: str = ""
    cordoned: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A step (without its reason) that fails again and again, and is put aside for a moment. ``told``: the step and its
    last error, in one line for people.
    """

    step: Step
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One plane, observed. ``now`` is when that began, in seconds on the memory's timeline, which no step of a wall
    clock moves. ``plane_name`` is for commands that messages suggest.

    What is wanted: ``slots``, of ``revision``, with volumes of ``storage_class``. ``changes``: what it takes to bring a
    replica from one revision (the first) to another. ``via`` are those that replicas may have to be of before, the one
    nearest to the goal last; ``apart`` the pairs of revisions of which no controllers may run at the same time, but for
    the scheduler. ``condemned``: replicas that a person wants exchanged, be they
    well or not; ``cordoned``: those that a person wants left as they are.

    ``membership`` is None when it could not be read from a quorum. ``record`` is the site whose load balancer
    the plane's name resolves to (None: no record). ``wrong``: whose etcd has data that is not the plane's; nothing that
    these say is part of ``membership``. ``front``: the site of the one load balancer at a fixed
    address, for endpoints that have an address and no name. ``direct``: the name is to lead to apiservers themselves;
    where it does, ``record`` is ``APISERVERS``, and ``apiservers`` says of them what is said of a load balancer and its
    backends. ``elsewhere`` are the replicas whose apiserver is not where clients would come to. ``promoted``: the
    address at ``front`` leads to the only replica of the plane itself, or to the load balancer there.

    What else is to be said of the name, in words for people ("" if nothing): ``record_trouble``: why it is not known;
    ``foreign``: why it is somebody else's, and must not be changed; ``torn``: which authoritative servers do not answer
    as the first one does; ``amiss``: why it must be set once more, though it leads to the right site. ``also`` are the
    sites that those lead to.
    ``stamped``: the record carries this driver's token, so that no change of an older driver can come any more.
    ``record_ttl``: for how many seconds its addresses
    are handed out (None: not known, or as wanted). ``name_servers``: how many DNS servers hand them out (None: not
    known; 0: clients need none).

    ``programs``: which programs the replicas of each revision have. ``events_class`` is the storage class that the
    wanted revision gives the events' cluster.
    ``events_membership`` and ``events_wrong`` are that cluster's; all else
    that is said of etcd is said of the main one.

    ``words``: what the members of the main cluster say of themselves, if no quorum of it answers. ``consent``:
    whether it may begin anew then.

    ``leading``: who leads each kind of controllers, as far as an apiserver says. No step follows from it: no program
    is started anew because of what keeps it from leading.

    ``failing``: the steps that are put aside, as the driver remembers them: it is no time yet to try them again.
    """

    slots: tuple[Slot, ...]
    memory: Memory
    now: float
    plane_name: str = ""
    revision: str = ""
    via: tuple[str, ...] = ()
    apart: frozenset[frozenset[str]] = frozenset()
    storage_class: str = ""
    changes: tuple[tuple[str, str, ReplicaChange], ...] = ()
    condemned: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    membership: Membership | None = None
    wrong: tuple[WrongData, ...] = ()
    replicas: tuple[ReplicaFact, ...] = ()
    balancers: tuple[BalancerFact, ...] = ()
    machines: tuple[MachineFact, ...] = ()
    record: str | None = None
    record_known: bool = True
    record_trouble: str = ""
    foreign: str = ""
    torn: str = ""
    amiss: str = ""
    also: tuple[str, ...] = ()
    stamped: bool = True
    record_ttl: float | None = None
    name_servers: int | None = None
    front: str | None = None
    direct: bool = False
    apiservers: BalancerFact = BalancerFact(site=APISERVERS, running=False)
    elsewhere: frozenset[str] = frozenset()
    promoted: bool = False
    deleting: bool = False
    programs: ReplicaPrograms = field(default_factory=ReplicaPrograms)
    events_class: str = ""
    events_membership: Membership | None = None
    events_wrong: tuple[WrongData, ...] = ()
    words: tuple[MemberWord, ...] = ()
    consent: Consent = field(default_factory=Consent)
    leading: tuple[Leadership, ...] = ()
    failing: tuple[Failing, ...] = ()
    settings: Settings = field(default_factory=Settings)

    def controllers(self, replica: Replica) -> tuple[Component, ...]:
        """The programs of a replica that need an apiserver and do nothing for clients."""
        return tuple(each for each in self.programs.of(replica.revision) if each.is_controller)

    def keeps_events_apart(self, revision: str) -> bool:
        """Whether apiservers of a revision keep events in a cluster of their own."""
        return Component.EVENTS_ETCD in self.programs.of(revision)

    def stops(self, change: ReplicaChange) -> frozenset[Component]:
        """The programs that must not run while a change is made: those that are started anew, and what depends on
        them.
        """
        return self.programs.with_dependents(change.restart)

    def of(self, cluster: Cluster) -> World:
        """The same world, with that cluster where the main one stands."""
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
        """The membership of a cluster; None if it could not be read, or if there is no such cluster any more."""
        if cluster is Cluster.MAIN:
            return self.membership
        return self.events_membership if self.memory.events.exists else None

    @property
    def fixed(self) -> bool:
        """Whether clients have an address that always leads to the same load balancer."""
        return self.front is not None and not self.promoted

    @property
    def led_straight(self) -> bool:
        """Whether clients are to be led to apiservers themselves. An address that is promoted goes to a replica's
        machine as long as only one is wanted, at its own site, and none there could not be reached at it.
        """
        if not self.promoted:
            return self.direct
        alone = len(self.slots) == 1 and self.slots[0].site == self.front
        return alone and not any(
            each.site == self.front and each.name in self.elsewhere for each in self.memory.replicas
        )

    @property
    def lifetime(self) -> float:
        """For how many seconds clients may hold an address: the wanted time, or a longer one as long as an answer of
        before may be held.
        """
        longer = self.memory.longer
        handed_out = [self.settings.ttl, self.record_ttl or 0.0]
        if longer is not None and (longer.until is None or self.now - longer.until < longer.ttl):
            handed_out.append(longer.ttl)
        return max(handed_out)

    @property
    def doors(self) -> tuple[BalancerFact, ...]:
        """All that leads clients to apiservers: the load balancers, and the name where it does so by itself."""
        return (*self.balancers, self.apiservers) if self.apiservers.running else self.balancers

    @property
    def unled(self) -> tuple[Leadership, ...]:
        """The kinds of controllers that nobody leads; none of a plane that is to go."""
        return () if self.deleting else tuple(each for each in self.leading if each.led is False)

    @property
    def controls(self) -> bool:
        """Whether all kinds of controllers work, as far as it is known; also of a plane that is to go."""
        return self.deleting or all(each.works for each in self.leading)

    def is_kept_from_leading(self, component: Component) -> bool:
        """Whether something else than its programs keeps all of them from leading: they end then again and again, and
        no other machine would help.
        """
        return any(each.component == component and each.hindered for each in self.leading)

    @property
    def memberships(self) -> tuple[Membership, ...]:
        """Those of all clusters that could be read."""
        return tuple(each for each in map(self.membership_of, Cluster) if each is not None)

    def member(self, replica: str, cluster: Cluster = Cluster.MAIN) -> MemberFact | None:
        """A replica's member of a cluster; None if it has none, or if the membership could not be read."""
        membership = self.membership_of(cluster)
        return membership.of(replica) if membership is not None else None

    def change(self, before: str, after: str) -> ReplicaChange:
        """What it takes to bring a replica from one revision to another; nothing, if nothing else is known."""
        return next((each for one, other, each in self.changes if (one, other) == (before, after)), ReplicaChange())

    def command(self, words: str, *arguments: str) -> str:
        """A command of quarterdeck's on this plane, in quotes, as a person types it."""
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
        """The load balancer of a site; one that does not run if nothing was seen."""
        if site == APISERVERS:
            return self.apiservers
        for fact in self.balancers:
            if fact.site == site:
                return fact
        return BalancerFact(site=site, running=False)
