"""An etcd cluster in memory, with etcd's rules of membership, behind the etcd port."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from quarterdeck.errors import NotFound
from quarterdeck.etcd.facts import (
    Alarm,
    AlarmKind,
    DiskTimes,
    Durations,
    KeySpaceHash,
    ListedMember,
    MemberProgress,
    MemberStatus,
    Progress,
    Replication,
)
from quarterdeck.etcd.faults import EtcdFault, Reason, fault

_READY_PERCENT = 90  # etcd's own, too weak a rule for promotion (server.go: readyPercentThreshold)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAddress:
    """Where a member is: the name it publishes, and its URLs."""

    name: str
    peer_url: str
    client_url: str
    metrics_url: str


@dataclass(slots=True, kw_only=True)
class _Node:
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
    nodes: list[_Node] = field(default_factory=list)

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
        self.nodes.extend(_Node(id=next(self.ids), peer_url=each, learner=False) for each in peer_urls)

    def start(self, address: MemberAddress, *, settled: bool = True) -> None:
        """Start the process of a member, for the first time or again. ``settled``: and let 5 s pass.

        Raises NotFound for one that is not (or no longer) listed: the process would exit.
        """
        node = next((node for node in self.nodes if node.peer_url == address.peer_url), None)
        if node is None:
            raise NotFound(f"starting {address.name}", f"no member has the peer URL {address.peer_url}")
        node.address, node.up, node.settled, node.frozen = address, True, settled, False
        self._elect()

    def stop(self, client_url: str, *, frozen: bool = False) -> None:
        """Kill a member's process, or freeze it."""
        node = self.at(client_url)
        node.stopped_at, node.up, node.settled, node.frozen = self.applied(node), False, False, frozen
        self._elect()

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

    def overwrite(self, size: int) -> None:
        """Let clients write over a key with so many bytes, which are history at once. Raises EtcdFault (NO_SPACE)."""
        if any(alarm.kind is AlarmKind.NOSPACE for alarm in self.alarms):
            raise _fault("writing a key", Reason.NO_SPACE)
        self.write()
        self.history += size
        for node in self.nodes:
            node.size = max(node.size, self.keys + self.history)
            if node.size >= self.quota:
                self.alarms.append(Alarm(AlarmKind.NOSPACE, node.id))

    def at(self, client_url: str) -> _Node:
        """The member whose process serves ``client_url``; raises KeyError."""
        for node in self.nodes:
            if node.address is not None and node.address.client_url == client_url:
                return node
        raise KeyError(client_url)

    def by_id(self, member_id: int) -> _Node | None:
        """The member with that id."""
        return next((node for node in self.nodes if node.id == member_id), None)

    @property
    def voters(self) -> list[_Node]:
        """The members that vote."""
        return [node for node in self.nodes if not node.learner]

    @property
    def quorate(self) -> bool:
        """Whether a majority of the voters runs."""
        return sum(node.up for node in self.voters) >= _majority(len(self.voters))

    def applied(self, node: _Node) -> int:
        """The index that a member has applied."""
        return max(0, self.index - node.behind) if node.up else node.stopped_at

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


class FakeEtcd:
    """The etcd port on a FakeCluster."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster

    async def status(self, url: str, *, within: float | None = None) -> MemberStatus:
        """See the port."""
        node = self._running(url, "reading the status")
        cluster = self.cluster
        errors = [] if cluster.leader else ["etcdserver: no leader"]
        errors += [f"memberID:{alarm.member_id} alarm:{alarm.kind}" for alarm in cluster.alarms]
        return MemberStatus(
            cluster_id=1,
            member_id=node.id,
            leader_id=cluster.leader,
            raft_term=cluster.term,
            raft_index=cluster.applied(node),
            raft_applied_index=cluster.applied(node),
            is_learner=node.learner,
            revision=max(1, cluster.applied(node) - cluster.keyless),
            db_size=node.size,
            db_size_in_use=cluster.keys + cluster.history,
            db_size_quota=cluster.quota,
            version="3.6.16",
            errors=tuple(errors),
        )

    async def progress(self, leader_url: str) -> Progress:
        """See the port."""
        doing = f"reading the progress of the members at {leader_url}"
        node = self._running(leader_url, doing)
        if node.id != self.cluster.leader:
            raise _fault(doing, Reason.NO_LEADER)
        return Progress(
            leader_id=node.id,
            term=self.cluster.term,
            committed=self.cluster.index,
            transferee=0,
            members=tuple(self._progress(each) for each in self.cluster.nodes),
        )

    async def members(self, urls: Sequence[str]) -> tuple[ListedMember, ...]:
        """See the port."""
        self._servers(urls, "listing the etcd members")
        return tuple(_listed(node) for node in self.cluster.nodes)

    async def revision(self, urls: Sequence[str]) -> int:
        """See the port."""
        self._servers(urls, "reading etcd's revision")
        return self.cluster.index

    async def lists(self, url: str, member_id: int) -> bool:
        """See the port."""
        self._running(url, "listing the etcd members")
        return self.cluster.by_id(member_id) is not None

    async def add_learner(self, urls: Sequence[str], peer_url: str) -> int:
        """See the port."""
        doing = f"adding the etcd learner {peer_url}"
        servers = self._servers(urls, doing)
        for node in self.cluster.nodes:
            if node.peer_url == peer_url:
                return node.id
        voters = self.cluster.voters
        # Learners too: the new member is counted as a voter that is down (3.6: mayAddMember).
        needed = _majority(len(voters) + 1) if len(voters) > 1 else 1
        if all(self._connected(server) < needed for server in servers):
            raise _fault(doing, Reason.UNHEALTHY)
        if len(self.cluster.nodes) - len(voters) >= self.cluster.max_learners:
            raise _fault(doing, Reason.TOO_MANY_LEARNERS)
        added = _Node(id=next(self.cluster.ids), peer_url=peer_url, learner=True)
        self.cluster.nodes.append(added)
        self.cluster.commit()
        return added.id

    async def promote(self, urls: Sequence[str], member_id: int) -> None:
        """See the port."""
        doing = f"promoting the etcd member {member_id:x}"
        self._servers(urls, doing)
        node = self.cluster.by_id(member_id)
        if node is None:
            raise _fault(doing, Reason.MEMBER_NOT_FOUND)
        if not node.learner:
            return
        if 100 * self.cluster.applied(node) < _READY_PERCENT * self.cluster.index:
            raise _fault(doing, Reason.LEARNER_BEHIND)
        started = sum(voter.address is not None for voter in self.cluster.voters) + 1
        if started < _majority(len(self.cluster.voters) + 1):
            raise _fault(doing, Reason.NOT_ENOUGH_STARTED)
        node.learner = False
        self.cluster.commit()

    async def remove(self, urls: Sequence[str], member_id: int) -> None:
        """See the port."""
        doing = f"removing the etcd member {member_id:x}"
        servers = self._servers(urls, doing)
        node = self.cluster.by_id(member_id)
        if node is None:
            return
        if not node.learner:
            self._may_remove(node, servers, doing)
        self.cluster.nodes.remove(node)
        self.cluster.commit()

    async def move_leader(self, leader_url: str, to_id: int) -> None:
        """See the port."""
        doing = f"moving leadership to {to_id:x}"
        node = self._running(leader_url, doing)
        if self.cluster.leader == to_id:
            return
        if node.learner:
            raise _fault(doing, Reason.NOT_FOR_LEARNERS)
        if node.id != self.cluster.leader:
            raise _fault(doing, Reason.NOT_LEADER)
        target = self.cluster.by_id(to_id)
        if target is None or target.learner:
            raise _fault(doing, Reason.BAD_TRANSFEREE)
        if not target.up:
            raise _fault(doing, Reason.REQUEST_TIMED_OUT)
        self.cluster.leader = to_id
        self.cluster.term += 1

    async def alarms(self, urls: Sequence[str]) -> tuple[Alarm, ...]:
        """See the port."""
        self._servers(urls, "reading etcd's alarms")
        self.cluster.commit()
        return tuple(self.cluster.alarms)

    async def compact(self, urls: Sequence[str], revision: int) -> None:
        """See the port."""
        doing = f"compacting etcd to revision {revision}"
        self._servers(urls, doing)
        cluster = self.cluster
        if revision > cluster.index - cluster.keyless:
            raise _fault(doing, Reason.FUTURE_REVISION)
        if revision > cluster.compacted:
            cluster.compacted, cluster.history = revision, 0
            cluster.commit()

    async def defragment(self, url: str) -> None:
        """See the port."""
        node = self._running(url, "defragmenting")
        if node.learner:
            raise _fault("defragmenting", Reason.NOT_FOR_LEARNERS)
        node.size = self.cluster.keys + self.cluster.history

    async def disarm(self, urls: Sequence[str], kind: AlarmKind) -> None:
        """See the port."""
        self._servers(urls, f"disarming the alarm {kind}")
        self.cluster.alarms = [alarm for alarm in self.cluster.alarms if alarm.kind is not kind]
        self.cluster.commit()

    async def hash_keys(self, url: str, revision: int) -> KeySpaceHash:
        """See the port."""
        node, cluster = self._running(url, "hashing all keys"), self.cluster
        newest = cluster.applied(node) - cluster.keyless
        if node.learner:
            raise _fault("hashing all keys", Reason.NOT_FOR_LEARNERS)
        if revision > newest:
            raise _fault("hashing all keys", Reason.FUTURE_REVISION)
        if revision < cluster.compacted:
            raise _fault("hashing all keys", Reason.COMPACTED)
        return KeySpaceHash(hash=node.hash, hash_revision=revision, compact_revision=cluster.compacted, revision=newest)

    async def peer_version_answers(self, peer_url: str, *, within: float | None = None) -> bool:
        """See the port."""
        return any(_answers(node) and node.peer_url == peer_url for node in self.cluster.nodes)

    async def applied_index(self, metrics_url: str, *, within: float | None = None) -> int:
        """See the port."""
        for node in self.cluster.nodes:
            if _answers(node) and node.address is not None and node.address.metrics_url == metrics_url:
                return self.cluster.applied(node)
        raise _fault(f"reading etcd's metrics at {metrics_url}", Reason.UNREACHABLE)

    async def pending_proposals(self, metrics_url: str, *, within: float | None = None) -> int:
        """See the port: what is written here is applied at once."""
        await self.applied_index(metrics_url)
        return 0

    async def disk_times(self, metrics_url: str) -> DiskTimes:
        """See the port: each entry took a little, and none more than a millisecond."""
        count = await self.applied_index(metrics_url)
        took = Durations(((0.001, count), (0.01, count), (math.inf, count)))
        return DiskTimes(fsync=took, commit=took)

    async def close(self) -> None:
        """See the port."""

    def _running(self, url: str, doing: str) -> _Node:
        try:
            node = self.cluster.at(url)
        except KeyError:
            raise _fault(f"{doing} at etcd member {url}", Reason.UNREACHABLE) from None
        if not _answers(node):
            raise _fault(f"{doing} at etcd member {url}", Reason.UNREACHABLE)
        return node

    def _servers(self, urls: Sequence[str], doing: str) -> list[_Node]:
        """The voters among ``urls`` that answer, in a cluster with a quorum."""
        known = [node for node in self.cluster.nodes if node.address is not None and node.address.client_url in urls]
        running = [node for node in known if _answers(node)]
        servers = [node for node in running if not node.learner]
        if not servers:
            raise _fault(doing, Reason.NOT_FOR_LEARNERS if running else Reason.UNREACHABLE)
        if not self.cluster.quorate:
            raise _fault(doing, Reason.NO_LEADER)
        return servers

    def _progress(self, node: _Node) -> MemberProgress:
        """Replication takes no time. A connection that breaks is noticed at once, one to a frozen process never."""
        match = self.cluster.applied(node)
        state = Replication.REPLICATE if node.up or node.frozen else Replication.PROBE
        following = self.cluster.index if node.frozen else match
        return MemberProgress(member_id=node.id, match=match, next=following + 1, state=state)

    def _connected(self, server: _Node) -> int:
        """How many voters have been connected to ``server`` for 5 s, itself included."""
        return sum(node is server or (node.up and node.settled) for node in self.cluster.voters)

    def _may_remove(self, node: _Node, servers: Sequence[_Node], doing: str) -> None:
        """etcd's --strict-reconfig-check for voters (server.go: mayRemoveMember)."""
        voters = self.cluster.voters
        started = sum(voter.address is not None for voter in voters if voter is not node)
        if started < _majority(len(voters) - 1):
            raise _fault(doing, Reason.NOT_ENOUGH_STARTED)
        if node.up and all(self._connected(server) - 1 < _majority(len(voters) - 1) for server in servers):
            raise _fault(doing, Reason.UNHEALTHY)


def _answers(node: _Node) -> bool:
    return node.up and not node.hidden


def _majority(voters: int) -> int:
    return voters // 2 + 1


def _listed(node: _Node) -> ListedMember:
    started = node.address
    return ListedMember(
        id=node.id,
        name=started.name if started else "",
        peer_urls=(node.peer_url,),
        client_urls=(started.client_url,) if started else (),
        is_learner=node.learner,
    )


def _fault(doing: str, reason: Reason) -> EtcdFault:
    return fault(doing, reason, reason.value)
