"""The upstream programs (kube-apiserver, etcd, ...) in any supported version, and their sources."""

from __future__ import annotations

from quarterdeck.progress import Progress, SilentProgress
from quarterdeck.upstream.cache import CacheEntry, State
from quarterdeck.upstream.catalog import CONTROL_PLANE, Project, UpstreamProgram, Version, Versions
from quarterdeck.upstream.upstream import Upstream, cache_root

__all__ = [
    "CONTROL_PLANE",
    "CacheEntry",
    "Progress",
    "Project",
    "SilentProgress",
    "State",
    "Upstream",
    "UpstreamProgram",
    "Version",
    "Versions",
    "cache_root",
]
