"""One etcd cluster of the joined world: what becomes of its members as their processes run, and where its data is."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster, Member, MemberAddress

from loop.units import Etcd, etcd_of, flags_of
from quarterdeck.components.etcd import WRITE_AHEAD_LOG
from quarterdeck.components.ports import STRIDE, first_block
from quarterdeck.etcd.maintenance import minor_of
from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.seats import PortName
from quarterdeck.planner.quorum import quorum

if TYPE_CHECKING:
    from loop.fake_world import Joined, Process

#: Seconds: until a joiner's client port opens, until it has copied the data, how long an election takes, until a member
#: counts as connected (etcd: HealthInterval), and until a second publication.
PUBLISHES = 0.3
COPIES = 0.7
ELECTS = 1.0
CONNECTED = 5.0
PUBLISHES_AGAIN = 7.0
#: Seconds until the leader has compared the versions of all members (etcd: monitorVersionInterval).
COMPARES = 4.0
#: Entries that a joiner lags at first.
BEHIND = 50_000


def cluster_at(url: str) -> Cluster:
    """The cluster whose member has this URL, by its port."""
    first = first_block()
    beside = ((urlsplit(url).port or 0) - first[PortName.ETCD_CLIENT]) % STRIDE
    return Cluster.EVENTS if beside >= first[PortName.EVENTS_CLIENT] - first[PortName.ETCD_CLIENT] else Cluster.MAIN


@dataclass(slots=True)
class Etcds:
    """The etcd port of a plane with several clusters: by the URLs that are asked."""

    clusters: Mapping[Cluster, FakeEtcd]

    def __getattr__(self, method: str) -> Any:
        clusters = self.clusters

        async def called(urls: str | Collection[str], *args: object, **kwargs: object) -> object:
            first = urls if isinstance(urls, str) else next(iter(urls), "")
            return await getattr(clusters[cluster_at(first)], method)(urls, *args, **kwargs)

        return called


@dataclass(slots=True)
class Members:
    """``unlucky``: joiners whose own publication is part of the snapshot that they get, by peer URL."""

    world: Joined
    kind: Cluster
    cluster: FakeCluster
    unlucky: set[str] = field(default_factory=set)
    electing: float = -math.inf
    _compares: float | None = None
    _leader: int = 0

    def serves(self, replica: str) -> bool:
        """Whether a replica's member is a voter that serves."""
        return (
            self.cluster.quorate
            and not self.cluster.authenticates
            and any(
                node.up and not node.learner and node.address is not None and node.address.name == replica
                for node in self.cluster.nodes
            )
        )

    def moved_on_purpose(self) -> None:
        """The leader that there is now was asked to lead: nobody had to elect it."""
        self._leader = self.cluster.leader

    @property
    def leaderless(self) -> bool:
        """Whether an election is under way."""
        return self.world.clock.now < self.electing

    def over(self) -> None:
        """There is no such cluster any more; the next one has nothing of it."""
        self.cluster.nodes.clear()
        self.cluster.leader, self._leader, self.electing = 0, 0, -math.inf
        self.unlucky.clear()

    def restored(self, argv: tuple[str, ...]) -> bool:
        """Make data for the one member of a new cluster from a database that nobody uses. Whether there is one."""
        flags = flags_of(argv)
        database, target = PurePosixPath(argv[3]), PurePosixPath(flags["data-dir"])
        source = database.parents[2]
        if source not in self.world.data and not self._is_backup(database):
            return False
        if any(etcd.data == source for _, etcd in self._etcds()):
            self.world.broken.append(f"17: {source} is copied while it is in use")
        _, peer_url = flags["initial-cluster"].split("=", 1)
        self.over()
        self.cluster.found((peer_url,))
        self.world.data[target] = self.cluster.nodes[0].id
        self._written(target)
        return True

    def has_run(self, member: int) -> bool:
        """Whether it is a member that has run: data that was made for one that has not can be made again."""
        node = self.cluster.by_id(member)
        return node is not None and node.address is not None

    def _is_backup(self, database: PurePosixPath) -> bool:
        """Whether a file is the database of a backup that was copied to its machine."""
        return any(site.has_content(database) for site in self.world.sites.values())

    def _written(self, data: PurePosixPath) -> None:
        """A write-ahead log is in a data folder now."""
        (site,) = (each for each in self.world.sites.values() if each.has_volume(data.parent))
        machine = next(name for name in self.world.machines if name in data.parts)
        site.put_file(machine, data.parent.name, f"{WRITE_AHEAD_LOG}/0.wal", 1, at=self.world.clock.wall())

    def may_run(self, etcd: Etcd) -> bool:
        member = self.world.data.get(etcd.data)
        if member is not None:
            return self.cluster.by_id(member) is not None
        node = next((node for node in self.cluster.nodes if node.peer_url == etcd.peer_url), None)
        if etcd.founds:
            if not self.cluster.nodes or (node is not None and node.address is None):
                return True
            self.world.broken.append(f"9: {etcd.name} starts on no data, and would found a second cluster")
            return False
        listed = {node.peer_url for node in self.cluster.nodes}
        return node is not None and node.address is None and set(etcd.members.values()) == listed

    def settle(self) -> None:
        for each, etcd in self._etcds():
            if not each.frozen and etcd.data in self.world.left:
                self.world.broken.append(f"20: {etcd.name} writes to what is on another machine")
        running = {self._known_at(etcd): (each, etcd) for each, etcd in self._etcds() if not each.frozen}
        if not self.cluster.nodes:
            self._found([etcd for _, etcd in running.values() if etcd.founds])
        moved = frozenset(url for url, (_, etcd) in running.items() if etcd.peer_url != url)
        together = self._together({url: process.site for url, (process, _) in running.items()}, moved)
        for node in tuple(self.cluster.nodes):
            process, etcd = running.pop(node.peer_url, (None, None))
            if node.peer_url not in together:
                process = None  # for all that follows from it, it is down
            if process is not None and etcd is not None and self.world.data.get(etcd.data, node.id) == node.id:
                self._runs(node, process, etcd)
            elif node.up:
                node.stopped_at, node.up, node.settled = self.cluster.applied(node), False, False
        self.cluster._elect()
        if self.cluster.nodes:
            for process, _ in running.values():
                # A member that was taken out ends by itself.
                self.world.sites[process.site].crash(process.seen.machine, process.seen.spec.name)
        self._elected()
        self._compared()

    def _compared(self) -> None:
        """Versions that differ from what the members agreed on are noticed after a while."""
        if self.cluster.agreement == (self.cluster.works_as, self.cluster.downgrade):
            self._compares = None
            return
        self._compares = self.world.clock.now + COMPARES if self._compares is None else self._compares
        if self.world.at_moment(self._compares):
            self.cluster.agree()
            self._compares = None

    def _known_at(self, etcd: Etcd) -> str:
        """Where the others look for a process: that of a member that has its data, wherever it is itself."""
        node = self.cluster.by_id(self.world.data.get(etcd.data, 0))
        return node.peer_url if node is not None else etcd.peer_url

    def _together(self, sites: Mapping[str, str], moved: Collection[str]) -> Collection[str]:
        """The members (by peer URL; ``sites`` has those that run) which talk with a leader that a quorum can follow.
        Of those that ``moved``, and that the others look for elsewhere, no two find each other.
        """
        if not self.world.cuts and len(moved) < 2:
            return sites.keys()
        voters = [node.peer_url for node in self.cluster.voters]
        leader = self.cluster.by_id(self.cluster.leader)
        candidates = [url for url in voters if url in sites]
        candidates.sort(key=lambda url: leader is None or url != leader.peer_url)
        for candidate in candidates:
            lost = {*moved} - {candidate} if candidate in moved else set[str]()
            found = (url for url in sites if url not in lost)
            followers = {url for url in found if self.world.connected(sites[candidate], sites[url])}
            if len(followers.intersection(voters)) >= quorum(len(voters)):
                return followers
        return ()

    def hide(self) -> None:
        """Members on machines that we do not see."""
        hosts = {self.world.machines[machine] for machine in self.world.unseen}
        for node in self.cluster.nodes:
            where = node.address.client_url if node.address is not None else ""
            node.hidden = urlsplit(where or node.peer_url).hostname in hosts

    def _etcds(self) -> Iterator[tuple[Process, Etcd]]:
        return ((each, etcd_of(each.seen.spec)) for each in self.world.of(MEMBER[self.kind]))

    def _found(self, founders: list[Etcd]) -> None:
        """A quorum of founders makes the cluster."""
        if not founders:
            return
        members = founders[0].members
        if any(etcd.members != members for etcd in founders):
            self.world.broken.append("9: founders do not agree on who they are")
        if len(founders) >= quorum(len(members)):
            self.cluster.found(tuple(members.values()))
            self.cluster.works_as = min(minor_of(etcd.version) for etcd in founders)

    def _runs(self, node: Member, process: Process, etcd: Etcd) -> None:
        """A member's process runs, and it is whose data that is."""
        if etcd.data not in self.world.data:
            self.world.data[etcd.data] = node.id
            self._written(etcd.data)
            if node.learner:
                node.behind = BEHIND
                if self.world.random.random() >= self.world.luck:
                    self.unlucky.add(node.peer_url)
        elif not node.up:
            self.unlucky.discard(node.peer_url)  # started again, it has the data
        if not node.up:
            node.version = etcd.version
            if node.minor < self.cluster.works_as:
                self.world.broken.append(f"25: {etcd.name} starts with etcd {etcd.version}, and would panic")
        node.up = True
        if node.behind and self.world.at_moment(process.since + COPIES):
            node.behind = 0
        if node.address is None and node.learner and not self.world.at_moment(process.since + PUBLISHES):
            return
        node.settled = self.world.at_moment(process.since + CONNECTED)
        unlucky = node.peer_url in self.unlucky and not self.world.at_moment(process.since + PUBLISHES_AGAIN)
        node.address = MemberAddress(
            name=etcd.name,
            peer_url=node.peer_url,
            client_url="" if unlucky else etcd.client_url,
            metrics_url=etcd.metrics_url,
        )

    def _elected(self) -> None:
        """A leader that nobody asked for was elected: by chance, and it took its time."""
        if self.cluster.leader == self._leader:
            self.world.at_moment(self.electing)
            return
        if self.cluster.leader:
            able = [node.id for node in self.cluster.voters if node.up and node.address is not None]
            if able:
                self.cluster.leader = self.world.random.choice(able)
            self.electing = self.world.clock.now + (ELECTS if self._leader else 0.0)
            self.world.at_moment(self.electing)
        self._leader = self.cluster.leader
