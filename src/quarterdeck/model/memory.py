"""What cannot be observed, and so is kept in the plane's status (written with compare-and-swap)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from quarterdeck.model.clusters import Cluster, ClusterMemory, Full, MemberMemory
from quarterdeck.model.components import Component, ReplicaPrograms
from quarterdeck.model.seats import Seat, Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A replica that was given a name and a machine. Names are never used again.

    ``slot`` is where it is, ``storage_class`` that of its volume. ``revision`` names what it is to run,
    ``seat`` is its place on the machine (None only where nothing but the planner's rules is asked).
    """

    name: str
    slot: Slot
    machine: str
    storage_class: str = ""
    revision: str = ""
    seat: Seat | None = None
    listed: bool = False  # etcd has listed it as a member: once removed, it can never come back
    member_id: int = 0  # what etcd calls that member, the only name that is surely its own (0: not known yet)
    restarted: bool = False  # its etcd was restarted because what it waited for could not come any more
    served: bool = False  # clients were led to it, now or before
    started: bool = False  # it was seen healthy as a member: from then on an empty data folder is lost data
    differs: bool = False  # its member was found to have other data than most
    events: MemberMemory | None = None  # its member of the events' cluster (None: it has none)
    epoch: int = 0  # that of the main cluster in which it was placed

    @property
    def site(self) -> str:
        """The site that the replica's machine is at."""
        return self.slot.site

    def programs(self, known: ReplicaPrograms) -> tuple[Component, ...]:
        """The programs that it has: those of its revision, but a member of the events' cluster from when it gets that
        until it loses it, whatever its revision says.
        """
        has = {*known.of(self.revision)} - {Component.EVENTS_ETCD}
        if self.events is not None:
            has.add(Component.EVENTS_ETCD)
        return tuple(each for each in known.every if each in has)

    def of(self, cluster: Cluster, epoch: int | None) -> Replica:
        """The same replica, with its member of that cluster where that of the main one stands. One of another epoch
        than that of the cluster that there is now (None: there is none) is none.
        """
        if cluster is Cluster.MAIN:
            return self
        found = self.events
        member = found if found is not None and found.epoch == epoch else MemberMemory(epoch=0)
        return replace(
            self,
            storage_class=member.storage_class,
            listed=member.listed,
            member_id=member.member_id,
            restarted=member.restarted,
            started=member.started,
            differs=member.differs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberWord:
    """What a member says of itself while no quorum answers. ``voters``: the replicas whose members vote, by what it has
    applied (or the id of one that belongs to no replica); a learner does not tell. ``committed`` and ``applied`` are
    indexes of raft's log, ``revision`` that of its newest key. ``follows``: it follows a leader, or leads.
    """

    replica: str
    term: int
    committed: int
    applied: int
    revision: int
    learner: bool
    follows: bool
    voters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """What an epoch of the main cluster begins from: the data of the replica ``survivor``, which had ``revision``,
    while the plane was once ``seen`` at another. The one ``founder`` gets a copy; ``restored``: it has it.
    ``others``: what other members that were left said of themselves, the most complete first.
    """

    survivor: str
    founder: str
    revision: int
    seen: int
    restored: bool = False
    others: tuple[MemberWord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptData:
    """Data of a former epoch that is kept aside: that of a replica that was let go, on its machine."""

    site: str
    machine: str
    replica: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBehind:
    """A machine that a replica was taken from with its data: its units, and its seat, are there still."""

    site: str
    machine: str
    replica: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A revision that was given up, since a program of a replica that runs it ended again and again, or was not
    ready for long; ``why`` has the reason that it gave.
    """

    revision: str
    why: str


#: For what a replica is condemned whose member is down: "" is its machine.
_OF_NO_USE = ("", Component.ETCD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condemned:
    """A replica that is to be exchanged, as it is dead, or as a ``program`` of it does not get well: ``why`` says on
    whose word, ``since`` is when that was decided. ``alone``: it keeps its place, and only the member of the events'
    cluster that the program is gives way to another one.
    """

    replica: str
    why: str
    since: float
    program: str = ""
    alone: bool = False

    @property
    def told(self) -> str:
        """What is condemned, for people."""
        return f"{self.program} of {self.replica}" if self.alone else self.replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """A time to live (``ttl`` seconds), longer than the wanted one, with which addresses were handed out: last at
    ``until`` (None: they still are).
    """

    ttl: float
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The clock by which the times of a memory were taken: that of ``boot`` (of one host), which nobody sets, with
    ``ahead`` seconds added so that they read like wall times of when the timeline began.
    """

    boot: str
    ahead: float


def since(before: tuple[tuple[str, float], ...], names: tuple[str, ...], now: float) -> tuple[tuple[str, float], ...]:
    """Since when something is so of each of these: from ``now`` on, but for those of whom it was so ``before``."""
    known = dict(before)
    return tuple((name, known.get(name, now)) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The plane's memory.

    ``bootstrap``: the members of the initial cluster, decided before the first starts; ``created``: a quorum of
    them was seen, so that an unreadable membership from now on means trouble, not an empty site.
    ``cluster_id``: the id that etcd gave the cluster (0: not read yet), ``revision`` an etcd revision that it was seen
    to have: what has another id, or a lower revision, is not the plane's data.
    ``served_site``: where the plane's name was last seen to lead: a site, or ``APISERVERS``.
    ``held``: sites (or that) whose address clients may still hold, with the time at which it was last handed out.
    ``unsettled``: sites whose address some DNS server may have handed out while not all of them answered the same.
    ``draining``: replicas that no load balancer sends new connections to, with the time since when.
    ``unready``: programs of a revision that is rolled out which run without being ready, with the time since when.
    ``down``: wanted replicas that are dead as far as is seen, with the time since when; ``condemned``: those that are
    to be exchanged for it. ``ailing``: programs that hang or cannot be started, with the time since when, and
    ``revived`` those that were started anew for it lately, each with when. ``healed``: the machines of those that were
    condemned or revived lately, each with when.
    ``rejected``: the last revision that was given up. ``proven``: a revision has once run with all programs well
    (False: of a new plane none has yet, so that there is none to go back to). ``longer``: for how long addresses were
    handed out before the time to live became shorter.
    ``events``: the cluster that has the events alone; all that is said of a cluster here is said of the main one.
    ``full``: since when the cluster has no room left (None: it has).
    ``epoch`` counts how often the main cluster was begun anew, ``seed`` says from what the one that there is began
    (None: from nothing), ``kept`` where data of former ones is. ``quorum_lost``: since when there is too little left
    of it for a quorum (None: there is enough, or nobody knows).
    ``left``: where replicas were that are on other machines now.
    ``timeline``: the clock of those times (None: a wall clock, in a memory that nothing was timed in yet).
    """

    next_ordinal: int = 1
    replicas: tuple[Replica, ...] = ()
    bootstrap: tuple[str, ...] = ()
    created: bool = False
    cluster_id: int = 0
    revision: int = 0
    served_site: str | None = None
    held: tuple[tuple[str, float], ...] = ()
    draining: tuple[tuple[str, float], ...] = ()
    unready: tuple[tuple[str, float], ...] = ()
    down: tuple[tuple[str, float], ...] = ()
    condemned: tuple[Condemned, ...] = ()
    healed: tuple[tuple[str, float], ...] = ()
    ailing: tuple[tuple[str, float], ...] = ()
    revived: tuple[tuple[str, float], ...] = ()
    timeline: Timeline | None = None
    unsettled: tuple[str, ...] = ()
    rejected: Rejection | None = None
    proven: bool = True
    longer: Lifetime | None = None
    events: ClusterMemory = field(default_factory=ClusterMemory)
    full: Full | None = None
    epoch: int = 0
    seed: Seed | None = None
    kept: tuple[KeptData, ...] = ()
    quorum_lost: float | None = None
    left: tuple[LeftBehind, ...] = ()

    def is_former(self, replica: Replica) -> bool:
        """Whether a replica is of an epoch that is over: nothing of it is to run any more."""
        return replica.epoch != self.epoch

    @property
    def seeding(self) -> Seed | None:
        """What is still to be copied before the main cluster can begin anew; None if nothing is."""
        return self.seed if self.seed is not None and not self.seed.restored else None

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """The clusters of etcd that the plane has: the main one, and the events' where there is one."""
        return (Cluster.MAIN, Cluster.EVENTS) if self.events.exists else (Cluster.MAIN,)

    def of(self, cluster: Cluster) -> Memory:
        """The same memory, with that cluster where the main one stands."""
        if cluster is Cluster.MAIN:
            return self
        known = self.events
        return replace(
            self,
            bootstrap=known.bootstrap,
            created=known.created,
            cluster_id=known.cluster_id,
            revision=known.revision,
            full=known.full,
            replicas=tuple(each.of(cluster, known.epoch if known.exists else None) for each in self.replicas),
        )

    @property
    def given_up(self) -> frozenset[str]:
        """The replicas that are condemned, and of no use any more: they fill no slot."""
        return frozenset(each.replica for each in self.condemned if each.program in _OF_NO_USE)

    @property
    def leaving(self) -> frozenset[str]:
        """The replicas that are condemned, and vote until another one has come."""
        return frozenset(each.replica for each in self.condemned if each.program not in _OF_NO_USE) - self.renewed

    @property
    def renewed(self) -> frozenset[str]:
        """The replicas of which nothing but their member of the events' cluster is condemned."""
        return frozenset(each.replica for each in self.condemned if each.alone)

    def healed_within(self, window: float, now: float) -> tuple[tuple[str, float], ...]:
        """The machines of those that were condemned or revived within so many seconds before now."""
        return tuple((machine, when) for machine, when in self.healed if now - when < window)

    def with_replica(self, name: str, change: Callable[[Replica], Replica]) -> Memory:
        """The same memory with one record changed; unchanged if there is none of that name."""
        return replace(self, replicas=tuple(change(each) if each.name == name else each for each in self.replicas))

    def replica(self, name: str) -> Replica:
        """The record of ``name``; raises KeyError when there is none."""
        for record in self.replicas:
            if record.name == name:
                return record
        raise KeyError(name)
