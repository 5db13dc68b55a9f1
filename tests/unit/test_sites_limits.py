"""The host's limits."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from quarterdeck.errors import PreconditionFailed
from quarterdeck.sites.local import limits


def test_an_open_inotify_instance_counts() -> None:
    before = limits.instances(Path("/proc/self"))
    descriptor = ctypes.CDLL(None).inotify_init()
    try:
        assert limits.instances(Path("/proc/self")) == before + 1
    finally:
        os.close(descriptor)


def test_more_replicas_than_the_host_can_watch_for_are_refused_before_anything_is_done() -> None:
    with pytest.raises(PreconditionFailed, match="max_user_instances"):
        limits.require_inotify("creating plane x", 1_000_000)


def test_memory_is_the_hosts_or_what_a_control_group_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_CGROUP", tmp_path)
    host = limits.available_memory()
    assert host > 2**24
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert limits.available_memory() > 2**24
    (tmp_path / "memory.max").write_text("5000\n")
    assert limits.available_memory() == 4000
    (tmp_path / "memory.max").write_text("500\n")
    assert limits.available_memory() == 0
