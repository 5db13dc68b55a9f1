"""The planner's memory as the plane's status keeps it: a mirror of ``quarterdeck.model.memory``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quarterdeck.api.base import Model
from quarterdeck.model.clusters import ClusterMemory, Full, MemberMemory
from quarterdeck.model.memory import Lifetime, Memory, Rejection, Replica, Timeline
from quarterdeck.model.seats import Endpoint, Seat, SeatPort
from quarterdeck.model.slots import Role, Slot


class SlotStatus(Model):
    """A ``model.slots.Slot``.

    ``storage_class``, ``index`` and ``temporary`` were parts of it once: the first is the replica's own now, the others
    tell nothing any more.
    """

    site: str
    zone: str
    role: Role = Role.VOTER
    storage_class: str | None = None
    index: int | None = None
    temporary: bool | None = None


class EndpointStatus(Model):
    """A ``model.seats.Endpoint``."""

    host: str
    port: int


class SeatPortStatus(Model):
    """A ``model.seats.SeatPort``."""

    name: str
    listen: EndpointStatus
    advertised: EndpointStatus


class SeatStatus(Model):
    """A ``model.seats.Seat``; its machine is the replica's."""

    ports: tuple[SeatPortStatus, ...]


class MemberStatus(Model):
    """A ``model.clusters.MemberMemory``."""

    epoch: int
    storage_class: str = ""
    listed: bool = False
    restarted: bool = False
    started: bool = False
    differs: bool = False


class ReplicaStatus(Model):
    """A ``model.memory.Replica``. ``served`` was not always written down: it may have. Nor were ``revision`` and
    ``seat``.
    """

    name: str
    slot: SlotStatus
    machine: str
    storage_class: str | None = None
    revision: str = ""
    seat: SeatStatus | None = None
    listed: bool = False
    restarted: bool = False
    started: bool = False
    differs: bool = False
    served: bool = True
    events: MemberStatus | None = None


class Moment(Model):
    """Something named, and since when (seconds on the memory's timeline, which read like seconds since 1970)."""

    name: str
    time: float


class TimelineStatus(Model):
    """A ``model.memory.Timeline``."""

    boot: str
    ahead: float


class RejectionStatus(Model):
    """A ``model.memory.Rejection``."""

    revision: str
    why: str


class LifetimeStatus(Model):
    """A ``model.memory.Lifetime``."""

    ttl: float
    until: float | None = None


class FullStatus(Model):
    """A ``model.clusters.Full``."""

    since: float
    revision: int
    compacted: bool = False
    defragmented: tuple[str, ...] = ()


ClusterId = Annotated[str, Field(pattern="^[0-9a-f]{1,16}$")]


class ClusterStatus(Model):
    """A ``model.clusters.ClusterMemory``; its id is written as the main cluster's."""

    epoch: int = 0
    bootstrap: tuple[str, ...] = ()
    created: bool = False
    cluster_id: ClusterId = "0"
    revision: int = 0
    full: FullStatus | None = None


class MemoryStatus(Model):
    """A ``model.memory.Memory``. ``held`` names sites, ``draining`` replicas, ``unready`` units; ``cluster_id`` is in
    hexadecimal, as etcd prints it, since many readers of JSON know no numbers of 64 bits.
    """

    next_ordinal: int = 1
    replicas: tuple[ReplicaStatus, ...] = ()
    bootstrap: tuple[str, ...] = ()
    created: bool = False
    cluster_id: ClusterId = "0"
    revision: int = 0
    served_site: str | None = None
    held: tuple[Moment, ...] = ()
    draining: tuple[Moment, ...] = ()
    unready: tuple[Moment, ...] = ()
    timeline: TimelineStatus | None = None
    unsettled: tuple[str, ...] = ()
    rejected: RejectionStatus | None = None
    longer: LifetimeStatus | None = None
    events: ClusterStatus = ClusterStatus()
    full: FullStatus | None = None


def memory_to_status(memory: Memory) -> MemoryStatus:
    """The planner's memory, as it is written down."""
    return MemoryStatus(
        next_ordinal=memory.next_ordinal,
        replicas=tuple(_replica_to_status(replica) for replica in memory.replicas),
        bootstrap=memory.bootstrap,
        created=memory.created,
        cluster_id=f"{memory.cluster_id:x}",
        revision=memory.revision,
        served_site=memory.served_site,
        held=_moments(memory.held),
        draining=_moments(memory.draining),
        unready=_moments(memory.unready),
        timeline=_timeline_to_status(memory.timeline),
        unsettled=memory.unsettled,
        rejected=_rejection_to_status(memory.rejected),
        longer=LifetimeStatus(ttl=memory.longer.ttl, until=memory.longer.until) if memory.longer is not None else None,
        events=_cluster_to_status(memory.events),
        full=_full_to_status(memory.full),
    )


def memory_from_status(status: MemoryStatus) -> Memory:
    """What was written down, as the planner takes it."""
    return Memory(
        next_ordinal=status.next_ordinal,
        replicas=tuple(_replica_from_status(replica) for replica in status.replicas),
        bootstrap=status.bootstrap,
        created=status.created,
        cluster_id=int(status.cluster_id, 16),
        revision=status.revision,
        served_site=status.served_site,
        held=tuple((moment.name, moment.time) for moment in status.held),
        draining=tuple((moment.name, moment.time) for moment in status.draining),
        unready=tuple((moment.name, moment.time) for moment in status.unready),
        timeline=_timeline_from_status(status.timeline),
        unsettled=status.unsettled,
        rejected=_rejection_from_status(status.rejected),
        longer=Lifetime(ttl=status.longer.ttl, until=status.longer.until) if status.longer is not None else None,
        events=_cluster_from_status(status.events),
        full=_full_from_status(status.full),
    )


def _replica_to_status(replica: Replica) -> ReplicaStatus:
    slot = replica.slot
    return ReplicaStatus(
        name=replica.name,
        slot=SlotStatus(site=slot.site, zone=slot.zone, role=slot.role),
        machine=replica.machine,
        storage_class=replica.storage_class,
        revision=replica.revision,
        seat=_seat_to_status(replica.seat),
        listed=replica.listed,
        restarted=replica.restarted,
        started=replica.started,
        differs=replica.differs,
        served=replica.served,
        events=_member_to_status(replica.events),
    )


def _replica_from_status(status: ReplicaStatus) -> Replica:
    slot = status.slot
    return Replica(
        name=status.name,
        slot=Slot(site=slot.site, zone=slot.zone, role=slot.role),
        machine=status.machine,
        storage_class=status.storage_class or slot.storage_class or "",
        revision=status.revision,
        seat=_seat_from_status(status.machine, status.seat),
        listed=status.listed,
        restarted=status.restarted,
        started=status.started,
        differs=status.differs,
        served=status.served,
        events=_member_from_status(status.events),
    )


def _member_to_status(member: MemberMemory | None) -> MemberStatus | None:
    if member is None:
        return None
    return MemberStatus(
        epoch=member.epoch,
        storage_class=member.storage_class,
        listed=member.listed,
        restarted=member.restarted,
        started=member.started,
        differs=member.differs,
    )


def _member_from_status(status: MemberStatus | None) -> MemberMemory | None:
    if status is None:
        return None
    return MemberMemory(
        epoch=status.epoch,
        storage_class=status.storage_class,
        listed=status.listed,
        restarted=status.restarted,
        started=status.started,
        differs=status.differs,
    )


def _cluster_to_status(cluster: ClusterMemory) -> ClusterStatus:
    return ClusterStatus(
        epoch=cluster.epoch,
        bootstrap=cluster.bootstrap,
        created=cluster.created,
        cluster_id=f"{cluster.cluster_id:x}",
        revision=cluster.revision,
        full=_full_to_status(cluster.full),
    )


def _cluster_from_status(status: ClusterStatus) -> ClusterMemory:
    return ClusterMemory(
        epoch=status.epoch,
        bootstrap=status.bootstrap,
        created=status.created,
        cluster_id=int(status.cluster_id, 16),
        revision=status.revision,
        full=_full_from_status(status.full),
    )


def _full_to_status(full: Full | None) -> FullStatus | None:
    if full is None:
        return None
    return FullStatus(
        since=full.since, revision=full.revision, compacted=full.compacted, defragmented=full.defragmented
    )


def _full_from_status(status: FullStatus | None) -> Full | None:
    if status is None:
        return None
    return Full(
        since=status.since, revision=status.revision, compacted=status.compacted, defragmented=status.defragmented
    )


def _seat_to_status(seat: Seat | None) -> SeatStatus | None:
    if seat is None:
        return None
    return SeatStatus(
        ports=tuple(
            SeatPortStatus(
                name=each.name,
                listen=EndpointStatus(host=each.listen.host, port=each.listen.port),
                advertised=EndpointStatus(host=each.advertised.host, port=each.advertised.port),
            )
            for each in seat.ports
        )
    )


def _seat_from_status(machine: str, status: SeatStatus | None) -> Seat | None:
    if status is None:
        return None
    return Seat(
        machine=machine,
        ports=tuple(
            SeatPort(
                name=each.name,
                listen=Endpoint(each.listen.host, each.listen.port),
                advertised=Endpoint(each.advertised.host, each.advertised.port),
            )
            for each in status.ports
        ),
    )


def _timeline_to_status(timeline: Timeline | None) -> TimelineStatus | None:
    return TimelineStatus(boot=timeline.boot, ahead=timeline.ahead) if timeline is not None else None


def _timeline_from_status(status: TimelineStatus | None) -> Timeline | None:
    return Timeline(boot=status.boot, ahead=status.ahead) if status is not None else None


def _rejection_to_status(rejected: Rejection | None) -> RejectionStatus | None:
    return RejectionStatus(revision=rejected.revision, why=rejected.why) if rejected is not None else None


def _rejection_from_status(status: RejectionStatus | None) -> Rejection | None:
    return Rejection(revision=status.revision, why=status.why) if status is not None else None


def _moments(pairs: tuple[tuple[str, float], ...]) -> tuple[Moment, ...]:
    return tuple(Moment(name=name, time=time) for name, time in pairs)
