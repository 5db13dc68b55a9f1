"""Storage that all machines of a lab reach, with the commands that a person would write for it: each volume is a folder
of this host, which is mounted on one machine at a time. ``python -m support.lab_storage LAB COMMAND...``, see ``main``.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from quarterdeck.package import python_path
from quarterdeck.sites.ssh.hosts import NO_SUCH_VOLUME, VolumeCommands
from support.hosts_lab.guard import group_of
from support.hosts_lab.machine import Machine
from support.hosts_lab.network import Place

_TESTS = Path(__file__).parents[1]
_ENDING = 10.0  # seconds
_MOUNT = 'mkdir -p "$2" && mount --bind "/srv/storage/$1" "$2"'
_UNMOUNT = 'while umount --lazy "$1" 2> /dev/null; do :; done'


def commands(lab: Path) -> VolumeCommands:
    """The commands of the storage of a lab, whose folder is given."""
    path = f"PYTHONPATH={_TESTS}{os.pathsep}{python_path()}"
    words = ("/usr/bin/env", path, sys.executable, "-P", "-m", "support.lab_storage", str(lab))
    return VolumeCommands(
        attach=(*words, "attach", "{volume}", "{host}", "{path}", "{make}"),
        detach=(*words, "detach", "{volume}", "{host}", "{path}"),
        snapshot=(*words, "snapshot", "{volume}", "{snapshot}"),
    )


def main(lab: Path, what: str, volume: str, *rest: str) -> int:
    """``attach VOLUME HOST PATH yes|no``, ``detach VOLUME HOST PATH``, ``snapshot VOLUME NAME``."""
    storage = lab / "storage"
    with (storage / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        match (what, *rest):
            case ["attach", host, path, make]:
                return _attach(lab, volume, host, path, make=make == "yes")
            case ["detach", host, path]:
                return _detach(lab, volume, host, path)
            case ["snapshot", name]:
                return _snapshot(storage, volume, name)
    raise ValueError(what)


def _attach(lab: Path, volume: str, host: str, path: str, *, make: bool) -> int:
    folder, owner = lab / "storage" / volume, lab / "storage" / f".owner-{volume}"
    if (lab / "storage/.full").exists():
        print("the storage takes no connections now")
        return 1
    if not folder.exists():
        if not make:
            return NO_SUCH_VOLUME
        folder.mkdir()
    if owner.exists() and owner.read_text() != host:
        print(f"{owner.read_text()} has it")
        return 1
    owner.write_text(host)
    machine = _machine(lab, host)
    if any(
        line.split()[4] == path for line in machine.run(("cat", "/proc/self/mountinfo")).stdout.decode().splitlines()
    ):
        return 0
    return machine.run(("/bin/sh", "-euc", _MOUNT, "sh", volume, path)).returncode


def _detach(lab: Path, volume: str, host: str, path: str) -> int:
    """Also from a machine that is off, cut off, or stands still: the lab has hands in each."""
    folder, owner = lab / "storage" / volume, lab / "storage" / f".owner-{volume}"
    if not folder.exists():
        return NO_SUCH_VOLUME
    if not owner.exists() or owner.read_text() != host:
        return 0
    machine = _machine(lab, host)
    if machine.leader is not None:
        machine.run(("/bin/sh", "-c", _UNMOUNT, "sh", path))
        _end_users(machine, folder)
    owner.unlink()
    return 0


def _end_users(machine: Machine, folder: Path) -> None:
    """Kill all of a machine that has a file of the folder open, and wait for that."""
    files = {(seen.st_dev, seen.st_ino) for each in (folder, *folder.rglob("*")) for seen in [each.stat()]}
    end = time.monotonic() + _ENDING
    while users := [pid for pid in machine.group.pids() if files.intersection(_opened(pid))]:
        for pid in users:
            os.kill(pid, signal.SIGKILL)
        assert time.monotonic() < end, f"{users} do not end"
        time.sleep(0.01)


def _opened(pid: int) -> Iterator[tuple[int, int]]:
    try:
        for each in (*Path(f"/proc/{pid}/fd").iterdir(), Path(f"/proc/{pid}/cwd")):
            seen = each.stat()
            yield seen.st_dev, seen.st_ino
    except OSError:
        return  # it has ended, or closed it


def _snapshot(storage: Path, volume: str, name: str) -> int:
    if not (storage / volume).exists():
        return NO_SUCH_VOLUME
    copy = storage / f".snapshot-{volume}-{name}"
    if not copy.exists():
        part = copy.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        subprocess.run(["cp", "-a", str(storage / volume), str(part)], check=True)
        part.rename(copy)
    return 0


def _machine(lab: Path, name: str) -> Machine:
    """Hands in a machine that another process has the lab of."""
    place = Place("", "", name, (0, 0))
    return Machine(place, lab / "machines" / name, group_of(lab).below(name), Path(), "")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
