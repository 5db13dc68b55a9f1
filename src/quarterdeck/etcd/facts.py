"""etcd's answers, as frozen facts. Sizes in bytes, times to live in seconds; 0 is etcd's "none" for ids."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.model.membership import EtcdMinor


class AlarmKind(StrEnum):
    """The alarms that etcd can raise."""

    NOSPACE = "NOSPACE"  # the database is over its quota: writes are refused
    CORRUPT = "CORRUPT"  # members disagree about the data: a person must act


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm that is on, and the member that raised it."""

    kind: AlarmKind
    member_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReport:
    """The status of one member; it answers this without a quorum, too.

    ``leader_id`` is 0 when the member follows no leader. ``raft_index`` is the index that this member knows to be
    committed, ``raft_applied_index`` the one that it has applied. ``errors`` are etcd's own sentences: "etcdserver: no
    leader", and one for each alarm. ``db_size_quota`` is 0 on etcd 3.5, which does not report it.

    ``storage``: the oldest minor version that can open its database; ``downgrade``: the one to which a downgrade of the
    cluster is enabled. Both are None on etcd 3.5, which reports neither, and ``downgrade`` also where none is enabled.
    """

    cluster_id: int
    member_id: int
    leader_id: int
    raft_term: int
    raft_index: int
    raft_applied_index: int
    is_learner: bool
    revision: int
    db_size: int
    db_size_in_use: int
    db_size_quota: int
    version: str
    errors: tuple[str, ...]
    storage: EtcdMinor | None = None
    downgrade: EtcdMinor | None = None

    @property
    def is_leader(self) -> bool:
        """Whether it reports itself as the leader. A leader that was cut off does so for one election timeout
        too long.
        """
        return self.leader_id == self.member_id


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram of durations since the program's start: ascending bounds in seconds, each with its cumulative count,
    the last one infinite.
    """

    buckets: tuple[tuple[float, int], ...]

    def since(self, before: Durations) -> Durations:
        """The difference to an earlier reading; all, if the program was restarted since."""
        was = dict(before.buckets)
        later = tuple((bound, count - was.get(bound, 0)) for bound, count in self.buckets)
        return Durations(later) if all(count >= 0 for _, count in later) else self

    def quantile(self, share: float) -> float | None:
        """The duration that this share of them did not exceed, as Prometheus computes it (histogram_quantile): evenly
        spread in each bucket. None without data.
        """
        total = self.buckets[-1][1] if self.buckets else 0
        if total <= 0:
            return None
        rank, low, below = share * total, 0.0, 0
        for bound, count in self.buckets:
            if count >= rank:
                if bound == math.inf:
                    return low
                return low + (bound - low) * (rank - below) / (count - below)
            low, below = bound, count
        return low


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberTimes:
    """How long a member's disk took, to sync the write-ahead log and to commit to the database; and its round trips to
    other members, by their ids (a moving average, updated every 30 s: etcd: rafthttp, monitorProbingStatus).
    """

    fsync: Durations
    commit: Durations
    trips: Mapping[int, Durations]


class Replication(StrEnum):
    """The leader's replication state of a member (etcd: raft/tracker, StateType)."""

    PROBE = "StateProbe"  # the member's progress is unknown, or it cannot be sent to
    REPLICATE = "StateReplicate"  # entry after entry, as they come
    SNAPSHOT = "StateSnapshot"  # a whole database: nothing is acknowledged in that time


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberProgress:
    """The leader's knowledge of a member. ``match`` is the last entry that it certainly has on its disk: it never goes
    back as long as the same leader leads in the same term, and is 0 until a new leader has heard of the member.
    """

    member_id: int
    match: int
    next: int
    state: Replication


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftProgress:
    """The leader's knowledge of every member, learners and itself too.

    ``committed`` is the last raft index that a quorum has. ``transferee`` is the member to which leadership is being
    transferred, 0 for none.
    """

    leader_id: int
    term: int
    committed: int
    transferee: int
    members: tuple[MemberProgress, ...]

    def of(self, member_id: int) -> MemberProgress | None:
        """The progress of one member; None when the leader sends nothing to it (yet)."""
        return next((each for each in self.members if each.member_id == member_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMember:
    """A member as the membership lists it. ``name`` and ``client_urls`` are empty until it has started once."""

    id: int
    name: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    is_learner: bool

    @property
    def started(self) -> bool:
        """It has published its name, which is what etcd counts as started."""
        return bool(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    """A key at a revision. ``version`` counts its changes since it was created; ``lease`` is 0 for none."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int
    version: int
    lease: int


class WatchKind(StrEnum):
    """The kind of a change."""

    PUT = "put"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEvent:
    """One change of one key. Of a deleted key ``now`` has only the key and the revision of the deletion.

    ``before`` is the key before the change, if it was requested, existed, and is not compacted yet.
    """

    kind: WatchKind
    now: KeyValue
    before: KeyValue | None

    @property
    def revision(self) -> int:
        """The revision of the change; all changes of one transaction share it."""
        return self.now.mod_revision


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeResult:
    """Keys in key order, read at ``revision``. ``count``: all keys in the range, also those past the limit."""

    revision: int
    items: tuple[KeyValue, ...]
    count: int
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnResult:
    """Whether the conditions held, and the answer to each operation of the branch that was taken.

    It is a RangeResult for a Get, the number of deleted keys for a Delete, None for a Put.
    """

    revision: int
    succeeded: bool
    answers: tuple[RangeResult | int | None, ...]


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """A lease that was granted. ``ttl`` may be longer than requested."""

    id: int
    ttl: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLife:
    """The rest of a lease: ``ttl`` of ``granted_ttl`` seconds, and its keys if they were requested."""

    id: int
    ttl: int
    granted_ttl: int
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySpaceHash:
    """A member's hash of all keys up to ``hash_revision``; equal on all members that compacted at the same
    ``compact_revision``. ``revision`` is the member's newest. etcd 3.5 reports no ``hash_revision`` (0).
    """

    hash: int
    hash_revision: int
    compact_revision: int
    revision: int
