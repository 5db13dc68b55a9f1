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


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table. ``state`` is that of proc_pid_stat(5): R, S, D, T, Z, ...

    ``started``, in clock ticks since the boot, tells it from a later process with the same number.
    """

    pid: int
    parent: int
    state: str
    started: int

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
    members = {pid for pid in table if wanted in _environment(pid)}
    while True:
        more = {pid for pid, each in table.items() if each.parent in members} - members
        if not more:
            break
        members |= more
    members.discard(os.getpid())
    return tuple(table[pid] for pid in sorted(members) if table[pid].state not in "ZX")


def runs_job(mark: str) -> bool:
    """Whether any job runs on a machine."""
    return any(entry.startswith(f"{JOB}=".encode()) for each in processes_of(mark) for entry in _environment(each.pid))


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
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the time
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            fields = stat[stat.rindex(b")") + 2 :].split()  # the name before may hold anything
            found.append(Process(int(entry), int(fields[1]), fields[0].decode(), int(fields[19])))
    return found


def _environment(pid: int) -> list[bytes]:
    try:
        return Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []  # gone, or somebody else's
