"""A unit that starts gives way, and no longer than its start takes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quarterdeck.sites.local.supervisor import courtesy
from quarterdeck.sites.local.supervisor.courtesy import NICE, Courtesy

BUSY = "while True: pass"
CALM = "import time; time.sleep(100)"

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="this kernel has no autogroups, and then nothing is to be done"
)


@pytest.fixture
def started() -> Iterator[Callable[[str], int]]:
    running: list[subprocess.Popen[bytes]] = []

    def start(program: str) -> int:
        running.append(subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, start_new_session=True))
        return running[-1].pid

    yield start
    for process in running:
        with process, contextlib.suppress(ProcessLookupError):  # its children are part of its process group
            os.killpg(process.pid, signal.SIGKILL)


def nice(pid: int) -> int:
    return int(Path("/proc", str(pid), "autogroup").read_text().split()[-1])


def looked(made: Courtesy, until: Callable[[], bool], seconds: float = 10.0) -> float | None:
    """Look whenever it is due, until something is so; what the last look said."""
    deadline = time.monotonic() + seconds
    while True:
        due = made.look()
        if until():
            return due
        assert time.monotonic() < deadline, "it never came"
        time.sleep(min(due or 0.05, 0.05))


def test_a_start_gives_way_until_it_is_calm(started: Callable[[str], int]) -> None:
    made, pid = Courtesy(), started(CALM)
    made.begins(pid)
    looked(made, lambda: nice(pid) == NICE)
    assert looked(made, lambda: nice(pid) == 0 and made.look() is None) is None


def test_one_that_always_gives_way_goes_on_doing_so_after_its_start(started: Callable[[str], int]) -> None:
    made, pid = Courtesy(), started(CALM)
    made.begins(pid, after=5)
    looked(made, lambda: nice(pid) == NICE)
    assert looked(made, lambda: nice(pid) == 5 and made.look() is None) is None


def test_a_start_that_takes_long_gives_way_no_longer_than_that(
    started: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courtesy, "LONGEST", 2.0)
    made, pid = Courtesy(), started(BUSY)
    began = time.monotonic()
    made.begins(pid)
    looked(made, lambda: nice(pid) == NICE)
    looked(made, lambda: nice(pid) == 0)
    assert time.monotonic() - began >= 2.0


def test_what_has_started_gives_way_as_it_is_told_later(started: Callable[[str], int]) -> None:
    made, pid = Courtesy(), started(CALM)
    made.settles(pid, 5)
    assert looked(made, lambda: nice(pid) == 5 and made.look() is None) is None
    made.settles(pid, 0)
    assert looked(made, lambda: nice(pid) == 0 and made.look() is None) is None


def test_one_that_is_told_to_serve_gives_way_no_longer(started: Callable[[str], int]) -> None:
    made, pid = Courtesy(), started(BUSY)
    made.begins(pid)
    looked(made, lambda: nice(pid) == NICE)
    made.settles(pid, 0)
    assert looked(made, lambda: nice(pid) == 0 and made.look() is None, courtesy.LONGEST / 2) is None


def test_one_that_does_not_give_way_may_be_told_to_serve(started: Callable[[str], int]) -> None:
    made, pid = Courtesy(), started(CALM)
    made.settles(pid, 0)
    assert looked(made, lambda: made.look() is None) is None
    assert nice(pid) == 0


def test_a_process_that_is_no_session_yet_does_not_slow_down_who_started_it(
    monkeypatch: pytest.MonkeyPatch, started: Callable[[str], int], tmp_path: Path
) -> None:
    # The starter is a session of its own: whoever runs the tests may be in no autogroup at all.
    pid_file = tmp_path / "pid"
    starter = started(
        "import pathlib, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {BUSY!r}])\n"
        f"pathlib.Path({str(pid_file)!r}).write_text(str(child.pid))\n"
        "sys.stdin.read()\n"
    )
    deadline = time.monotonic() + 10
    while not (pid_file.exists() and pid_file.read_text()):
        assert time.monotonic() < deadline, "the starter did not start"
        time.sleep(0.02)
    monkeypatch.setattr(courtesy, "LONGEST", 1.0)
    made = Courtesy()
    made.begins(int(pid_file.read_text()))
    looked(made, lambda: made.look() is None)
    assert nice(starter) == 0


def test_a_process_that_has_ended_is_forgotten(started: Callable[[str], int]) -> None:
    made, pid = Courtesy(), started(CALM)
    made.begins(pid)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    looked(made, lambda: made.look() is None)
