"""An etcd cluster in memory, with its members' processes: what the fake of the etcd port looks at."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fakes.etcd_keys import KeyHistory
from quarterdeck.api.values import DEFAULT_ETCD_VERSION
from quarterdeck.errors import NotFound
from quarterdeck.etcd.facts import Alarm, AlarmKind, LeaseLife
from quarterdeck.etcd.faults import EtcdFault, Reason, fault
from quarterdeck.etcd.maintenance import minor_of
from quarterdeck.model.membership import EtcdMinor


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAddress:
    """Where a member is: the name it publishes, and its URLs."""

    name: str
    peer_url: str
    client_url: str
    metrics_url: str


@dataclass(slots=True, kw_only=True)
class Member:
    """A member. ``address`` is None until it starts; ``behind`` is how many entries it lags while it runs.

    ``hidden``: it runs, and the other members hear it, but it does not answer whoever uses the port. ``frozen``: it
    does not run, but its connections stay open, so that nobody is told that it is gone. ``hash`` is
    that of all its keys.
    """

    id: int
    peer_url: str
    learner: bool
    address: MemberAddress | None = None
    up: bool = False
    hidden: bool = False
    frozen: bool = False
    settled: bool = False  # connected to the others for 5 s: etcd's HealthInterval
    behind: int = 0
    stopped_at: int = 0
    size: int = 1 << 20  # of its database, free room too
    hash: int = 1
    version: str = DEFAULT_ETCD_VERSION

    @property
    def minor(self) -> EtcdMinor:
        """The minor version of its process."""
        return minor_of(self.version)


@dataclass(slots=True)
class FakeCluster:
    """The members and their processes. Elections and replication take no time.

    Tests steer it with the methods below, and look at it through ``FakeEtcd``.
    """

    max_learners: int = 1
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(0x1001))
    index: int = 10
    keyless: int = 0  # how many of the entries changed no key
    term: int = 2
    leader: int = 0
    alarms: list[Alarm] = field(default_factory=list)
    quota: int = 2 << 30
    keys: int = 1 << 19  # bytes of keys as they are now
    history: int = 0  # and as they were
    compacted: int = 0
    forgotten: list[bytes] = field(default_factory=list)
    works_as: EtcdMinor = minor_of(DEFAULT_ETCD_VERSION)
    downgrade: EtcdMinor | None = None
    authenticates: bool = False  # and has no user for anybody's certificate but root's
    kept: dict[bytes, bytes] = field(default_factory=dict)
    nodes: list[Member] = field(default_factory=list)
    history_of_keys: KeyHistory = field(default_factory=KeyHistory)

    @classmethod
    def founded(cls, founders: Sequence[MemberAddress], *, max_learners: int = 1) -> FakeCluster:
        """A cluster whose voters all run and have done so for long; the first leads."""
        cluster = cls(max_learners=max_learners)
        cluster.found([address.peer_url for address in founders])
        for node, address in zip(cluster.nodes, founders, strict=True):
            node.address, node.up, node.settled = address, True, True
        cluster.leader = cluster.nodes[0].id
        return cluster

    def found(self, peer_urls: Sequence[str]) -> None:
        """Make it a cluster of voters none of which has started yet."""
        self.nodes.extend(Member(id=next(self.ids), peer_url=each, learner=False) for each in peer_urls)

    def start(self, address: MemberAddress, *, settled: bool = True) -> None:
        """Start the process of a member, for the first time or again. ``settled``: and let 5 s pass. One that has its
        data is who it was also at another address: the others do not find it there, but it finds them.

        Raises NotFound for one that is not (or no longer) listed: the process would exit.
        """
        node = next((node for node in self.nodes if node.peer_url == address.peer_url), None)
        if node is None:
            named = (node for node in self.nodes if node.address is not None and node.address.name == address.name)
            node = next(named, None)
        if node is None:
            raise NotFound(f"starting {address.name}", f"no member has the peer URL {address.peer_url}")
        node.address, node.up, node.settled, node.frozen = address, True, settled, False
        self._elect()

    def stop(self, client_url: str, *, frozen: bool = False) -> None:
        """Kill a member's process, or freeze it."""
        node = self.at(client_url)
        node.stopped_at, node.up, node.settled, node.frozen = self.applied(node), False, False, frozen
        self._elect()
        self.history_of_keys.wake()

    def hide(self, client_url: str, *, hidden: bool = True) -> None:
        """Cut a member off from whoever uses the port, and from nobody else; or let it be seen again."""
        self.at(client_url).hidden = hidden

    def settle(self) -> None:
        """Let 5 s pass."""
        for node in self.nodes:
            node.settled = node.up

    def lag(self, client_url: str, entries: int) -> None:
        """Keep a running member that far behind."""
        self.at(client_url).behind = entries

    def write(self, entries: int = 1) -> None:
        """Let clients write."""
        self.index += entries
        self.history_of_keys.wake()

    @property
    def revision(self) -> int:
        """The revision of the newest write."""
        return max(1, self.index - self.keyless)

    def put(self, key: bytes, value: bytes, lease: int = 0) -> int:
        """Let a client write a key; the revision of that."""
        self.history_of_keys.put(self.revision + 1, key, value, lease)
        self.write()
        return self.revision

    def delete(self, *keys: bytes) -> int:
        """Let a client delete keys that exist, at once; the revision of that."""
        self.history_of_keys.delete(self.revision + 1, keys)
        self.write()
        return self.revision

    def grant(self, seconds: int) -> int:
        """Let a client have a lease; its id."""
        self.commit()
        lease = 0x7000 + self.index
        self.history_of_keys.leases[lease] = LeaseLife(id=lease, ttl=seconds, granted_ttl=seconds, keys=())
        return lease

    def expire(self, lease: int) -> None:
        """Let a lease end, and its keys with it."""
        del self.history_of_keys.leases[lease]
        keys = [each.key for each in self.history_of_keys.current.values() if each.lease == lease]
        if keys:
            self.delete(*keys)
        else:
            self.commit()

    def overwrite(self, size: int) -> None:
        """Let clients write over a key with so many bytes, which are history at once. Raises EtcdFault (NO_SPACE)."""
        if any(alarm.kind is AlarmKind.NOSPACE for alarm in self.alarms):
            raise refusal("writing a key", Reason.NO_SPACE)
        self.write()
        self.history += size
        for node in self.nodes:
            node.size = max(node.size, self.keys + self.history)
            if node.size >= self.quota:
                self.alarms.append(Alarm(AlarmKind.NOSPACE, node.id))

    def at(self, client_url: str) -> Member:
        """The member whose process serves ``client_url``; raises KeyError."""
        for node in self.nodes:
            if node.address is not None and node.address.client_url == client_url:
                return node
        raise KeyError(client_url)

    def by_id(self, member_id: int) -> Member | None:
        """The member with that id."""
        return next((node for node in self.nodes if node.id == member_id), None)

    @property
    def voters(self) -> list[Member]:
        """The members that vote."""
        return [node for node in self.nodes if not node.learner]

    @property
    def quorate(self) -> bool:
        """Whether a majority of the voters runs."""
        return sum(node.up for node in self.voters) >= majority(len(self.voters))

    def applied(self, node: Member) -> int:
        """The index that a member has applied."""
        return max(0, self.index - node.behind) if node.up else node.stopped_at

    def agree(self) -> None:
        """Let seconds pass in which the leader compares the versions of all members."""
        self.works_as, self.downgrade = self.agreement

    @property
    def agreement(self) -> tuple[EtcdMinor, EtcdMinor | None]:
        """What the leader makes of the versions of all members: a downgrade takes effect, and is over once all have its
        version; else all work as the oldest of them, if each answers.
        """
        versions = {node.minor for node in self.nodes}
        if not self.leader or not all(node.up for node in self.nodes):
            return self.works_as, self.downgrade
        if self.downgrade is None:
            return max(self.works_as, min(versions)), None
        return self.downgrade, None if versions == {self.downgrade} else self.downgrade

    def commit(self) -> None:
        """One more entry that changes no key, and a new leader if it took away the old one."""
        self.index += 1
        self.keyless += 1
        self._elect()

    def _elect(self) -> None:
        holder = self.by_id(self.leader)
        if not self.quorate:
            self.leader = 0
        elif holder is None or not holder.up or holder.learner:
            self.leader = next(node.id for node in self.voters if node.up)
            self.term += 1


def majority(voters: int) -> int:
    """How many of so many voters are a quorum."""
    return voters // 2 + 1


def refusal(doing: str, reason: Reason) -> EtcdFault:
    """What a member refuses with."""
    return fault(doing, reason, reason.value)
