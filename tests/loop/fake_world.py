"""The fakes of all ports, joined: units of the sites run members of one etcd cluster, those make apiservers ready, and
load balancers find these healthy. What takes its time takes it on the world's clock.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from random import Random

from fakes.endpoint import FakeBalancer, FakeDns
from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster
from fakes.kube import FakeApiserver, FakeKube
from fakes.site import FakeSite
from fakes.site_machines import Behaviour, Seen
from fakes.store import MemoryStore

from loop.clock import Clock
from loop.members import Etcds, Members
from loop.units import etcd_of, flags_of, replica_of
from quarterdeck.api.base import Metadata
from quarterdeck.api.site import LocalSpec, SiteStatus
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.components.controller import controller_manager, scheduler
from quarterdeck.components.ports import load_balancer_port
from quarterdeck.engine.reconcile.former_secrets import TRUST
from quarterdeck.etcd.port import EtcdCluster
from quarterdeck.kube.port import Address
from quarterdeck.model.clusters import CLUSTER, Cluster
from quarterdeck.model.components import Component, ReplicaPrograms
from quarterdeck.model.endpoints import BackendAddress
from quarterdeck.model.units import MachineRole, MachineState, UnitSpec, Volume
from quarterdeck.sites.local.settings import LocalSiteSettings

SITES = ("east", "west", "north")
ZONES = ("a", "b", "c")

_OVERRIDES = "etcd-servers-overrides"
#: How the job is called that makes the data of a new cluster.
RESTORES = "restore "
#: Seconds until an apiserver is ready.
WARMS = 1.0
#: Seconds between two renewals of a lease.
RENEWS = 2.0


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
    """A process that runs. ``warm``: an apiserver that was ready once; ``stuck``: it does nothing till it is killed."""

    seen: Seen
    site: str
    replica: str
    component: Component
    since: float
    warm: bool = False
    stuck: bool = False

    @property
    def authentication(self) -> bytes:
        """The file by which an apiserver goes: it takes up each that it is given."""
        return next(each.content for each in self.seen.spec.files if each.path.name == "authentication.yaml")

    @property
    def frozen(self) -> bool:
        return self.stuck or self.seen.power is not MachineState.UP

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
    clusters: dict[Cluster, Members] = field(init=False)
    kube: FakeKube = field(default_factory=FakeKube)
    dns: FakeDns = field(default_factory=FakeDns)
    balancers: dict[str, FakeBalancer] = field(default_factory=dict)
    store: MemoryStore = field(init=False)
    #: The data on volumes, by the path of the data folder: whose it is, as the id of a member.
    data: dict[PurePosixPath, int] = field(default_factory=dict)
    #: Where data was that is on another machine now.
    left: set[PurePosixPath] = field(default_factory=set)
    #: Which program has which lease of controllers.
    leaders: dict[str, Process] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
    processes: dict[tuple[str, int], Process] = field(default_factory=dict)
    luck: float = 1.0
    #: What no program of ours may ever bring about, as it was seen.
    broken: list[str] = field(default_factory=list)
    #: Machines that run, and do not answer us; pairs of sites that are cut from one another.
    unseen: frozenset[str] = frozenset()
    cuts: frozenset[frozenset[str]] = frozenset()
    #: What of this and of powers is not over; how often anything of it began or ended.
    hurt: list[str] = field(default_factory=list)
    strikes: int = 0
    _dirty: bool = True
    _next: float = math.inf
    _where: dict[str, str] = field(default_factory=dict)
    _named: dict[str, str] = field(default_factory=dict)
    version: int = 0

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.clock.wall, uid=Numbers(1).text)
        self.kube.clock = self.clock.wall
        # Each apiserver writes it when it starts.
        self.kube.objects.put(TRUST, {"data": {"client-ca-file": "none that is forgotten"}})
        ids = Numbers(0x1001)
        self.clusters = {
            kind: Members(self, kind, FakeCluster(max_learners=5, ids=ids, index=1_000_000)) for kind in Cluster
        }
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
                    metadata=Metadata(name=name), spec=LocalSpec(zones=ZONES), status=SiteStatus(number=index + 1)
                )
            )
            for machine in await site.machines():
                self._where[machine.name] = machine.address
                self._named[machine.address] = machine.name
                if machine.role is MachineRole.EDGE:
                    address = BackendAddress(machine.address, load_balancer_port(0))
                    self.balancers[name] = FakeBalancer(address=address, ready=Check(self, name))

    def have_reattachable_volumes(self) -> None:
        """From now on volumes outlive their machines."""
        for site in self.sites.values():
            classes = {name: replace(each, reattachable=True) for name, each in site._settings.storage_classes.items()}
            site._settings = replace(site._settings, storage_classes=classes)

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
        self._renew()
        if not self._dirty and self.clock.now < self._next:
            return
        self._dirty, self._next = False, math.inf
        self.version += 1
        self._look()
        for each in self.clusters.values():
            each.settle()
        self._apiservers()
        self._controllers()
        for name, balancer in self.balancers.items():
            power = self.sites[name].power(f"{name}-edge")
            balancer.reachable = power is MachineState.UP
        for each in self.clusters.values():
            each.hide()

    def forget_deleted(self, there: Collection[Cluster]) -> None:
        """Data goes with its volume. ``there`` are the clusters that the plane has now: of others all data may go."""
        kept = {path: member for path, member in self.data.items() if self._has_volume(path)}
        lost = [member for path, member in self.data.items() if path not in kept]
        self.data = kept
        for kind, each in self.clusters.items():
            if kind in there and any(each.has_run(member) for member in lost):
                self.broken.append("7: the data of a member is deleted")
            if kind not in there and not any(each.cluster.by_id(member) for member in kept.values()):
                each.over()

    def follow(self, volume: Volume) -> None:
        """A volume is somewhere else, with the data on it."""
        for path in [path for path in self.data if path.parent.name == volume.name]:
            self.left.add(path)
            self.data[volume.path / path.name] = self.data.pop(path)
            self.left.discard(volume.path / path.name)

    def _has_volume(self, data: PurePosixPath) -> bool:
        return any(site.has_volume(data.parent) for site in self.sites.values())

    def remains(self) -> list[str]:
        """What is left of a plane on its machines."""
        units = [seen.spec.name for site in self.sites.values() for seen in site.everything()]
        balancers = [f"the load balancer of {name}" for name, each in self.balancers.items() if each.there]
        return [*units, *map(str, self.data), *balancers, *self.dns.records]

    def at_moment(self, moment: float) -> bool:
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
        return [each for each in self.processes.values() if each.component == component]

    # --- etcd ------------------------------------------------------------------------------------------------------

    def _behaviour(self, spec: UnitSpec) -> Behaviour:
        """How a unit that is started now behaves. An etcd that must not run exits, again and again. The one job that
        there is makes data of a member that survived.
        """
        if spec.name.startswith(RESTORES):
            return Behaviour(exit_code=0 if self.clusters[Cluster.MAIN].restored(spec.argv) else 1)
        cluster = CLUSTER.get(replica_of(spec.name)[1])
        if cluster is None:
            return Behaviour()
        return Behaviour(exit_code=None if self.clusters[cluster].may_run(etcd_of(spec)) else 1)

    @property
    def cluster(self) -> FakeCluster:
        """The main one."""
        return self.clusters[Cluster.MAIN].cluster

    def etcd(self) -> EtcdCluster:
        """The port of all clusters."""
        return Etcds({kind: FakeEtcd(each.cluster) for kind, each in self.clusters.items()})

    def votes(self, process: Process) -> bool:
        """Whether the member of a process's replica is a voter that serves; for an apiserver, where it asks for it."""
        return (
            self.cluster.quorate
            and not self.cluster.authenticates
            and any(
                node.up
                and not node.learner
                and node.address is not None
                and node.address.name == process.replica
                and node.address.client_url == process.flags.get("etcd-servers", node.address.client_url)
                for node in self.cluster.nodes
            )
        )

    # --- what stands on etcd ---------------------------------------------------------------------------------------

    def _apiservers(self) -> None:
        servers = {}
        for each in self.of(Component.APISERVER):
            votes = self.votes(each)
            # It does not come up without what it keeps events in, and does not go down for want of that.
            able = votes and (_OVERRIDES not in each.flags or self.clusters[Cluster.EVENTS].serves(each.replica))
            each.warm = each.warm or (able and self.at_moment(each.since + WARMS))
            loaded = f"sha256:{hashlib.sha256(each.authentication).hexdigest()}"
            servers[each.listens] = FakeApiserver(hangs=each.frozen, ready=each.warm and votes, loaded=loaded)
        self.kube.apiservers = servers

    def _controllers(self) -> None:
        """One program of each kind leads: the next one when its lease was given back, or has run out."""
        leads = {
            controller_manager.LEASE: self._leader(Component.CONTROLLER_MANAGER, controller_manager.LEASE),
            scheduler.LEASE: self._leader(Component.SCHEDULER, scheduler.LEASE),
        }
        self.leaders = {lease: each for lease, each in leads.items() if each is not None}
        for lease, leader in self.leaders.items():
            self.kube.set_lease(lease, _holder(leader), renewed=self.clock.now)
        controllers = [each for kind in ReplicaPrograms().controllers for each in self.of(kind)]
        held = {each.listens: lease for lease, each in self.leaders.items()}
        self.kube.leaders = {
            each.listens: frozenset({held[each.listens]}) if each.listens in held else frozenset()
            for each in controllers
        }
        self.kube.frozen = frozenset(each.listens for each in controllers if each.frozen)

    def _leader(self, component: Component, lease: str) -> Process | None:
        able = [each for each in self.of(component) if not each.frozen]
        held = self.kube.leases.get(lease)
        leader = next((each for each in able if held is not None and _holder(each) == held.holder), None)
        free = held is None or not held.holder or self.at_moment((held.renewed or 0.0) + held.duration)
        if leader is not None or not able or not free:
            return leader
        serving = [each for each in able if self.votes(each)]
        return self.random.choice(serving) if serving else None

    @property
    def has_unreleased_locks(self) -> bool:
        """Whether a program that has ended still holds a lock, which nobody takes before it expires."""
        leading = {lease: _holder(leader) for lease, leader in self.leaders.items()}
        kept = [held for lease, held in self.kube.leases.items() if held.holder not in ("", None, leading.get(lease))]
        return any(not self.at_moment((held.renewed or 0.0) + held.duration) for held in kept)

    def _renew(self) -> None:
        """Who leads renews its lease again and again."""
        for lease, leader in self.leaders.items():
            held = self.kube.leases.get(lease)
            if held is None or held.holder != _holder(leader):
                self._dirty = True  # somebody else has taken it, or taken it away
            elif self.clock.now - (held.renewed or 0.0) >= RENEWS:
                self.kube.set_lease(lease, _holder(leader), renewed=self.clock.now)


def _holder(manager: Process) -> str:
    return f"{manager.replica}_{manager.seen.pid}"
