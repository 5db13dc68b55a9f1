"""Facts that cannot be observed, and so are stored in the plane's status (written with compare-and-swap)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from quarterdeck.model.clusters import Cluster, ClusterMemory, Full, MemberMemory
from quarterdeck.model.components import Component, ReplicaPrograms
from quarterdeck.model.epochs import Seed
from quarterdeck.model.seats import Seat, Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A replica with a name and a machine."""

    #: Never used again for another replica.
    name: str
    slot: Slot
    machine: str
    #: The storage class of its volume.
    storage_class: str = ""
    #: The revision that it must run.
    revision: str = ""
    #: Its place on the machine; None only in tests of the planner's rules.
    seat: Seat | None = None
    listed: bool = False  # etcd has listed it as a member: once removed, it can never come back
    member_id: int = 0  # etcd's id of that member, its only unique name (0: not known yet)
    restarted: bool = False  # its etcd was restarted because it missed its own publication
    served: bool = False  # clients are, or were, led to it
    started: bool = False  # it was a healthy member: from then on an empty data folder is lost data
    differs: bool = False  # the data of its member differs from most
    events: MemberMemory | None = None  # its member of the events' cluster (None: it has none)
    epoch: int = 0  # the epoch of the main cluster in which it was placed
    standby: bool = False  # its member is a learner that is never promoted, and only that runs there

    @property
    def site(self) -> str:
        """The site that the replica's machine is at."""
        return self.slot.site

    def programs(self, known: ReplicaPrograms) -> tuple[Component, ...]:
        """Its programs: those of its revision; a member of the events' cluster counts from when it gets that until it
        loses it, whatever its revision says.
        """
        if self.standby:
            return (Component.ETCD,)
        has = {*known.of(self.revision)} - {Component.EVENTS_ETCD}
        if self.events is not None:
            has.add(Component.EVENTS_ETCD)
        return tuple(each for each in known.every if each in has)

    def of(self, cluster: Cluster, epoch: int | None) -> Replica:
        """The same replica, with its member of that cluster in place of the main one. A member of another epoch than
        the cluster's present one (None: the cluster does not exist) does not count.
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
class KeptData:
    """Data of a former epoch: that of a released replica, which is kept on its machine."""

    site: str
    machine: str
    replica: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBehind:
    """A machine from which a replica was moved with its data: its units, and its seat, are still there."""

    site: str
    machine: str
    replica: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A revision that was rejected, because a program of a replica that runs it exited repeatedly, or was not ready for
    long; ``why`` has the error that the program reported.
    """

    revision: str
    why: str


#: The programs for which a replica is condemned whose member is down: "" is its machine.
_OF_NO_USE = ("", Component.ETCD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condemned:
    """A replica that is marked for replacement, because it is dead, or because one of its programs stays unhealthy."""

    replica: str
    why: str
    #: When that was decided.
    since: float
    #: The unhealthy program; "": the machine is dead.
    program: str = ""
    #: Only its member of the events' cluster is replaced; the replica stays.
    alone: bool = False

    @property
    def description(self) -> str:
        """The thing that is marked for replacement, for people."""
        return f"{self.program} of {self.replica}" if self.alone else self.replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """A time to live (``ttl`` seconds) of returned addresses that is longer than the one of the spec: last returned at
    ``until`` (None: it still is).
    """

    ttl: float
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The clock of the times of a memory: the steady clock of ``boot`` (of one host), plus ``ahead`` seconds, so that
    they read like wall times of when the timeline began.
    """

    boot: str
    ahead: float


def since(before: tuple[tuple[str, float], ...], names: tuple[str, ...], now: float) -> tuple[tuple[str, float], ...]:
    """The names with the time since when a fact holds: ``now``, or the earlier time of those in ``before``."""
    known = dict(before)
    return tuple((name, known.get(name, now)) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The plane's memory. Times are in seconds on the ``timeline``; facts about a cluster are about the main one."""

    next_ordinal: int = 1
    replicas: tuple[Replica, ...] = ()
    #: The members of the initial cluster, decided before the first one starts.
    bootstrap: tuple[str, ...] = ()
    #: A quorum of them has answered: from now on an unreadable membership is a failure, not an empty site.
    created: bool = False
    #: etcd's id of the cluster (0: not read yet). Data with another id is not the plane's.
    cluster_id: int = 0
    #: An etcd revision that the cluster has reached. Data with a lower revision is not the plane's.
    revision: int = 0
    #: Where the plane's name was last observed to lead: a site, or ``APISERVERS``.
    served_site: str | None = None
    #: Sites (or ``APISERVERS``) whose address clients may still hold, with the time at which it was last returned.
    held: tuple[tuple[str, float], ...] = ()
    #: Replicas to which no load balancer sends new connections, with the time since when.
    draining: tuple[tuple[str, float], ...] = ()
    #: Programs of the revision in rollout that run without being ready, with the time since when.
    unready: tuple[tuple[str, float], ...] = ()
    #: Wanted replicas that are dead as far as observed, with the time since when.
    down: tuple[tuple[str, float], ...] = ()
    #: Replicas that are marked for replacement.
    condemned: tuple[Condemned, ...] = ()
    #: The machines of replicas that were condemned or revived lately, each with the time.
    healed: tuple[tuple[str, float], ...] = ()
    #: Programs that hang or cannot be started, with the time since when.
    unhealthy: tuple[tuple[str, float], ...] = ()
    #: Unhealthy programs that were restarted lately, each with the time.
    revived: tuple[tuple[str, float], ...] = ()
    #: None: a wall clock, in a memory without any times yet.
    timeline: Timeline | None = None
    #: Sites whose address some DNS server may have returned while not all servers answered the same.
    unsettled: tuple[str, ...] = ()
    #: The last revision that was rejected.
    rejected: Rejection | None = None
    #: A revision has once run with all programs healthy; False: a new plane has none to go back to.
    proven: bool = True
    #: The revision of an older minor version whose programs can read everything that etcd stores; "": none was checked
    #: since a newer one was wanted.
    readable: str = ""
    #: The revision with another minor version of etcd for which all members were taken back: to what its etcd works as,
    #: or further, so that it reads their logs. "": they were not since another revision was wanted.
    lowered: str = ""
    #: The previous, longer time to live of addresses.
    longer: Lifetime | None = None
    #: The events' cluster.
    events: ClusterMemory = field(default_factory=ClusterMemory)
    #: Since when the cluster has no room left; None: it has room.
    full: Full | None = None
    #: How often the main cluster began again, from the data of a survivor or from a backup.
    epoch: int = 0
    #: The origin of the present epoch; None: the cluster was founded empty.
    seed: Seed | None = None
    #: Where data of former epochs is.
    kept: tuple[KeptData, ...] = ()
    #: Since when too few members are left for a quorum; None: there are enough, or it is unknown.
    quorum_lost: float | None = None
    #: Previous machines of replicas that were moved to others.
    left: tuple[LeftBehind, ...] = ()

    def is_former(self, replica: Replica) -> bool:
        """Whether a replica belongs to a former epoch: none of its programs may run."""
        return replica.epoch != self.epoch

    @property
    def standbys(self) -> tuple[Replica, ...]:
        """The standbys of the present epoch: one, and another one while the first is replaced."""
        return tuple(each for each in self.replicas if each.standby and not self.is_former(each))

    @property
    def seeding(self) -> Seed | None:
        """The origin that must still be copied before a new epoch can begin; None if there is none."""
        return self.seed if self.seed is not None and not self.seed.restored else None

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """The etcd clusters of the plane: the main one, and the events' one where it exists."""
        return (Cluster.MAIN, Cluster.EVENTS) if self.events.exists else (Cluster.MAIN,)

    def of(self, cluster: Cluster) -> Memory:
        """The same memory, with that cluster in place of the main one."""
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
            seed=known.seed,
            replicas=tuple(each.of(cluster, known.epoch if known.exists else None) for each in self.replicas),
        )

    @property
    def given_up(self) -> frozenset[str]:
        """The condemned replicas that are of no use: they fill no slot."""
        return frozenset(each.replica for each in self.condemned if each.program in _OF_NO_USE)

    @property
    def leaving(self) -> frozenset[str]:
        """The condemned replicas that vote until their replacement has joined."""
        return frozenset(each.replica for each in self.condemned if each.program not in _OF_NO_USE) - self.renewed

    @property
    def renewed(self) -> frozenset[str]:
        """The replicas of which only the member of the events' cluster is condemned."""
        return frozenset(each.replica for each in self.condemned if each.alone)

    def healed_within(self, window: float, now: float) -> tuple[tuple[str, float], ...]:
        """The machines of replicas that were condemned or revived within ``window`` seconds before ``now``."""
        return tuple((machine, when) for machine, when in self.healed if now - when < window)

    def with_replica(self, name: str, change: Callable[[Replica], Replica]) -> Memory:
        """The same memory with one record changed; unchanged if no record has that name."""
        return replace(self, replicas=tuple(change(each) if each.name == name else each for each in self.replicas))

    def replica(self, name: str) -> Replica:
        """The record of ``name``; raises KeyError when there is none."""
        for record in self.replicas:
            if record.name == name:
                return record
        raise KeyError(name)
