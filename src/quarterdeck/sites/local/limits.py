"""Limits of this host that many programs share, and that a local site reaches first."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from quarterdeck.errors import PreconditionFailed
from quarterdeck.linux.calls import inotify_instance
from quarterdeck.sites.kernel import PER_PLANE, PER_REPLICA

_MORE_INSTANCES = "raise the limits of files: sysctl -w fs.inotify.max_user_instances=1024, and ulimit -n 4096"
_MORE_THREADS = "raise the limits of processes: ulimit -u, and TasksMax= of the systemd unit or slice that this runs in"
#: Seen from inside a container: its own group.
_CGROUP = Path("/sys/fs/cgroup")
#: Threads that the programs of a replica have at least, and other programs of a plane: about a dozen each.
THREADS_PER_REPLICA = 48
THREADS_PER_PLANE = 40


def available_memory() -> int:
    """Bytes of memory that new programs can have before others suffer, as the kernel estimates it (proc(5)). The limit
    of a control group counts too, as far as this process can see it.
    """
    line = next(each for each in Path("/proc/meminfo").read_text().splitlines() if each.startswith("MemAvailable:"))
    host = int(line.split()[1]) * 1024
    try:
        limit, used = (int((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):
        return host  # no own control group, or one without a limit ("max")
    return min(host, max(0, limit - used))


def require_limits(doing: str, replicas: int) -> str:
    """What this user may still open, as text, if it is enough for that many more replicas.

    Each limit is tried, as the kernel has several (of the user, of each user namespace above, of control groups) and
    reports no remainder: as much as will be needed is opened at once, and closed again. Programs react differently to
    these limits: Envoy aborts, apiservers no longer see new certificates. Raises PreconditionFailed.
    """
    watches = PER_PLANE + PER_REPLICA * replicas
    _require(doing, watches, _inotify_instances(watches), "inotify instances", _MORE_INSTANCES)
    threads = THREADS_PER_PLANE + THREADS_PER_REPLICA * replicas
    _require(doing, threads, _threads(threads), "threads", _MORE_THREADS)
    return f"{watches} more inotify instances and {threads} more threads are available"


def _require(doing: str, need: int, had: int, what: str, then: str) -> None:
    if had < need:
        raise PreconditionFailed(doing, f"{had} more {what} could be opened here, about {need} are needed", then)


def _inotify_instances(wanted: int) -> int:
    """The number of instances, of that many, that could be opened at once. All are closed again."""
    opened: list[int] = []
    try:
        while len(opened) < wanted:
            try:
                opened.append(inotify_instance())
            except OSError:  # the limit of one of those above
                break
    finally:
        for each in opened:
            os.close(each)
    return len(opened)


def _threads(wanted: int) -> int:
    """The number of threads, of that many, that could be started at once. All have ended again."""
    over = threading.Event()
    started: list[threading.Thread] = []
    try:
        while len(started) < wanted:
            thread = threading.Thread(target=over.wait, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # "can't start new thread"
                break
            started.append(thread)
    finally:
        over.set()
        for each in started:
            each.join()
    return len(started)
