"""Which replicas lead the controllers, as people are told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from fakes.kube import FakeApiserver
from support.fake_plane import FakePlane
from support.golden import Golden

from quarterdeck.actions.addresses import apiserver_address, server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.app.plane_status import leading, lease_status
from quarterdeck.components.controller import controller_manager, scheduler
from quarterdeck.engine.status import Leader, leaders
from quarterdeck.kube.port import Address
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.leadership import Leadership
from quarterdeck.model.seats import PortName, Slot
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import ReplicaFact, World

HOLDER = "vm_c1795596-5f4e"


def world(plane: Plane, *, stopped: Iterable[str] = (), leading: tuple[Leadership, ...] = ()) -> World:
    def fact(name: str) -> ReplicaFact:
        state = UnitState.UNKNOWN if name in stopped else UnitState.RUNNING
        units = tuple((each, state) for each in NAMED)
        return ReplicaFact(name=name, machine=MachineState.UP, units=units)

    slot = Slot(site="east", zone="a")
    facts = tuple(fact(record.name) for record in plane.memory.replicas)
    return World(slots=(slot,), memory=plane.memory, now=plane.now(), replicas=facts, leading=leading)


@pytest.fixture
def fake() -> FakePlane:
    return FakePlane()


@pytest.fixture
async def plane(fake: FakePlane) -> Plane:
    opened = await fake.open()
    fake.kube.apiservers = {apiserver_address(each): FakeApiserver() for each in opened.memory.replicas}
    for record in opened.memory.replicas:
        fake.kube.leaders[controller(opened, record.name, Component.CONTROLLER_MANAGER)] = frozenset()
        fake.kube.leaders[controller(opened, record.name, Component.SCHEDULER)] = frozenset()
    return opened


def controller(plane: Plane, replica: str, component: Component) -> Address:
    return server_address(plane.memory.replica(replica), PortName(component))


async def test_who_leads_is_as_it_was_seen_by_the_leases() -> None:
    plane = await FakePlane().open()
    seen = (
        Leadership(
            component=Component.CONTROLLER_MANAGER, lease=controller_manager.LEASE, holder=HOLDER, replica="east-2"
        ),
        Leadership(component=Component.SCHEDULER, lease=scheduler.LEASE, holder="ghost"),
    )
    assert await leaders(plane, world(plane, leading=seen)) == {
        Component.CONTROLLER_MANAGER: Leader("east-2", HOLDER),
        Component.SCHEDULER: Leader(None, "ghost"),
    }


async def test_one_on_a_machine_that_does_not_answer_is_not_waited_for(fake: FakePlane, plane: Plane) -> None:
    fake.kube.leaders[controller(plane, "west-1", Component.SCHEDULER)] = frozenset({scheduler.LEASE})
    found = await leaders(plane, world(plane, stopped=["west-1"]))
    assert found[Component.SCHEDULER] == Leader(None, None)


async def test_where_two_say_that_they_lead_nobody_is_named(fake: FakePlane, plane: Plane) -> None:
    """One of them stood still until its lease was another's, and has not noticed yet."""
    for name in ("east-1", "west-1"):
        fake.kube.leaders[controller(plane, name, Component.SCHEDULER)] = frozenset({scheduler.LEASE})
    assert (await leaders(plane, world(plane)))[Component.SCHEDULER].replica is None


async def test_without_a_ready_apiserver_the_replica_is_known_all_the_same(fake: FakePlane, plane: Plane) -> None:
    fake.kube.leaders[controller(plane, "east-1", Component.SCHEDULER)] = frozenset({scheduler.LEASE})
    found = await leaders(plane, world(plane))
    assert found[Component.SCHEDULER] == Leader("east-1", None)


@pytest.mark.parametrize(
    ("replica", "identity"),
    [
        ("east-1", HOLDER),
        (None, HOLDER),
        (None, ""),
        (None, None),
    ],
)
def test_people_are_told_replicas_and_never_identities(
    replica: str | None, identity: str | None, golden: Golden
) -> None:
    golden(leading({"kube-scheduler": replica}, {"kube-scheduler": identity}, {}))


@pytest.mark.parametrize(
    "seen",
    [
        {"holder": HOLDER, "replica": "east-1", "led": True, "idle_s": 1.6},
        {"holder": HOLDER, "led": None},
        {"holder": "ghost", "led": False, "idle_s": 45.2, "expires_at": 1_800_000_000.0, "expired": False},
        {"holder": "ghost", "led": False, "idle_s": 45.2, "expires_at": 1_800_000_000.0},
        {"led": False, "exists": False},
    ],
)
def test_people_are_told_when_a_lease_was_renewed_and_until_when_it_lasts(seen: dict[str, Any], golden: Golden) -> None:
    lease = Leadership(component=Component.SCHEDULER, lease="kube-scheduler", **seen)
    leases = {"kube-scheduler": lease_status(lease)}
    golden(leading({"kube-scheduler": lease.replica or None}, {"kube-scheduler": lease.holder}, leases))
