"""Whom the Service ``kubernetes`` leads to when a machine dies without a word, on fakes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.kube import FakeApiserver
from support.fake_plane import FakePlane, host_of

from quarterdeck.components.ports import seat_at
from quarterdeck.engine.background.service_addresses import ServiceAddresses
from quarterdeck.kube.port import Address
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import PortName, Seat
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import ReplicaFact, World

NAMES = ("east-1", "east-2", "west-1")
LOST = "east-2"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"


def outside(name: str) -> str:
    """Where a replica's apiserver is reached: no loopback address, of which nobody keeps a list."""
    return host_of(name).replace("127.", "10.", 1)


def seated(record: Replica) -> Replica:
    near, far = (seat_at(record.machine, host, 0) for host in (host_of(record.name), outside(record.name)))
    ports = tuple(far.port(each.name) if each.name == PortName.APISERVER else each for each in near.ports)
    return replace(record, seat=Seat(machine=record.machine, ports=ports))


@pytest.fixture
def fake() -> FakePlane:
    made = FakePlane(names=NAMES)
    made.memory = replace(made.memory, replicas=tuple(map(seated, made.memory.replicas)))
    made.kube.apiservers = {Address(outside(name), 6443): FakeApiserver(up=name != LOST) for name in NAMES}
    listed: list[Any] = [{"addresses": [outside(name)], "conditions": {"ready": True}} for name in NAMES]
    named = {"metadata": {"name": "kubernetes", "namespace": "default"}}
    ports: list[Any] = [{"name": "https", "port": 6443, "protocol": "TCP"}]
    endpoint_slice = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", **named}
    made.kube.objects.put(SLICE, {**endpoint_slice, "ports": ports, "endpoints": listed})
    subsets: list[Any] = [{"addresses": [{"ip": outside(name)} for name in NAMES], "ports": ports}]
    made.kube.objects.put(ENDPOINTS, {"apiVersion": "v1", "kind": "Endpoints", **named, "subsets": subsets})
    return made


def seen(
    fake: FakePlane,
    health: Health = Health.SUSPECT,
    machine: MachineState = MachineState.UNREACHABLE,
    ready: str = "yes",
) -> World:
    """A look at it; one machine does not answer, and etcd says that of its member."""
    members = tuple(
        MemberFact(id=at, replica=name, learner=False, health=health if name == LOST else Health.HEALTHY)
        for at, name in enumerate(NAMES, 1)
    )
    facts = tuple(
        ReplicaFact(
            name=name,
            machine=machine if name == LOST else MachineState.UP,
            units=(),
            ready=None if name == LOST else ready == "yes",
        )
        for name in NAMES
    )
    there = Membership(members=members, leader=NAMES[0])
    return World(slots=(), memory=fake.memory, now=0.0, membership=there, replicas=facts)


async def hosts(fake: FakePlane) -> tuple[list[str], list[str]]:
    """What either list has."""
    at = Address(outside(NAMES[0]), 6443)
    one: Any = await fake.kube.read(at, SLICE)
    other: Any = await fake.kube.read(at, ENDPOINTS)
    addresses = [each["ip"] for subset in other["subsets"] for each in subset["addresses"]]
    return [host for each in one["endpoints"] for host in each["addresses"]], addresses


async def test_an_apiserver_whose_machine_is_silent_is_no_address_of_the_service_any_more(fake: FakePlane) -> None:
    await ServiceAddresses().turn(await fake.open(), seen(fake))
    left = [outside(name) for name in NAMES if name != LOST]
    assert fake.etcd.cluster.forgotten == [f"/registry/masterleases/{outside(LOST)}".encode()]
    assert await hosts(fake) == (left, left)


async def test_it_is_taken_out_once_each_time_that_it_goes(fake: FakePlane) -> None:
    """Where it is there after all it puts itself back, and is left alone until it has answered again."""
    plane, task = await fake.open(), ServiceAddresses()
    for world in (seen(fake), seen(fake), seen(fake, machine=MachineState.UP), seen(fake)):
        await task.turn(plane, world)
    assert len(fake.etcd.cluster.forgotten) == 2


async def test_whom_the_cluster_hears_or_who_is_the_last_one_stays(fake: FakePlane) -> None:
    plane, task = await fake.open(), ServiceAddresses()
    for world in (
        seen(fake, Health.HEALTHY),
        seen(fake, Health.UNREACHABLE),
        seen(fake, machine=MachineState.UP),
        seen(fake, ready="no"),
        replace(seen(fake), membership=None),
    ):
        await task.turn(plane, world)
    assert fake.etcd.cluster.forgotten == []
    assert await hosts(fake) == ([*map(outside, NAMES)], [*map(outside, NAMES)])
