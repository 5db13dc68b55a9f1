"""Steps for etcd clusters: founding, recording, removal, and new epochs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.clusters import Cluster, ClusterMemory
from quarterdeck.model.epochs import BackupOrigin, EpochOrigin, EventsPoint, Seed
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.steps.base import Claim, Note, OfCluster, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideBootstrap(OfCluster, Note):
    """Record the founders of the cluster before any of them starts; for the events' one, also its storage class."""

    kind: ClassVar[str] = "decide-bootstrap"
    replicas: tuple[str, ...]
    storage_class: str = ""

    @property
    @override
    def new_members(self) -> tuple[str, ...]:
        return self.replicas

    @property
    @override
    def description(self) -> str:
        return f"found the cluster with {', '.join(self.replicas)}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, bootstrap=self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteCreated(OfCluster, Note):
    """Record that the cluster exists: from now on silence is a failure, and a founder that is not a member was removed.
    (etcd lists all founders from the first moment.)
    """

    kind: ClassVar[str] = "note-cluster-created"

    @property
    @override
    def description(self) -> str:
        return "note that the cluster exists"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        records = (replace(each, listed=each.listed or each.name in memory.bootstrap) for each in memory.replicas)
        return replace(memory, created=True, replicas=tuple(records))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteCluster(OfCluster, Note):
    """Record the cluster's id, and an etcd revision that it has reached: it can never be below that again."""

    kind: ClassVar[str] = "note-cluster-revision"
    cluster_id: int
    revision: int

    @property
    @override
    def description(self) -> str:
        return f"note that etcd is at revision {self.revision:,}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, cluster_id=self.cluster_id, revision=max(memory.revision, self.revision))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteMembers(OfCluster, Note):
    """Record which replicas are, or were, members (``listed``), and which were healthy members (``started``). ``ids``
    are the member ids by replica, as etcd lists them.
    """

    kind: ClassVar[str] = "note-members"
    listed: tuple[str, ...]
    started: tuple[str, ...]
    ids: tuple[tuple[str, int], ...] = ()
    storage_class: str = ""

    @property
    @override
    def new_members(self) -> tuple[str, ...]:
        return self.listed

    @property
    @override
    def description(self) -> str:
        return f"note members {', '.join(self.listed or self.started or dict(self.ids))}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, replicas=tuple(map(self._noted, memory.replicas)))

    def _noted(self, record: Replica) -> Replica:
        return replace(
            record,
            listed=record.listed or record.name in self.listed,
            member_id=record.member_id or dict(self.ids).get(record.name, 0),
            started=record.started or record.name in self.started,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetCluster(Note):
    """Record that the events' cluster no longer exists: no running apiserver stores events there."""

    kind: ClassVar[str] = "forget-events-cluster"
    shown: ClassVar[bool] = True
    cluster: Cluster

    @property
    @override
    def words(self) -> str:
        return "note that there is no longer an etcd for events"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, events=ClusterMemory(epoch=memory.events.epoch))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseMember(Step):
    """Remove the unit, files and volume of a replica's member of a cluster that no longer exists, or to which it no
    longer belongs: a new member of the replica shares nothing with it.
    """

    kind: ClassVar[str] = "release-member"
    undoable: ClassVar[bool] = False
    replica: str
    cluster: Cluster

    @property
    @override
    def words(self) -> str:
        return f"release the member {self.replica} of the events' etcd"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("replica", self.replica)

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        condemned = tuple(each for each in memory.condemned if each.replica != self.replica or not each.alone)
        without = memory.with_replica(self.replica, lambda record: replace(record, events=None))
        return replace(without, condemned=condemned)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteQuorum(Note):
    """Record since when the quorum is lost, or that it is not."""

    kind: ClassVar[str] = "note-quorum"
    lost: bool

    @property
    @override
    def words(self) -> str:
        return "note that the quorum is lost" if self.lost else "note that the quorum is back"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        if not self.lost:
            return replace(memory, quorum_lost=None)
        return replace(memory, quorum_lost=now if memory.quorum_lost is None else memory.quorum_lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpoch(Note):
    """Record that a new ``epoch`` of the cluster begins from ``origin``: replicas of the former epoch are no longer
    used or started. The ``founder`` is the next replica that is placed. ``seen``: the last observed revision.
    ``events``: where the events' cluster begins from, in the same backups (None: it is founded again, empty).
    """

    kind: ClassVar[str] = "begin-epoch"
    undoable: ClassVar[bool] = False
    shown: ClassVar[bool] = True
    epoch: int
    origin: EpochOrigin
    founder: str
    revision: int
    seen: int
    events: EventsPoint | None = None

    @property
    @override
    def words(self) -> str:
        return f"begin epoch {self.epoch} of etcd from {self.origin}, at etcd revision {self.revision:,}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        """Unchanged if the epoch has begun already."""
        if memory.epoch == self.epoch:
            return memory
        seed = Seed(origin=self.origin, founder=self.founder, revision=self.revision, seen=self.seen)
        return replace(
            memory,
            epoch=self.epoch,
            seed=seed,
            next_ordinal=memory.next_ordinal + 1,
            bootstrap=(self.founder,),
            created=False,
            cluster_id=0,
            full=None,
            quorum_lost=None,
            events=ClusterMemory(epoch=memory.events.epoch, seed=self._events_seed(memory)),
        )

    def _events_seed(self, memory: Memory) -> Seed | None:
        if self.events is None or not isinstance(self.origin, BackupOrigin):
            return None
        origin = replace(self.origin, epoch=self.events.epoch)
        return Seed(origin=origin, founder=self.founder, revision=self.events.revision, seen=memory.events.revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreMember(OfCluster):
    """Create the data of the founder of an epoch from its origin, which stays unchanged."""

    kind: ClassVar[str] = "restore-member"
    replica: str
    origin: EpochOrigin

    @property
    @override
    def description(self) -> str:
        return f"restore {self.replica} from {self.origin}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("replica", self.replica)

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        if memory.seed is None or memory.seed.founder != self.replica:
            return memory
        return replace(memory, seed=replace(memory.seed, restored=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteServed(Note):
    """Record since when an apiserver of the present epoch serves."""

    kind: ClassVar[str] = "note-served"

    @property
    @override
    def words(self) -> str:
        return "note that an apiserver of the epoch serves"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        if memory.seed is None or memory.seed.served is not None:
            return memory
        return replace(memory, seed=replace(memory.seed, served=now))


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawConsent(Step):
    """Remove the user's consent to an epoch: the lost quorum is back."""

    kind: ClassVar[str] = "withdraw-consent"
    epoch: int

    @property
    @override
    def words(self) -> str:
        return f"withdraw the consent to epoch {self.epoch}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("consent")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteKept(Step):
    """Delete the data of a replica of a former epoch, which was kept on a machine: the plane is deleted."""

    kind: ClassVar[str] = "delete-kept-data"
    undoable: ClassVar[bool] = False
    replica: str
    machine: str

    @property
    @override
    def words(self) -> str:
        return f"delete the data of {self.replica} that was kept on machine {self.machine}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("replica", self.replica)

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, kept=tuple(each for each in memory.kept if each.replica != self.replica))
