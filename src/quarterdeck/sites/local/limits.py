"""Limits of this host that many programs share, and that a local site runs into first."""

from __future__ import annotations

import os
from pathlib import Path

from quarterdeck.errors import PreconditionFailed

_INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
#: As seen from inside a container: its own group.
_CGROUP = Path("/sys/fs/cgroup")
#: inotify instances that one replica's programs open in all (seen with Kubernetes 1.36: an apiserver 7, one for each
#: file that it watches, a controller manager and a scheduler 2 each), those that a controller manager which leads opens
#: besides (one for each signer, one for volume plugins), and those of a load balancer (3), a DNS server and a door.
PER_REPLICA = 11
PER_LEADER = 5
PER_PLANE = PER_LEADER + 5


def available_memory() -> int:
    """Bytes of memory that new programs can have before others suffer, as the kernel estimates it (proc(5)). The limit
    of a control group counts too, as far as this process can see it.
    """
    line = next(each for each in Path("/proc/meminfo").read_text().splitlines() if each.startswith("MemAvailable:"))
    host = int(line.split()[1]) * 1024
    try:
        limit, used = (int((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):
        return host  # no control group of our own, or one without a limit ("max")
    return min(host, max(0, limit - used))


def inotify_left() -> int | None:
    """How many more inotify instances this user may open; None when that cannot be found out.

    The limit is per user (inotify(7)); what other users' processes hold does not count. Programs meet it as they
    like: Envoy aborts, apiservers no longer see new certificates.
    """
    try:
        limit = int(_INSTANCES.read_text())
    except (OSError, ValueError):
        return None
    return limit - sum(instances(process) for process in Path("/proc").iterdir() if process.name.isdigit())


def instances(process: Path) -> int:
    """How many a process of this user's has, by its folder in /proc."""
    try:
        if process.stat().st_uid != os.getuid():
            return 0
        return sum(map(_is_inotify, (process / "fd").iterdir()))
    except OSError:
        return 0  # it ended, or it hides itself


def _is_inotify(descriptor: Path) -> bool:
    try:
        return descriptor.readlink().name.endswith("inotify")
    except OSError:
        return False  # it was closed meanwhile


def require_inotify(doing: str, replicas: int) -> int:
    """How many instances are left, if they are enough for ``replicas`` more. Raises PreconditionFailed."""
    left = inotify_left()
    need = PER_PLANE + PER_REPLICA * replicas
    if left is not None and left < need:
        raise PreconditionFailed(
            doing,
            f"this user may open {max(0, left)} more inotify instances, about {need} are needed",
            "raise the limit: sysctl -w fs.inotify.max_user_instances=1024",
        )
    return need if left is None else left
