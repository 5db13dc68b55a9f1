"""The kernel's table of processes, read once for each question. Imports little: first processes of machines use it."""

from __future__ import annotations

import os
from collections.abc import Iterator


def pids() -> Iterator[int]:
    """The numbers of all processes."""
    return (int(entry) for entry in os.listdir("/proc") if entry.isdigit())  # noqa: PTH208 - pathlib would double the time


def stat_of(process: int | str) -> list[bytes] | None:
    """The fields of proc_pid_stat(5) from the state on (there field 3, here 0) of a process, or of a thread
    (``PID/task/TID``); None when it has gone.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123 - as above
            stat = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return stat[stat.rindex(b")") + 2 :].split()  # the name before may hold anything


def children() -> list[int]:
    """The processes whose parent is this one."""
    me = str(os.getpid()).encode()
    return [pid for pid in pids() if (fields := stat_of(pid)) is not None and fields[1] == me]
