"""All processes of a machine, found by a mark in their environment and by descent, also those that fled."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.errors import TimedOut

MARK = "QUARTERDECK_MACHINE"
JOB = "QUARTERDECK_JOB"
DEADLINE = 10.0  # seconds
_REPLACED = 1.0  # seconds that a process may take for execve(2), in which it seems to have no environment
_SURELY = 10  # looks that find arguments and no environment until there is none: two reads are not of one moment
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of the kernel's sched.h


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table. ``state`` is that of proc_pid_stat(5): R, S, D, T, Z, ...

    ``started``, in clock ticks since the boot, tells it from a later process with the same number. ``has_memory``:
    it is neither a thread of the kernel nor dead.
    """

    pid: int
    parent: int
    state: str
    started: int
    has_memory: bool

    @property
    def identity(self) -> tuple[int, int]:
        """What no other process has or will have."""
        return self.pid, self.started


def processes_of(mark: str, variable: str = MARK) -> tuple[Process, ...]:
    """The living processes whose environment says that ``variable`` is ``mark``, and all their descendants.

    The caller is never among them.
    """
    table = {each.pid: each for each in _table()}
    wanted = f"{variable}={mark}".encode()
    members = {pid for pid, each in table.items() if wanted in _environment(each)}
    while True:
        more = {pid for pid, each in table.items() if each.parent in members} - members
        if not more:
            break
        members |= more
    members.discard(os.getpid())
    return tuple(table[pid] for pid in sorted(members) if table[pid].state not in "ZX")


def runs_job(mark: str) -> bool:
    """Whether any job runs on a machine."""
    return any(_in_job(each) for each in processes_of(mark))


def _in_job(process: Process) -> bool:
    return any(entry.startswith(f"{JOB}=".encode()) for entry in _environment(process))


def kill_all(mark: str, variable: str = MARK) -> None:
    """Kill all processes of a machine (or of a job, by its own ``variable``) at once: all are stopped before the first
    is killed, so that none sees another die. Returns when they are gone; raises TimedOut.
    """
    deadline = time.monotonic() + DEADLINE
    freeze_all(mark, variable)
    killed: set[tuple[int, int]] = set()
    while found := (*processes_of(mark, variable), *_still_there(killed)):
        _signal(found, signal.SIGKILL)
        killed |= {each.identity for each in found}
        _pause(deadline, "killing a machine", found)


def freeze_all(mark: str, variable: str = MARK) -> None:
    """Stop all processes of a machine where they stand; returns when they stand still; raises TimedOut.

    One that sleeps in the kernel (D) stops before it runs on. It may sleep for as long as the machine is frozen: in
    vfork(2), for a child that was stopped.
    """
    deadline = time.monotonic() + DEADLINE
    told: set[tuple[int, int]] = set()
    while moving := tuple(
        each
        for each in processes_of(mark, variable)
        if each.state not in "Tt" and not (each.state == "D" and each.identity in told)
    ):
        _signal(moving, signal.SIGSTOP)
        told |= {each.identity for each in moving}
        _pause(deadline, "freezing a machine", moving)


def thaw_all(mark: str) -> None:
    """Let all processes of a machine go on."""
    _signal(processes_of(mark), signal.SIGCONT)


def _still_there(killed: Collection[tuple[int, int]]) -> tuple[Process, ...]:
    """Those of the killed that have not ended yet: a dying process has lost its mark, and its parent with it."""
    if not killed:
        return ()
    return tuple(each for each in _table() if each.identity in killed and each.state not in "ZX")


def _pause(deadline: float, doing: str, left: tuple[Process, ...]) -> None:
    if time.monotonic() > deadline:
        pids = ", ".join(str(each.pid) for each in left)
        raise TimedOut(doing, f"still there after {DEADLINE:.0f} s: processes {pids}")
    time.sleep(0.001)


def _signal(processes: tuple[Process, ...], number: signal.Signals) -> None:
    for each in processes:
        try:
            os.kill(each.pid, number)
        except ProcessLookupError:
            continue


def _table() -> list[Process]:
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())  # noqa: PTH208 - pathlib would double the time
    return [each for pid in pids if (each := _seen(pid)) is not None]


def stat_of(folder: Path) -> list[bytes] | None:
    """The fields of proc_pid_stat(5) of a process or thread, by its folder in /proc, from its state on; None when it
    has gone.
    """
    try:
        stat = (folder / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return stat[stat.rindex(b")") + 2 :].split()  # the name before may hold anything


def _seen(pid: int) -> Process | None:
    """The process as it is now; None when there is none."""
    fields = stat_of(Path("/proc", str(pid)))
    if fields is None:
        return None
    state = fields[0].decode()
    has_memory = state not in "ZX" and not int(fields[6]) & _KERNEL_THREAD
    return Process(pid, int(fields[1]), state, int(fields[19]), has_memory)


def _environment(process: Process) -> list[bytes]:
    """Nothing when it has gone, or is somebody else's. While the kernel puts another program in a process's place it
    shows neither its environment nor its arguments: it has none only when its arguments alone are seen again and again.
    """
    if not process.has_memory:
        return []
    folder = Path("/proc", str(process.pid))
    deadline, without = time.monotonic() + _REPLACED, 0
    try:
        while not (environment := (folder / "environ").read_bytes()):
            without = without + 1 if (folder / "cmdline").read_bytes() else 0
            now = _seen(process.pid)
            if now is None or not now.has_memory or without == _SURELY or time.monotonic() > deadline:
                break
            time.sleep(0.0005)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []
    return environment.split(b"\0")
