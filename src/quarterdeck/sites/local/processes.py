"""All processes of a machine, found by a mark in their environment and by descent, including those that left their
parents.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

from quarterdeck.errors import TimedOut
from quarterdeck.linux.processes import Process, ProcessId, all_processes

MARK = "QUARTERDECK_MACHINE"
JOB = "QUARTERDECK_JOB"
DEADLINE = 10.0  # seconds
_REPLACED = 1.0  # seconds that execve(2) may take, during which a process seems to have no environment
_SURELY = 10  # checks that find arguments and no environment until there is none: two reads are not of one moment


def processes_of(mark: str, variable: str = MARK) -> tuple[Process, ...]:
    """The living processes whose environment says that ``variable`` is ``mark``, and all their descendants.

    The caller is never among them.
    """
    table = {each.pid: each for each in all_processes()}
    wanted = f"{variable}={mark}".encode()
    members = {pid for pid, each in table.items() if wanted in _environment(each)}
    while True:
        more = {pid for pid, each in table.items() if each.parent in members} - members
        if not more:
            break
        members |= more
    members.discard(os.getpid())
    return tuple(table[pid] for pid in sorted(members) if table[pid].lives)


def runs_job(mark: str) -> bool:
    """Whether any job runs on a machine."""
    return any(_in_job(each) for each in processes_of(mark))


def _in_job(process: Process) -> bool:
    return any(entry.startswith(f"{JOB}=".encode()) for entry in _environment(process))


def kill_all(mark: str, variable: str = MARK) -> None:
    """Kill all processes of a machine (or of a job, by its own ``variable``) at once: all are stopped before the first
    is killed, so that none sees another die. Returns when they have ended; raises TimedOut.
    """
    deadline = time.monotonic() + DEADLINE
    freeze_all(mark, variable)
    killed: set[ProcessId] = set()
    while found := (*processes_of(mark, variable), *_still_there(killed)):
        _signal(found, signal.SIGKILL)
        killed |= {each.identity for each in found}
        _pause(deadline, "killing a machine", found)


def freeze_all(mark: str, variable: str = MARK) -> None:
    """Stop all processes of a machine; returns when they have stopped; raises TimedOut.

    One that sleeps in the kernel (D) stops before it continues. It may sleep for as long as the machine is frozen: in
    vfork(2), for a child that was stopped.
    """
    deadline = time.monotonic() + DEADLINE
    signalled: set[ProcessId] = set()
    while moving := tuple(
        each
        for each in processes_of(mark, variable)
        if each.state not in "Tt" and not (each.state == "D" and each.identity in signalled)
    ):
        _signal(moving, signal.SIGSTOP)
        signalled |= {each.identity for each in moving}
        _pause(deadline, "freezing a machine", moving)


def thaw_all(mark: str) -> None:
    """Resume all processes of a machine."""
    _signal(processes_of(mark), signal.SIGCONT)


def _still_there(killed: Collection[ProcessId]) -> tuple[Process, ...]:
    """The killed processes that have not ended yet: a dying process has lost its mark, and its parent with it."""
    if not killed:
        return ()
    return tuple(each for each in all_processes() if each.identity in killed and each.lives)


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


def _environment(process: Process) -> list[bytes]:
    """Empty when it has ended, or belongs to another user. While the kernel replaces a process's program it shows
    neither its environment nor its arguments: it has none only when repeated reads show its arguments alone.
    """
    if not process.has_memory:
        return []
    folder = Path("/proc", str(process.pid))
    deadline, without = time.monotonic() + _REPLACED, 0
    try:
        while not (environment := (folder / "environ").read_bytes()):
            without = without + 1 if (folder / "cmdline").read_bytes() else 0
            now = Process.of(process.pid)
            if now is None or not now.has_memory or without == _SURELY or time.monotonic() > deadline:
                break
            time.sleep(0.0005)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []
    return environment.split(b"\0")
