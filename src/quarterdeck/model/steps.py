"""Steps: the only things that the engine ever does, as data.

Each names the one site that it touches, why it is taken (one sentence for a person), and whether it can be undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.seats import Seat
from quarterdeck.model.slots import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What all steps have. ``site`` is "" for steps that only write the plane's status or its DNS record."""

    site: str
    why: str
    undoable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceReplica(Base):
    """Give a slot a replica: a name that was never used, what it is to run, and a machine. The machine's site gives it
    a ``seat`` there when the step is carried out.
    """

    replica: str
    slot: Slot
    machine: str
    storage_class: str = ""
    revision: str = ""
    seat: Seat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideBootstrap(Base):
    """Write down who founds the cluster, before any of them starts; of the events' one, also with volumes of which
    class.
    """

    replicas: tuple[str, ...]
    storage_class: str = ""
    cluster: Cluster = Cluster.MAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteCreated(Base):
    """Write down that the cluster exists: from now on silence is trouble."""

    cluster: Cluster = Cluster.MAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteCluster(Base):
    """Write down which cluster it is, and an etcd revision that it has reached: it can never be below that again."""

    cluster_id: int
    revision: int
    cluster: Cluster = Cluster.MAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteMembers(Base):
    """Write down who is, or was, a member (``listed``), and who was seen healthy as one (``started``)."""

    listed: tuple[str, ...]
    started: tuple[str, ...]
    storage_class: str = ""
    cluster: Cluster = Cluster.MAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptRevision(Base):
    """Write down that a replica is to run another revision: none of the programs that differ runs now."""

    replica: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectRevision(Base):
    """Give a revision up, since a program of a replica that runs it does not: all go back to the one before.
    ``said``: the last words of that program, once it was asked for them.
    """

    revision: str
    replica: str
    component: Component
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUnit(Base):
    """Write a unit's files and start it."""

    replica: str
    component: Component


@dataclass(frozen=True, slots=True, kw_only=True)
class StopUnit(Base):
    """Stop a unit gracefully (the etcd of a deleted plane at once) and see its process gone."""

    replica: str
    component: Component


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartUnit(Base):
    """Kill a unit's process and start it again: once in the life of a replica, while it is only a learner."""

    replica: str
    component: Component


@dataclass(frozen=True, slots=True, kw_only=True)
class AddLearner(Base):
    """Tell etcd of a new member that only listens; one of the events' cluster gets a volume of that class."""

    replica: str
    storage_class: str = ""
    cluster: Cluster = Cluster.MAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote(Base):
    """Make a caught-up learner a voter."""

    replica: str
    member: int
    cluster: Cluster = Cluster.MAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLeadership(Base):
    """Have the leader hand over to another voter."""

    to: str
    member: int
    cluster: Cluster = Cluster.MAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMember(Base):
    """Take a member out for good: its data folder can never come back."""

    replica: str
    member: int
    cluster: Cluster = Cluster.MAIN
    undoable: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap(Base):
    """The voter swap: membership changes in a fixed order, with nothing observed in between."""

    changes: tuple[Promote | RemoveMember, ...]
    cluster: Cluster = Cluster.MAIN
    undoable: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBackends(Base):
    """Have a site's load balancer run, and send new connections to exactly these replicas."""

    backends: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StopBalancer(Base):
    """Take down a load balancer whose address nobody can hold any more."""

    undoable: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRecord(Base):
    """Lead the plane's name to the load balancer of ``to``."""

    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRecord(Base):
    """Take the plane's name out of DNS: only when the plane is deleted."""

    undoable: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRecord(Base):
    """Write down where the name leads, and that the address before may still be held by clients."""

    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteUnsettled(Base):
    """Write down that some DNS server may hand out the addresses of these sites: their time to live does not begin
    before all servers answer the same.
    """

    sites: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteLifetime(Base):
    """Write down that addresses are handed out for ``ttl`` seconds, longer than wanted; or (``over``) no more from now
    on.
    """

    ttl: float
    over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDraining(Base):
    """Write down that no load balancer sends new connections to these replicas (or that one does again)."""

    draining: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetCluster(Base):
    """Write down that there is no cluster for events any more: nothing that runs keeps any there."""

    cluster: Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseMember(Base):
    """Remove the unit, files and volume of a replica's member of a cluster that there is no more."""

    replica: str
    cluster: Cluster
    undoable: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseReplica(Base):
    """Remove the units, files and volume of a replica that is no member any more, and its record."""

    replica: str
    undoable: ClassVar[bool] = False


Step: TypeAlias = (
    PlaceReplica
    | DecideBootstrap
    | NoteCreated
    | NoteCluster
    | NoteMembers
    | AdoptRevision
    | RejectRevision
    | StartUnit
    | StopUnit
    | RestartUnit
    | AddLearner
    | Promote
    | TransferLeadership
    | RemoveMember
    | Swap
    | SetBackends
    | StopBalancer
    | SetRecord
    | RemoveRecord
    | NoteRecord
    | NoteUnsettled
    | NoteLifetime
    | NoteDraining
    | ForgetCluster
    | ReleaseMember
    | ReleaseReplica
)


def cluster_of(step: Step) -> Cluster:
    """The etcd cluster that a step is about: that of a member which starts or stops, too. The main one if it is about
    none.
    """
    if isinstance(step, StartUnit | StopUnit | RestartUnit):
        return next((cluster for cluster, member in MEMBER.items() if member is step.component), Cluster.MAIN)
    return getattr(step, "cluster", Cluster.MAIN)


#: Steps that only write the plane's memory. The driver writes all that a plan has in one go.
NOTES = (
    DecideBootstrap,
    NoteCreated,
    NoteCluster,
    NoteMembers,
    NoteRecord,
    NoteUnsettled,
    NoteLifetime,
    NoteDraining,
    AdoptRevision,
    ForgetCluster,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now (all at once), what is waited for, and what will be cleaned up when its machine is back."""

    now: tuple[Step, ...] = ()
    waiting: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Nothing to do and nothing to wait for. ``leftovers`` may remain on machines that do not answer."""
        return not self.now and not self.waiting
