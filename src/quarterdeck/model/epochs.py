"""Epochs of etcd clusters: their origins, and the user's consent to the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from typing_extensions import override


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberWord:
    """The report of a member about itself while no quorum answers: what it has applied is on its disk."""

    replica: str
    term: int
    #: Indexes of raft's log.
    committed: int
    applied: int
    #: The etcd revision of its newest key.
    revision: int
    learner: bool
    #: It follows a leader, or leads.
    follows: bool
    #: The replicas whose members vote, by the log that it has applied (or the id of a voter that belongs to no
    #: replica); a learner reports none.
    voters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivorOrigin:
    """The data of a member that survived the loss of the quorum."""

    replica: str
    #: The reports of the other remaining members, the most complete first.
    others: tuple[MemberWord, ...] = ()

    @override
    def __str__(self) -> str:
        return f"the data of {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupOrigin:
    """A moment of the plane's backups."""

    #: The URL of the backup store.
    store: str
    #: The folder of the plane's backups in the store.
    folder: str
    #: The epoch of the cluster that the moment belongs to.
    epoch: int

    @override
    def __str__(self) -> str:
        return f"the backup at {self.store}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyOrigin:
    """The data of the ``standby``, at the failover to its site."""

    standby: str

    @override
    def __str__(self) -> str:
        return f"the data of the standby {self.standby}"


#: What an epoch can begin from.
EpochOrigin: TypeAlias = SurvivorOrigin | BackupOrigin | StandbyOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """The origin of an epoch of a cluster, and the replica with which it begins. The events' cluster only ever has one
    from a backup.
    """

    origin: EpochOrigin
    #: The replica that gets the data.
    founder: str
    #: The etcd revision of the data.
    revision: int
    #: The last etcd revision that was observed of the plane.
    seen: int
    #: The founder has the data.
    restored: bool = False
    #: When an apiserver of the epoch was first seen ready.
    served: float | None = None

    @property
    def candidates(self) -> tuple[str, ...]:
        """The replicas of the former epoch whose data is used, or could be: the best first."""
        match self.origin:
            case SurvivorOrigin(replica=replica, others=others):
                return (replica, *(word.replica for word in others))
            case StandbyOrigin(standby=standby):
                return (standby,)
            case BackupOrigin():
                return ()

    @property
    def source(self) -> str | None:
        """The replica of the former epoch whose data is copied on its own machine; None: the data is a backup's."""
        match self.origin:
            case SurvivorOrigin(replica=name) | StandbyOrigin(standby=name):
                return name
            case BackupOrigin():
                return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsPoint:
    """A revision of the events' cluster in the same backups as that of the main one."""

    #: The epoch of the events' cluster.
    epoch: int
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePoint:
    """A revision of a plane's backups that a user has chosen."""

    origin: BackupOrigin
    revision: int
    #: None: the events' cluster begins empty, if there is one.
    events: EventsPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """The user's consent to a new epoch: after a lost quorum, from a backup, or from the standby."""

    #: The epoch that may begin; None: none.
    epoch: int | None = None
    #: Also while unreachable voters may still serve.
    even_if_others_live: bool = False
    #: A new epoch may begin by itself, after ``Settings.patience``.
    automatic: bool = False
    #: The moment from which that epoch begins; None: from a survivor.
    restore: RestorePoint | None = None
    #: That epoch begins from the standby.
    standby: bool = False
