"""A plane of which every port is a fake, for tests of single actions and of the driver's loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from typing import cast

from fakes.endpoint import FakeBalancer, FakeDns
from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster, MemberAddress
from fakes.kube import FakeApiserver, FakeKube
from fakes.site import FakeSite
from fakes.store import MemoryStore
from pydantic import SecretStr

from quarterdeck.actions.addresses import apiserver_address, backend_address, client_url, metrics_url, peer_url
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import write_memory
from quarterdeck.api.belongings import PlaneSecrets as SecretsResource
from quarterdeck.api.controlplane import ControlPlane, ControlPlaneStatus, new_control_plane
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.components.ports import seat_at
from quarterdeck.engine.observation.observe import Observer
from quarterdeck.kube.port import Address
from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.bounds import Settings
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import MachineFact, ReplicaFact, World
from quarterdeck.pki.codec import encode
from quarterdeck.pki.issuance import create_plane_secrets
from quarterdeck.sites.local.settings import LocalSiteSettings
from quarterdeck.stores.lease import LeaseGuard
from quarterdeck.stores.port import Store
from support.components import having, programs_in
from support.templates import declared_alone

NAME = "alpha"


@cache
def secrets() -> SharedSecrets:
    """Made once: keys take time."""
    return create_plane_secrets(NAME, datetime.now(UTC))


@dataclass
class SmallPlane:
    """Plane ``alpha`` with one replica on each machine of ``machines``, all of which serve at site east."""

    plane: Plane
    sites: Mapping[str, FakeSite]
    cluster: FakeCluster
    kube: FakeKube
    balancers: Mapping[str, FakeBalancer]
    world: World
    looks: list[World | Exception] = field(default_factory=list)

    def record(self, name: str) -> Replica:
        return self.plane.memory.replica(name)

    def observer(self) -> Observer:
        """One that sees what is in ``looks``, one after the other, then the world as it was made with the memory of
        now; exceptions are raised.
        """

        async def observe() -> World:
            seen = self.looks.pop(0) if self.looks else self.world
            if isinstance(seen, Exception):
                raise seen
            return seen

        return cast("Observer", SimpleNamespace(observe=observe))


async def small_plane(
    *,
    store: Store | None = None,
    guard: LeaseGuard | None = None,
    replicas: int = 3,
    served: bool = True,
    site: Callable[[LocalSiteSettings, int], FakeSite] = lambda settings, number: FakeSite(settings, number=number),
    balancer: Callable[[], FakeBalancer] = FakeBalancer,
    etcd: Callable[[FakeCluster], FakeEtcd] = FakeEtcd,
) -> SmallPlane:
    """A plane at east that is as wanted, with everything running; and its world. With no ``replicas``: a new plane."""
    store = store or MemoryStore()
    sites = {name: site(LocalSiteSettings(name=name), number) for number, name in enumerate(("east", "west"), 1)}
    machines = {(each.site, each.name): each for every in sites.values() for each in await every.machines()}
    zones = ("a", "b", "c", "a", "b")
    slots = tuple(Slot(site="east", zone=zones[each]) for each in range(replicas))
    names = tuple(f"east-{number}" for number in range(1, replicas + 1))
    records = tuple(
        Replica(
            name=name,
            slot=slot,
            machine=(machine := f"east-{slot.zone}{index // 3 + 1}"),
            seat=seat_at(machine, machines["east", machine].address, 0),
            listed=True,
            started=True,
            served=served,
        )
        for index, (name, slot) in enumerate(zip(names, slots, strict=True))
    )
    memory = Memory(
        next_ordinal=replicas + 1, replicas=records, bootstrap=names, created=bool(names), served_site="east"
    )
    status = ControlPlaneStatus(port_offset=0, memory=memory_to_status(memory))
    resource = await store.create(new_control_plane(NAME, site="east").model_copy(update={"status": status}))
    await store.create(SecretsResource.model_validate({"metadata": {"name": NAME}, "data": "unused"}))
    cluster, kube = FakeCluster(), FakeKube()
    balancers = {name: balancer() for name in sites}
    plane = Plane(
        resource=resource,
        store=store,
        guard=guard,
        sites=sites,
        machines=machines,
        etcd=etcd(cluster),
        kube=kube,
        balancers={name: {f"{name}-edge": each} for name, each in balancers.items()},
        dns=FakeDns(),
        revisions=declared_alone(cast("ControlPlane", resource)),
        secrets=secrets(),
        programs=programs_in("/programs"),
        clock=lambda: 1_000.0,
        steady=lambda: 1_000.0,
        boot="boot-1",
    )
    if records:
        founded = FakeCluster.founded([_member(each) for each in records])
        cluster.nodes, cluster.leader = founded.nodes, founded.leader
        kube.apiservers |= {apiserver_address(each): FakeApiserver() for each in records}
        await balancers["east"].apply({each.name: backend_address(each) for each in records})
    return SmallPlane(plane, sites, cluster, kube, balancers, _world(plane, cluster, slots))


async def with_volume(machine: str) -> SmallPlane:
    """A plane of three replicas with its secrets stored and the volume of the first one, which is on ``machine``."""
    small = await small_plane()
    await small.sites["east"].create_volume(machine, f"{NAME}-east-1", "standard")
    memory = small.plane.memory
    replicas = tuple(replace(each, storage_class="standard") for each in memory.replicas)
    await write_memory(small.plane, replace(memory, replicas=replicas))
    stored = await small.plane.store.get(SecretsResource, NAME)
    data = SecretStr(encode(small.plane.secrets))
    await small.plane.store.update(stored.model_copy(update={"data": data}))
    return small


def _member(record: Replica) -> MemberAddress:
    return MemberAddress(
        name=record.name,
        peer_url=peer_url(record),
        client_url=client_url(record),
        metrics_url=metrics_url(record),
    )


def _world(plane: Plane, cluster: FakeCluster, slots: tuple[Slot, ...]) -> World:
    """What an observer would see."""
    records = plane.memory.replicas
    by_peer = {peer_url(each): each.name for each in records}
    members = tuple(
        MemberFact(id=node.id, replica=by_peer[node.peer_url], learner=False, health=Health.HEALTHY, lag=0)
        for node in cluster.nodes
    )
    up = tuple((each, UnitState.RUNNING) for each in having(events=("",)).of(""))
    names = frozenset(each.name for each in records)
    return World(
        slots=slots,
        memory=plane.memory,
        now=1_000.0,
        membership=Membership(members=members, leader=members[0].replica) if members else None,
        replicas=tuple(
            ReplicaFact(name=each.name, machine=MachineState.UP, units=up, ready=True, has_data=True)
            for each in records
        ),
        balancers=(
            BalancerFact(site="east", running=bool(names), backends=names, healthy=names),
            BalancerFact(site="west", running=False),
        ),
        machines=tuple(
            MachineFact(name=each.name, site=each.site, zone=each.zone, state=each.state)
            for each in plane.machines.values()
            if each.role == "control"
        ),
        record="east" if records else None,
        settings=Settings(),
    )


def address(plane: Plane, name: str) -> Address:
    """Where a replica's apiserver answers."""
    return apiserver_address(plane.memory.replica(name))
