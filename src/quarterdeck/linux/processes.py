"""Processes that cannot be confused with later ones of the same id, and their termination."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from quarterdeck.errors import TimedOut
from quarterdeck.linux.calls import pids, stat_of

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of the kernel's sched.h


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process id that no other process has or will have. ``started`` is in clock ticks since boot."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The current process with that id; None if there is none, or if it has ended but is not yet reaped."""
        found = Process.of(pid)
        return cls(pid, found.started) if found is not None and found.lives else None

    def alive(self) -> bool:
        """Whether the very same process still runs."""
        return ProcessId.of(self.pid) == self

    def kill(self) -> None:
        """SIGKILL it, if it is still the same process."""
        with self._pidfd() as descriptor:
            if descriptor is not None:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)

    def wait(self, deadline: float) -> None:
        """Wait until it has ended; raises TimedOut at ``deadline`` (monotonic seconds)."""
        with self._pidfd() as descriptor:
            if descriptor is not None and not all_ended([descriptor], deadline):
                raise TimedOut("waiting for a process to end", f"process {self.pid} still runs")

    @contextmanager
    def _pidfd(self) -> Iterator[int | None]:
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            yield descriptor if self.alive() else None
        except ProcessLookupError:
            return  # it has ended since
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table. ``state`` is that of proc_pid_stat(5): R, S, D, T, Z, ...

    ``started``: see ``ProcessId``. ``has_memory``: it is neither a thread of the kernel nor dead.
    """

    pid: int
    parent: int
    state: str
    started: int
    has_memory: bool

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The process as it is now; None when it does not exist."""
        fields = stat_of(pid)
        if fields is None:
            return None
        state = fields[0].decode()
        has_memory = state not in "ZX" and not int(fields[6]) & _KERNEL_THREAD
        return cls(pid, int(fields[1]), state, int(fields[19]), has_memory)

    @property
    def lives(self) -> bool:
        """Whether it has not ended."""
        return self.state not in "ZX"

    @property
    def identity(self) -> ProcessId:
        """A value that no other process has."""
        return ProcessId(self.pid, self.started)


def all_processes() -> list[Process]:
    """All processes, also those that have ended and are not yet reaped."""
    return [each for pid in pids() if (each := Process.of(pid)) is not None]


def all_ended(descriptors: Collection[int], deadline: float) -> bool:
    """Whether the processes behind these pidfds have all ended before ``deadline`` (monotonic seconds). Blocks."""
    poll = select.poll()
    waiting = set(descriptors)
    for descriptor in waiting:
        poll.register(descriptor, select.POLLIN)
    while waiting:
        events = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not events:
            return False
        for descriptor, _event in events:
            poll.unregister(descriptor)
            waiting.discard(descriptor)
    return True
