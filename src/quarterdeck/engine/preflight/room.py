"""Whether machines have what new replicas need: storage classes, disk, memory, and files that flags name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.components.catalogue import flags_of
from quarterdeck.components.refusals import names_host_file
from quarterdeck.engine.observation.move import Move
from quarterdeck.engine.observation.queries import all_or_none
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.facts import MemberReport
from quarterdeck.model.capabilities import FreeMemory, Job
from quarterdeck.model.findings import Finding, Verdict, ok, refuse
from quarterdeck.model.units import Machine, MachineState
from quarterdeck.sites.port import SitePort

#: Room at the target for a database of this size: snapshot, log and growth.
_ROOM_FACTOR = 2.5
_ROOM_LEAST = 256 * 2**20
#: Memory that one replica's programs take: with an empty database, and more for each byte in it (measured with
#: Kubernetes 1.36 and etcd 3.6: an apiserver takes 3.7 times the database while it loads it, etcd some 1.3 times).
_MEMORY_LEAST = 700 * 2**20
_MEMORY_FACTOR = 5


async def storage_class(move: Move) -> Finding:
    """The target has the storage classes."""
    known = [each.name for each in move.target_site.spec.storage_classes]
    wanted = _classes(move)
    for each in wanted:
        if each not in known:
            seen = f"no storage class {each!r} at {move.wanted.spec.placement.site}"
            return refuse("storage class", seen, f"choose one of: {', '.join(known)}")
    return ok("storage class", ", ".join(wanted))


def _classes(move: Move) -> tuple[str, ...]:
    """The storage classes of the new volumes; the first is that of the main etcd."""
    default = move.target_site.spec.storage_classes[0].name
    return tuple(dict.fromkeys(each or default for each in move.wanted.spec.storage_classes))


async def host_limits(move: Move) -> Finding:
    """The shared limits of the target's hosts are enough for the new programs."""
    site = move.plane.site(move.wanted.spec.placement.site)
    return ok("host limits", await site.require_room("checking the host's limits", move.coming))


async def free_disk(move: Move) -> Finding:
    """There is room for the database on every usable machine."""
    sizes = [status.db_size for status in await statuses(move.plane)]
    if not sizes:
        return refuse("free disk", "the size of the database is unknown", "make a member answer first")
    site = move.plane.site(move.wanted.spec.placement.site)
    return await disks(site, move.open, _needed(move, database_room(max(sizes))))


def database_room(size: int) -> int:
    """Bytes that a machine needs for a member whose database has that size."""
    return int(size * _ROOM_FACTOR) + _ROOM_LEAST


async def disks(site: SitePort, machines: Sequence[Machine], needed: Mapping[str, int]) -> Finding:
    """Whether each of the machines has the bytes that are ``needed`` by storage class."""
    least: list[int] = []
    for name, need in needed.items():
        free = {machine.name: await site.free_bytes(machine.name, name) for machine in machines}
        short = [f"{machine} has {_mib(room)}" for machine, room in free.items() if room < need]
        if short:
            seen = f"{_mib(need)} of class {name} are needed: {', '.join(short)}"
            return refuse("free disk", seen, "make room, or choose another class")
        least.append(min(free.values(), default=0))
    return ok("free disk", f"{_mib(max(needed.values()))} needed, at least {_mib(min(least))} free")


def _needed(move: Move, main: int) -> dict[str, int]:
    """The room that is needed by storage class: ``main`` for the main etcd, and a little for the events' one."""
    main_class, *others = _classes(move)
    return {main_class: main, **dict.fromkeys(others, _ROOM_LEAST)}


async def free_memory(move: Move) -> Finding:
    """The target's machines have the memory that the new replicas need. Otherwise the kernel reclaims it from serving
    programs, and finally kills them.
    """
    sizes = [status.db_size_in_use for status in await statuses(move.plane)]
    if not sizes:
        return refuse("free memory", "the size of the database is unknown", "make a member answer first")
    need = _MEMORY_LEAST + _MEMORY_FACTOR * max(sizes)
    site = move.plane.site(move.wanted.spec.placement.site)
    up = [machine for machine in move.open if machine.state is MachineState.UP]
    if not up:
        seen = f"no usable machine is up at {site.name}"
        return refuse("free memory", seen, f"see 'site machines {site.name}'")
    room = await _room(site, up[: move.coming])
    seen = f"a replica takes about {_mib(need)} while it starts, each machine has {_mib(room)}"
    if 2 * room < need:
        return refuse("free memory", seen, "make room, or move to larger machines")
    if room < need:
        return Finding("free memory", Verdict.WARN, f"{seen}: programs may become slow, or be killed by the kernel")
    return ok("free memory", seen)


async def _room(site: SitePort, machines: Sequence[Machine]) -> int:
    """Bytes available to each of these machines if all use the same amount: some may share a host."""
    free = await asyncio.gather(*(site.measure(each.name, FreeMemory()) for each in machines))
    hosts = [each.host or each.name for each in machines]
    return int(min(left / hosts.count(host) for left, host in zip(free, hosts, strict=True)))


async def statuses(plane: Plane) -> list[MemberReport]:
    """The reports of the members that answer."""
    answers = await all_or_none(partial(plane.etcd.status, url) for url in client_urls(plane))
    return [status for status in answers if status is not None]


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"


#: Prints its arguments that do not exist.
_MISSING = 'for file; do [ -e "$file" ] || echo "$file"; done'
_DEADLINE = 30.0


async def host_files(move: Move) -> Finding:
    """Every machine of the target that may get a replica has the files that flags name. Raises Unavailable."""
    files = sorted(set(_named(move)))
    if not files:
        return ok("host files", "no flag names a file of a machine")
    up = [each.name for each in move.open if each.state is MachineState.UP]
    found = await asyncio.gather(*(_missing(move, each, files) for each in up))
    missing = [f"{machine}: {', '.join(gone)}" for machine, gone in zip(up, found, strict=True) if gone]
    if missing:
        return refuse(
            "host files", f"flags name missing files: {'; '.join(missing)}", "create them, or change the flags"
        )
    return ok("host files", f"{', '.join(files)}: on every machine")


def _named(move: Move) -> Iterator[str]:
    """The absolute paths in values of flags; of a log that is written, its folder."""
    for flags in flags_of(move.wanted.spec).values():
        for flag, value in flags.items():
            for path in value.split(",") if names_host_file(flag, value) else ():
                if path.startswith("/"):
                    yield path.rpartition("/")[0] or "/" if flag.endswith("-path") else path


async def _missing(move: Move, machine: str, files: list[str]) -> list[str]:
    site = move.plane.site(move.wanted.spec.placement.site)
    job = Job(name="look for files", argv=("/bin/sh", "-c", _MISSING, "sh", *files), deadline=_DEADLINE)
    ended = await site.run_job(machine, job)
    if ended.exit_code != 0:
        raise Unavailable(f"looking for files on machine {machine}", ended.output.strip() or "the command failed")
    return ended.output.split("\n")[:-1]
