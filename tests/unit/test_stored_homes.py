"""Homes that released versions wrote, opened by this one: nothing of them is lost, and everything is where it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.stored_home import FIXTURES, UnitRecords, put_together, unit_records

from quarterdeck.actions.addresses import apiserver_address, client_url, metrics_url, peer_url, seat_of
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.seats import settle_seats
from quarterdeck.actions.status import refresh, write_memory
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.app.face import Quarterdeck
from quarterdeck.components.catalogue import programs_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.units import MachineState, UnitStatus
from quarterdeck.sites.local import loopback
from quarterdeck.sites.local.machine import LocalMachine

#: The planes of each home that have replicas, and the machines of these.
REPLICAS = {"demo": {"west-4": "west-a1", "west-5": "west-b1", "west-6": "west-c1"}, "solo": {"east-1": "east-a1"}}


async def nothing_runs(_: LocalMachine) -> tuple[UnitStatus, ...]:
    return ()


@pytest.fixture(params=FIXTURES, ids=lambda each: each.name)
async def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Home]:
    """Its addresses are as they were, whoever has them on this host: nothing of it runs."""
    monkeypatch.setattr(loopback, "default_registry", lambda: tmp_path / "quarterdeck" / "registry")
    monkeypatch.setattr(LocalMachine, "started", nothing_runs)
    put_together(request.param, tmp_path / "home")
    opened = await Home.open(tmp_path / "home")
    yield opened
    await opened.close()


@pytest.fixture
def records(home: Home) -> UnitRecords:
    return unit_records(home.folder)


@pytest.fixture
async def planes(home: Home) -> AsyncIterator[dict[str, Plane]]:
    async with AsyncExitStack() as stack:
        yield {name: await home.plane(await home.store.get(ControlPlane, name), stack) for name in REPLICAS}


def flags(records: UnitRecords, replica: Replica, plane: Plane, component: Component) -> dict[str, str]:
    """What a unit was started with."""
    record: dict[str, Any] = records[replica.machine, plane.unit(replica, component)]
    return dict(each.removeprefix("--").split("=", 1) for each in record["argv"] if "=" in each)


def test_each_release_has_a_home() -> None:
    assert [each.name for each in FIXTURES] == ["home-0.1.0"]


async def test_planes_are_listed_as_they_were_stored(home: Home) -> None:
    face = Quarterdeck(home, requester=Requester(name="a test"))
    seen = {each.metadata.name: each for each in await face.planes()}
    assert {name: (each.spec.placement.site, each.spec.replicas) for name, each in seen.items()} == {
        "demo": ("west", 3),
        "solo": ("east", 1),
        "spec": ("east", 3),
    }
    assert {name: each.status.port_offset for name, each in seen.items()} == {"demo": 0, "solo": 1, "spec": 2}
    assert [(str(each.spec.type), str(each.status.phase)) for each in await face.history("demo")] == [
        ("Create", "Succeeded"),
        ("Migrate", "Succeeded"),
    ]


async def test_what_is_remembered_is_complete(home: Home, planes: dict[str, Plane]) -> None:
    for name, plane in planes.items():
        memory = plane.memory
        assert {each.name: each.machine for each in memory.replicas} == REPLICAS[name]
        assert all(each.listed and each.started and each.served and each.member_id for each in memory.replicas)
        assert {each.revision for each in memory.replicas} == {plane.revisions.goal}
        assert (memory.created, memory.proven, memory.served_site) == (True, True, plane.resource.spec.placement.site)
        assert memory.cluster_id
        assert memory.timeline is not None
    async with AsyncExitStack() as stack:
        nothing = (await home.plane(await home.store.get(ControlPlane, "spec"), stack)).memory
        assert (nothing.replicas, nothing.created, nothing.next_ordinal) == ((), False, 1)


async def test_what_is_written_back_loses_nothing(planes: dict[str, Plane]) -> None:
    for plane in planes.values():
        before = plane.memory
        await write_memory(plane, replace(before, next_ordinal=99))
        await refresh(plane)
        assert plane.memory == replace(before, next_ordinal=99)


async def test_replicas_are_where_they_were(planes: dict[str, Plane], records: UnitRecords) -> None:
    for plane in planes.values():
        for replica in plane.memory.replicas:
            machine = next(each for each in await plane.site(replica.site).machines() if each.name == replica.machine)
            assert (machine.state, machine.zone, machine.declared) == (MachineState.UP, replica.slot.zone, True)
            assert set(seat_of(replica).hosts) == {machine.address}
            etcd = flags(records, replica, plane, Component.ETCD)
            assert client_url(replica) == etcd["listen-client-urls"]
            assert peer_url(replica) == etcd["initial-advertise-peer-urls"]
            assert metrics_url(replica) == etcd["listen-metrics-urls"]
            served, at = flags(records, replica, plane, Component.APISERVER), apiserver_address(replica)
            assert (at.host, str(at.port)) == (served["bind-address"], served["secure-port"])


async def test_ledgers_say_what_planes_remember_and_driving_changes_nothing_in_them(planes: dict[str, Plane]) -> None:
    for plane in planes.values():
        for replica in plane.memory.replicas:
            before = await plane.site(replica.site).seats(replica.machine)
            own = [
                each.seat
                for each in before
                if each.replica == replica.name and each.plane == plane.resource.metadata.uid
            ]
            assert own == [replica.seat]
            await settle_seats(plane)
            assert await plane.site(replica.site).seats(replica.machine) == before


async def test_its_units_have_the_programs_that_a_replica_has(planes: dict[str, Plane], records: UnitRecords) -> None:
    for plane in planes.values():
        for replica in plane.memory.replicas:
            units = {unit for machine, unit in records if machine == replica.machine}
            assert units >= {plane.unit(replica, each) for each in programs_of(plane.template_of(replica))}
