"""What is known of the members of an etcd cluster. A fact that could not be read is ``None``, never a default."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """Whether a member answers and follows the leader (``engine/observation/silence.py`` says when which)."""

    HEALTHY = "healthy"
    SUSPECT = "suspect"  # failed to answer, but not for long enough to act on it
    UNREACHABLE = "unreachable"  # does not answer us, but nothing says that it is down for others as well: waited for
    DOWN = "down"  # has answered none of several looks, and the cluster itself hears nothing of it either


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The database of a member, in bytes: the ``size`` of its file, how much of that is ``in_use``, and the ``quota``
    past which it takes no writes.
    """

    size: int
    in_use: int
    quota: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFact:
    """A member as etcd's membership, read from a quorum, lists it.

    Members are told apart by ``id``. ``replica`` is the recorded replica that the member belongs to, "" if it belongs
    to none. ``name`` (which the member chose itself; "" until it starts) and ``peer_urls`` are only for people.
    ``lag`` is the leader's raft index less this member's applied index (entries), or less what the leader knows it to
    have, if it does not answer itself; None when unknown.
    ``published``: etcd has known its name for a while. A member that starts serves clients as soon as it has applied
    that. ``space`` and ``revision`` (of the newest key) are its own word on itself; None when it gave none.
    ``misplaced``: the others look for it elsewhere than its replica is. ``displaced_by``: the id of the member that has
    the peer URL of its replica instead (None: none has). ``lagging``: it is heard, has been far behind
    the same leader for a while, and comes no nearer (None: not known; see
    ``engine/observation/silence.py``).
    """

    id: int
    replica: str
    learner: bool
    health: Health
    name: str = ""
    peer_urls: tuple[str, ...] = ()
    lag: int | None = None
    published: bool = False
    space: Space | None = None
    revision: int | None = None
    misplaced: bool = False
    displaced_by: int | None = None
    lagging: bool | None = None

    @property
    def key(self) -> str:
        """What tells the member from all others: its replica, or its id as etcdctl prints it."""
        return self.replica or f"{self.id:x}"

    @property
    def told(self) -> str:
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
    or write keys, or change members.
    """

    members: tuple[MemberFact, ...]
    leader: str | None
    alarms: tuple[str, ...] = ()
    authenticates: bool = False
    cluster_id: int = 0
    revision: int = 0

    def of(self, replica: str) -> MemberFact | None:
        """The member that belongs to ``replica``."""
        return next((member for member in self.members if member.replica == replica), None)

    @property
    def voters(self) -> tuple[MemberFact, ...]:
        """The members that count for the quorum."""
        return tuple(member for member in self.members if not member.learner)

    @property
    def learners(self) -> tuple[MemberFact, ...]:
        """The members that only listen."""
        return tuple(member for member in self.members if member.learner)

    @property
    def at_rest(self) -> bool:
        """Whether there is no alarm, nobody joins, and all members are well and let us in."""
        well = all(member.health is Health.HEALTHY for member in self.members) and not self.authenticates
        return well and not self.alarms and not self.learners


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongData:
    """A replica whose etcd answers with data that is not the plane's: ``seen`` says how that is known."""

    replica: str
    seen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberData:
    """What was seen of a replica's member of the events' cluster where it runs; as in ``ReplicaFact``."""

    peer_up: bool = False
    has_data: bool | None = None
    refused: str = ""
