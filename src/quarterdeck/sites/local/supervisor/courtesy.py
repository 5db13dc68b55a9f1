"""Low priority of starting units, so that they do not slow down the host's other units. Runs inside supervisord."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: The nice value of a start.
NICE = 10
#: Seconds between two checks of how much processor time a unit has asked for (got, or waited for); its start is
#: complete once that was less than this share of a core in between, and in any case after a while.
LOOK = 0.5
CALM = 0.3
LONGEST = 15.0
#: Seconds between two attempts: the kernel accepts one change in 0.1 s, from the whole host.
AGAIN = 0.03


@dataclass(slots=True)
class _Start:
    began: float
    looked: float
    after: int
    asked: float = 0.0
    over: bool = False
    set: int | None = 0

    @property
    def wanted(self) -> int:
        """The desired nice value."""
        return self.after if self.over else NICE


class Courtesy:
    """Lowers the share of the processor of starting units, for as long as their start takes, or until they must serve;
    and that of units which always yield.

    A start takes all the processor time that it can get, from running units on the same host. Each unit is a session of
    its own and so an autogroup (sched(7)), whose nice value can be raised and lowered again without any rights. Where
    the kernel has no autogroups nothing happens.
    """

    def __init__(self) -> None:
        self._starts: dict[int, _Start] = {}
        self._settled: dict[int, int] = {}

    def begins(self, pid: int, after: int = 0) -> None:
        """The process of a unit has just been created. ``after``: its nice value after the start."""
        self._settled = {each: nice for each, nice in self._settled.items() if Path("/proc", str(each)).exists()}
        self._settled.pop(pid, None)  # that was another process
        now = time.monotonic()
        self._starts[pid] = _Start(began=now, looked=now, after=after)

    def settles(self, pid: int, nice: int) -> None:
        """It has this nice value from now on, whether its start is complete or not."""
        if pid not in self._starts:
            if self._settled.get(pid) == nice:
                return  # the kernel accepts few changes
            now = time.monotonic()
            self._starts[pid] = _Start(began=now, looked=now, after=nice, set=self._settled.get(pid))
        self._starts[pid].after, self._starts[pid].over = nice, True
        self.look()

    def look(self) -> float | None:
        """Make the due changes; returns seconds until the next call (None: nothing to do)."""
        now = time.monotonic()
        for pid, start in tuple(self._starts.items()):
            if not start.over and now - start.looked >= LOOK:
                asked = _asked_for(pid)
                calm = asked - start.asked < CALM * (now - start.looked)
                start.looked, start.asked = now, asked
                if calm or now - start.began > LONGEST:
                    start.over = True
            if start.set != start.wanted and _leads_a_session(pid) and _set_nice(pid, start.wanted):
                start.set = start.wanted
            if start.over and start.set == start.wanted:
                self._settled[pid] = start.wanted
                del self._starts[pid]
        if not self._starts:
            return None
        return AGAIN if any(start.set != start.wanted for start in self._starts.values()) else LOOK / 2


def _set_nice(pid: int, nice: int) -> bool:
    """Whether it is set, or never can be; else it must be tried again."""
    try:
        Path("/proc", str(pid), "autogroup").write_text(str(nice))
    except OSError as error:
        return error.errno != errno.EAGAIN  # else it has ended, or this kernel has no autogroups
    return True


def _asked_for(pid: int) -> float:
    """Seconds for which its threads have run, or waited for a processor; 0 when it has ended."""
    total = 0
    for each in Path("/proc", str(pid), "task").glob("*/schedstat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            ran, waited, _ = each.read_bytes().split()
            total += int(ran) + int(waited)
    return total / 1e9


def _leads_a_session(pid: int) -> bool:
    """Not yet right after the fork: then it still is in supervisord's own autogroup. True when it has ended."""
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return True
