"""The fakes of all ports, joined: units of the sites run members of one etcd cluster, those make apiservers ready, and
load balancers find these healthy. What takes its time takes it on the world's clock.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from random import Random
from urllib.parse import urlsplit

from loop.clock import Clock
from loop.units import Etcd, etcd_of, flags_of, replica_of
from quarterdeck.api.base import Metadata
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.api.site import SiteSpec, SiteStatus
from quarterdeck.components import controller_manager
from quarterdeck.components.etcd import WRITE_AHEAD_LOG
from quarterdeck.components.ports import load_balancer_port
from quarterdeck.endpoint.fakes import FakeBalancer, FakeDns
from quarterdeck.etcd.fake import FakeCluster, FakeEtcd, MemberAddress
from quarterdeck.etcd.fake import _Node as Member
from quarterdeck.kube.fake import FakeApiserver, FakeKube
from quarterdeck.kube.port import Address
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import BackendAddress
from quarterdeck.model.units import MachineRole, MachineState, UnitSpec
from quarterdeck.planner.quorum import quorum
from quarterdeck.sites.fake import FakeSite
from quarterdeck.sites.fake_machines import Behaviour, Seen
from quarterdeck.sites.local.settings import LocalSiteSettings
from quarterdeck.stores.memory import MemoryStore

SITES = ("east", "west", "north")
ZONES = ("a", "b", "c")

#: Seconds: until a joiner's client port opens, until it has copied the data, until an apiserver is ready, how long an
#: election takes, until a member counts as connected (etcd: HealthInterval), and until a second publication.
PUBLISHES = 0.3
COPIES = 0.7
WARMS = 1.0
ELECTS = 1.0
CONNECTED = 5.0
PUBLISHES_AGAIN = 7.0
#: Entries that a joiner lags at first.
BEHIND = 50_000


class Numbers:
    """Numbers that nobody had before, as a plain value that can be copied."""

    def __init__(self, first: int) -> None:
        self._next = first

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self._next += 1
        return self._next - 1

    def text(self) -> str:
        return f"{next(self):08x}"


@dataclass(slots=True)
class Process:
    """A process that runs. ``warm``: an apiserver that was ready once."""

    seen: Seen
    site: str
    replica: str
    component: Component
    since: float
    warm: bool = False

    @property
    def frozen(self) -> bool:
        return self.seen.power is not MachineState.UP

    @property
    def flags(self) -> Mapping[str, str]:
        return flags_of(self.seen.spec.argv)

    @property
    def listens(self) -> Address:
        """Where an apiserver or a controller answers."""
        return Address(self.flags["bind-address"], int(self.flags["secure-port"]))


@dataclass(slots=True)
class Check:
    """How the load balancer of a site checks a backend."""

    world: Joined
    site: str

    def __call__(self, backend: BackendAddress) -> bool:
        server = self.world.kube.apiservers.get(Address(backend.ip, backend.port))
        well = server is not None and server.up and server.ready and not server.hangs
        return well and self.world.connected(self.site, self.world.at(backend.ip))


@dataclass(slots=True, kw_only=True)
class Joined:
    """One plane's world. Call ``settle`` before anybody looks, and ``touch`` after anything was changed."""

    clock: Clock = field(default_factory=Clock)
    random: Random = field(default_factory=lambda: Random(0))
    sites: dict[str, FakeSite] = field(init=False)
    cluster: FakeCluster = field(init=False)
    etcd: FakeEtcd = field(init=False)
    kube: FakeKube = field(default_factory=FakeKube)
    dns: FakeDns = field(default_factory=FakeDns)
    balancers: dict[str, FakeBalancer] = field(default_factory=dict)
    store: MemoryStore = field(init=False)
    #: The data on volumes, by the path of the data folder: whose it is, as the id of a member.
    data: dict[PurePosixPath, int] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
    processes: dict[tuple[str, int], Process] = field(default_factory=dict)
    #: Joiners whose own publication is part of the snapshot that they get, by peer URL.
    unlucky: set[str] = field(default_factory=set)
    luck: float = 1.0
    electing: float = -math.inf
    #: What no program of ours may ever bring about, as it was seen.
    broken: list[str] = field(default_factory=list)
    #: Machines that run, and do not answer us; pairs of sites that are cut from one another.
    unseen: frozenset[str] = frozenset()
    cuts: frozenset[frozenset[str]] = frozenset()
    #: What of this and of powers is not over; how often anything of it began or ended.
    hurt: list[str] = field(default_factory=list)
    strikes: int = 0
    _leader: int = 0
    _dirty: bool = True
    _next: float = math.inf
    _where: dict[str, str] = field(default_factory=dict)
    _named: dict[str, str] = field(default_factory=dict)
    version: int = 0

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.clock.wall, uid=Numbers(1).text)
        self.cluster = FakeCluster(max_learners=5, ids=Numbers(0x1001), index=1_000_000)
        self.etcd = FakeEtcd(self.cluster)
        self.sites = {
            name: FakeSite(LocalSiteSettings(name=name, zones=ZONES), number=index + 1, behave=self._behaviour)
            for index, name in enumerate(SITES)
        }

        for site in self.sites.values():
            site._pids = Numbers(1001)  # they are copied with the world

    async def furnish(self) -> None:
        """Have sites, machines and load balancers there."""
        for index, (name, site) in enumerate(self.sites.items()):
            await self.store.create(
                SiteResource(
                    metadata=Metadata(name=name), spec=SiteSpec(zones=ZONES), status=SiteStatus(number=index + 1)
                )
            )
            for machine in await site.machines():
                self._where[machine.name] = machine.address
                self._named[machine.address] = machine.name
                if machine.role is MachineRole.EDGE:
                    address = BackendAddress(machine.address, load_balancer_port(0))
                    self.balancers[name] = FakeBalancer(address=address, ready=Check(self, name))

    # --- machines and links ----------------------------------------------------------------------------------------

    @property
    def machines(self) -> Mapping[str, str]:
        """The address of each machine."""
        return self._where

    def machine_at(self, address: str) -> str:
        """The machine with an address."""
        return self._named[address]

    def site_of(self, machine: str) -> FakeSite:
        return self.sites[machine.partition("-")[0]]

    def at(self, address: str) -> str:
        """The site of an address."""
        return self.site_of(self.machine_at(address)).name

    def answers(self, machine: str) -> bool:
        """Whether a machine runs, and answers us."""
        return machine not in self.unseen and self.site_of(machine).power(machine) is MachineState.UP

    def connected(self, one: str, other: str) -> bool:
        """Whether two sites can talk."""
        return not self.cuts or frozenset({one, other}) not in self.cuts

    # --- what follows from what ------------------------------------------------------------------------------------

    def touch(self) -> None:
        """Something was changed from outside."""
        self._dirty = True

    def settle(self) -> None:
        """Bring everything up to this moment."""
        if not self._dirty and self.clock.now < self._next:
            return
        self._dirty, self._next = False, math.inf
        self.version += 1
        self._look()
        self._members()
        self._apiservers()
        self._controllers()
        for name, balancer in self.balancers.items():
            power = self.sites[name].power(f"{name}-edge")
            balancer.reachable = power is MachineState.UP
        self._hide()

    def moved_on_purpose(self) -> None:
        """The leader that there is now was asked to lead: nobody had to elect it."""
        self._leader = self.cluster.leader

    def forget_deleted(self, *, deleting: bool) -> None:
        """Data goes with its volume. ``deleting``: the whole plane is."""
        kept = {path: member for path, member in self.data.items() if self._has_volume(path)}
        lost = [member for path, member in self.data.items() if path not in kept]
        if not deleting and any(self.cluster.by_id(member) is not None for member in lost):
            self.broken.append("7: the data of a member is deleted")
        self.data = kept

    def _has_volume(self, data: PurePosixPath) -> bool:
        return any(site.has_volume(data.parent) for site in self.sites.values())

    def remains(self) -> list[str]:
        """What is left of a plane on its machines."""
        units = [seen.spec.name for site in self.sites.values() for seen in site.everything()]
        balancers = [f"the load balancer of {name}" for name, each in self.balancers.items() if each.running]
        return [*units, *map(str, self.data), *balancers, *self.dns.records]

    @property
    def leaderless(self) -> bool:
        """Whether an election is under way."""
        return self.clock.now < self.electing

    def _at(self, moment: float) -> bool:
        """Whether a moment has come; if not, ``settle`` looks again then."""
        if self.clock.now >= moment:
            return True
        self._next = min(self._next, moment)
        return False

    def _look(self) -> None:
        found: dict[tuple[str, int], Process] = {}
        for name, site in self.sites.items():
            for seen in site.everything():
                if seen.pid is None:
                    continue
                before = self.processes.get((name, seen.pid))
                if before is None:
                    replica, component = replica_of(seen.spec.name)
                    before = Process(seen, name, replica, component, self.clock.now)
                before.seen = seen
                found[name, seen.pid] = before
        self.processes = found

    def of(self, component: Component) -> list[Process]:
        """The processes of a component."""
        return [each for each in self.processes.values() if each.component is component]

    # --- etcd ------------------------------------------------------------------------------------------------------

    def _behaviour(self, spec: UnitSpec) -> Behaviour:
        """How a unit that is started now behaves. An etcd that must not run exits, again and again."""
        if replica_of(spec.name)[1] is not Component.ETCD:
            return Behaviour()
        return Behaviour(exit_code=None if self._may_run(etcd_of(spec)) else 1)

    def _may_run(self, etcd: Etcd) -> bool:
        member = self.data.get(etcd.data)
        if member is not None:
            return self.cluster.by_id(member) is not None
        node = next((node for node in self.cluster.nodes if node.peer_url == etcd.peer_url), None)
        if etcd.founds:
            if not self.cluster.nodes or (node is not None and node.address is None):
                return True
            self.broken.append(f"9: {etcd.name} starts on no data, and would found a second cluster")
            return False
        listed = {node.peer_url for node in self.cluster.nodes}
        return node is not None and node.address is None and set(etcd.members.values()) == listed

    def _members(self) -> None:
        running = {etcd.peer_url: (each, etcd) for each, etcd in self._etcds() if not each.frozen}
        if not self.cluster.nodes:
            self._found([etcd for _, etcd in running.values() if etcd.founds])
        together = self._together({url: process.site for url, (process, _) in running.items()})
        for node in tuple(self.cluster.nodes):
            process, etcd = running.pop(node.peer_url, (None, None))
            if node.peer_url not in together:
                process = None  # for all that follows from it, it is down
            if process is not None and etcd is not None and self.data.get(etcd.data, node.id) == node.id:
                self._runs(node, process, etcd)
            elif node.up:
                node.stopped_at, node.up, node.settled = self.cluster.applied(node), False, False
        self.cluster._elect()
        if self.cluster.nodes:
            for process, _ in running.values():
                # A member that was taken out ends by itself.
                self.sites[process.site].crash(process.seen.machine, process.seen.spec.name)
        self._elected()

    def _together(self, sites: Mapping[str, str]) -> Collection[str]:
        """The members (by peer URL; ``sites`` has those that run) which talk with a leader that a quorum can follow."""
        if not self.cuts:
            return sites.keys()
        voters = [node.peer_url for node in self.cluster.voters]
        leader = self.cluster.by_id(self.cluster.leader)
        candidates = [url for url in voters if url in sites]
        candidates.sort(key=lambda url: leader is None or url != leader.peer_url)
        for candidate in candidates:
            followers = {url for url, site in sites.items() if self.connected(sites[candidate], site)}
            if len(followers.intersection(voters)) >= quorum(len(voters)):
                return followers
        return ()

    def _hide(self) -> None:
        """Members on machines that we do not see."""
        hosts = {self._where[machine] for machine in self.unseen}
        for node in self.cluster.nodes:
            node.hidden = urlsplit(node.peer_url).hostname in hosts

    def _etcds(self) -> Iterator[tuple[Process, Etcd]]:
        return ((each, etcd_of(each.seen.spec)) for each in self.of(Component.ETCD))

    def _found(self, founders: list[Etcd]) -> None:
        """A quorum of founders makes the cluster."""
        if not founders:
            return
        members = founders[0].members
        if any(etcd.members != members for etcd in founders):
            self.broken.append("9: founders do not agree on who they are")
        if len(founders) >= quorum(len(members)):
            self.cluster.found(tuple(members.values()))

    def _runs(self, node: Member, process: Process, etcd: Etcd) -> None:
        """A member's process runs, and it is whose data that is."""
        if etcd.data not in self.data:
            self.data[etcd.data] = node.id
            wal = f"{WRITE_AHEAD_LOG}/0.wal"
            self.sites[process.site].put_file(process.seen.machine, etcd.data.parent.name, wal, 1, at=self.clock.wall())
            if node.learner:
                node.behind = BEHIND
                if self.random.random() >= self.luck:
                    self.unlucky.add(node.peer_url)
        elif not node.up:
            self.unlucky.discard(node.peer_url)  # started again, it has the data
        node.up = True
        if node.behind and self._at(process.since + COPIES):
            node.behind = 0
        if node.address is None and node.learner and not self._at(process.since + PUBLISHES):
            return
        node.settled = self._at(process.since + CONNECTED)
        unlucky = node.peer_url in self.unlucky and not self._at(process.since + PUBLISHES_AGAIN)
        node.address = MemberAddress(
            name=etcd.name,
            peer_url=node.peer_url,
            client_url="" if unlucky else etcd.client_url,
            metrics_url=etcd.metrics_url,
        )

    def _elected(self) -> None:
        """A leader that nobody asked for was elected: by chance, and it took its time."""
        if self.cluster.leader == self._leader:
            self._at(self.electing)
            return
        if self.cluster.leader:
            able = [node.id for node in self.cluster.voters if node.up and node.address is not None]
            if able:
                self.cluster.leader = self.random.choice(able)
            self.electing = self.clock.now + (ELECTS if self._leader else 0.0)
            self._at(self.electing)
        self._leader = self.cluster.leader

    def votes(self, process: Process) -> bool:
        """Whether the member of a process's replica is a voter that serves; for an apiserver, where it asks for it."""
        return self.cluster.quorate and any(
            node.up
            and not node.learner
            and node.address is not None
            and node.address.name == process.replica
            and node.address.client_url == process.flags.get("etcd-servers", node.address.client_url)
            for node in self.cluster.nodes
        )

    # --- what stands on etcd ---------------------------------------------------------------------------------------

    def _apiservers(self) -> None:
        servers = {}
        for each in self.of(Component.APISERVER):
            votes = self.votes(each)
            each.warm = each.warm or (votes and self._at(each.since + WARMS))
            servers[each.listens] = FakeApiserver(hangs=each.frozen, ready=each.warm and votes)
        self.kube.apiservers = servers

    def _controllers(self) -> None:
        """One of the controller managers leads: the next one when its lease was given back, or has run out."""
        managers = [each for each in self.of(Component.CONTROLLER_MANAGER) if not each.frozen]
        held = self.kube.leases.get(controller_manager.LEASE)
        leader = next((each for each in managers if held is not None and _holder(each) == held.holder), None)
        free = held is None or not held.holder or self._at((held.renewed or 0.0) + held.duration)
        if leader is None and managers and free:
            serving = [each for each in managers if self.votes(each)]
            leader = self.random.choice(serving) if serving else None
        if leader is not None:
            self.kube.set_lease(controller_manager.LEASE, _holder(leader), renewed=self.clock.now)
        lease = frozenset({controller_manager.LEASE})
        self.kube.leaders = {each.listens: lease if each is leader else frozenset() for each in managers}


def _holder(manager: Process) -> str:
    return f"{manager.replica}_{manager.seen.pid}"
