"""Volumes of re-attachable classes move from a machine that does not answer to another one.

Here a volume is a folder, and its place is its machine. It is renamed out of the former machine first, so that nothing
there finds it any more: programs that need it are not started (``unit_files.py``). Processes that still have files of
it open, as on a frozen machine, are killed. Only then it gets its name at the other machine. Each of this is done at
most once, by whichever process comes first, and an interrupted move continues with the next call.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.errors import Conflict, NotFound, PreconditionFailed, Unavailable
from quarterdeck.files import on_disk
from quarterdeck.model.units import Fence, Volume
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.processes import processes_of
from quarterdeck.sites.local.volumes import VolumeFolders


@dataclass(frozen=True, slots=True)
class VolumeHolder:
    """A machine with its volumes."""

    machine: LocalMachine
    disk: VolumeFolders


@dataclass(frozen=True, slots=True, kw_only=True)
class Attaching:
    """Attaches volumes of the ``reattachable`` classes. ``marks`` are those of all machines of the site, any of which
    may have had a volume.
    """

    reattachable: frozenset[str]
    marks: Collection[str]
    fence: Fence | None

    async def attach(self, name: str, here: VolumeHolder, source: VolumeHolder) -> Volume:
        """See Site.attach_volume."""
        doing = f"attaching volume {name} to machine {here.machine.name}"
        owner = here.machine.name
        await here.machine.admit(self.fence)
        has, had = await on_disk(owner, here.disk.folder_of, name), await on_disk(owner, source.disk.folder_of, name)
        if has is not None and had is not None and source.machine.name != owner:
            seen = f"machine {source.machine.name} also has a volume of that name"
            raise Conflict(doing, seen, "find out which of them has the data; nothing was changed")
        if has is None:
            if await on_disk(owner, here.disk.arriving, name) is None:
                await self._take(doing, name, here, source)
            arriving = await on_disk(owner, here.disk.arriving, name)
            if arriving is None:
                raise Conflict(doing, "another process has just taken it")
            await on_disk(owner, end_users, doing, arriving, self.marks)
            await here.machine.admit(self.fence)
            await on_disk(owner, here.disk.settle, name)
        return await on_disk(owner, here.disk.volume, name)

    async def _take(self, doing: str, name: str, here: VolumeHolder, source: VolumeHolder) -> None:
        """Make it impossible to find at its former place."""
        found = await on_disk(source.machine.name, source.disk.class_of, name)
        if found is None:
            raise NotFound(doing, f"machine {source.machine.name} has no such volume")
        if found not in self.reattachable:
            raise PreconditionFailed(doing, f"volumes of storage class {found} are local to their machine")
        if await self._answers(source.machine):
            await source.machine.admit(self.fence)
            folder = await on_disk(source.machine.name, source.disk.folder_of, name)
            if folder is not None and await on_disk(source.machine.name, uses, folder, self.marks):
                raise Conflict(doing, f"machine {source.machine.name} answers, and uses it")
        await on_disk(here.machine.name, here.disk.take, name, found, source.disk)

    @staticmethod
    async def _answers(machine: LocalMachine) -> bool:
        try:
            await machine.reach()
        except Unavailable:
            return False
        return True


# The users of a folder: processes with an open file in it, or with it as working directory, found by the files'
# identity, not by names.

DEADLINE = 10.0  # seconds
#: A process that was just opening a file during one check has it open by the next.
_LOOKS = 2
_BETWEEN = 0.02
_GONE = (FileNotFoundError, ProcessLookupError)
Inode = tuple[int, int]


def uses(folder: Path, marks: Collection[str]) -> bool:
    """Whether a process of the machines with these marks uses a folder."""
    inodes = _inodes(folder)
    return any(_uses(pid, inodes) for pid in _processes(marks))


def end_users(doing: str, folder: Path, marks: Collection[str]) -> None:
    """Kill all processes of the machines with these marks that use a renamed folder. Returns when none is left. Raises
    Unavailable when one does not end, or when another process writes there, and OSError when the open files of one
    cannot be read.
    """
    deadline, clean = time.monotonic() + DEADLINE, 0
    while clean < _LOOKS:
        inodes, machines = _inodes(folder), _processes(marks)
        users = [pid for pid in machines if _uses(pid, inodes)]
        for pid in users:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        writers = [pid for pid in _others(machines) if _writes(pid, inodes)]
        if writers:
            raise Unavailable(doing, f"process {writers[0]}, which belongs to no machine, writes to it", "end it")
        if users and time.monotonic() > deadline:
            raise Unavailable(doing, f"process {users[0]} still uses it after {DEADLINE:.0f} s", "end it")
        clean = 0 if users else clean + 1
        time.sleep(_BETWEEN)


def _processes(marks: Collection[str]) -> set[int]:
    return {each.pid for mark in marks for each in processes_of(mark)}


def _others(machines: Collection[int]) -> Iterator[int]:
    for entry in os.listdir("/proc"):  # noqa: PTH208 - asked often: no Path for each
        if entry.isdigit() and int(entry) not in machines and int(entry) != os.getpid():
            yield int(entry)


def _inodes(folder: Path) -> frozenset[Inode]:
    found = {_inode(folder)}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(FileNotFoundError):
                found.add(_inode(Path(parent, name)))
    return frozenset(found)


def _inode(path: Path) -> Inode:
    seen = path.lstat()
    return seen.st_dev, seen.st_ino


def _uses(pid: int, inodes: frozenset[Inode]) -> bool:
    """Whether it has any of them open, or works in one: from there it could open more."""
    return any(each in inodes for _, each in _open(pid)) or _stands_in(pid, inodes)


def _writes(pid: int, inodes: frozenset[Inode]) -> bool:
    """Whether a process outside the machines writes to them: the folder keeps other users out."""
    try:
        return any(each in inodes and _for_writing(pid, number) for number, each in _open(pid))
    except PermissionError:
        return False


def _open(pid: int) -> Iterator[tuple[str, Inode]]:
    """The files that a process has open; none of one that has ended. Raises PermissionError."""
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
    except _GONE:
        return
    for number in numbers:
        with suppress(*_GONE):
            seen = os.stat(f"/proc/{pid}/fd/{number}")  # noqa: PTH116
            yield number, (seen.st_dev, seen.st_ino)


def _stands_in(pid: int, inodes: frozenset[Inode]) -> bool:
    try:
        seen = os.stat(f"/proc/{pid}/cwd")  # noqa: PTH116
    except _GONE:
        return False
    return (seen.st_dev, seen.st_ino) in inodes


def _for_writing(pid: int, number: str) -> bool:
    try:
        lines = Path(f"/proc/{pid}/fdinfo/{number}").read_text().splitlines()
    except _GONE:
        return False
    flags = next(int(line.split()[1], 8) for line in lines if line.startswith("flags:"))
    return flags & os.O_ACCMODE != os.O_RDONLY
