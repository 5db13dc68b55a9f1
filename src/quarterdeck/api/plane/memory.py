"""The planner's memory as the plane's status keeps it: a mirror of ``quarterdeck.model.memory``."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from quarterdeck.api.base import Model
from quarterdeck.model.clusters import ClusterMemory, Full, MemberMemory
from quarterdeck.model.memory import (
    Condemned,
    KeptData,
    LeftBehind,
    Lifetime,
    MemberWord,
    Memory,
    Rejection,
    Replica,
    Seed,
    Timeline,
)
from quarterdeck.model.seats import Endpoint, Seat, SeatPort
from quarterdeck.model.slots import Role, Slot

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

M = TypeVar("M", bound=Model)
K = TypeVar("K", bound="DataclassInstance")


#: An id that etcd gave, in hexadecimal as etcdctl prints it: many readers of JSON know no numbers of 64 bits.
EtcdId = Annotated[str, Field(pattern="^[0-9a-f]{1,16}$")]


class SlotStatus(Model):
    """A ``model.slots.Slot``."""

    site: str
    zone: str
    role: Role = Role.VOTER


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
    member_id: EtcdId = "0"
    restarted: bool = False
    started: bool = False
    differs: bool = False


class ReplicaStatus(Model):
    """A ``model.memory.Replica``."""

    name: str
    slot: SlotStatus
    machine: str
    storage_class: str = ""
    revision: str = ""
    seat: SeatStatus | None = None
    listed: bool = False
    member_id: EtcdId = "0"
    restarted: bool = False
    started: bool = False
    differs: bool = False
    served: bool = False
    events: MemberStatus | None = None
    epoch: int = 0


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


class CondemnedStatus(Model):
    """A ``model.memory.Condemned``."""

    replica: str
    why: str
    since: float
    program: str = ""
    alone: bool = False


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


class WordStatus(Model):
    """A ``model.memory.MemberWord``."""

    replica: str
    term: int
    committed: int
    applied: int
    revision: int
    learner: bool
    follows: bool
    voters: tuple[str, ...]


class SeedStatus(Model):
    """A ``model.memory.Seed``."""

    survivor: str
    founder: str
    revision: int
    seen: int
    restored: bool = False
    others: tuple[WordStatus, ...] = ()


class KeptDataStatus(Model):
    """A ``model.memory.KeptData``."""

    site: str
    machine: str
    replica: str


class LeftBehindStatus(Model):
    """A ``model.memory.LeftBehind``."""

    site: str
    machine: str
    replica: str


class ClusterStatus(Model):
    """A ``model.clusters.ClusterMemory``; its id is written as the main cluster's."""

    epoch: int = 0
    bootstrap: tuple[str, ...] = ()
    created: bool = False
    cluster_id: EtcdId = "0"
    revision: int = 0
    full: FullStatus | None = None


class MemoryStatus(Model):
    """A ``model.memory.Memory``. ``held`` names sites, ``draining`` replicas, ``unready``, ``ailing`` and ``revived``
    units, ``down`` replicas, ``healed`` machines.
    """

    next_ordinal: int = 1
    replicas: tuple[ReplicaStatus, ...] = ()
    bootstrap: tuple[str, ...] = ()
    created: bool = False
    cluster_id: EtcdId = "0"
    revision: int = 0
    served_site: str | None = None
    held: tuple[Moment, ...] = ()
    draining: tuple[Moment, ...] = ()
    unready: tuple[Moment, ...] = ()
    down: tuple[Moment, ...] = ()
    condemned: tuple[CondemnedStatus, ...] = ()
    healed: tuple[Moment, ...] = ()
    ailing: tuple[Moment, ...] = ()
    revived: tuple[Moment, ...] = ()
    timeline: TimelineStatus | None = None
    unsettled: tuple[str, ...] = ()
    rejected: RejectionStatus | None = None
    proven: bool = True
    longer: LifetimeStatus | None = None
    events: ClusterStatus = ClusterStatus()
    full: FullStatus | None = None
    epoch: int = 0
    seed: SeedStatus | None = None
    kept: tuple[KeptDataStatus, ...] = ()
    quorum_lost: float | None = None
    left: tuple[LeftBehindStatus, ...] = ()


def memory_to_status(memory: Memory) -> MemoryStatus:
    """The planner's memory, as it is written down."""
    return _told(
        MemoryStatus,
        memory,
        replicas=tuple(map(_replica_to_status, memory.replicas)),
        cluster_id=f"{memory.cluster_id:x}",
        condemned=tuple(_told(CondemnedStatus, each) for each in memory.condemned),
        timeline=_if_any(TimelineStatus, memory.timeline),
        rejected=_if_any(RejectionStatus, memory.rejected),
        longer=_if_any(LifetimeStatus, memory.longer),
        events=_cluster_to_status(memory.events),
        full=_if_any(FullStatus, memory.full),
        seed=_seed_to_status(memory.seed),
        kept=tuple(_told(KeptDataStatus, each) for each in memory.kept),
        left=tuple(_told(LeftBehindStatus, each) for each in memory.left),
        **{name: tuple(Moment(name=who, time=since) for who, since in getattr(memory, name)) for name in _MOMENTS},
    )


def memory_from_status(status: MemoryStatus) -> Memory:
    """What was written down, as the planner takes it."""
    return _known(
        Memory,
        status,
        replicas=tuple(map(_replica_from_status, status.replicas)),
        cluster_id=int(status.cluster_id, 16),
        condemned=tuple(_known(Condemned, each) for each in status.condemned),
        timeline=_back_if_any(Timeline, status.timeline),
        rejected=_back_if_any(Rejection, status.rejected),
        longer=_back_if_any(Lifetime, status.longer),
        events=_cluster_from_status(status.events),
        full=_back_if_any(Full, status.full),
        seed=_seed_from_status(status.seed),
        kept=tuple(_known(KeptData, each) for each in status.kept),
        left=tuple(_known(LeftBehind, each) for each in status.left),
        **{name: tuple((each.name, each.time) for each in getattr(status, name)) for name in _MOMENTS},
    )


#: What is so of something named, and since when.
_MOMENTS = ("held", "draining", "unready", "down", "healed", "ailing", "revived")


def _told(kind: type[M], of: object, **others: Any) -> M:
    """What is written down of something: its fields of the same names, but for ``others``."""
    return kind(**{name: getattr(of, name) for name in kind.model_fields if name not in others}, **others)


def _known(kind: type[K], of: Model, **others: Any) -> K:
    """What was written down, as the planner takes it: the same the other way."""
    names = (each.name for each in fields(kind))
    return kind(**{name: getattr(of, name) for name in names if name not in others}, **others)


def _if_any(kind: type[M], of: object | None) -> M | None:
    return _told(kind, of) if of is not None else None


def _back_if_any(kind: type[K], of: Model | None) -> K | None:
    return _known(kind, of) if of is not None else None


def _replica_to_status(replica: Replica) -> ReplicaStatus:
    slot = replica.slot
    return _told(
        ReplicaStatus,
        replica,
        slot=SlotStatus(site=slot.site, zone=slot.zone, role=slot.role),
        seat=_seat_to_status(replica.seat),
        member_id=f"{replica.member_id:x}",
        events=_member_to_status(replica.events),
    )


def _replica_from_status(status: ReplicaStatus) -> Replica:
    slot = status.slot
    return _known(
        Replica,
        status,
        slot=Slot(site=slot.site, zone=slot.zone, role=slot.role),
        seat=_seat_from_status(status.machine, status.seat),
        member_id=int(status.member_id, 16),
        events=_member_from_status(status.events),
    )


def _member_to_status(member: MemberMemory | None) -> MemberStatus | None:
    return _told(MemberStatus, member, member_id=f"{member.member_id:x}") if member is not None else None


def _member_from_status(status: MemberStatus | None) -> MemberMemory | None:
    return _known(MemberMemory, status, member_id=int(status.member_id, 16)) if status is not None else None


def _cluster_to_status(cluster: ClusterMemory) -> ClusterStatus:
    full = _if_any(FullStatus, cluster.full)
    return _told(ClusterStatus, cluster, cluster_id=f"{cluster.cluster_id:x}", full=full)


def _cluster_from_status(status: ClusterStatus) -> ClusterMemory:
    full = _back_if_any(Full, status.full)
    return _known(ClusterMemory, status, cluster_id=int(status.cluster_id, 16), full=full)


def _seed_to_status(seed: Seed | None) -> SeedStatus | None:
    if seed is None:
        return None
    return _told(SeedStatus, seed, others=tuple(_told(WordStatus, each) for each in seed.others))


def _seed_from_status(status: SeedStatus | None) -> Seed | None:
    if status is None:
        return None
    return _known(Seed, status, others=tuple(_known(MemberWord, each) for each in status.others))


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
