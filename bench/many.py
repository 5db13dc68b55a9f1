"""How soon a failure is seen where one manager keeps many planes: simulated sites, a real clock.

    python bench/many.py [--planes 500] [--seconds 15]

The manager, its keepers and their looks are the real ones; what they look at are the fakes of tests/loop, one plane
that each of the N has for its own. A machine dies that all have a replica on, so that all are woken by the same
failure: the worst there is. Then another one dies, while all look at the pace at which a driver does.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import math
import statistics
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from fakes.store import MemoryStore
from lab import markdown, this_machine
from loop.fake_world import Joined
from loop.lives import EAST3, _settled, many
from loop.units import PLANE
from serve import look

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.api.site import Isolation, Site
from quarterdeck.engine.observation.observe import observer_of
from quarterdeck.engine.reconcile.drive import IdleWait
from quarterdeck.engine.reconcile.keeper import CADENCE
from quarterdeck.engine.reconcile.loop import _LOOKING_SHARE, POLL
from quarterdeck.engine.reconcile.manager import PlaneManager
from quarterdeck.engine.workspace import leases, recorded
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.operations import Requester, wants
from quarterdeck.engine.workspace.revisions import known
from quarterdeck.model.memory import Replica
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.stores.lease import Clocks, hold_lease


@dataclass
class Home:
    """What planes are stored in."""

    store: MemoryStore

    async def wake(self, network: Isolation) -> None:
        """Nothing is shared here."""


@dataclass(kw_only=True)
class Looks:
    """When each plane was looked at, and since when it is known to some look which machines are silent."""

    of: dict[str, list[float]] = field(default_factory=dict)
    silent: dict[tuple[str, str], float] = field(default_factory=dict)

    def took(self, plane: str, world: World) -> bool:
        """Remember a look; whether it found anything."""
        now = time.monotonic()
        self.of.setdefault(plane, []).append(now)
        found = [each.name for each in world.replicas if each.machine is not MachineState.UP]
        for name in found:
            self.silent.setdefault((plane, name), now)
        return bool(found)

    def longest(self, since: float) -> float:
        """The longest pause between two looks at one plane since then."""
        found = ([each for each in times if each >= since] for times in self.of.values())
        gaps = (after - before for times in found for before, after in itertools.pairwise(times))
        return max(gaps, default=math.nan)


@dataclass(kw_only=True)
class Engine:
    """Looks at planes as the engine that keeps them does, and does nothing for them."""

    home: Home
    requester: Requester
    clocks: Clocks
    world: Joined
    looks: Looks
    watchers: tuple[object, ...] = ()

    async def keep(self, name: str, rest: IdleWait) -> None:
        """Look at one for ever: in its turn, or at a driver's pace as soon as anything is found."""
        async with hold_lease(self.home.store, leases.lease_name(name), self.requester.name, clocks=self.clocks):
            opened = await self._opened()
            observer = await observer_of(opened)
            wanted = wants(await self.home.store.get(ControlPlane, name))
            while True:
                began = time.process_time()
                self._settle()
                if self.looks.took(name, await look(opened, observer)):
                    await asyncio.sleep(max(POLL, _LOOKING_SHARE * (time.process_time() - began)))
                else:
                    await rest.over(wanted)

    def _settle(self) -> None:
        self.world.clock.now = time.monotonic()
        self.world.settle()

    async def _opened(self) -> Plane:
        world = self.world
        resource = await recorded.existing(world.store, PLANE)
        return Plane(
            resource=resource,
            store=world.store,
            guard=None,
            sites=dict(world.sites),
            machines={(each.site, each.name): each for site in world.sites.values() for each in await site.machines()},
            etcd=world.etcd(),
            kube=world.kube,
            balancers={name: {f"{name}-edge": each} for name, each in world.balancers.items()},
            dns=world.dns,
            revisions=await known(world.store, resource, guess=False),
            secrets=await secrets_of(world.store, resource),
            programs={},
            clock=world.clock.wall,
            steady=time.monotonic,
            boot="the only one",
        )


class Quiet:
    """A log that nobody reads."""

    def info(self, event: str, **facts: object) -> None:
        """See ``Log``."""

    def warning(self, event: str, **facts: object) -> None:
        """See ``Log``: what a person would have to look at makes the measurement worthless."""
        raise AssertionError(f"{event} {facts}")


async def dies(world: Joined, looks: Looks, planes: int, record: Replica) -> list[str]:
    """Two cells: after how many seconds a look found that its machine is dead, in the middle and at worst."""
    since, replica = time.monotonic(), record.name
    await world.sites[record.site].kill_machine(record.machine)
    world.touch()
    while sum(name == replica for _, name in looks.silent) < planes:
        await asyncio.sleep(0.05)
        if time.monotonic() - since > 120.0:
            raise AssertionError(f"not all planes have seen that {replica} is silent after two minutes")
    found = [when - since for (_, name), when in looks.silent.items() if name == replica]
    return [f"{statistics.median(found):.1f}", f"{max(found):.1f}"]


async def measured(world: Joined, planes: int, seconds: float) -> list[str]:
    """A row: share of a core, milliseconds of a look, the longest pause; and two failures, in the middle, at worst."""
    store, looks = MemoryStore(clock=time.time), Looks()
    for site in await world.store.list(Site):
        await store.create(site)
    for number in range(planes):
        await store.create(new_control_plane(f"p{number}", site="east"))
    engine = Engine(
        home=Home(store), requester=Requester(name="a benchmark"), clocks=Clocks(), world=world, looks=looks
    )
    manager = PlaneManager(engine=engine, network=Isolation.LOOPBACK, log=Quiet())  # type: ignore[arg-type]
    task = asyncio.create_task(manager.run())
    while len(looks.of) < planes:  # noqa: ASYNC110 - looked at from outside
        await asyncio.sleep(0.1)
    await asyncio.sleep(CADENCE)
    since, used = time.monotonic(), time.process_time()
    before = sum(map(len, looks.of.values()))
    await asyncio.sleep(seconds)
    share = (time.process_time() - used) / (time.monotonic() - since)
    taken = sum(map(len, looks.of.values())) - before
    row = [str(planes), f"{100 * share:.0f} %", f"{1000 * share * seconds / taken:.1f}", f"{looks.longest(since):.1f}"]
    status = (await recorded.existing(world.store, PLANE)).status
    for record in memory_from_status(status.memory).replicas[:2]:
        row += await dies(world, looks, planes, record)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return row


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planes", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=15.0)
    given = parser.parse_args()
    with many():
        world = _settled(EAST3)
        row = asyncio.run(measured(world, given.planes, given.seconds))
    print(f"\n{this_machine()}; simulated planes of 3 replicas\n")
    header = ["planes", "of a core", "ms of a look", "longest pause, s", "a machine dies: seen after, s", "at worst"]
    print(markdown([*header, "another one, s", "at worst"], [row]))


if __name__ == "__main__":
    main()
