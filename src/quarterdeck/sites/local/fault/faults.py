"""Faults of labs and drills on the machines of a local site. Each fault has a guard: see ``fault_guard``."""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from typing_extensions import override

from quarterdeck import clocks
from quarterdeck.errors import Conflict, NotFound, Unavailable
from quarterdeck.files import on_disk
from quarterdeck.linux.calls import stat_of
from quarterdeck.model.faults import Fault, FaultKind
from quarterdeck.model.site_facts import SiteFacts
from quarterdeck.sites.base.faults import FaultySite, Made, needs_well
from quarterdeck.sites.local.fault.fault_book import FaultBook, MadeFault, aside_of, undo
from quarterdeck.sites.local.fault.guard import FaultGuard
from quarterdeck.sites.local.fault.strace import TRACED, cannot_trace
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.machines import LocalMachines
from quarterdeck.sites.local.settings import LocalStorageClass, MachineEntry
from quarterdeck.sites.local.site_files import keep_stand
from quarterdeck.sites.local.volumes import set_aside
from quarterdeck.sites.port import Switches

_ONE_CLOCK = (
    "all its machines share this host's wall clock, which programs read without a system call (vDSO), and which "
    "no time namespace changes"
)

#: Longest time in seconds for which a unit is stopped while a file of it is altered, and for it to stop.
_STANDING = 10.0
_STOPPING = 3.0


async def _until_still(pid: int) -> bool:
    """Whether all threads of a process have stopped in time."""
    clock = asyncio.get_running_loop().time
    end = clock() + _STOPPING
    while not all_stopped(pid):
        if clock() > end:
            return False
        await asyncio.sleep(0.01)
    return True


def _keep(folder: Path, stand: MachineEntry) -> None:
    """Record the place of a machine, also of an unused one: its guard finds it only by that."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    keep_stand(folder, stand)


class LocalFaults(LocalMachines, FaultySite[LocalMachine, LocalStorageClass, FaultGuard], Switches):
    """The port ``Faults`` for the machines of a local site."""

    @cached_property
    def _book(self) -> FaultBook:
        """All faults at the site, of any process."""
        return FaultBook(self._site_folder / "faults")

    @override
    async def facts(self, below: str = "") -> SiteFacts:
        """See Site. A fault whose time is over is undone by the next observer."""
        if self._book.folder.is_dir():
            for made in await on_disk(self.name, self._book.all):
                if made.forgotten and made.fault.machine in self._machines:
                    with suppress(
                        Unavailable
                    ):  # then the machine's current state is reported, and the next observation tries again
                        await self._undo(made)
        return await super().facts(below)

    @property
    @override
    def whole_hosts(self) -> bool:
        return False

    @override
    def cannot_make(self, kind: FaultKind) -> str:
        if kind in (FaultKind.CUT, FaultKind.DEAFEN):
            return self._isolation.cannot_cut
        if kind in TRACED:
            return cannot_trace()
        return _ONE_CLOCK if kind is FaultKind.SET_CLOCK else ""

    @override
    async def _require_well(self, fault: Fault, doing: str) -> None:
        with needs_well(doing):
            where = await self._reached(fault.machine)
        if fault.unit:
            await self._pid(where, fault.unit, doing)

    @override
    async def _begin(self, fault: Fault, seconds: float, doing: str) -> None:
        where = self._machine(fault.machine)
        written = await self._written_down(where, fault, seconds, doing)
        try:
            await on_disk(where.name, _keep, where.folder, where.stand)
            guard = await FaultGuard.start(self._home, self._isolation.name, self.name, where.name, doing)
        except BaseException:
            await on_disk(where.name, self._book.end, where.name)
            raise
        self._made[where.name] = Made(fault, guard)
        try:
            await self._make(where, written, seconds)
        except BaseException:
            await self.undo_fault(fault)
            raise

    @override
    async def _end(self, made: Made[FaultGuard]) -> str:
        fault = made.fault
        try:
            left = await made.hold.end()
        except Unavailable:  # it was killed: then this process undoes it
            left = ""
        written = await on_disk(fault.machine, self._book.of, fault.machine)
        if written is not None and written.fault == fault:
            left = await self._undo(written)
        return left

    @override
    async def faults_made(self) -> tuple[Fault, ...]:
        return tuple(each.fault for each in await on_disk(self.name, self._book.all))

    @override
    async def kill_machine(self, machine: str) -> None:
        await self._machine(machine).cut_power()

    @override
    async def boot_machine(self, machine: str) -> None:
        await self._machine(machine).boot()

    @override
    async def freeze_machine(self, machine: str) -> None:
        await self._machine(machine).freeze()

    @override
    async def thaw_machine(self, machine: str) -> None:
        await self._machine(machine).thaw()

    async def _written_down(self, where: LocalMachine, fault: Fault, seconds: float, doing: str) -> MadeFault:
        volume = aside = ""
        if fault.kind is FaultKind.LOSE_DATA:
            there = await on_disk(where.name, self._volumes(where.name).folder_of, fault.volume)
            if there is None:
                raise NotFound(doing, f"machine {where.name} has no volume of that name")
            volume, aside = str(there), str(aside_of(there))
        until, boot = clocks.steady() + seconds, clocks.boot()
        made = MadeFault(fault=fault, until=until, boot=boot, volume=volume, aside=aside)
        await on_disk(where.name, self._book.begin, made)
        return made

    async def _make(self, where: LocalMachine, made: MadeFault, seconds: float) -> None:
        unit = made.fault.unit
        match made.fault.kind:
            case FaultKind.HANG_UNIT:
                await where.ask(lambda client: client.hold(unit, seconds))
            case FaultKind.POWER_OFF:
                await where.cut_power()
            case FaultKind.FREEZE:
                await where.freeze()
            case FaultKind.CUT:
                await where.unplug()
            case FaultKind.DEAFEN:
                await where.deafen()
            case FaultKind.LOSE_DATA:
                # Its program must not start in between: then it would find its data.
                await on_disk(where.name, set_aside, Path(made.volume), Path(made.aside))
                if unit:
                    await self._kill_unit(where, unit, f"making a fault ({made.fault.words})")
            case FaultKind.SLOW_DISK | FaultKind.FILL_DISK:
                pass  # its guard has made it: the tracers must be its children
            case _:
                raise NotImplementedError(made.fault.kind)

    @override
    async def _corrupt(self, fault: Fault, doing: str) -> None:
        """Alter a text while its unit is stopped: the file is mapped into memory (bbolt), so that the unit has it
        altered then as well. If this process dies, the machine resumes the unit.
        """
        where = self._machine(fault.machine)
        written = await on_disk(where.name, self._book.of, where.name)
        if written is not None:
            raise Conflict(doing, written.fault.words, "one fault at a time on each machine")
        volume = await on_disk(where.name, self._volumes(where.name).folder_of, fault.volume)
        if volume is None or not await on_disk(where.name, has_text, volume / fault.path, fault.text):
            raise NotFound(doing, f"that text is not in {fault.path} of volume {fault.volume}")
        pid = await self._pid(where, fault.unit, doing)
        await where.ask(lambda client: client.hold(fault.unit, _STANDING))
        try:
            if not await _until_still(pid) or await self._pid(where, fault.unit, doing) != pid:
                raise Conflict(doing, "it does not stop")
            await on_disk(where.name, alter_text, volume / fault.path, fault.text)
        finally:
            await where.ask(lambda client: client.let_go(fault.unit))

    async def _undo(self, made: MadeFault) -> str:
        name = made.fault.machine
        left = await undo(self._machine(name), made)
        await on_disk(name, self._book.end, name)
        return left

    @override
    async def _kill(self, fault: Fault, doing: str) -> None:
        await self._kill_unit(self._machine(fault.machine), fault.unit, doing)

    async def _kill_unit(self, where: LocalMachine, unit: str, doing: str) -> None:
        """Kill its process without its supervisor, and no other process that may have its number by now."""
        pid = await self._pid(where, unit, doing)
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError as error:
            raise Conflict(doing, "it has just ended by itself") from error
        try:
            if await self._pid(where, unit, doing) != pid:
                raise Conflict(doing, "it was just restarted")
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)

    async def _pid(self, where: LocalMachine, unit: str, doing: str) -> int:
        pid = next((each.pid for each in await where.units() if each.name == unit), None)
        if pid is None:
            raise NotFound(doing, f"unit {unit} does not run on machine {where.name}")
        return pid


# Replacing a text in a file by another one of its length, while its user is stopped. Calls may block.

#: The replacement of each of its characters; of all others one of the two.
_OTHER = (b"-", b"+")


def has_text(path: Path, text: str) -> bool:
    """Whether a file has that text, which must not be empty."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(text.encode()) >= 0
    except (FileNotFoundError, ValueError):  # it does not exist, or is empty
        return False


def alter_text(path: Path, text: str) -> None:
    """Replace each occurrence by another text of its length, and sync it to the disk. Raises OSError."""
    wanted = text.encode()
    other = bytes(_OTHER[each == _OTHER[0][0]][0] for each in wanted)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        for at in list(_occurrences(content, wanted)):
            content[at : at + len(wanted)] = other
        content.flush()


def _occurrences(content: mmap.mmap, wanted: bytes) -> Iterator[int]:
    at = content.find(wanted)
    while at >= 0:
        yield at
        at = content.find(wanted, at + len(wanted))


def all_stopped(pid: int) -> bool:
    """Whether no thread of a process runs (proc(5): T, or it is tracing-stopped)."""
    threads = Path("/proc", str(pid), "task").iterdir()
    found = (stat_of(f"{pid}/task/{each.name}") for each in threads)
    return all(fields[0] in b"Tt" for fields in found if fields is not None)
