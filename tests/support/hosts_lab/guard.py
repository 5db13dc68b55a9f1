"""A process that takes a lab down when whoever asked for it is gone, whatever became of it.

It ends with its standard input, which that process holds and nobody else has. While it lives it has a lock on the
lab's folder: one that nobody has a lock on is taken down by whoever makes the next lab.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from filelock import FileLock

from quarterdeck.package import python_path
from quarterdeck.sites.netns.lab import Lab
from support.hosts_lab.cgroups import Group, Hierarchies
from support.hosts_lab.image import lab_cache

_ENDING = 30.0
_DISMISSED = 40.0
_READY = b"."
_TESTS = Path(__file__).parents[2]


def group_of(folder: Path) -> Group:
    """The control group of the lab in a folder."""
    return Group(Hierarchies.found(), f"quarterdeck-lab-{folder.name}")


def network_of(folder: Path) -> Path:
    """What the lab of networks has for its home."""
    return folder / "network"


def guarded(name: str) -> tuple[Path, subprocess.Popen[bytes]]:
    """A new folder for a lab, with its guard: close its standard input to have all of it taken down. Labs that
    nobody guards any more are taken down before.
    """
    running = lab_cache() / "running"
    running.mkdir(parents=True, exist_ok=True)
    with FileLock(running / ".lock"):
        for each in running.iterdir():
            if each.is_dir() and (lock := _locked(each)) is not None:
                take_down(each)
                os.close(lock)
        folder = running / name
        folder.mkdir(mode=0o755)
        environment = {**os.environ, "PYTHONPATH": f"{_TESTS}{os.pathsep}{python_path()}"}
        argv = (sys.executable, "-P", "-c", "from support.hosts_lab.guard import guard; guard()", str(folder))
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd="/", start_new_session=True
        )
        assert process.stdout is not None
        assert process.stdout.read(1) == _READY, "the guard of the lab does not start"
        return folder, process


def dismissed(guard: subprocess.Popen[bytes]) -> int:
    """Have a guard take its lab down, and end: its exit code."""
    assert guard.stdin is not None
    assert guard.stdout is not None
    with guard.stdin, guard.stdout:
        pass
    return guard.wait(_DISMISSED)


def take_down(folder: Path) -> None:
    """End all that belongs to a lab, and remove it."""
    group_of(folder).end(time.monotonic() + _ENDING)
    if network_of(folder).exists():
        asyncio.run(Lab(network_of(folder)).close())
    shutil.rmtree(folder)


def _locked(folder: Path) -> int | None:
    """A lock on the folder, which closing it lets go; None if somebody has it."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def guard() -> None:
    """What that process does; its argument is the lab's folder."""
    folder = Path(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    assert _locked(folder) is not None
    os.write(sys.stdout.fileno(), _READY)
    while os.read(sys.stdin.fileno(), 1):
        pass
    take_down(folder)
