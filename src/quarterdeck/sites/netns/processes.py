"""Which processes are in a namespace, and how to end exactly those."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from quarterdeck.errors import TimedOut


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process id that cannot be mistaken for a later process with the same number. ``started`` is in clock
    ticks since boot.
    """

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The process with that number now; None if there is none, or if it has ended but is not yet reaped."""
        fields = _stat(pid)
        return cls(pid, int(fields[19])) if fields and fields[0] not in "ZX" else None

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
            if descriptor is not None and not _ended([descriptor], deadline):
                raise TimedOut("waiting for a process to end", f"process {self.pid} still runs")

    @contextlib.contextmanager
    def _pidfd(self) -> Iterator[int | None]:
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            yield descriptor if self.alive() else None
        except ProcessLookupError:
            return  # it ended meanwhile
        finally:
            os.close(descriptor)


def namespace_id(pid: int | str, kind: str) -> int | None:
    """The inode number of a process's namespace (``kind``: ``user`` or ``net``); None if it may not be known."""
    try:
        return Path(f"/proc/{pid}/ns/{kind}").stat().st_ino
    except OSError:  # it ended, or belongs to somebody else
        return None


def members(kind: str, inode: int) -> tuple[int, ...]:
    """The numbers of all running processes in that namespace, also those whose parents have forgotten them."""
    numbers = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())  # noqa: PTH208
    return tuple(pid for pid in numbers if namespace_id(pid, kind) == inode and ProcessId.of(pid) is not None)


def kill_members(kind: str, inode: int, *, spare: int, deadline: float) -> None:
    """SIGKILL every process in that namespace but ``spare``, and those that they start meanwhile, until none is left.

    ``deadline`` is in monotonic seconds; raises TimedOut when something refuses to die.
    """
    while victims := [pid for pid in members(kind, inode) if pid != spare]:
        with contextlib.ExitStack() as stack:
            killed = []
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):
                    descriptor = os.pidfd_open(pid)
                    stack.callback(os.close, descriptor)
                    # The number may have passed on to a stranger before it was opened, but not after.
                    if namespace_id(pid, kind) == inode:
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                        killed.append(descriptor)
            if not _ended(killed, deadline):
                raise TimedOut("ending the processes of the lab", f"some of {victims} do not end")


def _ended(descriptors: list[int], deadline: float) -> bool:
    """Whether the processes behind these pidfds have all ended before ``deadline``."""
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


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on (proc_pid_stat(5): field 3 is index 0); empty if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()
