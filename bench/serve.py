"""What one process needs to look at N settled planes every five seconds: processor time and memory.

    python bench/serve.py [--planes 50] [--replicas 3] [--seconds 30]

There is one real plane, and it is opened N times: each time with its own connections, certificates and observer, and
looked at in turns as a manager looks at planes. So all that a plane costs whoever looks at it is there N times, and
the programs of planes are there once. What a manager does besides for each plane is not: its lease, and its background
tasks.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from lab import markdown, quarterdeck, temporary_home, this_machine

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import refresh
from quarterdeck.engine.notices.conditions import judged
from quarterdeck.engine.notices.events import happenings
from quarterdeck.engine.observation.observe import Observer, observer_of
from quarterdeck.engine.reconcile.keeper import CADENCE
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan

NAME = "bench"


def resident() -> float:
    """MiB that this process has in memory."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Rss:")) / 1024


async def look(plane: Plane, observer: Observer) -> World:
    """One look, and what follows from it, at a plane at which nothing is to be done; what was seen."""
    await refresh(plane)
    world = await observer.observe()
    found = plan(replace(world, memory=plane.memory))
    happenings(world)
    before, generation = plane.resource.status.conditions, plane.resource.metadata.generation
    judged(before, world, found, asked=(), generation=generation, now=plane.clock())
    return world


async def keep(plane: Plane, observer: Observer, first: float) -> None:
    """Look at it again and again."""
    clock = asyncio.get_running_loop().time
    await asyncio.sleep(first)
    while True:
        began = clock()
        await look(plane, observer)
        await asyncio.sleep(max(0.0, CADENCE - (clock() - began)))


async def kept(folder: Path, planes: int, seconds: float) -> list[str]:
    """A row: the share of a core, in all and for each plane; milliseconds of a look; MiB, in all and for each plane."""
    home = await Home.open(folder)
    resource = await recorded.existing(home.store, NAME)
    async with AsyncExitStack() as stack:
        before = resident()
        opened = [await home.plane(resource, stack) for _ in range(planes)]
        tasks = [
            asyncio.create_task(keep(each, await observer_of(each), CADENCE * number / planes))
            for number, each in enumerate(opened)
        ]
        await asyncio.sleep(2.2 * CADENCE)  # all that is kept from one look to the next is there
        since, used = time.monotonic(), time.process_time()
        await asyncio.sleep(seconds)
        share = (time.process_time() - used) / (time.monotonic() - since)
        memory = resident()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    await home.close()
    return [
        str(planes),
        f"{100 * share:.1f} %",
        f"{100 * share / planes:.2f} %",
        f"{1000 * share * CADENCE / planes:.1f}",
        f"{memory:.0f}",
        f"{(memory - before) / planes:.1f}",
    ]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planes", type=int, default=50)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    with temporary_home() as folder:
        quarterdeck("create", NAME, "--replicas", str(given.replicas))
        row = asyncio.run(kept(folder, given.planes, given.seconds))
    print(f"\n{this_machine()}; planes of {given.replicas} replicas\n")
    header = ["planes", "of a core", "of a core, each", "ms of a look", "MiB", "MiB, each"]
    print(markdown(header, [row]))


if __name__ == "__main__":
    main()
