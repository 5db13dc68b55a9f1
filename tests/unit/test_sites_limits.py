"""The host's limits."""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.golden import Golden

import quarterdeck
from quarterdeck.errors import PreconditionFailed
from quarterdeck.sites.kernel import PER_PLANE, PER_REPLICA
from quarterdeck.sites.local import limits

SOURCE = Path(quarterdeck.__file__).parents[1]


def descriptors() -> set[int]:
    return {int(each.name) for each in Path("/proc/self/fd").iterdir()}


def test_what_is_tried_is_let_go_again() -> None:
    before = len(descriptors()), threading.active_count()
    assert "inotify instances" in limits.require_limits("creating plane x", 1)
    assert (len(descriptors()), threading.active_count()) == before


def test_more_than_a_process_may_open_is_refused_though_the_users_limit_is_far_away(golden: Golden) -> None:
    """What no count of the user's own descriptors tells."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = PER_PLANE + PER_REPLICA
    taken = descriptors()
    free = (number for number in itertools.count() if number not in taken)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(itertools.islice(free, need // 2, None)), hard))
    try:
        with golden.raises(PreconditionFailed):
            limits.require_limits("creating plane x", 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_a_namespace_of_users_may_have_counts_too() -> None:
    """The user has its whole limit left in /proc, and the kernel refuses all the same."""
    script = """
        echo 3 > /proc/sys/user/max_inotify_instances || exit 77
        exec "$0" -c 'from quarterdeck.sites.local import limits; limits.require_limits("creating plane x", 1)'
    """
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    argv = ["unshare", "--user", "--map-root-user", "bash", "-c", script, sys.executable]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no namespace of users here: {done.stderr}")
    assert "3 more inotify instances could be opened here" in done.stderr


def test_threads_that_cannot_be_started_are_counted(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    begun: list[threading.Thread] = []
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if len(begun) == 7:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with golden.raises(PreconditionFailed):
        limits.require_limits("creating plane x", 1)
    assert not any(each.is_alive() for each in begun)


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
