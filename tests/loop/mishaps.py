"""What may happen to machines, links and clocks while a plane is driven, and how each is over after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from loop.fake_world import SITES, Joined
from loop.faults import Kind
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.model.units import MachineState

#: Seconds after which it is over: before anybody thinks more of it, and when the observer's grace has long passed.
LASTS = (2.0, 14.0)
HOUR = 3600.0

OfMachine = Callable[[str], Awaitable[None]]


async def strike(world: Joined, kind: Kind, random: Random) -> str:
    """Have it happen now, and be over later. Returns what happened, in words; "" when there is nothing that it could
    happen to.
    """
    match kind:
        case Kind.CLOCK_AHEAD:
            world.clock.ahead += HOUR
            return "the wall clock is an hour ahead"
        case Kind.CLOCK_BACK:
            world.clock.ahead -= HOUR
            return "the wall clock is set back by an hour"
        case Kind.MACHINE_DIES | Kind.MACHINE_FREEZES | Kind.MACHINE_UNSEEN:
            return await _to_machine(world, kind, random)
        case Kind.LOST_MACHINE:
            return await _is_lost(world, random)
        case Kind.HANGS_UP:
            return _hangs(world, random)
        case Kind.EDGE_DIES:
            return await _dies(world, _edge(random.choice(_sites(world))), random)
        case Kind.SITE_UNSEEN:
            site = random.choice(_sites(world))
            return _unseen(world, frozenset(each for each in world.machines if each.startswith(f"{site}-")), random)
        case Kind.SITES_CUT:
            return _cut(world, random)
        case _:
            raise ValueError(kind)


async def _is_lost(world: Joined, random: Random) -> str:
    """A machine that has replicas dies for good; one only."""
    there = sorted({seen.machine for site in world.sites.values() for seen in site.everything()} & {*world.machines})
    hosts = [each for each in there if not each.endswith("-edge")]
    if not hosts:
        return ""
    machine = random.choice(hosts)
    await world.site_of(machine).kill_machine(machine)
    world.strikes += 1
    world.touch()
    return f"{machine} is off for good"


def _hangs(world: Joined, random: Random) -> str:
    """A program of a replica does nothing any more until it is killed; one only."""
    world.settle()
    there = [each for each in world.processes.values() if each.component in CATALOGUE and not each.frozen]
    if not there:
        return ""
    process = random.choice(sorted(there, key=lambda each: (each.replica, each.component)))
    process.stuck = True
    world.strikes += 1
    world.touch()
    return f"{process.component} of {process.replica} hangs"


async def _to_machine(world: Joined, kind: Kind, random: Random) -> str:
    there = sorted({seen.machine for site in world.sites.values() for seen in site.everything()})
    if not there:
        return ""
    machine = random.choice(there)
    match kind:
        case Kind.MACHINE_DIES:
            return await _dies(world, machine, random)
        case Kind.MACHINE_FREEZES:
            return await _freezes(world, machine, random)
        case _:
            return _unseen(world, frozenset({machine}), random)


async def _dies(world: Joined, machine: str, random: Random) -> str:
    site = world.site_of(machine)
    return await _stops(world, machine, random, "is off", site.kill_machine, site.boot_machine)


async def _freezes(world: Joined, machine: str, random: Random) -> str:
    site = world.site_of(machine)
    return await _stops(world, machine, random, "stands still", site.freeze_machine, site.thaw_machine)


async def _stops(world: Joined, machine: str, random: Random, how: str, stop: OfMachine, start: OfMachine) -> str:
    if world.site_of(machine).power(machine) is not MachineState.UP:
        return ""
    await stop(machine)
    return _until_over(world, f"{machine} {how}", random, lambda: start(machine))


def _unseen(world: Joined, machines: frozenset[str], random: Random) -> str:
    """Nobody but us is cut off from them."""
    new = machines - world.unseen
    if not new:
        return ""
    world.unseen |= new

    async def seen() -> None:
        world.unseen -= new

    return _until_over(world, f"{', '.join(sorted(new))}: not seen by us", random, seen)


def _cut(world: Joined, random: Random) -> str:
    sites = _sites(world)
    pair = frozenset(random.sample(sites, 2)) if len(sites) > 1 else frozenset[str]()
    if not pair or pair in world.cuts:
        return ""
    world.cuts |= {pair}

    async def mended() -> None:
        world.cuts -= {pair}

    return _until_over(world, f"{' and '.join(sorted(pair))} are cut from one another", random, mended)


def _until_over(world: Joined, what: str, random: Random, mend: Callable[[], Awaitable[None]]) -> str:
    lasts = random.choice(LASTS)
    world.strikes += 1
    world.hurt.append(what)
    world.touch()

    async def over() -> None:
        await mend()
        world.strikes += 1
        world.hurt.remove(what)
        world.touch()

    loop = asyncio.get_running_loop()
    loop.call_later(lasts, lambda: loop.create_task(over(), name=f"the end of: {what}"))
    return f"{what} for {lasts:g} s"


def _sites(world: Joined) -> list[str]:
    """The sites that the plane has anything at."""
    return [
        name
        for name in SITES
        if any(True for _ in world.sites[name].everything())
        or (name in world.balancers and world.balancers[name].running)
    ] or [SITES[0]]


def _edge(site: str) -> str:
    return f"{site}-edge"
