"""Which replicas lead the controllers, as people are told."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from support.fake_plane import FakePlane

from quarterdeck.actions.addresses import apiserver_address, server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.components import controller_manager, scheduler
from quarterdeck.engine.leaders import Leader, leaders, leading
from quarterdeck.kube.fake import FakeApiserver
from quarterdeck.kube.port import Address
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.slots import Slot
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import ReplicaFact, World

HOLDER = "vm_c1795596-5f4e"


def world(plane: Plane, *, stopped: Iterable[str] = (), ready: bool = True) -> World:
    def fact(name: str) -> ReplicaFact:
        state = UnitState.UNKNOWN if name in stopped else UnitState.RUNNING
        units = tuple((each, state) for each in Component)
        return ReplicaFact(name=name, machine=MachineState.UP, units=units, ready=ready)

    slot = Slot(site="east", zone="a")
    facts = tuple(fact(record.name) for record in plane.memory.replicas)
    return World(slots=(slot,), memory=plane.memory, now=plane.now(), replicas=facts)


@pytest.fixture
def fake() -> FakePlane:
    return FakePlane()


@pytest.fixture
async def plane(fake: FakePlane) -> Plane:
    opened = await fake.open()
    fake.kube.apiservers = {apiserver_address(opened, each): FakeApiserver() for each in opened.memory.replicas}
    for record in opened.memory.replicas:
        fake.kube.leaders[controller(opened, record.name, Component.CONTROLLER_MANAGER)] = frozenset()
        fake.kube.leaders[controller(opened, record.name, Component.SCHEDULER)] = frozenset()
    return opened


def controller(plane: Plane, replica: str, component: Component) -> Address:
    return server_address(plane, plane.memory.replica(replica), PortName(component))


async def test_the_replica_that_holds_a_lease_says_so_itself(fake: FakePlane, plane: Plane) -> None:
    fake.kube.set_lease(controller_manager.LEASE, HOLDER)
    fake.kube.set_lease(scheduler.LEASE, HOLDER)
    fake.kube.leaders[controller(plane, "east-2", Component.CONTROLLER_MANAGER)] = frozenset({controller_manager.LEASE})
    fake.kube.leaders[controller(plane, "west-1", Component.SCHEDULER)] = frozenset({scheduler.LEASE})
    assert await leaders(plane, world(plane)) == {
        Component.CONTROLLER_MANAGER: Leader("east-2", HOLDER),
        Component.SCHEDULER: Leader("west-1", HOLDER),
    }


async def test_one_on_a_machine_that_does_not_answer_is_not_waited_for(fake: FakePlane, plane: Plane) -> None:
    fake.kube.set_lease(scheduler.LEASE, HOLDER)
    fake.kube.leaders[controller(plane, "west-1", Component.SCHEDULER)] = frozenset({scheduler.LEASE})
    found = await leaders(plane, world(plane, stopped=["west-1"]))
    assert found[Component.SCHEDULER] == Leader(None, HOLDER)


async def test_where_two_say_that_they_lead_nobody_is_named(fake: FakePlane, plane: Plane) -> None:
    """One of them stood still until its lease was another's, and has not noticed yet."""
    for name in ("east-1", "west-1"):
        fake.kube.leaders[controller(plane, name, Component.SCHEDULER)] = frozenset({scheduler.LEASE})
    assert (await leaders(plane, world(plane)))[Component.SCHEDULER].replica is None


async def test_without_a_ready_apiserver_the_replica_is_known_all_the_same(fake: FakePlane, plane: Plane) -> None:
    fake.kube.leaders[controller(plane, "east-1", Component.SCHEDULER)] = frozenset({scheduler.LEASE})
    found = await leaders(plane, world(plane, ready=False))
    assert found[Component.SCHEDULER] == Leader("east-1", None)


@pytest.mark.parametrize(
    ("replica", "identity", "words"),
    [
        ("east-1", HOLDER, "east-1"),
        (None, HOLDER, "a replica that does not say so"),
        (None, "", "nobody"),
        (None, None, "unknown"),
    ],
)
def test_people_are_told_replicas_and_never_identities(replica: str | None, identity: str | None, words: str) -> None:
    fact = {"leaders": {"kube-scheduler": replica}, "leaderIdentities": {"kube-scheduler": identity}}
    assert leading(fact) == [f"kube-scheduler led by {words}"]
