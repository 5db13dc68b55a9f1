"""An etcd cluster in memory, with etcd's rules of membership, behind the etcd port."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Collection, Sequence

from fakes.etcd_cluster import FakeCluster, Member, majority, refusal
from quarterdeck.components.credentials import KeyPair
from quarterdeck.etcd.calls import LONGEST_ANSWER
from quarterdeck.etcd.facts import (
    Alarm,
    AlarmKind,
    Durations,
    KeyEvent,
    KeySpaceHash,
    LeaseLife,
    ListedMember,
    MemberProgress,
    MemberReport,
    MemberTimes,
    RaftProgress,
    RangeResult,
    Replication,
)
from quarterdeck.etcd.faults import EtcdCompacted, Reason
from quarterdeck.etcd.kv import Get
from quarterdeck.model.membership import EtcdMinor

#: Bytes of one part of a snapshot.
_PART = 1 << 15
_READY_PERCENT = 90  # etcd's own, too weak a rule for promotion (server.go: readyPercentThreshold)


class FakeEtcd:
    """The etcd port on a FakeCluster."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster

    async def status(self, url: str, *, within: float | None = None) -> MemberReport:
        """See the port."""
        node = self._running(url, "reading the status")
        cluster = self.cluster
        errors = [] if cluster.leader else ["etcdserver: no leader"]
        errors += [f"memberID:{alarm.member_id} alarm:{alarm.kind}" for alarm in cluster.alarms]
        return MemberReport(
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
            version=node.version,
            errors=tuple(errors),
            storage=cluster.works_as if _reports(node) else None,
            downgrade=cluster.downgrade if _reports(node) else None,
        )

    async def flush(self, url: str) -> None:
        """See the port: what is applied here is on the disk at once."""
        doing = "writing the database"
        self._running(url, doing)
        self._require_admission(doing)

    async def progress(self, leader_url: str) -> RaftProgress:
        """See the port."""
        doing = f"reading the progress of the members at {leader_url}"
        node = self._running(leader_url, doing)
        if node.id != self.cluster.leader:
            raise refusal(doing, Reason.NO_LEADER)
        return RaftProgress(
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
        self._admitted(urls, "reading etcd's revision")
        return self.cluster.revision

    async def lists(self, url: str, member_id: int) -> bool:
        """See the port."""
        self._running(url, "listing the etcd members")
        return self.cluster.by_id(member_id) is not None

    async def known_members(self, url: str) -> tuple[ListedMember, ...]:
        """See the port."""
        doing = "listing the etcd members"
        if self._running(url, doing).learner:
            raise refusal(doing, Reason.NOT_FOR_LEARNERS)
        return tuple(_listed(node) for node in self.cluster.nodes)

    async def add_learner(self, urls: Sequence[str], peer_url: str) -> int:
        """See the port."""
        doing = f"adding the etcd learner {peer_url}"
        servers = self._admitted(urls, doing)
        for node in self.cluster.nodes:
            if node.peer_url == peer_url:
                return node.id
        voters = self.cluster.voters
        # Learners too: the new member is counted as a voter that is down (3.6: mayAddMember).
        needed = majority(len(voters) + 1) if len(voters) > 1 else 1
        if all(self._connected(server) < needed for server in servers):
            raise refusal(doing, Reason.UNHEALTHY)
        if len(self.cluster.nodes) - len(voters) >= self.cluster.max_learners:
            raise refusal(doing, Reason.TOO_MANY_LEARNERS)
        added = Member(id=next(self.cluster.ids), peer_url=peer_url, learner=True)
        self.cluster.nodes.append(added)
        self.cluster.commit()
        return added.id

    async def promote(self, urls: Sequence[str], member_id: int) -> None:
        """See the port."""
        doing = f"promoting the etcd member {member_id:x}"
        self._admitted(urls, doing)
        node = self.cluster.by_id(member_id)
        if node is None:
            raise refusal(doing, Reason.MEMBER_NOT_FOUND)
        if not node.learner:
            return
        if 100 * self.cluster.applied(node) < _READY_PERCENT * self.cluster.index:
            raise refusal(doing, Reason.LEARNER_BEHIND)
        started = sum(voter.address is not None for voter in self.cluster.voters) + 1
        if started < majority(len(self.cluster.voters) + 1):
            raise refusal(doing, Reason.NOT_ENOUGH_STARTED)
        node.learner = False
        self.cluster.commit()

    async def readdress(self, urls: Sequence[str], member_id: int, peer_url: str) -> None:
        """See the port."""
        doing = f"having the etcd member {member_id:x} be found at {peer_url}"
        self._admitted(urls, doing)
        node = self.cluster.by_id(member_id)
        if node is None:
            raise refusal(doing, Reason.MEMBER_NOT_FOUND)
        if any(each.peer_url == peer_url for each in self.cluster.nodes if each is not node):
            raise refusal(doing, Reason.MEMBER_EXISTS)
        node.peer_url = peer_url
        self.cluster.commit()

    async def remove(self, urls: Sequence[str], member_id: int) -> None:
        """See the port."""
        doing = f"removing the etcd member {member_id:x}"
        servers = self._admitted(urls, doing)
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
            raise refusal(doing, Reason.NOT_FOR_LEARNERS)
        if node.id != self.cluster.leader:
            raise refusal(doing, Reason.NOT_LEADER)
        target = self.cluster.by_id(to_id)
        if target is None or target.learner:
            raise refusal(doing, Reason.BAD_TRANSFEREE)
        if not target.up:
            raise refusal(doing, Reason.REQUEST_TIMED_OUT)
        self.cluster.leader = to_id
        self.cluster.term += 1

    async def admits(self, url: str, *, within: float | None = None) -> bool:
        """See the port."""
        self._running(url, "reading keys")
        return not self.cluster.authenticates

    async def disable_authentication(self, urls: Sequence[str], root: KeyPair) -> None:
        """See the port."""
        self._servers(urls, "disabling etcd's authentication")
        self.cluster.authenticates = False

    async def alarms(self, urls: Sequence[str]) -> tuple[Alarm, ...]:
        """See the port."""
        self._servers(urls, "reading etcd's alarms")
        self.cluster.commit()
        return tuple(self.cluster.alarms)

    async def compact(self, urls: Sequence[str], revision: int) -> None:
        """See the port."""
        doing = f"compacting etcd to revision {revision}"
        self._admitted(urls, doing)
        cluster = self.cluster
        if revision > cluster.index - cluster.keyless:
            raise refusal(doing, Reason.FUTURE_REVISION)
        if revision > cluster.compacted:
            cluster.compacted, cluster.history = revision, 0
            cluster.commit()

    async def defragment(self, url: str) -> None:
        """See the port."""
        node = self._running(url, "defragmenting")
        self._require_admission("defragmenting")
        if node.learner:
            raise refusal("defragmenting", Reason.NOT_FOR_LEARNERS)
        node.size = self.cluster.keys + self.cluster.history

    async def disarm(self, urls: Sequence[str], kind: AlarmKind) -> None:
        """See the port."""
        self._servers(urls, f"disarming the alarm {kind}")
        self.cluster.alarms = [alarm for alarm in self.cluster.alarms if alarm.kind is not kind]
        self.cluster.commit()

    async def works_as(self, url: str, *, within: float | None = None) -> EtcdMinor:
        """See the port."""
        self._running(url, "reading the version of the cluster")
        return self.cluster.works_as

    async def enable_downgrade(self, urls: Sequence[str], target: EtcdMinor) -> None:
        """See the port."""
        doing, cluster = "enabling a downgrade of etcd", self.cluster
        self._admitted(urls, doing)
        if cluster.downgrade == target:
            return
        if cluster.downgrade is not None:
            raise refusal(doing, Reason.DOWNGRADING)
        if target != (cluster.works_as[0], cluster.works_as[1] - 1):
            raise refusal(doing, Reason.BAD_DOWNGRADE)
        cluster.downgrade = target
        cluster.commit()

    async def cancel_downgrade(self, urls: Sequence[str]) -> None:
        """See the port."""
        self._admitted(urls, "cancelling the downgrade of etcd")
        self.cluster.downgrade = None
        self.cluster.commit()

    async def keep_for(self, urls: Sequence[str], key: bytes, value: bytes, seconds: int) -> None:
        """See the port."""
        self._admitted(urls, f"writing the key {key.decode(errors='replace')}")
        self.cluster.kept[key] = value
        self.cluster.put(key, value, self.cluster.grant(seconds))

    async def forget(self, urls: Sequence[str], key: bytes) -> None:
        """See the port."""
        doing = f"deleting the key {key.decode(errors='replace')}"
        self._admitted(urls, doing)
        self.cluster.forgotten.append(key)
        if self.cluster.kept.pop(key, None) is None:
            self.cluster.commit()
        else:
            self.cluster.delete(key)

    async def read(self, url: str, what: Get) -> RangeResult:
        """See the port."""
        doing, cluster = "reading keys", self.cluster
        if what.serializable:
            newest = cluster.applied(self._running(url, doing)) - cluster.keyless
            self._require_admission(doing)
        else:
            self._voter(url, doing)
            newest = cluster.revision
        if what.revision > newest:
            raise refusal(doing, Reason.FUTURE_REVISION)
        if 0 < what.revision < cluster.compacted:
            raise EtcdCompacted(doing, cluster.compacted)
        found = cluster.history_of_keys.read(what, newest)
        if sum(len(each.key) + len(each.value) for each in found.items) > LONGEST_ANSWER:
            raise refusal(doing, Reason.TOO_LARGE)
        return found

    async def hash_keys(self, url: str, revision: int) -> KeySpaceHash:
        """See the port."""
        node, cluster = self._running(url, "hashing all keys"), self.cluster
        self._require_admission("hashing all keys")
        newest = cluster.applied(node) - cluster.keyless
        if node.learner:
            raise refusal("hashing all keys", Reason.NOT_FOR_LEARNERS)
        if revision > newest:
            raise refusal("hashing all keys", Reason.FUTURE_REVISION)
        if revision < cluster.compacted:
            raise refusal("hashing all keys", Reason.COMPACTED)
        return KeySpaceHash(hash=node.hash, hash_revision=revision, compact_revision=cluster.compacted, revision=newest)

    async def snapshot(self, url: str) -> AsyncGenerator[bytes, None]:
        """See the port."""
        doing = "taking a snapshot"
        node = self._running(url, doing)
        self._require_admission(doing)
        content = self.cluster.history_of_keys.snapshot(self.cluster.applied(node) - self.cluster.keyless)
        for at in range(0, len(content), _PART):
            self._running(url, doing)
            yield content[at : at + _PART]
            await asyncio.sleep(0)

    async def changes(self, url: str, start_revision: int) -> AsyncGenerator[tuple[KeyEvent, ...], None]:
        """See the port."""
        doing, cluster = "watching keys", self.cluster
        woken = asyncio.Event()
        cluster.history_of_keys.watchers.add(woken)
        try:
            while True:
                woken.clear()
                node = self._voter(url, doing)
                if start_revision < cluster.compacted:
                    raise EtcdCompacted(doing, cluster.compacted)
                while start_revision <= cluster.applied(node) - cluster.keyless:
                    yield cluster.history_of_keys.events(start_revision)
                    start_revision += 1
                await woken.wait()
        finally:
            cluster.history_of_keys.watchers.discard(woken)

    async def lease_times(self, urls: Sequence[str], only: Collection[int] | None = None) -> tuple[LeaseLife, ...]:
        """See the port."""
        self._admitted(urls, "reading etcd's leases")
        leases = self.cluster.history_of_keys.leases.values()
        return tuple(each for each in leases if only is None or each.id in only)

    async def peer_version_answers(self, peer_url: str, *, within: float | None = None) -> bool:
        """See the port."""
        return any(_answers(node) and node.peer_url == peer_url for node in self.cluster.nodes)

    async def applied_index(self, metrics_url: str, *, within: float | None = None) -> int:
        """See the port."""
        for node in self.cluster.nodes:
            if _answers(node) and node.address is not None and node.address.metrics_url == metrics_url:
                return self.cluster.applied(node)
        raise refusal(f"reading etcd's metrics at {metrics_url}", Reason.UNREACHABLE)

    async def pending_proposals(self, metrics_url: str, *, within: float | None = None) -> int:
        """See the port: what is written here is applied at once."""
        await self.applied_index(metrics_url)
        return 0

    async def times(self, metrics_url: str) -> MemberTimes:
        """See the port: each entry took a little, and none more than a millisecond."""
        count = await self.applied_index(metrics_url)
        took = Durations(((0.001, count), (0.01, count), (math.inf, count)))
        others = (node for node in self.cluster.nodes if node.address and node.address.metrics_url != metrics_url)
        return MemberTimes(fsync=took, commit=took, trips={node.id: took for node in others})

    async def close(self) -> None:
        """See the port."""

    def _running(self, url: str, doing: str) -> Member:
        try:
            node = self.cluster.at(url)
        except KeyError:
            raise refusal(f"{doing} at etcd member {url}", Reason.UNREACHABLE) from None
        if not _answers(node):
            raise refusal(f"{doing} at etcd member {url}", Reason.UNREACHABLE)
        return node

    def _voter(self, url: str, doing: str) -> Member:
        """The voter at ``url``, in a cluster with a quorum that lets quarterdeck read keys."""
        node = self._running(url, doing)
        self._require_admission(doing)
        if node.learner:
            raise refusal(doing, Reason.NOT_FOR_LEARNERS)
        if not self.cluster.quorate:
            raise refusal(doing, Reason.NO_LEADER)
        return node

    def _servers(self, urls: Sequence[str], doing: str) -> list[Member]:
        """The voters among ``urls`` that answer, in a cluster with a quorum."""
        known = [node for node in self.cluster.nodes if node.address is not None and node.address.client_url in urls]
        running = [node for node in known if _answers(node)]
        servers = [node for node in running if not node.learner]
        if not servers:
            raise refusal(doing, Reason.NOT_FOR_LEARNERS if running else Reason.UNREACHABLE)
        if not self.cluster.quorate:
            raise refusal(doing, Reason.NO_LEADER)
        return servers

    def _admitted(self, urls: Sequence[str], doing: str) -> list[Member]:
        """The same for what etcd's authentication does not let quarterdeck do. (It may list members and alarms.)"""
        servers = self._servers(urls, doing)
        self._require_admission(doing)
        return servers

    def _require_admission(self, doing: str) -> None:
        if self.cluster.authenticates:
            raise refusal(doing, Reason.DENIED)

    def _progress(self, node: Member) -> MemberProgress:
        """Replication takes no time. A connection that breaks is noticed at once, one to a frozen process never."""
        match = self.cluster.applied(node)
        state = Replication.REPLICATE if node.up or node.frozen else Replication.PROBE
        following = self.cluster.index if node.frozen else match
        return MemberProgress(member_id=node.id, match=match, next=following + 1, state=state)

    def _connected(self, server: Member) -> int:
        """How many voters have been connected to ``server`` for 5 s, itself included."""
        return sum(node is server or (node.up and node.settled) for node in self.cluster.voters)

    def _may_remove(self, node: Member, servers: Sequence[Member], doing: str) -> None:
        """etcd's --strict-reconfig-check for voters (server.go: mayRemoveMember)."""
        voters = self.cluster.voters
        started = sum(voter.address is not None for voter in voters if voter is not node)
        if started < majority(len(voters) - 1):
            raise refusal(doing, Reason.NOT_ENOUGH_STARTED)
        if node.up and all(self._connected(server) - 1 < majority(len(voters) - 1) for server in servers):
            raise refusal(doing, Reason.UNHEALTHY)


def _reports(node: Member) -> bool:
    """Whether its etcd reports versions of its storage, and downgrades."""
    return node.minor >= (3, 6)


def _answers(node: Member) -> bool:
    return node.up and not node.hidden


def _listed(node: Member) -> ListedMember:
    started = node.address
    return ListedMember(
        id=node.id,
        name=started.name if started else "",
        peer_urls=(node.peer_url,),
        client_urls=(started.client_url,) if started else (),
        is_learner=node.learner,
    )
