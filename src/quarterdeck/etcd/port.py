"""The etcd port: what the planner's actions and the observer need of one plane's etcd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from quarterdeck.components.credentials import KeyPair
from quarterdeck.etcd.facts import Alarm, AlarmKind, KeySpaceHash, ListedMember, MemberReport, MemberTimes, RaftProgress


class EtcdCluster(Protocol):
    """One etcd cluster, over several of its members.

    ``urls`` are client URLs of members that may be asked, in any order, learners among them or not; it does not
    matter which one is up or leads. Every call has its own deadline and is idempotent: one whose reply was lost
    may be made again. ``within`` is a shorter deadline in seconds, for one that may be just starting. All raise
    ``faults.EtcdFault``: one that is Unavailable when no member could do it now (``reason`` UNHEALTHY: etcd itself does
    not dare yet, wait), and else the classes named below.
    """

    async def status(self, url: str, *, within: float | None = None) -> MemberReport:
        """What that one member says of itself, also without a quorum, also a learner."""
        ...

    async def progress(self, leader_url: str) -> RaftProgress:
        """How far every member is in the eyes of the leader. Raises Unavailable, also when that one does not lead."""
        ...

    async def members(self, urls: Sequence[str]) -> tuple[ListedMember, ...]:
        """The membership as a quorum confirms it now. A member that is down or frozen does not hold it up."""
        ...

    async def revision(self, urls: Sequence[str]) -> int:
        """The etcd revision of the newest write, as a quorum confirms it now."""
        ...

    async def lists(self, url: str, member_id: int) -> bool:
        """Whether that one member, by the changes that it has applied itself, lists a member. Raises Unavailable."""
        ...

    async def known_members(self, url: str) -> tuple[ListedMember, ...]:
        """The membership by the changes that one member has applied itself, also without a quorum. Raises Unavailable,
        also where it is a learner.
        """
        ...

    async def add_learner(self, urls: Sequence[str], peer_url: str) -> int:
        """The id of the member at ``peer_url``, which is added as a learner if it is none yet.

        Raises EtcdRefused (TOO_MANY_LEARNERS).
        """
        ...

    async def promote(self, urls: Sequence[str], member_id: int) -> None:
        """Make a learner a voter; fine if it is one.

        Raises EtcdRefused (LEARNER_BEHIND, NOT_ENOUGH_STARTED), EtcdNotFound.
        """
        ...

    async def readdress(self, urls: Sequence[str], member_id: int, peer_url: str) -> None:
        """Have all members look for one at another ``peer_url``; fine if they do. It goes on being the member that it
        is. Raises EtcdNotFound, EtcdConflict (MEMBER_EXISTS) if another one is found there.
        """
        ...

    async def remove(self, urls: Sequence[str], member_id: int) -> None:
        """Take a member out for good; fine if it is gone. Raises EtcdRefused (NOT_ENOUGH_STARTED)."""
        ...

    async def move_leader(self, leader_url: str, to_id: int) -> None:
        """Have the leader at ``leader_url`` hand over to the voter ``to_id``; fine if that one leads.

        Returns when the old leader follows the new one. A voter that was just promoted takes it only once its own
        status says so. Raises EtcdRefused (NOT_LEADER, BAD_TRANSFEREE).
        """
        ...

    async def admits(self, url: str, *, within: float | None = None) -> bool:
        """Whether that one member lets quarterdeck read keys: not while etcd's authentication is on. Raises Unavailable
        where it does not answer.
        """
        ...

    async def disable_authentication(self, urls: Sequence[str], root: KeyPair) -> None:
        """Turn etcd's authentication off; fine if it is off. ``root`` is a client certificate of the user root."""
        ...

    async def alarms(self, urls: Sequence[str]) -> tuple[Alarm, ...]:
        """The alarms that are on, as a quorum confirms them.

        etcd puts even this question through raft: it is an entry that every member has to acknowledge, and that
        changes nothing.
        """
        ...

    async def compact(self, urls: Sequence[str], revision: int) -> None:
        """Forget the history of keys before ``revision``; fine if that is forgotten already.

        Returns when the member that was asked has done so; the others do about then. Raises EtcdNotFound
        (FUTURE_REVISION).
        """
        ...

    async def defragment(self, url: str) -> None:
        """Have one member give the free room in its database back. It serves nothing until that is done; raft goes on.
        Raises Unavailable, also where it is a learner (NOT_FOR_LEARNERS).
        """
        ...

    async def disarm(self, urls: Sequence[str], kind: AlarmKind) -> None:
        """Turn off all alarms of a kind, whoever raised them. A member whose trouble is not over raises it again."""
        ...

    async def keep_for(self, urls: Sequence[str], key: bytes, value: bytes, seconds: int) -> None:
        """Write one key, which etcd deletes by itself after so many seconds, or more when its leader changes."""
        ...

    async def forget(self, urls: Sequence[str], key: bytes) -> None:
        """Delete one key; fine if it is gone."""
        ...

    async def hash_keys(self, url: str, revision: int) -> KeySpaceHash:
        """That one member's hash of all keys up to ``revision``. It reads all of them for it. Raises Unavailable,
        EtcdCompacted, EtcdNotFound (FUTURE_REVISION).
        """
        ...

    async def peer_version_answers(self, peer_url: str, *, within: float | None = None) -> bool:
        """Whether GET /version on a peer port is answered: then the next joiner may be started."""
        ...

    async def applied_index(self, metrics_url: str, *, within: float | None = None) -> int:
        """The raft index that a member has applied, by its metrics; a joiner has them before its client port.

        ``metrics_url`` is what --listen-metrics-urls says. Raises Unavailable.
        """
        ...

    async def pending_proposals(self, metrics_url: str, *, within: float | None = None) -> int:
        """How many writes that came to this member have not been applied yet, by its metrics. Raises Unavailable."""
        ...

    async def times(self, metrics_url: str) -> MemberTimes:
        """How long that member's disk and links have taken since it started, by its metrics. Raises Unavailable."""
        ...

    async def close(self) -> None:
        """Close all connections; nothing may be called after it."""
        ...
