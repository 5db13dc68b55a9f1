"""A site in memory: all ports of one, with units that run until they are stopped, killed or crash."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from typing_extensions import override

from fakes.site_faults import FakeFaults
from fakes.site_machine import FakeMachine, FakeUnit
from quarterdeck.errors import Conflict, InvalidInput, LeaseLost, NotFound, PreconditionFailed, TimedOut, Unavailable
from quarterdeck.files import file_errors
from quarterdeck.model.capabilities import (
    Capability,
    ClockOffset,
    DiskSync,
    Found,
    FreeMemory,
    Job,
    JobResult,
    Measure,
    RoundTrip,
    Search,
    found,
)
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import (
    Machine,
    MachineState,
    Priority,
    Program,
    UnitFile,
    UnitSpec,
    UnitState,
    UnitStatus,
    Volume,
    with_files,
)
from quarterdeck.sites.base.records import UnitRecord, is_at_it
from quarterdeck.sites.local.settings import require_entry_name
from quarterdeck.sites.port import Holds, SitePort

DISK_BYTES = 100 * 2**30
MEMORY_BYTES = 64.0 * 2**30
DISK_SYNC = 0.001


class FakeSite(FakeFaults, SitePort, Holds):
    """Offers the ports Site, Holds and Faults. What only a test may do is the hands of ``FakeMachines``."""

    @property
    @override
    def capabilities(self) -> frozenset[Capability]:
        return frozenset({Capability.HOLDS, Capability.FAULTS})

    @override
    async def machines(self) -> tuple[Machine, ...]:
        return tuple(
            Machine(
                name=name,
                site=self.name,
                zone=each.stand.place.zone,
                address=self._network.address(each.stand.place),
                role=each.stand.role,
                state=each.state,
            )
            for name, each in self._machines.items()
        )

    @override
    async def facts(self, below: str = "") -> SiteFacts:
        machines = [await self._facts_of(each, below) for each in await self.machines()]
        return SiteFacts(
            name=self.name,
            machines=tuple(machines),
            storage_classes=await self.storage_classes(),
            reattachable=self._settings.reattachable,
        )

    async def _facts_of(self, machine: Machine, below: str) -> MachineFacts:
        if machine.state is not MachineState.UP:
            return MachineFacts(machine=machine)
        units = await self.units(machine.name)
        return MachineFacts(machine=machine, units=units, volumes=self._machine(machine.name).disk.facts(below))

    @override
    def folder(self, machine: str, unit: str) -> PurePosixPath:
        self._machine(machine)
        require_entry_name(f"using a unit on machine {machine}", unit)
        return _units_folder(machine) / unit

    @override
    async def units(self, machine: str) -> tuple[UnitStatus, ...]:
        where = self._reach(machine)
        known = tuple(_status_of(where, each) for each in where.units.values())
        below = _units_folder(machine)
        return with_files(known, (path.relative_to(below).parts[0] for path in where.files if below in path.parents))

    @override
    async def install(self, machine: str, program: Program) -> PurePosixPath:
        """See Site: whatever is a file is there."""
        self._reach(machine)
        return self._file_of(f"installing {program.name} on machine {machine}", program)

    @override
    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        where = self._admit(machine)
        require_entry_name(f"using a unit on machine {machine}", spec.name)
        unit = where.units.get(spec.name)
        if unit is not None and is_at_it(_status_of(where, unit), UnitRecord.of(unit.spec), UnitRecord.of(spec)):
            unit.spec = replace(spec, fresh=False)
            return
        where.files |= {each.path: each for each in spec.files}
        log, had_data = ("", False) if unit is None else (unit.log, unit.had_data)
        made = where.units[spec.name] = FakeUnit(spec, log=log, had_data=had_data, fresh=spec.fresh)
        self._started(where, made)
        if made.refused:
            raise Unavailable(f"asking machine {machine} to start {spec.name}", made.refused)

    @override
    async def reload_unit(self, machine: str, spec: UnitSpec) -> None:
        where = self._admit(machine)
        unit = where.units.get(spec.name)
        if unit is None or unit.state is not UnitState.RUNNING or not unit.spec.differs_in_files_alone(spec):
            raise Conflict(f"reloading {spec.name} on machine {machine}", "its running unit has another specification")
        where.files |= {each.path: each for each in spec.files}
        unit.spec, unit.digest = spec, spec.digest

    @override
    async def stop_unit(self, machine: str, unit: str, *, kill: bool = False) -> None:
        found = self._admit(machine).units.get(unit)
        if found is not None:
            found.wanted = False
            if found.state is UnitState.RUNNING:
                found.ends(-9 if kill else -15)
            found.state, found.pid, found.refused = UnitState.STOPPED, None, ""

    @override
    async def set_priority(self, machine: str, unit: str, priority: Priority) -> None:
        """See Site: fake units share nothing."""
        self._reach(machine)

    @override
    async def hold_unit(self, machine: str, unit: str, seconds: float) -> None:
        """See Holds: nobody can see a fake unit stand still."""
        self._admit(machine)

    @override
    async def let_go_unit(self, machine: str, unit: str) -> None:
        with suppress(LeaseLost):
            self._admit(machine)

    @override
    async def guard_unit(self, machine: str, unit: str, needs: PurePosixPath, boot_argv: tuple[str, ...] = ()) -> None:
        found = self._admit(machine).units.get(unit)
        if found is not None:
            found.spec = replace(found.spec, needs=needs, fresh=False, boot_argv=boot_argv or found.spec.boot_argv)

    @override
    async def remove_unit(self, machine: str, unit: str) -> None:
        where = self._admit(machine)
        where.units.pop(unit, None)
        folder = self.folder(machine, unit)
        where.files = {path: each for path, each in where.files.items() if folder not in path.parents}

    @override
    async def run_job(self, machine: str, job: Job) -> JobResult:
        """See Site. One that would run on does so until its deadline."""
        where = self._admit(machine)
        does = self._behave(UnitSpec(name=job.name, argv=job.argv, env=job.env))
        where.jobs.append(job.name)
        try:
            if does.exit_code is None:
                await asyncio.sleep(job.deadline)
                doing = f"running job {job.name} on machine {machine}"
                raise TimedOut(doing, f"not done within {job.deadline:g} s: it was killed")
        finally:
            where.jobs.remove(job.name)
        for path in does.writes:
            where.disk.put(path, 1)
        output = does.output.encode()
        kept = output[-job.most_output :].decode(errors="replace")
        return JobResult(exit_code=does.exit_code, output=kept, cut=len(output) > job.most_output)

    @override
    async def write_files(self, machine: str, files: tuple[UnitFile, ...]) -> None:
        where = self._admit(machine)
        for each in files:
            _require_below_a_unit(machine, each.path)
        where.files |= {each.path: each for each in files}

    @override
    async def remove_files(self, machine: str, paths: tuple[PurePosixPath, ...]) -> None:
        where = self._admit(machine)
        for each in paths:
            _require_below_a_unit(machine, each)
            where.files.pop(each, None)

    @override
    async def logs(self, machine: str, unit: str, *, lines: int = 200) -> str:
        found = self._reach(machine).units.get(unit)
        kept = found.log.splitlines(keepends=True)[-lines:] if found is not None and lines > 0 else []
        return "".join(kept)

    @override
    async def create_volume(self, machine: str, name: str, storage_class: str) -> Volume:
        doing = f"creating volume {name} on machine {machine}"
        where = self._reach(machine)
        require_entry_name(doing, name)
        self.storage_class(doing, storage_class)
        there = where.disk.volumes.get(name)
        if there is None:
            path = PurePosixPath("/fake", machine, "volumes", storage_class, name)
            where.disk.volumes[name] = Volume(name=name, storage_class=storage_class, path=path)
        elif there.storage_class != storage_class:
            raise Conflict(doing, f"it exists with storage class {there.storage_class}, not {storage_class}")
        return where.disk.volume(name)

    @override
    async def volumes(self, machine: str) -> tuple[Volume, ...]:
        disk = self._reach(machine).disk
        return tuple(map(disk.volume, disk.volumes))

    @override
    async def list_volume(self, machine: str, name: str, below: str = "") -> tuple[str, ...]:
        disk = self._reach(machine).disk
        if name not in disk.volumes:
            raise NotFound(f"listing volume {name} on machine {machine}", "there is no such volume")
        return disk.names(disk.volumes[name].path / below)

    @override
    async def search_volume(self, machine: str, name: str, wanted: Search) -> Found:
        disk = self._reach(machine).disk
        if name not in disk.volumes:
            raise NotFound(f"searching volume {name} on machine {machine}", "there is no such volume")
        lines = (line for text in disk.texts_in(name, wanted.files, wanted.since) for line in text.splitlines())
        output = "".join(f"{line}\n" for line in lines if any(each in line for each in wanted.texts))
        return found(output.encode(), wanted.most)

    @override
    async def fill_volume(self, machine: str, name: str, file: str, source: Path) -> PurePosixPath:
        """See Site. The disk has its bytes as Latin-1."""
        doing = f"filling volume {name} on machine {machine}"
        require_entry_name(doing, file)
        where = self._admit(machine)
        with file_errors(doing):
            content = source.read_bytes()
        path = (await self._volume_with_room(doing, machine, name, len(content))).path / file
        where.disk.put(path, len(content))
        where.disk.texts[path] = content.decode("latin-1")
        return path

    @override
    async def delete_volume(self, machine: str, name: str) -> None:
        self._admit(machine).disk.delete(name)

    @override
    async def attach_volume(self, machine: str, name: str, source: str) -> Volume:
        """See Site: what used it on a machine that stands still has ended when that goes on."""
        doing = f"attaching volume {name} to machine {machine}"
        here, there = self._admit(machine), self._machine(source)
        if name in here.disk.volumes and machine != source and name in there.disk.volumes:
            raise Conflict(doing, f"machine {source} also has a volume of that name")
        if name in here.disk.volumes:
            return here.disk.volume(name)
        if name not in there.disk.volumes:
            raise NotFound(doing, f"machine {source} has no such volume")
        found = there.disk.volumes[name].storage_class
        if found not in self._settings.reattachable:
            raise PreconditionFailed(doing, f"volumes of storage class {found} are local to their machine")
        self._note_data(there)
        users = self._users(there, name)
        if there.state is MachineState.UP:
            self._admit(source)
            if users:
                raise Conflict(doing, f"machine {source} answers, and uses it")
        here.disk.adopt(name, there.disk, PurePosixPath("/fake", machine, "volumes", found, name))
        for each in users:
            each.pid = None
            each.ends(-9)
            self._started(there, each)
        return here.disk.volume(name)

    @override
    async def free_bytes(self, machine: str, storage_class: str) -> int:
        self._reach(machine)
        self.storage_class(f"reading the free space of machine {machine}", storage_class)
        limit = self._classes[storage_class].limit_bytes
        used = sum(each.used_bytes for each in await self.volumes(machine) if each.storage_class == storage_class)
        return max(0, (DISK_BYTES if limit is None else limit) - used)

    @override
    async def require_room(self, doing: str, replicas: int) -> str:
        """See Site: there is always enough."""
        return "no limits"

    @override
    async def measure(self, machine: str, what: Measure) -> float:
        where = self._reach(machine)
        match what:
            case RoundTrip():
                there = next((each.name for each in await self.machines() if each.address == what.address), None)
                if there is None or not await self.ports_in_use(there, (what.port,)):
                    doing = f"measuring the round trip from {machine} to {what.address}:{what.port}"
                    raise Unavailable(doing, "nothing answers there")
                return where.round_trip
            case DiskSync():
                self.storage_class(f"measuring the disk of machine {machine}", what.storage_class)
                return DISK_SYNC
            case FreeMemory():
                return MEMORY_BYTES
            case ClockOffset():
                return where.clock_offset

    @override
    async def destroy(self) -> None:
        self._machines = {name: FakeMachine(each.stand) for name, each in self._machines.items()}


def _status_of(where: FakeMachine, unit: FakeUnit) -> UnitStatus:
    return UnitStatus(
        name=unit.spec.name,
        state=unit.state,
        digest=unit.digest,
        pid=unit.pid,
        exit_code=unit.exit_code,
        restarts=unit.restarts,
        refused=unit.refused,
        altered=any(where.files.get(file.path) != file for file in unit.spec.files),
        note=unit.spec.note,
    )


def _units_folder(machine: str) -> PurePosixPath:
    return PurePosixPath("/fake", machine, "units")


def _require_below_a_unit(machine: str, path: PurePosixPath) -> None:
    units = _units_folder(machine)
    if ".." in path.parts or units not in path.parents or path.parent == units:
        raise InvalidInput("writing the files of a unit", f"{path} is not below the folder of a unit")
