"""The kernel's limit on inotify instances: what is left of it, and what planes need."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

#: Instances that a replica's programs have (seven its apiserver: one for each watched file, and two for each of its
#: controllers), and that a load balancer has.
OF_REPLICA = 11
OF_BALANCER = 3
_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")


def instances(pid: int) -> int:
    """How many a process has; 0 for one that has ended, or that is not ours to look at."""
    found = 0
    with contextlib.suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # it was closed while we looked
                found += str(each.readlink()) == "anon_inode:inotify"
    return found


def left() -> int:
    """How many more this user may have."""
    mine = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal() and _owner(each) == os.getuid()]
    return int(_LIMIT.read_text()) - sum(map(instances, mine))


def require(wanted: int) -> None:
    """Skip a test that needs more than there are left."""
    free = left()
    if free < wanted:
        advice = "raise fs.inotify.max_user_instances to 1024"
        pytest.skip(f"it takes {wanted} inotify instances, {free} are left: {advice}")


def _owner(process: Path) -> int:
    try:
        return process.stat().st_uid
    except OSError:
        return -1
