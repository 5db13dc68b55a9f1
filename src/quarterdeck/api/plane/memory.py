"""The planner's memory as the plane's status stores it: a mirror of ``quarterdeck.model.memory``.

Each part has its own class here, since fields that a newer version has stored are kept and written back unchanged
(``Model``): the planner's own parts have no place for unknown fields. A table maps the parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from quarterdeck.api.base import Model
from quarterdeck.model.clusters import ClusterMemory, Full, MemberMemory
from quarterdeck.model.epochs import BackupOrigin, MemberWord, Seed, StandbyOrigin, SurvivorOrigin
from quarterdeck.model.memory import Condemned, KeptData, LeftBehind, Lifetime, Memory, Rejection, Replica, Timeline
from quarterdeck.model.seats import HostPort, Seat, SeatPort, Slot

#: An id that etcd assigned, in hexadecimal as etcdctl prints it: many JSON readers have no 64-bit numbers.
EtcdId = Annotated[str, Field(pattern="^[0-9a-f]{1,16}$")]


class SlotStatus(Model):
    """A ``model.seats.Slot``."""

    site: str
    zone: str


class EndpointStatus(Model):
    """A ``model.seats.HostPort``."""

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
    standby: bool = False


class MomentStatus(Model):
    """A name, and its start time (seconds on the memory's timeline, which is close to seconds since 1970)."""

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
    """A ``model.epochs.MemberWord``."""

    replica: str
    term: int
    committed: int
    applied: int
    revision: int
    learner: bool
    follows: bool
    voters: tuple[str, ...]


class SurvivorOriginStatus(Model):
    """A ``model.epochs.SurvivorOrigin``."""

    replica: str
    others: tuple[WordStatus, ...] = ()


class StandbyOriginStatus(Model):
    """A ``model.epochs.StandbyOrigin``. The field tells it from a ``SurvivorOriginStatus``."""

    standby: str


class BackupOriginStatus(Model):
    """A ``model.epochs.BackupOrigin``."""

    store: str
    folder: str
    epoch: int


class SeedStatus(Model):
    """A ``model.epochs.Seed``."""

    origin: SurvivorOriginStatus | BackupOriginStatus | StandbyOriginStatus
    founder: str
    revision: int
    seen: int
    restored: bool = False
    served: float | None = None


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
    seed: SeedStatus | None = None


class MemoryStatus(Model):
    """A ``model.memory.Memory``. ``held`` names sites, ``draining`` replicas, ``unready``, ``unhealthy`` and
    ``revived`` units, ``down`` replicas, ``healed`` machines.
    """

    next_ordinal: int = 1
    replicas: tuple[ReplicaStatus, ...] = ()
    bootstrap: tuple[str, ...] = ()
    created: bool = False
    cluster_id: EtcdId = "0"
    revision: int = 0
    served_site: str | None = None
    held: tuple[MomentStatus, ...] = ()
    draining: tuple[MomentStatus, ...] = ()
    unready: tuple[MomentStatus, ...] = ()
    down: tuple[MomentStatus, ...] = ()
    condemned: tuple[CondemnedStatus, ...] = ()
    healed: tuple[MomentStatus, ...] = ()
    unhealthy: tuple[MomentStatus, ...] = ()
    revived: tuple[MomentStatus, ...] = ()
    timeline: TimelineStatus | None = None
    unsettled: tuple[str, ...] = ()
    rejected: RejectionStatus | None = None
    proven: bool = True
    readable: str = ""
    #: The revision with another minor version of etcd for which all members were taken back.
    lowered: str = ""
    longer: LifetimeStatus | None = None
    events: ClusterStatus = ClusterStatus()
    full: FullStatus | None = None
    epoch: int = 0
    seed: SeedStatus | None = None
    kept: tuple[KeptDataStatus, ...] = ()
    quorum_lost: float | None = None
    left: tuple[LeftBehindStatus, ...] = ()


#: The stored class of each part of the memory: the fields have the same names.
_STORED: Mapping[type, type[Model]] = {
    Slot: SlotStatus,
    HostPort: EndpointStatus,
    SeatPort: SeatPortStatus,
    Seat: SeatStatus,
    MemberMemory: MemberStatus,
    Replica: ReplicaStatus,
    Timeline: TimelineStatus,
    Rejection: RejectionStatus,
    Condemned: CondemnedStatus,
    Lifetime: LifetimeStatus,
    Full: FullStatus,
    MemberWord: WordStatus,
    SurvivorOrigin: SurvivorOriginStatus,
    BackupOrigin: BackupOriginStatus,
    StandbyOrigin: StandbyOriginStatus,
    Seed: SeedStatus,
    KeptData: KeptDataStatus,
    LeftBehind: LeftBehindStatus,
    ClusterMemory: ClusterStatus,
    Memory: MemoryStatus,
}
_KNOWN: Mapping[type[Model], type] = {stored: kind for kind, stored in _STORED.items()}
#: Fields with another stored form: an ``EtcdId`` is a number in the memory, a ``MomentStatus`` a pair.
_IDS = frozenset({"cluster_id", "member_id"})
_MOMENTS = frozenset({"held", "draining", "unready", "down", "healed", "unhealthy", "revived"})


def memory_to_status(memory: Memory) -> MemoryStatus:
    """The planner's memory in its stored form."""
    status: MemoryStatus = _stored(memory)
    return status


def memory_from_status(status: MemoryStatus) -> Memory:
    """The planner's memory from its stored form."""
    memory: Memory = _known(status)
    return memory


def _stored(value: Any) -> Any:
    kind = _STORED.get(type(value))
    if kind is not None:
        return kind(**{name: _stored_field(name, getattr(value, name)) for name in kind.model_fields})
    return tuple(map(_stored, value)) if isinstance(value, tuple) else value


def _stored_field(name: str, value: Any) -> Any:
    if name in _IDS:
        return f"{value:x}"
    if name in _MOMENTS:
        return tuple(MomentStatus(name=each, time=since) for each, since in value)
    return _stored(value)


def _known(value: Any, **others: Any) -> Any:
    """The planner's form of a stored value. ``others`` are fields that are not stored with it."""
    kind = _KNOWN.get(type(value))
    if kind is not None:
        return kind(**{name: _known_field(name, value) for name in type(value).model_fields}, **others)
    return tuple(map(_known, value)) if isinstance(value, tuple) else value


def _known_field(name: str, of: Any) -> Any:
    value = getattr(of, name)
    if name in _IDS:
        return int(value, 16)
    if name in _MOMENTS:
        return tuple((each.name, each.time) for each in value)
    if name == "seat" and value is not None:
        return _known(value, machine=of.machine)
    return _known(value)
