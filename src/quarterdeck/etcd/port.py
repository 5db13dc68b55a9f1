"""The etcd port: what the planner's actions and the observer need of one plane's etcd."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Protocol

from quarterdeck.components.credentials import KeyPair
from quarterdeck.etcd.facts import (
    Alarm,
    AlarmKind,
    KeyEvent,
    KeySpaceHash,
    LeaseLife,
    ListedMember,
    MemberReport,
    MemberTimes,
    RaftProgress,
    RangeResult,
)
from quarterdeck.etcd.kv import Get
from quarterdeck.model.membership import EtcdMinor


class EtcdCluster(Protocol):
    """One etcd cluster, over several of its members.

    ``urls`` are client URLs of members that may be used, in any order, including learners; it does not matter which one
    is up or leads. Every call has its own deadline and is idempotent: one whose reply was lost may be repeated.
    ``within`` is a shorter deadline in seconds, for a member that may be just starting. All raise ``faults.EtcdFault``:
    one that is Unavailable when no member could do it now (``reason`` UNHEALTHY: etcd itself refuses for now, wait),
    and else the classes named below.
    """

    async def status(self, url: str, *, within: float | None = None) -> MemberReport:
        """The status of that one member, also without a quorum, also of a learner."""
        ...

    async def flush(self, url: str) -> None:
        """Make that one member write to its database on the disk what it has applied, also without a quorum, also where
        it is a learner. Otherwise etcd does so every 100 ms, and a member that is killed before has it only in its log:
        without a quorum it does not know of all of that that it was committed. Raises Unavailable.
        """
        ...

    async def progress(self, leader_url: str) -> RaftProgress:
        """The progress of every member, as the leader reports it. Raises Unavailable, also when that member does not
        lead.
        """
        ...

    async def members(self, urls: Sequence[str]) -> tuple[ListedMember, ...]:
        """The membership as a quorum confirms it now. A member that is down or frozen does not delay it."""
        ...

    async def revision(self, urls: Sequence[str]) -> int:
        """The etcd revision of the newest write, as a quorum confirms it now."""
        ...

    async def lists(self, url: str, member_id: int) -> bool:
        """Whether that one member lists another one, by the changes that it has applied itself. Raises Unavailable."""
        ...

    async def known_members(self, url: str) -> tuple[ListedMember, ...]:
        """The membership by the changes that one member has applied itself, also without a quorum. Raises Unavailable,
        also where it is a learner.
        """
        ...

    async def add_learner(self, urls: Sequence[str], peer_url: str) -> int:
        """The id of the member at ``peer_url``, which is added as a learner if it does not exist yet.

        Raises EtcdRefused (TOO_MANY_LEARNERS).
        """
        ...

    async def promote(self, urls: Sequence[str], member_id: int) -> None:
        """Make a learner a voter; no error if it is one.

        Raises EtcdRefused (LEARNER_BEHIND, NOT_ENOUGH_STARTED), EtcdNotFound.
        """
        ...

    async def readdress(self, urls: Sequence[str], member_id: int, peer_url: str) -> None:
        """Change a member's ``peer_url`` for all members; no error if it has that one. It stays the same member. Raises
        EtcdNotFound, EtcdConflict (MEMBER_EXISTS) if another one has that address.
        """
        ...

    async def remove(self, urls: Sequence[str], member_id: int) -> None:
        """Remove a member for good; no error if it is removed. Raises EtcdRefused (NOT_ENOUGH_STARTED)."""
        ...

    async def move_leader(self, leader_url: str, to_id: int) -> None:
        """Move the leadership from the leader at ``leader_url`` to the voter ``to_id``; no error if that one leads.

        Returns when the old leader follows the new one. A voter that was just promoted accepts it only once its own
        status shows the promotion. Raises EtcdRefused (NOT_LEADER, BAD_TRANSFEREE).
        """
        ...

    async def admits(self, url: str, *, within: float | None = None) -> bool:
        """Whether that one member allows quarterdeck to read keys: not while etcd's authentication is enabled. Raises
        Unavailable where it does not answer.
        """
        ...

    async def disable_authentication(self, urls: Sequence[str], root: KeyPair) -> None:
        """Disable etcd's authentication; no error if it is disabled. ``root`` is a client certificate of the
        user root.
        """
        ...

    async def alarms(self, urls: Sequence[str]) -> tuple[Alarm, ...]:
        """The alarms that are on, as a quorum confirms them.

        etcd sends even this read through raft: it is an entry that every member has to acknowledge, and that changes
        nothing.
        """
        ...

    async def compact(self, urls: Sequence[str], revision: int) -> None:
        """Discard the history of keys before ``revision``; no error if that is done already.

        Returns when the contacted member has done so; the others do at about that time. Raises EtcdNotFound
        (FUTURE_REVISION).
        """
        ...

    async def defragment(self, url: str) -> None:
        """Make one member return the free space in its database to the file system. It serves nothing until that is
        done; raft continues. Raises Unavailable, also where it is a learner (NOT_FOR_LEARNERS).
        """
        ...

    async def disarm(self, urls: Sequence[str], kind: AlarmKind) -> None:
        """Disarm all alarms of a kind, whichever member raised them. A member whose problem persists raises
        it again.
        """
        ...

    async def works_as(self, url: str, *, within: float | None = None) -> EtcdMinor:
        """The cluster version as that one member knows it: the minor version that all members work as. The leader sets
        it seconds after the last member has another version. Raises Unavailable, also until there is one.
        """
        ...

    async def enable_downgrade(self, urls: Sequence[str], target: EtcdMinor) -> None:
        """Have the cluster work as ``target``, the minor version before its own, and members store as that one does:
        then they can be restarted with it. No error if that is enabled already. It takes effect within seconds, and
        ends by itself once all members have that version. Raises EtcdInvalid (BAD_DOWNGRADE), EtcdRefused
        (DOWNGRADING).
        """
        ...

    async def cancel_downgrade(self, urls: Sequence[str]) -> None:
        """End a downgrade; no error if none is enabled. The cluster version rises again once no member is older."""
        ...

    async def keep_for(self, urls: Sequence[str], key: bytes, value: bytes, seconds: int) -> None:
        """Write one key, which etcd deletes by itself after that many seconds, or more when its leader changes."""
        ...

    async def forget(self, urls: Sequence[str], key: bytes) -> None:
        """Delete one key; no error if it does not exist."""
        ...

    async def read(self, url: str, what: Get) -> RangeResult:
        """Keys, by that one member. Raises Unavailable, EtcdCompacted, EtcdNotFound (FUTURE_REVISION), and EtcdRefused
        (TOO_LARGE) where the answer is longer than ``calls.LONGEST_ANSWER`` bytes: ask for fewer keys.
        """
        ...

    async def hash_keys(self, url: str, revision: int) -> KeySpaceHash:
        """That one member's hash of all keys up to ``revision``. It reads all of them for it. Raises Unavailable,
        EtcdCompacted, EtcdNotFound (FUTURE_REVISION).
        """
        ...

    def snapshot(self, url: str) -> AsyncGenerator[bytes, None]:
        """That one member's database in parts, and its SHA-256 in the last 32 bytes, also without a quorum, also of a
        learner. It has what the member had applied when the first part was asked for: no quorum confirms that.

        Raises Unavailable, and EtcdCorrupt at the end where the parts are not what that hash says. Close it
        (``contextlib.aclosing``) when done.
        """
        ...

    def changes(self, url: str, start_revision: int) -> AsyncGenerator[tuple[KeyEvent, ...], None]:
        """The changes of all keys from a revision on, as that one member applies them: one tuple for each revision, in
        order, without an end.

        Raises Unavailable once that member does not serve them any more, also where it is a learner, and EtcdCompacted
        where the history before the next one is gone. Close it (``contextlib.aclosing``) when done.
        """
        ...

    async def lease_times(self, urls: Sequence[str], only: Collection[int] | None = None) -> tuple[LeaseLife, ...]:
        """The leases with the rest of each, without their keys: all, or those of ``only`` that have not expired."""
        ...

    async def peer_version_answers(self, peer_url: str, *, within: float | None = None) -> bool:
        """Whether GET /version on a peer port is answered: then the next joiner may be started."""
        ...

    async def applied_index(self, metrics_url: str, *, within: float | None = None) -> int:
        """The raft index that a member has applied, by its metrics; a joiner serves them before its client port.

        ``metrics_url`` is that of --listen-metrics-urls. Raises Unavailable.
        """
        ...

    async def pending_proposals(self, metrics_url: str, *, within: float | None = None) -> int:
        """The number of this member's writes that have not been applied yet, by its metrics. Raises Unavailable."""
        ...

    async def times(self, metrics_url: str) -> MemberTimes:
        """How long that member's disk and links have taken since it started, by its metrics. Raises Unavailable."""
        ...

    async def close(self) -> None:
        """Close all connections; no call is allowed afterwards."""
        ...
