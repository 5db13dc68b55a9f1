"""The local driver: machines on this host, each with a supervisord that outlives the process that started it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from typing_extensions import override

from quarterdeck.errors import Conflict, Corrupt, LeaseLost, Unavailable
from quarterdeck.files import on_disk
from quarterdeck.model.capabilities import (
    ClockOffset,
    DiskSync,
    Found,
    FreeMemory,
    Job,
    JobResult,
    Measure,
    RoundTrip,
    Search,
)
from quarterdeck.model.seats import Seat
from quarterdeck.model.units import (
    Fence,
    MachineRole,
    Priority,
    Program,
    UnitFile,
    UnitSpec,
    UnitState,
    UnitStatus,
    Volume,
    hashes_of,
)
from quarterdeck.sites.base.records import UnitRecord, is_at_it
from quarterdeck.sites.isolation import MachineIsolation
from quarterdeck.sites.local.attachment import Attaching, VolumeHolder
from quarterdeck.sites.local.fault.faults import LocalFaults
from quarterdeck.sites.local.jobs import round_trip, run_job
from quarterdeck.sites.local.limits import available_memory, require_limits
from quarterdeck.sites.local.logs import last_lines
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.settings import LocalSiteSettings, require_entry_name
from quarterdeck.sites.local.site_files import site_number
from quarterdeck.sites.local.supervisor.records import FILES, LOG, NICE
from quarterdeck.sites.local.supervisor.unit_files import (
    Staged,
    changed_files,
    check_watched,
    disable_start,
    drop_staged,
    keep_record,
    known_record,
    put_staged,
    remove_unit_folder,
    remove_watched,
    settle_staged,
    stage_watched,
    write_unit,
)
from quarterdeck.sites.local.volume_filling import VolumeFilling
from quarterdeck.sites.port import Holds


class LocalSite(LocalFaults, Holds):
    """A site below ``home``/sites; offers the ports Site, Holds and Faults. All it knows is on disk."""

    @override
    def folder(self, machine: str, unit: str) -> PurePosixPath:
        return PurePosixPath(self._unit_folder(self._machine(machine), unit) / FILES)

    @override
    async def units(self, machine: str) -> tuple[UnitStatus, ...]:
        return await self._machine(machine).units()

    @override
    async def install(self, machine: str, program: Program) -> PurePosixPath:
        """See Site: the host's files are there already."""
        await self._reached(machine)
        doing = f"installing {program.name} on machine {machine}"
        path = self._file_of(doing, program)
        if not await asyncio.to_thread(os.access, path, os.X_OK):
            raise Unavailable(doing, f"{path} is not a program")
        return path

    @override
    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        where = self._machine(machine)
        folder = self._unit_folder(where, spec.name)
        async with self._unit_locks[machine, spec.name]:
            status = _of(spec.name, await where.started())
            await where.admit(self._fence)
            known = await on_disk(where.name, known_record, folder)
            wanted = UnitRecord.of(spec)
            if is_at_it(status, known, wanted):
                uid = None if known is None else known.uid  # its files keep their owner
                await on_disk(where.name, keep_record, folder, known, replace(wanted, fresh=False, uid=uid))
                return
            await on_disk(where.name, write_unit, self._home, folder, spec)
            if status.state not in (UnitState.ABSENT, UnitState.STOPPED):
                stop_timeout = spec.stop_timeout if known is None else known.stop_timeout
                await where.client.stop(spec.name, self._fence, kill=False, stop_timeout=stop_timeout)
            await where.client.start(spec.name, self._fence)

    @override
    async def reload_unit(self, machine: str, spec: UnitSpec) -> None:
        """See Site. The record is written last: a record with the digest proves that all files are there."""
        where = self._machine(machine)
        folder = self._unit_folder(where, spec.name)
        async with self._unit_locks[machine, spec.name]:
            status = _of(spec.name, await where.units())
            known = await on_disk(where.name, known_record, folder)
            if status.state is not UnitState.RUNNING or known is None or not known.differs_in_files_alone(spec):
                raise Conflict(
                    f"reloading {spec.name} on machine {machine}", "its running unit has another specification"
                )
            await self.write_files(machine, await on_disk(where.name, changed_files, spec.files))
            changed = replace(known, digest=spec.digest, files=hashes_of(spec.files), note=spec.note)
            await on_disk(where.name, keep_record, folder, known, changed)
            await where.client.read_again(spec.name, self._fence)

    @override
    async def stop_unit(self, machine: str, unit: str, *, kill: bool = False) -> None:
        folder = self._unit_folder(self._machine(machine), unit)
        # no lock: a kill must not wait for the stop that takes too long
        where = await self._admitted(machine)
        known = await on_disk(where.name, known_record, folder)
        stop_timeout = 0.0 if known is None else known.stop_timeout
        # the signal does not wait for the disk: clients may be waiting for the signal
        writing = asyncio.create_task(on_disk(where.name, disable_start, folder, known))
        try:
            stopped = await where.ask(
                lambda client: client.stop(unit, self._fence, kill=kill, stop_timeout=stop_timeout)
            )
        finally:
            await writing
        if not stopped and _of(unit, await where.units()).state is not UnitState.ABSENT:
            await where.client.stop(unit, self._fence, kill=kill, stop_timeout=stop_timeout)

    @override
    async def set_priority(self, machine: str, unit: str, priority: Priority) -> None:
        """See Site. A start yields to all others until it is calm, or until this call."""
        await self._machine(machine).ask(lambda client: client.prioritize(unit, NICE[priority]))

    @override
    async def hold_unit(self, machine: str, unit: str, seconds: float) -> None:
        await self._machine(machine).ask(lambda client: client.hold(unit, seconds, self._fence))

    @override
    async def let_go_unit(self, machine: str, unit: str) -> None:
        where = self._machine(machine)
        await where.ask(lambda client: client.let_go(unit))
        if self._fence is not None:
            with suppress(LeaseLost):  # an older driver may release as well: that helps the waiting clients
                await where.admit(self._fence)

    @override
    async def guard_unit(self, machine: str, unit: str, needs: PurePosixPath, boot_argv: tuple[str, ...] = ()) -> None:
        folder = self._unit_folder(self._machine(machine), unit)
        where = await self._admitted(machine)
        async with self._unit_locks[machine, unit]:
            known = await on_disk(where.name, known_record, folder)
            if known is not None:
                await on_disk(where.name, keep_record, folder, known, known.guarded(str(needs), boot_argv))

    @override
    async def remove_unit(self, machine: str, unit: str) -> None:
        where = self._machine(machine)
        folder = self._unit_folder(where, unit)
        await self.stop_unit(machine, unit)
        async with self._unit_locks[machine, unit]:
            if _of(unit, await where.units()).state is not UnitState.ABSENT:
                await where.client.forget(unit, self._fence)
            await on_disk(where.name, remove_unit_folder, folder)
        await self._stop_if_unused(where)

    @override
    async def run_job(self, machine: str, job: Job) -> JobResult:
        where = await self._admitted(machine)
        return await run_job(where, job)

    @override
    async def write_files(self, machine: str, files: tuple[UnitFile, ...]) -> None:
        where = await self._reached(machine)
        staged = await on_disk(where.name, stage_watched, where.units_folder, files)
        try:
            if not await self._fenced_by(where, lambda fence: where.client.put(_as_json(staged), fence)):
                await on_disk(where.name, put_staged, staged)
            await on_disk(where.name, settle_staged, staged)
        finally:
            await on_disk(where.name, drop_staged, staged)

    @override
    async def remove_files(self, machine: str, paths: tuple[PurePosixPath, ...]) -> None:
        where = await self._reached(machine)
        check_watched(where.units_folder, paths)
        if not await self._fenced_by(where, lambda fence: where.client.take(_as_json(paths), fence)):
            await on_disk(where.name, remove_watched, where.units_folder, paths)

    async def _fenced_by(self, where: LocalMachine, call: Callable[[Fence], Awaitable[None]]) -> bool:
        """Call the machine's supervisor, which refuses an older fence. False: nothing was done, since there is no
        fence.
        """
        if self._fence is None:
            return False
        await where.started()
        await call(self._fence)
        return True

    @override
    async def logs(self, machine: str, unit: str, *, lines: int = 200) -> str:
        where = await self._reached(machine)
        return await on_disk(where.name, last_lines, self._unit_folder(where, unit) / LOG, lines)

    @override
    async def create_volume(self, machine: str, name: str, storage_class: str) -> Volume:
        await self._reached(machine)
        return await on_disk(machine, self._volumes(machine).create, name, storage_class)

    @override
    async def volumes(self, machine: str) -> tuple[Volume, ...]:
        await self._reached(machine)
        return await on_disk(machine, self._volumes(machine).all)

    @override
    async def list_volume(self, machine: str, name: str, below: str = "") -> tuple[str, ...]:
        await self._reached(machine)
        return await on_disk(machine, self._volumes(machine).entries, name, below)

    @override
    async def search_volume(self, machine: str, name: str, wanted: Search) -> Found:
        await self._reached(machine)
        return await on_disk(machine, self._volumes(machine).search, name, wanted)

    @override
    async def fill_volume(self, machine: str, name: str, file: str, source: Path) -> PurePosixPath:
        doing = f"filling volume {name} on machine {machine}"
        require_entry_name(doing, file)
        await self._admitted(machine)
        size = await on_disk("this host", os.path.getsize, source)
        volume = await self._volume_with_room(doing, machine, name, size)
        filling = await on_disk(machine, VolumeFilling.begun, Path(volume.path), source)
        try:
            while await on_disk(machine, filling.step):
                pass
            await on_disk(machine, filling.sync)
            await self._admitted(machine)
            await on_disk(machine, filling.settle, file)
        finally:
            await on_disk(machine, filling.end)
        return volume.path / file

    @override
    async def delete_volume(self, machine: str, name: str) -> None:
        await self._admitted(machine)
        await on_disk(machine, self._volumes(machine).delete, name)

    @override
    async def attach_volume(self, machine: str, name: str, source: str) -> Volume:
        attaching = Attaching(
            reattachable=self._settings.reattachable,
            marks=[each.mark for each in self._machines.values() if each.folder.is_dir()],
            fence=self._fence,
        )
        return await attaching.attach(name, self._holder(machine), self._holder(source))

    def _holder(self, machine: str) -> VolumeHolder:
        return VolumeHolder(self._machine(machine), self._volumes(machine))

    @override
    async def free_bytes(self, machine: str, storage_class: str) -> int:
        await self._reached(machine)
        return await on_disk(machine, self._volumes(machine).free, storage_class)

    @override
    async def require_room(self, doing: str, replicas: int) -> str:
        """See Site: all machines share this host's limits."""
        return await on_disk(self.name, require_limits, doing, replicas)

    @override
    async def allocate(self, machine: str, plane: str, replica: str, ports: Mapping[str, int]) -> Seat:
        seat = await super().allocate(machine, plane, replica, ports)
        await self._wake(self._machine(machine))
        return seat

    @override
    async def release(self, machine: str, plane: str, replica: str) -> None:
        await super().release(machine, plane, replica)
        await self._stop_if_unused(self._machine(machine))

    async def _wake(self, where: LocalMachine) -> None:
        """A supervisor takes a while to start: it does so now, not when the first unit must start fast. So does that of
        the site's load balancer, which comes last.
        """

        async def woken(edge: LocalMachine) -> None:
            with suppress(Unavailable):  # the start of a unit there reports it
                await edge.started()

        edges = (each for each in self._machines.values() if each.stand.role is MachineRole.EDGE)
        waking = asyncio.gather(*(woken(each) for each in edges))
        try:
            await where.started()
        finally:
            await waking

    async def _stop_if_unused(self, where: LocalMachine) -> None:
        """A machine without units and seats keeps nothing running."""
        with suppress(Corrupt):  # the next user of the ledger gets the error
            if not (await self._ledger(where.name)).taken:
                await where.rest()

    @override
    async def measure(self, machine: str, what: Measure) -> float:
        """See Site: all machines share this host's memory and clock."""
        where = await self._reached(machine)
        match what:
            case RoundTrip():
                return await round_trip(where, what)
            case DiskSync():
                return await on_disk(machine, self._volumes(machine).sync_seconds, what.storage_class)
            case FreeMemory():
                return float(await on_disk(self.name, available_memory))
            case ClockOffset():
                return 0.0


def open_local_site(
    home: Path, settings: LocalSiteSettings, isolation: MachineIsolation, *, patience: float = 2.0
) -> LocalSite:
    """The site of that name in ``home``, which gets its number now if it is new. May block for a moment."""
    return LocalSite(home, settings, isolation, number=site_number(home, settings.name), patience=patience)


def _of(unit: str, statuses: tuple[UnitStatus, ...]) -> UnitStatus:
    return next((each for each in statuses if each.name == unit), UnitStatus(name=unit, state=UnitState.ABSENT))


def _as_json(paths: tuple[PurePosixPath, ...] | Staged) -> str:
    return json.dumps(paths, default=str)
