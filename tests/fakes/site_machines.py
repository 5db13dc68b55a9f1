"""The machines of a site in memory: how their units behave, and what a test may do to them behind everybody's back."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple, TypeVar

from typing_extensions import override

from fakes.site_machine import FakeMachine, FakeUnit
from quarterdeck.components.endings import BEGINS, CANNOT_START
from quarterdeck.errors import LeaseLost, Unavailable
from quarterdeck.model.seats import HostPort
from quarterdeck.model.units import MachineState, UnitFile, UnitSpec, UnitState
from quarterdeck.sites.base.faults import FaultySite
from quarterdeck.sites.base.records import refusal
from quarterdeck.sites.base.seats import SeatingSite, SeatLedger
from quarterdeck.sites.local.loopback import Loopback
from quarterdeck.sites.local.settings import LocalSiteSettings, LocalStorageClass, stands

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How a unit behaves in the fake: ``exit_code`` None runs on, a number exits so at each start. ``writes`` are files
    that it makes in a volume.
    """

    exit_code: int | None = None
    output: str = ""
    listens: tuple[int, ...] = ()
    writes: tuple[PurePosixPath, ...] = ()


def runs_on(_: UnitSpec) -> Behaviour:
    """Every unit simply runs."""
    return Behaviour()


class Seen(NamedTuple):
    """A unit as it is, whatever its machine answers. ``pid`` is None while no process of it runs."""

    machine: str
    power: MachineState
    spec: UnitSpec
    wanted: bool
    state: UnitState
    pid: int | None


@dataclass(slots=True)
class Undoing:
    """How a fault ends by itself, and what is put back then."""

    timer: asyncio.TimerHandle
    aside: dict[str, int]


class FakeMachines(SeatingSite[FakeMachine, LocalStorageClass], FaultySite[FakeMachine, LocalStorageClass, Undoing]):
    """``behave`` says how each unit behaves once it is started, and each job."""

    def __init__(
        self, settings: LocalSiteSettings, *, number: int = 1, behave: Callable[[UnitSpec], Behaviour] = runs_on
    ) -> None:
        machines = {name: FakeMachine(stand) for name, stand in stands(settings, number).items()}
        super().__init__(settings.name, machines, settings.storage_classes)
        self._settings = settings
        self._behave = behave
        self._network = Loopback(1)
        self._pids: Iterator[int] = itertools.count(1001)

    def crash(self, machine: str, unit: str) -> None:
        """The unit's process is killed, and its supervisor starts it again."""
        where = self._reach(machine)
        found = where.units[unit]
        if found.state is UnitState.RUNNING:
            found.ends(-9)
            self._started(where, found)
            if not found.refused:
                found.exit_code, found.restarts = -9, found.restarts + 1

    def try_again(self) -> None:
        """What supervisors do all the time: they start again what exits repeatedly."""
        for where in self._machines.values():
            for each in where.units.values():
                if where.state is MachineState.UP and each.state is UnitState.FAILED and not each.refused:
                    self._started(where, each)
                    each.restarts += 1

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

    def jobs(self, machine: str) -> tuple[str, ...]:
        """The names of the jobs that run there."""
        return tuple(self._machine(machine).jobs)

    def power(self, machine: str) -> MachineState:
        """Whether a machine runs."""
        return self._machine(machine).state

    def has_volume(self, path: PurePosixPath) -> bool:
        """Whether there is a volume at that path."""
        return any(volume.path == path for each in self._machines.values() for volume in each.disk.volumes.values())

    def has_content(self, path: PurePosixPath) -> bool:
        """Whether a file on a volume was filled."""
        return any(path in each.disk.texts for each in self._machines.values())

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

    def _reach(self, name: str) -> FakeMachine:
        where = self._machine(name)
        if where.state is MachineState.DOWN:
            raise Unavailable(f"reaching machine {name}", "it is off")
        if where.state is not MachineState.UP:
            raise Unavailable(f"reaching machine {name}", "it does not answer")
        self._note_data(where)
        return where

    @override
    async def _reached(self, name: str) -> FakeMachine:
        return self._reach(name)

    @override
    async def _admitted(self, name: str) -> FakeMachine:
        return self._admit(name)

    @override
    def _address(self, machine: str) -> str:
        return self._network.address(self._machine(machine).stand.place)

    @override
    async def _listening(self, machine: str, hosts: tuple[str, ...]) -> frozenset[HostPort]:
        running = [each for each in self._machine(machine).units.values() if each.state is UnitState.RUNNING]
        ports = {port for each in running for port in self._behave(each.spec).listens}
        return frozenset(HostPort(host, port) for host in hosts for port in ports)

    @override
    async def _ledger(self, machine: str) -> SeatLedger:
        return self._machine(machine).ledger

    @override
    async def _changed(self, machine: str, doing: str, change: Callable[[SeatLedger], tuple[SeatLedger, T]]) -> T:
        del doing
        where = self._machine(machine)
        where.ledger, result = change(where.ledger.admitting(self._fence))
        return result

    def _note_data(self, where: FakeMachine) -> None:
        """What the machine's supervisor does all the time: it sees who has data, and starts again who has it back."""
        for each in where.units.values():
            if each.refused or not each.had_data:
                has_data = self._has_data(where, each)
                each.had_data = each.had_data or has_data
                if each.refused and has_data:
                    self._started(where, each)

    def _users(self, where: FakeMachine, volume: str) -> list[FakeUnit]:
        """The units of a machine that run and have a volume open."""
        path = where.disk.volumes[volume].path
        running = (each for each in where.units.values() if each.state is UnitState.RUNNING)
        return [each for each in running if each.spec.needs is not None and path in each.spec.needs.parents]

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

    def _started(self, where: FakeMachine, unit: FakeUnit) -> None:
        needs = unit.spec.needs
        there = self._has_data(where, unit)
        unit.refused = (
            "" if needs is None else refusal(str(needs), there=there, had_data=unit.had_data, fresh=unit.fresh)
        )
        if unit.refused:
            unit.log += f"{CANNOT_START}: {unit.refused}\n"
            unit.state, unit.pid = UnitState.FAILED, None
            return
        if where.disk.full and unit.spec.needs is not None:
            unit.state, unit.pid, unit.exit_code = UnitState.FAILED, None, 1
            return
        program = self._behave(unit.spec)
        for path in program.writes:
            where.disk.put(path, 1)
        unit.log += f"{BEGINS}\n{program.output}"
        if program.exit_code is None:
            unit.state, unit.pid, unit.exit_code = UnitState.RUNNING, next(self._pids), None
        else:
            unit.state, unit.pid = UnitState.FAILED, None
            unit.ends(program.exit_code)
