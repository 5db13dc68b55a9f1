"""Who uses a folder: processes that have a file of it open, or are in it, found by what the files are, not by names."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from quarterdeck.errors import Unavailable
from quarterdeck.sites.local.processes import processes_of

DEADLINE = 10.0  # seconds
#: A process that was just opening a file while one looked has it open by the next look.
_LOOKS = 2
_BETWEEN = 0.02
_GONE = (FileNotFoundError, ProcessLookupError)
Inode = tuple[int, int]


def uses(folder: Path, marks: Collection[str]) -> bool:
    """Whether a process of the machines with these marks uses a folder."""
    inodes = _inodes(folder)
    return any(_uses(pid, inodes) for pid in _processes(marks))


def end_users(doing: str, folder: Path, marks: Collection[str]) -> None:
    """Kill all processes of the machines with these marks that use a folder which nobody can find any more. Returns
    when none is left. Raises Unavailable when one does not end, or when a stranger writes there, and OSError when it
    cannot be seen what one of them has open.
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
            raise Unavailable(doing, f"process {writers[0]}, which is no machine's, writes to it", "end it")
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
    """Whether it has anything of them open, or stands in one: from there it could open more."""
    return any(each in inodes for _, each in _open(pid)) or _stands_in(pid, inodes)


def _writes(pid: int, inodes: frozenset[Inode]) -> bool:
    """Whether a stranger writes to them: another user's cannot, as the folder lets nobody else in."""
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
