"""A site in memory: both ports, with units that run until they are stopped, killed or crash."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import NamedTuple, Self

from quarterdeck.errors import Conflict, InvalidInput, LeaseLost, NotFound, Unavailable
from quarterdeck.model.seats import Seat, TakenSeat
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import Fence, Machine, MachineState, UnitFile, UnitSpec, UnitState, UnitStatus, Volume
from quarterdeck.sites.fake_machine import FakeMachine, FakeUnit
from quarterdeck.sites.local.loopback import Loopback
from quarterdeck.sites.local.settings import LocalSiteSettings, require_entry_name, stands

DISK_BYTES = 100 * 2**30
MEMORY_BYTES = 64 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How a unit behaves in the fake: ``exit_code`` None runs on, a number exits so at each start. ``writes`` are files
    that it makes in a volume.
    """

    exit_code: int | None = None
    output: str = ""
    listens: tuple[int, ...] = ()
    writes: tuple[PurePosixPath, ...] = ()


def runs_on(_: UnitSpec) -> Program:
    """Every unit simply runs."""
    return Program()


class Seen(NamedTuple):
    """A unit as it is, whatever its machine answers. ``pid`` is None while no process of it runs."""

    machine: str
    power: MachineState
    spec: UnitSpec
    wanted: bool
    state: UnitState
    pid: int | None


class FakeSite:
    """Offers the Site and the Faults port. ``behave`` says how each unit behaves once it is started.

    What only a test may do has names of its own: ``crash``, ``everything``, ``put_file``, ``take_file``, ``files``,
    ``set_clock_offset``, ``set_round_trip`` and the like.
    """

    def __init__(
        self, settings: LocalSiteSettings, *, number: int = 1, behave: Callable[[UnitSpec], Program] = runs_on
    ) -> None:
        self._settings = settings
        self._behave = behave
        self._network = Loopback(1)
        self._machines = {name: FakeMachine(stand) for name, stand in stands(settings, number).items()}
        self._pids = itertools.count(1001)
        self._fence: Fence | None = None

    @property
    def name(self) -> str:
        """See Site."""
        return self._settings.name

    def fenced(self, fence: Fence) -> Self:
        """See Site."""
        view = copy.copy(self)
        view._fence = fence  # noqa: SLF001 - of its own class
        return view

    async def machines(self) -> tuple[Machine, ...]:
        """See Site."""
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

    async def facts(self, below: str = "") -> SiteFacts:
        """See Site."""
        machines = [await self._facts_of(each, below) for each in await self.machines()]
        return SiteFacts(name=self.name, machines=tuple(machines), storage_classes=await self.storage_classes())

    async def _facts_of(self, machine: Machine, below: str) -> MachineFacts:
        if machine.state is not MachineState.UP:
            return MachineFacts(machine=machine)
        units = await self.units(machine.name)
        return MachineFacts(machine=machine, units=units, volumes=self._machine(machine.name).disk.facts(below))

    def folder(self, machine: str, unit: str) -> PurePosixPath:
        """See Site."""
        self._machine(machine)
        require_entry_name(f"using a unit on machine {machine}", unit)
        return _units_folder(machine) / unit

    async def units(self, machine: str) -> tuple[UnitStatus, ...]:
        """See Site."""
        return tuple(
            UnitStatus(
                name=each.spec.name,
                state=each.state,
                digest=each.digest,
                pid=each.pid,
                exit_code=each.exit_code,
                restarts=each.restarts,
                refused=each.refused,
            )
            for each in self._reach(machine).units.values()
        )

    async def wake(self, machine: str) -> None:
        """See Site."""
        self._reach(machine)

    async def rest(self, machine: str) -> None:
        """See Site."""
        self._reach(machine)

    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        """See Site."""
        where = self._admit(machine)
        require_entry_name(f"using a unit on machine {machine}", spec.name)
        unit = where.units.get(spec.name)
        if unit is not None and unit.wanted and unit.digest == spec.digest:
            same_boot = unit.spec.boot_argv == spec.boot_argv
            tried = unit.state is UnitState.FAILED and same_boot and not (unit.refused and spec.fresh)
            if unit.state is UnitState.RUNNING or tried:
                unit.spec = replace(spec, fresh=False)
                return
        where.files |= {each.path: each for each in spec.files}
        log, had_data = ("", False) if unit is None else (unit.log, unit.had_data)
        made = where.units[spec.name] = FakeUnit(spec, log=log, had_data=had_data)
        self._started(where, made, fresh=spec.fresh)
        if made.refused:
            raise Unavailable(f"asking machine {machine} to start {spec.name}", made.refused)

    async def stop_unit(self, machine: str, unit: str, *, kill: bool = False) -> None:
        """See Site."""
        found = self._admit(machine).units.get(unit)
        if found is not None:
            found.wanted = False
            if found.state is UnitState.RUNNING:
                found.exit_code = -9 if kill else -15
            found.state, found.pid, found.refused = UnitState.STOPPED, None, ""

    async def favour_unit(self, machine: str, unit: str) -> None:
        """See Site: fake units share nothing."""
        self._reach(machine)

    async def hold_unit(self, machine: str, unit: str, seconds: float) -> None:
        """See Site: nobody can see a fake unit stand still."""
        self._admit(machine)

    async def let_go_unit(self, machine: str, unit: str) -> None:
        """See Site."""
        with suppress(LeaseLost):
            self._admit(machine)

    async def guard_unit(self, machine: str, unit: str, needs: PurePosixPath, boot_argv: tuple[str, ...] = ()) -> None:
        """See Site."""
        found = self._admit(machine).units.get(unit)
        if found is not None:
            found.spec = replace(found.spec, needs=needs, fresh=False, boot_argv=boot_argv or found.spec.boot_argv)

    async def remove_unit(self, machine: str, unit: str) -> None:
        """See Site."""
        where = self._admit(machine)
        where.units.pop(unit, None)
        folder = self.folder(machine, unit)
        where.files = {path: each for path, each in where.files.items() if folder not in path.parents}

    async def write_files(self, machine: str, files: tuple[UnitFile, ...]) -> None:
        """See Site."""
        where = self._admit(machine)
        for each in files:
            _require_below_a_unit(machine, each.path)
        where.files |= {each.path: each for each in files}

    async def remove_files(self, machine: str, paths: tuple[PurePosixPath, ...]) -> None:
        """See Site."""
        where = self._admit(machine)
        for each in paths:
            _require_below_a_unit(machine, each)
            where.files.pop(each, None)

    async def logs(self, machine: str, unit: str, *, lines: int = 200) -> str:
        """See Site."""
        found = self._reach(machine).units.get(unit)
        kept = found.log.splitlines(keepends=True)[-lines:] if found is not None and lines > 0 else []
        return "".join(kept)

    async def create_volume(self, machine: str, name: str, storage_class: str) -> Volume:
        """See Site."""
        doing = f"creating volume {name} on machine {machine}"
        where = self._reach(machine)
        require_entry_name(doing, name)
        self._require_class(doing, storage_class)
        there = where.disk.volumes.get(name)
        if there is None:
            path = PurePosixPath("/fake", machine, "volumes", storage_class, name)
            where.disk.volumes[name] = Volume(name=name, storage_class=storage_class, path=path)
        elif there.storage_class != storage_class:
            raise Conflict(doing, f"it exists with storage class {there.storage_class}, not {storage_class}")
        return where.disk.volume(name)

    async def volumes(self, machine: str) -> tuple[Volume, ...]:
        """See Site."""
        disk = self._reach(machine).disk
        return tuple(map(disk.volume, disk.volumes))

    async def list_volume(self, machine: str, name: str, below: str = "") -> tuple[str, ...]:
        """See Site."""
        disk = self._reach(machine).disk
        if name not in disk.volumes:
            raise NotFound(f"listing volume {name} on machine {machine}", "there is no such volume")
        return disk.names(disk.volumes[name].path / below)

    async def delete_volume(self, machine: str, name: str) -> None:
        """See Site."""
        self._admit(machine).disk.delete(name)

    async def storage_classes(self) -> tuple[str, ...]:
        """See Site."""
        return tuple(self._settings.storage_classes)

    async def free_bytes(self, machine: str, storage_class: str) -> int:
        """See Site."""
        self._reach(machine)
        self._require_class(f"reading the free space of machine {machine}", storage_class)
        limit = self._settings.storage_classes[storage_class].limit_bytes
        used = sum(each.used_bytes for each in await self.volumes(machine) if each.storage_class == storage_class)
        return max(0, (DISK_BYTES if limit is None else limit) - used)

    async def free_memory(self, machines: tuple[str, ...]) -> int:
        """See Site."""
        for each in machines:
            self._reach(each)
        return MEMORY_BYTES // len(machines)

    async def require_room(self, doing: str, replicas: int) -> str:
        """See Site: there is always enough."""
        return "no limits"

    async def allocate(self, machine: str, plane: str, replica: str, ports: Mapping[str, int]) -> Seat:
        """See Site."""
        where = self._admit(machine)
        where.ledger, seat = where.ledger.admitting(self._fence).allocated(
            machine=machine,
            host=self._network.address(where.stand.place),
            plane=plane,
            replica=replica,
            ports=ports,
            listening=self._listening(where),
        )
        return seat

    async def occupy(self, machine: str, taken: TakenSeat) -> None:
        """See Site."""
        where = self._admit(machine)
        where.ledger = where.ledger.admitting(self._fence).occupied(taken)

    async def seats(self, machine: str) -> tuple[TakenSeat, ...]:
        """See Site."""
        return self._reach(machine).ledger.taken

    async def release(self, machine: str, plane: str, replica: str) -> None:
        """See Site."""
        where = self._admit(machine)
        where.ledger = where.ledger.admitting(self._fence).released(plane, replica)

    async def ports_in_use(self, machine: str, ports: tuple[int, ...]) -> tuple[int, ...]:
        """See Site."""
        taken = self._listening(self._reach(machine))
        return tuple(port for port in ports if port in taken)

    async def round_trip(self, machine: str, address: str, port: int) -> float:
        """See Site."""
        where = self._reach(machine)
        there = next((each.name for each in await self.machines() if each.address == address), None)
        if there is None or not await self.ports_in_use(there, (port,)):
            raise Unavailable(f"measuring the round trip from {machine} to {address}:{port}", "nothing answers there")
        return where.round_trip

    async def clock_offset(self, machine: str) -> float:
        """See Site."""
        return self._reach(machine).clock_offset

    async def destroy(self) -> None:
        """See Site."""
        self._machines = {name: FakeMachine(each.stand) for name, each in self._machines.items()}

    async def kill_machine(self, machine: str) -> None:
        """See Faults."""
        where = self._machine(machine)
        self._note_data(where)
        where.state = MachineState.DOWN
        for each in where.units.values():
            each.state, each.pid, each.refused = UnitState.STOPPED, None, ""

    async def boot_machine(self, machine: str) -> None:
        """See Faults."""
        where = self._machine(machine)
        if where.state is MachineState.DOWN:
            where.state = MachineState.UP
            for name, each in where.units.items():
                again = where.units[name] = FakeUnit(
                    each.spec, wanted=each.wanted, log=each.log, had_data=each.had_data
                )
                if again.wanted:
                    self._started(where, again)

    async def freeze_machine(self, machine: str) -> None:
        """See Faults."""
        where = self._machine(machine)
        if where.state is MachineState.UP:
            where.state = MachineState.UNREACHABLE

    async def thaw_machine(self, machine: str) -> None:
        """See Faults."""
        where = self._machine(machine)
        if where.state is MachineState.UNREACHABLE:
            where.state = MachineState.UP

    def crash(self, machine: str, unit: str) -> None:
        """The unit's process is killed, and its supervisor starts it again."""
        where = self._reach(machine)
        found = where.units[unit]
        if found.state is UnitState.RUNNING:
            found.exit_code = -9
            self._started(where, found)
            if not found.refused:
                found.exit_code, found.restarts = -9, found.restarts + 1

    def everything(self) -> Iterator[Seen]:
        """All units of all machines."""
        for name, each in self._machines.items():
            for unit in each.units.values():
                yield Seen(
                    machine=name,
                    power=each.state,
                    spec=unit.spec,
                    wanted=unit.wanted,
                    state=unit.state,
                    pid=unit.pid,
                )

    def power(self, machine: str) -> MachineState:
        """Whether a machine runs."""
        return self._machine(machine).state

    def has_volume(self, path: PurePosixPath) -> bool:
        """Whether there is a volume at that path."""
        return any(volume.path == path for each in self._machines.values() for volume in each.disk.volumes.values())

    def alive(self, pid: int) -> bool:
        """Whether a process with that number runs on any machine."""
        return any(unit.pid == pid for each in self._machines.values() for unit in each.units.values())

    def files(self, machine: str) -> dict[PurePosixPath, UnitFile]:
        """The files that were written for the units of a machine."""
        return dict(self._machine(machine).files)

    def put_file(self, machine: str, volume: str, path: str, size: int, *, at: float | None = None) -> None:
        """Put a file of ``size`` bytes into a volume, as a unit would, now or ``at`` a time (since the epoch)."""
        disk = self._machine(machine).disk
        disk.put(disk.volumes[volume].path / path, size, at=time.time() if at is None else at)

    def take_file(self, machine: str, volume: str, path: str) -> None:
        """Take a file, or a folder with all that is in it, out of a volume behind the back of its unit."""
        where = self._machine(machine)
        self._note_data(where)
        where.disk.take(where.disk.volumes[volume].path / path)

    def set_clock_offset(self, machine: str, seconds: float) -> None:
        """Set a machine's clock ahead (or behind, if negative)."""
        self._machine(machine).clock_offset = seconds

    def set_round_trip(self, machine: str, seconds: float) -> None:
        """Set how long every connection from a machine takes."""
        self._machine(machine).round_trip = seconds

    def _machine(self, name: str) -> FakeMachine:
        try:
            return self._machines[name]
        except KeyError:
            offered = ", ".join(self._machines)
            raise NotFound(f"using machine {name}", f"site {self.name} has only: {offered}") from None

    def _reach(self, name: str) -> FakeMachine:
        where = self._machine(name)
        if where.state is MachineState.DOWN:
            raise Unavailable(f"reaching machine {name}", "it is off")
        if where.state is not MachineState.UP:
            raise Unavailable(f"reaching machine {name}", "it does not answer")
        self._note_data(where)
        return where

    def _listening(self, where: FakeMachine) -> set[int]:
        running = [each for each in where.units.values() if each.state is UnitState.RUNNING]
        return {port for each in running for port in self._behave(each.spec).listens}

    def _note_data(self, where: FakeMachine) -> None:
        """What the machine's supervisor does all the time: it sees who has data, and starts again who has it back."""
        for each in where.units.values():
            if each.refused or not each.had_data:
                has_data = self._has_data(where, each)
                each.had_data = each.had_data or has_data
                if each.refused and has_data:
                    self._started(where, each)

    def _has_data(self, where: FakeMachine, unit: FakeUnit) -> bool:
        return unit.spec.needs is not None and where.disk.matches(unit.spec.needs)

    def _admit(self, name: str) -> FakeMachine:
        """``_reach``, to change something."""
        where = self._reach(name)
        if self._fence is not None:
            newest = where.fences.get(self._fence.plane, 0)
            if self._fence.token < newest:
                raise LeaseLost(f"changing machine {name}", f"a driver with token {newest} has been there")
            where.fences[self._fence.plane] = self._fence.token
        return where

    def _require_class(self, doing: str, storage_class: str) -> None:
        if storage_class not in self._settings.storage_classes:
            raise NotFound(doing, f"there is no storage class {storage_class}")

    def _started(self, where: FakeMachine, unit: FakeUnit, *, fresh: bool = False) -> None:
        needs = unit.spec.needs
        unit.refused = ""
        if needs is not None and not self._has_data(where, unit) and (unit.had_data or not fresh):
            unit.refused = f"its data {needs} is not there"
            unit.log += f"quarterdeck: cannot start: {unit.refused}\n"
            unit.state, unit.pid = UnitState.FAILED, None
            return
        program = self._behave(unit.spec)
        for path in program.writes:
            where.disk.put(path, 1)
        unit.log += program.output
        unit.exit_code = program.exit_code
        if program.exit_code is None:
            unit.state, unit.pid = UnitState.RUNNING, next(self._pids)
        else:
            unit.state, unit.pid = UnitState.FAILED, None


def _units_folder(machine: str) -> PurePosixPath:
    return PurePosixPath("/fake", machine, "units")


def _require_below_a_unit(machine: str, path: PurePosixPath) -> None:
    units = _units_folder(machine)
    if ".." in path.parts or units not in path.parents or path.parent == units:
        raise InvalidInput("writing the files of a unit", f"{path} is not below the folder of a unit")
