"""The clock that nobody sets. The wall clock may be stepped at any moment, by NTP or a person."""

from __future__ import annotations

import time
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/time")


def steady() -> float:
    """Seconds since this host's boot, with those for which it slept. Only differences within one boot mean a thing."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot() -> str:
    """Which boot of which host ``steady`` counts from: equal for all processes whose times can be compared.

    A container may have a boot clock of its own (time_namespaces(7), Linux 5.6).
    """
    namespace = str(_NAMESPACE.readlink()) if _NAMESPACE.is_symlink() else ""
    return f"{_BOOT.read_text().strip()} {namespace}".strip()
