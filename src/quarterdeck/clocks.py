"""A monotonic clock. NTP or a person may set the wall clock at any moment."""

from __future__ import annotations

import time
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/time")


def steady() -> float:
    """Seconds since this host's boot, including time in suspend. Only differences within one boot are meaningful."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot() -> str:
    """The id of the boot that ``steady`` counts from: equal for all processes whose times can be compared.

    A container may have its own boot clock (time_namespaces(7), Linux 5.6).
    """
    namespace = str(_NAMESPACE.readlink()) if _NAMESPACE.is_symlink() else ""
    return f"{_BOOT.read_text().strip()} {namespace}".strip()
