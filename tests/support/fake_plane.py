"""A plane whose ports are fakes, on clocks that stand still until a test moves them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from fakes.endpoint import FakeDns
from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster, MemberAddress
from fakes.kube import FakeKube
from fakes.store import MemoryStore

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.api.plane.nodes import Nodes
from quarterdeck.components.ports import seat_at
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.units import Machine
from quarterdeck.pki.issuance import create_plane_secrets
from support.templates import declared_alone


@dataclass(slots=True)
class Clocks:
    """A wall clock that anybody may set, and a steady one that nobody does."""

    steady: float = 1_000.0
    wall: float = 1_800_000_000.0
    boot: str = "boot-1"

    def pass_(self, seconds: float) -> None:
        """Time passes, on both clocks."""
        self.steady += seconds
        self.wall += seconds

    def step(self, seconds: float) -> None:
        """Somebody sets the wall clock."""
        self.wall += seconds

    def reboot(self) -> None:
        """The host starts afresh."""
        self.boot, self.steady = self.boot + "'", 3.0


@dataclass
class FakePlane:
    """A plane of replicas named ``SITE-N``, each the only one of its zone, all members of one cluster.

    ``open`` is what a new process makes of it: it knows nothing but what the store has.
    """

    names: tuple[str, ...] = ("east-1", "east-2", "west-1")
    clocks: Clocks = field(default_factory=Clocks)
    memory: Memory = field(default_factory=Memory)
    etcd: FakeEtcd = field(init=False)
    kube: FakeKube = field(default_factory=FakeKube)
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        if not self.memory.replicas:
            replicas = tuple(
                Replica(
                    name=name,
                    slot=_slot(name),
                    machine=f"m-{name}",
                    seat=seat_at(f"m-{name}", host_of(name), 0),
                    listed=True,
                    started=True,
                )
                for name in self.names
            )
            self.memory = Memory(next_ordinal=9, replicas=replicas, created=True, served_site="east")
        self.etcd = FakeEtcd(FakeCluster.founded([self.address(name) for name in self.names], max_learners=5))

    async def open(self) -> Plane:
        found = {each.metadata.name: each for each in await self.store.list(ControlPlane)}
        if "demo" not in found:
            made = new_control_plane("demo", site="east")
            spec = made.spec.model_copy(update={"nodes": Nodes(bootstrap=False)})
            status = made.status.model_copy(update={"port_offset": 0, "memory": memory_to_status(self.memory)})
            found["demo"] = await self.store.create(made.model_copy(update={"spec": spec, "status": status}))
        resource = found["demo"]
        return Plane(
            resource=resource,
            store=self.store,
            guard=None,
            sites={},
            machines={
                (each.site, each.machine): Machine(
                    name=each.machine, site=each.site, zone=each.slot.zone, address=host_of(each.name)
                )
                for each in self.memory.replicas
            },
            etcd=self.etcd,
            kube=self.kube,
            balancers={},
            dns=FakeDns(),
            revisions=declared_alone(resource),
            secrets=create_plane_secrets("demo", datetime.now(UTC)),
            programs={},
            clock=lambda: self.clocks.wall,
            steady=lambda: self.clocks.steady,
            boot=self.clocks.boot,
        )

    def address(self, name: str) -> MemberAddress:
        host = host_of(name)
        return MemberAddress(
            name=name,
            peer_url=f"https://{host}:2380",
            client_url=f"https://{host}:2379",
            metrics_url=f"https://{host}:2381",
        )

    def url(self, name: str) -> str:
        return self.address(name).client_url


def host_of(name: str) -> str:
    site, number = name.rsplit("-", 1)
    return f"127.0.{1 if site == 'east' else 2}.{number}"


def _slot(name: str) -> Slot:
    site, number = name.rsplit("-", 1)
    return Slot(site=site, zone="abc"[int(number) - 1])
