"""A home that an older quarterdeck wrote, opened by this one: nothing of it is lost, and nothing of it starts anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest
from support.components import ALWAYS
from support.older_home import MADE_AT, Recording, moved, put_together, records

from quarterdeck.actions.addresses import apiserver_address, client_url, metrics_url, peer_url, seat_of
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.seats import settle_seats, take_seat
from quarterdeck.actions.status import refresh, write_status
from quarterdeck.actions.units import start_unit
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.app.face import Quarterdeck
from quarterdeck.components.ports import completed
from quarterdeck.engine.observation.observing import observer_of
from quarterdeck.engine.status.facts import Status, summary
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Asker
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.programs import Program
from quarterdeck.model.steps import PlaceReplica, Plan, StartUnit
from quarterdeck.model.units import MachineState, UnitState, UnitStatus
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.sites.local import loopback
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.site import LocalSite
from quarterdeck.sites.port import Site

ASKER = Asker(who="a test")
#: The programs that it knew.
HAD = ALWAYS
REPLICAS = {"demo": {"west-4": "west-a1", "west-5": "west-b1", "west-6": "west-c1"}, "solo": {"east-1": "east-a1"}}


async def nothing_runs(_: LocalMachine) -> tuple[UnitStatus, ...]:
    return ()


async def as_it_was(_: LocalSite, machine: str, program: Program) -> PurePosixPath | None:
    return program.path


@pytest.fixture
async def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Home]:
    """Its addresses are as they were, whoever has them on this host: nothing of it runs."""
    monkeypatch.setattr(loopback, "default_registry", lambda: tmp_path / "quarterdeck" / "registry")
    monkeypatch.setattr(LocalMachine, "started", nothing_runs)
    monkeypatch.setattr(LocalSite, "install", as_it_was)
    put_together(tmp_path / "home")
    opened = await Home.open(tmp_path / "home")
    yield opened
    await opened.close()


@pytest.fixture
async def planes(home: Home) -> AsyncIterator[dict[str, Plane]]:
    async with AsyncExitStack() as stack:
        yield {name: await opened(home, name, stack) for name in REPLICAS}


async def opened(home: Home, name: str, stack: AsyncExitStack) -> Plane:
    """As a driver opens it, with the programs that its units ran."""
    resource = await home.store.get(ControlPlane, name)
    ran = {key[1].removeprefix(f"{name}-"): PurePosixPath(each["argv"][0]) for key, each in records().items()}
    were = {each: next(path for unit, path in ran.items() if unit.endswith(f"-{each}")) for each in HAD}
    return await home.plane(resource, stack, programs={**were, Component.EVENTS_ETCD: were[Component.ETCD]})


def flags(record: dict[str, Any]) -> dict[str, str]:
    return dict(each.removeprefix("--").split("=", 1) for each in record["argv"] if "=" in each)


def kept(replica: Replica, plane: Plane, component: Component) -> dict[str, Any]:
    """What the older one left of a unit."""
    return records()[replica.machine, plane.unit(replica, component)]


async def test_planes_are_listed_as_they_were_stored(home: Home) -> None:
    face = Quarterdeck(home, asker=ASKER)
    seen = {each.metadata.name: each for each in await face.planes()}
    assert {name: (each.spec.placement.site, each.spec.replicas) for name, each in seen.items()} == {
        "demo": ("west", 3),
        "solo": ("east", 1),
        "spec": ("east", 3),
    }
    assert {each.spec.kubernetes_version for each in seen.values()} == {"v1.36.3"}
    assert {name: each.status.port_offset for name, each in seen.items()} == {"demo": 0, "solo": 1, "spec": 2}
    assert [str(each.spec.type) for each in await face.history("demo")] == ["Create", "Migrate"]
    assert [str(each.status.phase) for each in await face.history("demo")] == ["Succeeded", "Succeeded"]


async def test_what_is_remembered_is_complete(home: Home) -> None:
    async with AsyncExitStack() as stack:
        memory = (await opened(home, "demo", stack)).memory
        assert {each.name: each.machine for each in memory.replicas} == REPLICAS["demo"]
        assert {(each.site, each.slot.zone) for each in memory.replicas} == {("west", zone) for zone in "abc"}
        assert all(each.listed and each.started and each.served for each in memory.replicas)
        assert [each.name for each in memory.replicas if each.restarted] == ["west-4"]
        assert len({each.revision for each in memory.replicas}) == 1, "all were made alike"
        assert (memory.bootstrap, memory.created) == (("east-1", "east-2", "east-3"), True)
        assert (memory.cluster_id, memory.revision) == (0x3FB098FF068D6DB6, 305)
        assert (memory.served_site, memory.next_ordinal) == ("west", 7)
        assert (memory.held, memory.draining, memory.unsettled) == ((), (), ())
        assert memory.timeline is not None
        nothing = (await opened(home, "spec", stack)).memory
        assert (nothing.replicas, nothing.created, nothing.next_ordinal) == ((), False, 1)


async def test_what_is_written_back_loses_nothing(home: Home, planes: dict[str, Plane]) -> None:
    for plane in planes.values():
        before = plane.memory
        await write_status(plane, memory=replace(before, next_ordinal=99))
        await refresh(plane)
        assert plane.memory == replace(before, next_ordinal=99)


async def test_planes_are_summarized_as_they_are(home: Home, planes: dict[str, Plane]) -> None:
    for name, plane in planes.items():
        site = plane.resource.spec.placement.site
        slots = (await observer_of(plane)).goal.slots(plane.memory.replicas)
        assert {(each.site, each.zone) for each in slots} == {(site, each.slot.zone) for each in plane.memory.replicas}
        running = tuple((component, UnitState.RUNNING) for component in HAD)
        facts = tuple(
            ReplicaFact(name=each.name, machine=MachineState.UP, units=running, ready=True)
            for each in plane.memory.replicas
        )
        world = World(slots=slots, memory=plane.memory, now=0.0, record=site, replicas=facts)
        said = summary(
            Status(plane=plane.resource, world=world, plan=Plan(now=()), operation=None, driver="", leaders={})
        )
        assert (said["name"], said["site"], said["replicas"]) == (name, site, len(REPLICAS[name]))
        assert (said["kubernetesVersion"], said["paused"], said["nameLeadsTo"]) == ("v1.36.3", False, site)
        rows = cast("list[dict[str, str]]", said["members"])
        assert {each["replica"]: (each["machine"], each["zone"], each["apiserver"]) for each in rows} == {
            replica: (machine, machine[-2], "ready") for replica, machine in REPLICAS[name].items()
        }


async def test_machines_are_where_they_were(planes: dict[str, Plane]) -> None:
    """Those of west were used before it was kept where they stand."""
    for name, plane in planes.items():
        for replica in plane.memory.replicas:
            machine = next(each for each in await plane.site(replica.site).machines() if each.name == replica.machine)
            assert (machine.state, machine.zone, machine.declared) == (MachineState.UP, replica.slot.zone, True)
            assert REPLICAS[name][replica.name] == replica.machine
            etcd = flags(kept(replica, plane, Component.ETCD))
            assert client_url(plane, replica) == etcd["listen-client-urls"]
            assert peer_url(plane, replica) == etcd["initial-advertise-peer-urls"]
            assert metrics_url(plane, replica) == etcd["listen-metrics-urls"]
            served = flags(kept(replica, plane, Component.APISERVER))
            at = apiserver_address(plane, replica)
            assert (at.host, str(at.port)) == (served["bind-address"], served["secure-port"])
            told = " ".join(each for component in HAD for each in kept(replica, plane, component)["argv"])
            for port in replica.seat.ports if replica.seat is not None else ():
                assert str(port.listen.port) in told, f"{replica.name} listens where it never did"
                assert (port.listen.host, port.advertised) == (machine.address, port.listen)


async def test_who_drives_writes_down_the_seats_that_replicas_always_had(home: Home, planes: dict[str, Plane]) -> None:
    for plane in planes.values():
        before = {each.name: seat_of(plane, each) for each in plane.memory.replicas}
        await settle_seats(plane)
        await refresh(plane)
        assert {each.name: each.seat for each in plane.memory.replicas} == {
            name: completed(seat) for name, seat in before.items()
        }
        for replica in plane.memory.replicas:
            etcd = flags(kept(replica, plane, Component.ETCD))
            assert peer_url(plane, replica) == etcd["initial-advertise-peer-urls"]
            (taken,) = await plane.site(replica.site).seats(replica.machine)
            assert (taken.plane, taken.replica) == (plane.resource.metadata.uid, replica.name)
            assert taken.seat == replica.seat


async def test_no_port_of_a_plane_that_nobody_has_driven_since_is_given_away(
    home: Home, planes: dict[str, Plane]
) -> None:
    async with AsyncExitStack() as stack:
        new = await opened(home, "spec", stack)
        for plane in planes.values():
            for replica in plane.memory.replicas:
                slot, machine = replica.slot, replica.machine
                step = PlaceReplica(site=replica.site, why="", replica="any-1", slot=slot, machine=machine)
                seat = await take_seat(new, step.slot.site, step.machine, step.replica)
                has = seat_of(plane, replica)
                assert not {each.listen for each in seat.ports} & {each.listen for each in has.ports}
            assert all(each.seat is None for each in plane.memory.replicas)


async def test_no_unit_is_another_one_than_it_was(home: Home, planes: dict[str, Plane]) -> None:
    """What is rendered now has the digests of what runs, so that nothing is started anew for the sake of an update."""
    for plane in planes.values():
        sites = {name: Recording(site) for name, site in plane.sites.items()}
        plane.sites = cast("dict[str, Site]", sites)
        world = World(slots=(), memory=plane.memory, now=0.0)
        for replica in plane.memory.replicas:
            for component in HAD:
                step = StartUnit(site=replica.site, why="", replica=replica.name, component=component)
                await start_unit(plane, step, world)
                (spec,) = (sites[replica.site].started.pop(each) for each in tuple(sites[replica.site].started))
                rendered, was = moved(spec, str(home.folder), MADE_AT), kept(replica, plane, component)
                always = tuple(was["argv"][: len(rendered.argv)])
                assert rendered.argv == always, f"{component} of {replica.name}"
                assert rendered.digest == was["digest"], f"{component} of {replica.name}"
                assert (str(rendered.needs) if rendered.needs else None) == was["needs"]
