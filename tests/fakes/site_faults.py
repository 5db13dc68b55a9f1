"""What tests and drills do to the machines of a site in memory."""

from __future__ import annotations

import asyncio

from typing_extensions import override

from fakes.site_machine import FakeMachine, FakeUnit
from fakes.site_machines import FakeMachines, Undoing
from quarterdeck.errors import Conflict, NotFound
from quarterdeck.model.faults import Fault, FaultKind
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.sites.base.faults import Made, needs_well
from quarterdeck.sites.port import Faults, Switches

_CAN = frozenset(
    {
        FaultKind.KILL_UNIT,
        FaultKind.HANG_UNIT,
        FaultKind.POWER_OFF,
        FaultKind.FREEZE,
        FaultKind.LOSE_DATA,
        FaultKind.SLOW_DISK,
        FaultKind.FILL_DISK,
        FaultKind.CORRUPT,
    }
)


class FakeFaults(FakeMachines, Faults, Switches):
    """The port ``Faults``. Nobody can see a fake unit stand still, or its disk be slow, but for that it is told by
    ``faults_made``.
    """

    @property
    @override
    def whole_hosts(self) -> bool:
        return False

    @override
    def cannot_make(self, kind: FaultKind) -> str:
        return "" if kind in _CAN else "it is in memory alone"

    @override
    async def _require_well(self, fault: Fault, doing: str) -> None:
        if fault.machine in self._made:
            raise Conflict(doing, self._made[fault.machine].fault.words, "one fault at a time on each machine")
        with needs_well(doing):
            where = self._reach(fault.machine)
        if fault.unit:
            unit = where.units.get(fault.unit)
            if unit is None or unit.state is not UnitState.RUNNING:
                raise NotFound(doing, f"unit {fault.unit} does not run on machine {fault.machine}")
        if fault.kind is FaultKind.LOSE_DATA and fault.volume not in where.disk.volumes:
            raise NotFound(doing, f"machine {fault.machine} has no volume of that name")

    @override
    async def _kill(self, fault: Fault, doing: str) -> None:
        self.crash(fault.machine, fault.unit)

    @override
    async def _corrupt(self, fault: Fault, doing: str) -> None:
        disk = self._machine(fault.machine).disk
        volume = disk.volumes.get(fault.volume)
        path = volume.path / fault.path if volume is not None else None
        if path is None or fault.text not in disk.texts.get(path, ""):
            raise NotFound(doing, f"that text is not in {fault.path} of volume {fault.volume}")
        disk.texts[path] = disk.texts[path].replace(fault.text, "-" * len(fault.text))

    @override
    async def _begin(self, fault: Fault, seconds: float, doing: str) -> None:
        where = self._machine(fault.machine)
        aside: dict[str, int] = {}
        if fault.kind is FaultKind.POWER_OFF:
            await self.kill_machine(fault.machine)
        elif fault.kind is FaultKind.FREEZE:
            await self.freeze_machine(fault.machine)
        elif fault.kind is FaultKind.LOSE_DATA:
            aside = where.disk.sizes(fault.volume)
            for each in aside:
                self.take_file(fault.machine, fault.volume, each)
            if fault.unit:
                self.crash(fault.machine, fault.unit)
        elif fault.kind is FaultKind.FILL_DISK:
            self._fill(where, full=True)
        timer = asyncio.get_running_loop().call_later(seconds, self._over, fault.machine)
        self._made[fault.machine] = Made(fault, Undoing(timer, aside))

    def _over(self, machine: str) -> None:
        self._undo(self._made.pop(machine))

    def _fill(self, where: FakeMachine, *, full: bool) -> None:
        """Have all programs with a volume end, and again when they are started; or have them started."""
        where.disk.full = full
        for each in where.units.values():
            if each.spec.needs is not None and each.wanted and each.state in (UnitState.RUNNING, UnitState.FAILED):
                self._started(where, each)

    @override
    async def faults_made(self) -> tuple[Fault, ...]:
        return tuple(each.fault for each in self._made.values())

    @override
    async def _end(self, made: Made[Undoing]) -> str:
        made.hold.timer.cancel()
        return self._undo(made)

    def _undo(self, made: Made[Undoing]) -> str:
        fault, where = made.fault, self._machine(made.fault.machine)
        if fault.kind is FaultKind.POWER_OFF:
            self._boot(where)
        elif fault.kind is FaultKind.FREEZE:
            self._thaw(where)
        elif fault.kind is FaultKind.FILL_DISK:
            self._fill(where, full=False)
        elif fault.kind is FaultKind.LOSE_DATA:
            if fault.volume not in where.disk.volumes or where.disk.sizes(fault.volume):
                return f"the former content of volume {fault.volume} is kept"
            for name, size in made.hold.aside.items():
                self.put_file(fault.machine, fault.volume, name, size)
        return ""

    @override
    async def kill_machine(self, machine: str) -> None:
        where = self._machine(machine)
        self._note_data(where)
        where.state = MachineState.DOWN
        for each in where.units.values():
            each.state, each.pid, each.refused = UnitState.STOPPED, None, ""

    @override
    async def boot_machine(self, machine: str) -> None:
        self._boot(self._machine(machine))

    def _boot(self, where: FakeMachine) -> None:
        if where.state is MachineState.DOWN:
            where.state = MachineState.UP
            for name, each in where.units.items():
                again = where.units[name] = FakeUnit(
                    each.spec, wanted=each.wanted, log=each.log, had_data=each.had_data
                )
                if again.wanted:
                    self._started(where, again)

    @override
    async def freeze_machine(self, machine: str) -> None:
        where = self._machine(machine)
        if where.state is MachineState.UP:
            where.state = MachineState.UNREACHABLE

    @override
    async def thaw_machine(self, machine: str) -> None:
        self._thaw(self._machine(machine))

    def _thaw(self, where: FakeMachine) -> None:
        if where.state is MachineState.UNREACHABLE:
            where.state = MachineState.UP
