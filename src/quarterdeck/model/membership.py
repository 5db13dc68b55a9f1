"""Facts about the members of an etcd cluster. A fact that could not be read is ``None``, never a default."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

#: A minor version of etcd: ``(3, 6)``.
EtcdMinor: TypeAlias = tuple[int, int]


class Health(StrEnum):
    """Whether a member answers and follows the leader (``engine/observation/silence.py`` has the rules)."""

    HEALTHY = "healthy"
    SUSPECT = "suspect"  # failed to answer, but not for long enough to act on it
    UNREACHABLE = "unreachable"  # does not answer this process, and nothing proves that it is down: waited for
    DOWN = "down"  # did not answer several observations, and the cluster does not reach it either


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The database of a member, in bytes: the ``size`` of its file, the part ``in_use``, and the ``quota`` above which
    it takes no writes.
    """

    size: int
    in_use: int
    quota: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFact:
    """A member in etcd's membership, as read from a quorum."""

    #: Its only unique name.
    id: int
    #: The recorded replica to which it belongs; "": none.
    replica: str
    learner: bool
    health: Health
    #: The name that the member has chosen itself, for people; "" until it starts.
    name: str = ""
    #: For people.
    peer_urls: tuple[str, ...] = ()
    #: Entries: the leader's raft index less this member's applied index, or less its index as the leader knows it, if
    #: it does not answer itself; None: unknown.
    lag: int | None = None
    #: etcd has known its name for a while. A starting member serves clients as soon as it has applied that.
    published: bool = False
    #: Reported by the member itself; None: it did not report it.
    space: Space | None = None
    #: The revision of its newest key, reported by the member itself; None: it did not report it.
    revision: int | None = None
    #: Its peer URL is not that of its replica.
    misplaced: bool = False
    #: The id of the member that has the peer URL of its replica; None: none has.
    displaced_by: int | None = None
    #: It answers, has been far behind the same leader for a while, and does not catch up; None: unknown (see
    #: ``engine/observation/silence.py``).
    lagging: bool | None = None
    #: The oldest etcd that can open its database, reported by the member itself; None: it did not report it (etcd 3.5
    #: never does).
    storage: EtcdMinor | None = None

    @property
    def key(self) -> str:
        """The unique key of the member: its replica, or its id as etcdctl prints it."""
        return self.replica or f"{self.id:x}"

    @property
    def description(self) -> str:
        """The member, for people: its replica, or its id, name and peer URLs."""
        if self.replica:
            return self.replica
        name = f"name {self.name}" if self.name else "not started"
        return f"{self.id:x} ({', '.join((name, *self.peer_urls))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A membership that a quorum confirmed. ``leader`` is the replica that leads, if one does (None as well while a
    member leads that belongs to no replica). ``cluster_id`` is etcd's
    own, ``revision`` the newest etcd revision that a member had (0: not read). ``alarms`` are those of
    etcd, as members tell them; ``authenticates``: its authentication is on, so that neither apiservers nor we may read
    or write keys, or change members. ``works_as`` is the cluster version: the minor version that all members work as,
    by the leader (None: not read; it is read while an upgrade or a downgrade may be under way). ``downgrade``: the
    minor version to which etcd's downgrade is enabled; None: it is not.
    """

    members: tuple[MemberFact, ...]
    leader: str | None
    alarms: tuple[str, ...] = ()
    authenticates: bool = False
    cluster_id: int = 0
    revision: int = 0
    works_as: EtcdMinor | None = None
    downgrade: EtcdMinor | None = None

    def of(self, replica: str) -> MemberFact | None:
        """The member that belongs to ``replica``."""
        return next((member for member in self.members if member.replica == replica), None)

    @property
    def voters(self) -> tuple[MemberFact, ...]:
        """The members that count for the quorum."""
        return tuple(member for member in self.members if not member.learner)

    @property
    def learners(self) -> tuple[MemberFact, ...]:
        """The members without a vote."""
        return tuple(member for member in self.members if member.learner)

    @property
    def at_rest(self) -> bool:
        """Whether there is no alarm and no learner, and all members are healthy and without authentication."""
        well = all(member.health is Health.HEALTHY for member in self.members) and not self.authenticates
        return well and not self.alarms and not self.learners


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongData:
    """A replica whose etcd answers with data that is not the plane's: ``seen`` says how that was detected."""

    replica: str
    seen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberData:
    """The facts about a replica's member of the events' cluster on its machine; as in ``ReplicaFact``."""

    peer_up: bool = False
    has_data: bool | None = None
    refused: str = ""
