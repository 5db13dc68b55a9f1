"""Which data a replica's units start with: a volume is made once, and founders are founders only until they are one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.site import FakeSite
from fakes.site_machines import Behaviour
from support.components import ALWAYS, programs_in
from support.golden import Golden

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import write_memory
from quarterdeck.actions.units import guard_members, start_unit
from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.components.etcd import DATA, WRITE_AHEAD_LOG
from quarterdeck.components.ports import seat_at
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import Unavailable
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.units import UnitSpec, UnitStatus
from quarterdeck.model.world import World
from quarterdeck.sites.local.settings import LocalSiteSettings

SLOT = Slot(site="east", zone="a")
MACHINE, UNIT, VOLUME = "east-a1", "demo-east-1-etcd", "demo-east-1"
SEAT = seat_at(MACHINE, "127.0.0.1", 0)
FOUNDER = Replica(name="east-1", slot=SLOT, machine=MACHINE, seat=SEAT, storage_class="standard")
START = StartUnit(site="east", why="", replica="east-1", component=Component.ETCD)
COMPARES = "--feature-gates=InitialCorruptCheck=true"
LOG = f"{WRITE_AHEAD_LOG}/0.wal"


class Site(FakeSite):
    """Remembers what it was asked to start."""

    def __init__(self) -> None:
        super().__init__(LocalSiteSettings(name="east"), behave=_writes_a_log)
        self.started: list[UnitSpec] = []

    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        self.started.append(spec)
        await super().start_unit(machine, spec)


def _writes_a_log(spec: UnitSpec) -> Behaviour:
    return Behaviour(writes=(spec.needs.with_name("0.wal"),) if spec.needs is not None else ())


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
async def plane(tmp_path: Path, site: Site) -> AsyncIterator[Plane]:
    home = await Home.open(tmp_path / "home")
    await operations.create(home, new_control_plane("demo", site="east", replicas=1), Requester(name="a test"))
    async with AsyncExitStack() as stack:
        resource = await recorded.existing(home.store, "demo")
        opened = await home.plane(resource, stack, programs=programs_in("/bin"))
        opened.sites = {"east": site}
        yield opened
    await home.close()


async def remembers(plane: Plane, memory: Memory) -> World:
    records = tuple(replace(each, revision=plane.revisions.goal) for each in memory.replicas)
    memory = replace(memory, replicas=records)
    await write_memory(plane, memory)
    return World(slots=(SLOT,), memory=memory, now=0.0)


FOUNDING = Memory(replicas=(FOUNDER,), bootstrap=("east-1",))
CREATED = replace(FOUNDING, created=True, replicas=(replace(FOUNDER, listed=True, started=True),))


async def status(site: FakeSite) -> UnitStatus:
    return next(each for each in await site.units(MACHINE) if each.name == UNIT)


async def test_a_founder_begins_without_data_and_never_again_once_it_was_healthy(plane: Plane, site: Site) -> None:
    await start_unit(plane, START, await remembers(plane, FOUNDING))
    assert site.started[-1].fresh
    assert "--initial-cluster-state=new" in site.started[-1].boot_argv
    assert COMPARES not in site.started[-1].boot_argv
    world = await remembers(plane, CREATED)
    await site.stop_unit(MACHINE, UNIT)
    await start_unit(plane, START, world)
    assert not site.started[-1].fresh
    assert {"--initial-cluster-state=existing", COMPARES} <= set(site.started[-1].boot_argv)
    await site.stop_unit(MACHINE, UNIT)
    site.take_file(MACHINE, VOLUME, DATA)
    with pytest.raises(Unavailable, match="data"):
        await start_unit(plane, START, world)


async def test_a_volume_is_never_made_again_for_a_replica_that_has_started(
    plane: Plane, site: Site, golden: Golden
) -> None:
    await start_unit(plane, START, await remembers(plane, FOUNDING))
    await site.stop_unit(MACHINE, UNIT)
    await site.delete_volume(MACHINE, VOLUME)
    for component in ALWAYS:
        step = replace(START, component=component)
        with golden.raises(Unavailable):
            await start_unit(plane, step, await remembers(plane, CREATED))
    assert VOLUME not in {each.name for each in await site.volumes(MACHINE)}


async def test_a_unit_without_a_guard_gets_it_as_it_runs(plane: Plane, site: Site) -> None:
    volume = await site.create_volume(MACHINE, VOLUME, "standard")
    site.put_file(MACHINE, VOLUME, LOG, 1)
    old = UnitSpec(name=UNIT, argv=("/bin/etcd",), boot_argv=("--initial-cluster-state=new",))
    await site.start_unit(MACHINE, old)
    before = await status(site)
    await remembers(plane, FOUNDING)
    await guard_members(plane)
    site.take_file(MACHINE, VOLUME, DATA)
    site.crash(MACHINE, UNIT)
    assert (await status(site)).pid is not None, "there is no cluster yet: a founder may be a founder"
    site.put_file(MACHINE, VOLUME, LOG, 1)
    await remembers(plane, CREATED)
    running = await status(site)
    await guard_members(plane)
    assert await status(site) == running
    assert running.digest == before.digest
    site.take_file(MACHINE, VOLUME, DATA)
    site.crash(MACHINE, UNIT)
    assert str(volume.path) in (await status(site)).refused


async def test_a_machine_that_is_off_is_guarded_at_another_time(plane: Plane, site: Site) -> None:
    await remembers(plane, CREATED)
    await site.kill_machine(MACHINE)
    await guard_members(plane)
