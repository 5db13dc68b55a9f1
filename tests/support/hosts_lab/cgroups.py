"""Control groups of machines: one for a lab, one in it for each machine, in every hierarchy that machines use.

On hosts with cgroups of version 1, or of both, a machine is in the groups of the same path of each. Version 2 is the
one that kills and freezes: the kernel has those in it whatever else is mounted where.

    LAB/MACHINE/power     the shell that runs nspawn
    LAB/MACHINE/machine   nspawn, and in groups that it makes below, the machine; none that has programs and groups
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_NEEDED = ("cpuset.cpus", "cpuset.mems")
"""What a group of version 1 must be given before anybody can be in it."""
_WEIGHTS = {"cpu.shares": (1024, 262_144), "cpu.weight": (100, 10_000)}
"""What a session of the host's own weighs in version 1 and 2 (sched(7): autogroups), and the most that a group may."""
_POLL = 0.005


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Where the kernel's groups are mounted."""

    unified: Path
    others: tuple[Path, ...]

    @classmethod
    def found(cls) -> Hierarchies:
        """Those of this host."""
        unified, others = [], []
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _device, path, kind, *_ = line.split(" ")
            if kind == "cgroup2":
                unified.append(Path(path))
            elif kind == "cgroup":
                others.append(Path(path))
        assert unified, "this host has no cgroups of version 2, by which machines are ended"
        return cls(unified[0], tuple(others))


@dataclass(frozen=True, slots=True)
class Group:
    """A group, in all hierarchies: its path in each."""

    hierarchies: Hierarchies
    path: str

    def below(self, name: str) -> Group:
        """A group inside of it."""
        return Group(self.hierarchies, f"{self.path}/{name}")

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where it is."""
        return tuple(root / self.path for root in (self.hierarchies.unified, *self.hierarchies.others))

    @property
    def _unified(self) -> Path:
        return self.hierarchies.unified / self.path

    def make(self, *, leaf: bool = False) -> None:
        """Make it. What it is given it gives on to its groups, unless it is for programs, and so a leaf."""
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
            for name in _NEEDED:
                if (folder / name).exists():
                    (folder / name).write_text((folder.parent / name).read_text())
        if leaf:
            return
        offered = (self._unified / "cgroup.controllers").read_text().split()
        (self._unified / "cgroup.subtree_control").write_text(" ".join(f"+{each}" for each in offered))

    def weigh(self, sessions: int) -> None:
        """Have it get as much of the processors, where they are short, as so many sessions of the host's own."""
        for folder in self.folders:
            for name, (each, most) in _WEIGHTS.items():
                if (folder / name).exists():
                    (folder / name).write_text(str(min(each * sessions, most)))

    def pids(self) -> Iterator[int]:
        """All that run in it, and below."""
        for folder, _folders, _files in os.walk(self._unified):
            with contextlib.suppress(OSError):  # it has just been removed, or is one of threads
                yield from map(int, Path(folder, "cgroup.procs").read_text().split())

    def freeze(self, *, frozen: bool) -> None:
        """Have all that is in it stand still where it is, or go on; returns when it does."""
        (self._unified / "cgroup.freeze").write_text(str(int(frozen)))
        _until(lambda: self._says("frozen") == int(frozen), time.monotonic() + 10.0, f"{self.path} to stand still")

    def kill(self, deadline: float) -> None:
        """End all that is in it, in one go, and wait for that (``deadline``: monotonic seconds)."""
        with contextlib.suppress(FileNotFoundError):
            (self._unified / "cgroup.freeze").write_text("0")
            (self._unified / "cgroup.kill").write_text("1")
            _until(lambda: not self._says("populated"), deadline, f"the end of {self.path}")

    def end(self, deadline: float) -> None:
        """The same, and remove it, with the groups in it. Who was just about to come in finds nothing to come into."""
        while any(folder.exists() for folder in self.folders):
            self.kill(deadline)
            left = [folder for folder in self.folders if not _removed(folder)]
            if not left:
                return
            assert time.monotonic() < deadline, f"groups that cannot be removed: {left}"
            time.sleep(_POLL)

    def _says(self, what: str) -> int:
        words = (self._unified / "cgroup.events").read_text().split()
        return int(words[words.index(what) + 1])


def _removed(folder: Path) -> bool:
    """Remove a group and those in it; whether nothing is left of it."""
    for path, _folders, _files in os.walk(folder, topdown=False):
        try:
            Path(path).rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EBUSY):
                raise
    return not folder.exists()


def _until(good: Callable[[], bool], deadline: float, what: str) -> None:
    while not good():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(_POLL)
